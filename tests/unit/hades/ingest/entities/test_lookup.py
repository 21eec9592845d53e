"""What a question names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from hades.ingest.entities.corpus import CorpusView
from hades.ingest.entities.derive import derive
from hades.ingest.entities.lookup import NameIndex

Row = dict[str, Any]
CORPUS: list[Row] = [
    {"id": "a", "title": "Python", "text": "Python is a language for machine learning."},
    {"id": "b", "title": "Ruby", "text": "Ruby is rarely used for machine learning."},
    {"id": "c", "title": "Lothair II (king)", "text": "Machine learning was unknown to Lothair II."},
    {"id": "d", "title": "Lothair II (film)", "text": "The film was shot with machine learning."},
]


@pytest.fixture(scope="module")
def find(view_of: Callable[[Sequence[Row]], CorpusView]) -> Callable[..., list[list[str]]]:
    entities = derive(view_of(CORPUS)).entities
    index, keys = NameIndex(entities), entities.column("_key").to_pylist()

    def names(question: str, **options: bool) -> list[list[str]]:
        (found,) = index.find([question], **options)
        return [[keys[row].rpartition("-")[0] or keys[row] for row in one.entities] for one in found]

    return names


def test_python_machine_learning_names_both(find: Callable[..., list[list[str]]]) -> None:
    assert find("Python machine learning") == [["python"], ["machine_learning"]]


def test_a_short_name_in_lower_case_is_found_only_on_request(find: Callable[..., list[list[str]]]) -> None:
    assert find("is ruby nice") == []
    assert find("is ruby nice", any_case=True) == [["ruby"]]


def test_a_bare_name_may_mean_each_of_its_homonyms(find: Callable[..., list[list[str]]]) -> None:
    assert find("When did Lothair II's mother die?") == [["lothair_ii", "lothair_ii"]]


def test_nothing_known_is_no_error(find: Callable[..., list[list[str]]]) -> None:
    assert find("who knows?") == []
