"""A file of coefficients is refused, with the reason, when it is not what this program fits."""

import pytest

from hades.retrieval.core.words import linear_looks
from models.rankings import BadFit, read_looks

GOOD = {"version": 1, "data_sha256": {}, "metric": {}, "command": "x", "first": {"a": 1.0}, "second": {"b": 2.0}}


def test_the_files_that_come_with_the_library_are_read():
    assert "best_sentence" in linear_looks("multihop").first
    assert "same_title" in linear_looks("memory").second


@pytest.mark.parametrize(
    ("change", "reason"),
    [({"version": 2}, "version 2"), ({"first": {}}, "first is empty"), ({"second": {"b": float("nan")}}, "not finite")],
)
def test_a_wrong_file_is_refused(change, reason):
    with pytest.raises(BadFit, match=reason):
        read_looks({**GOOD, **change})


def test_a_file_without_its_origin_is_refused():
    with pytest.raises(BadFit, match="data_sha256, metric, command"):
        read_looks({"version": 1, "first": {"a": 1.0}, "second": {"b": 1.0}})
