"""The double knows the AQL of `aql/` and nothing more; what it does with it the contract suite
shows.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.arango_double.errors import ServerError
from tests.arango_double.functions import FUNCTIONS
from tests.arango_double.parser import SPECIAL_FUNCTIONS, Language, parse
from tests.arango_double.search import stem

QUERIES = sorted((Path(__file__).parents[3] / "aql").rglob("*.aql"))
OPERATORS = {"AND", "OR", "NOT", "IN", "SUM"}  # the last one belongs to AGGREGATE


def functions_called(text: str) -> set[str]:
    """The functions of a query, without its comments and texts."""
    plain = re.sub(r'//[^\n]*|"[^"]*"', "", text)
    return set(re.findall(r"\b([A-Z][A-Z0-9_]+)\s*\(", plain)) - OPERATORS


def test_the_double_has_exactly_the_functions_that_queries_call() -> None:
    called = set[str]().union(*(functions_called(path.read_text("utf-8")) for path in QUERIES))
    assert called == {*FUNCTIONS, *SPECIAL_FUNCTIONS}


@pytest.mark.parametrize("path", QUERIES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_query_parses(path: Path) -> None:
    assert parse(path.read_text("utf-8"), Language(vector_index=True)).statements


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("RETURN GREATEST(1, 2)", 1540),
        ("RETURN APPROX_NEAR_COSINE(@a, @b)", 1540),
        ("RETURN LENGTH()", 1541),
        ("FOR d IN c RETURN d;", 1501),
        ("FOR d IN c UPDATE d WITH {} IN c", 1501),
        ("LET a = 1 LET a = 2 RETURN a", 1511),
        ("", 1502),
    ],
)
def test_what_a_server_refuses_or_no_query_uses_is_refused(text: str, number: int) -> None:
    with pytest.raises(ServerError) as refused:
        parse(text, Language())
    assert refused.value.number == number


def test_words_are_stemmed_as_by_the_server() -> None:
    words = {
        "evening": "even",
        "universities": "univers",
        "hopping": "hop",
        "flies": "fli",
        "biologist": "biologist",
    }
    assert {word: stem(word) for word in words} == words
