"""What the reader of names sees of code: the spans of prose, found in facts of every form."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from hades.ingest.code_graph.corpus import blank_code
from schemas.record import canonical_json

_TEXT = "x = 1  # set x\ny = 2  # é is kept\nz = 3\n"
_SPANS = [[7, 14], [22, 33]]
_SEEN = "       # set x\n       # é is kept\n     \n"
_SAYS_IT = {"symbols": [{"docstring": 'as in "prose":[[0,5]]'}]}


def _blank(facts: dict[str, Any], cuts: list[int]) -> str:
    """The chunks of one document after blanking, joined again; it is cut at these places."""
    ends = [*cuts, len(_TEXT)]
    bounds = list(zip([0, *cuts], ends, strict=True))
    documents = pa.table({"_key": ["d1"], "facts": [canonical_json(facts)]})
    chunks = pa.table(
        {
            "document": ["documents/d1"] * len(bounds),
            "text": [_TEXT[begin:end] for begin, end in bounds],
            "span": [list(bound) for bound in bounds],
        }
    )
    return "".join(blank_code(chunks, documents).column("text").to_pylist())


@pytest.mark.parametrize("cuts", [[], [15], [10, 15, 28, 34]])
@pytest.mark.parametrize(
    "facts",
    [
        {"code": {"prose": _SPANS}},
        {"code": {"prose": _SPANS, **_SAYS_IT}, "sections": [[0, 40, "module"]]},
        {"commit": {"prose": _SPANS}},
        {"code": {"prose": _SPANS}, "commit": {"prose": []}},
        {"code": {"prose": _SPANS}, "sections": [{"prose": [[0, 5]]}]},
    ],
)
def test_all_but_docstrings_and_comments_is_blanked_wherever_chunks_are_cut(
    facts: dict[str, Any], cuts: list[int]
) -> None:
    assert _blank(facts, cuts) == _SEEN


@pytest.mark.parametrize(
    "facts", [{"code": _SAYS_IT}, {"code": {"path": "a.py"}, "commit": {"prose": []}}, {"sections": [{"prose": []}]}]
)
def test_a_document_that_states_no_spans_of_prose_stays_as_it_is(facts: dict[str, Any]) -> None:
    assert _blank(facts, [15]) == _TEXT


def test_code_without_any_prose_is_blank() -> None:
    assert _blank({"code": {"prose": []}}, []).split() == []
