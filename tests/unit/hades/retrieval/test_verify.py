"""Citations are checked against the documents and their hashes, within the reads allowed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hades.budget import Caps, Turn
from hades.ports.store import Direction
from hades.retrieval.answer.assemble import Citation, Verdict, verify_spans
from hades.retrieval.core.metered_view import MeteredView
from hades.snapshot.open import open_snapshot
from hades.snapshot.publish import publish
from hades.snapshot.view import GraphView
from schemas.ids import sha256_text
from tests.contract.examples import entity, put, relation
from tests.homes import empty_store
from tests.unit.hades.retrieval.small_corpus import DOCUMENTS, chunks_of, published
from tests.unit.hades.snapshot.homes import chunk, document

LAKE = DOCUMENTS["lake"][1]
GOOD = Citation("documents/lake", (0, 9), "Lake Orin")


@pytest.fixture(scope="module")
def view(tmp_path_factory: pytest.TempPathFactory) -> GraphView:
    return published(tmp_path_factory.mktemp("corpus"))


def verdicts(view: GraphView, *citations: Citation) -> list[Verdict]:
    return verify_spans(view, citations)


def snapshot_of(home: Path, *, text: str, sha256: str, span: tuple[int, int] = (0, 9)) -> GraphView:
    """A snapshot of one document stored under this hash, cited by a chunk and, with the span, by an
    edge.
    """
    store = empty_store(home / "graph.db")
    put(store, "documents", {**document("lake", text), "sha256": sha256})
    put(store, "doc_chunks", chunk("lake", "lake", text, 0, 9))
    put(store, "entities", entity("a"), entity("b"))
    put(
        store,
        "relations",
        relation("a", "b", provenance={"doc": "documents/lake", "span": list(span)}),
    )
    publish(store, home)
    return open_snapshot(home)


def both_citations(view: GraphView) -> list[Citation]:
    """What the chunk and what the edge claim, as the view reads them now."""
    (passage,) = view.passages(np.array(chunks_of(view, "lake")))
    (edge,) = view.edges(view.expand(view.number(["entities/a"]), direction=Direction.OUT).edge)
    return [
        Citation(passage.document_id, passage.span, passage.text),
        Citation(edge.document_id, edge.span, edge.snippet),
    ]


def test_an_edge_that_points_past_the_end_of_its_document_is_a_mismatch(tmp_path: Path):
    wrong = snapshot_of(tmp_path, text=LAKE, sha256=sha256_text(LAKE), span=(5, 900))
    passage, edge = both_citations(wrong)
    assert edge.text == LAKE[5:]
    assert verdicts(wrong, passage, edge) == [Verdict.VERIFIED, Verdict.MISMATCH]


@pytest.mark.parametrize(
    ("span", "text"),
    [((0, 9), "Lake Orim"), ((1, 10), "Lake Orin"), ((0, 900), LAKE), ((-9, 9), ""), ((9, 0), "")],
)
def test_other_words_or_an_impossible_place_are_a_mismatch(
    view: GraphView, span: tuple[int, int], text: str
):
    found = verify_spans(view, [Citation("documents/lake", span, text)])
    assert found == [Verdict.MISMATCH]


def test_where_no_hash_is_kept_good_words_stay_unverified_and_wrong_ones_are_still_wrong(
    tmp_path: Path,
):
    unhashed = snapshot_of(tmp_path, text=LAKE, sha256="")
    wrong = replace(GOOD, span=(1, 10))
    assert verdicts(unhashed, GOOD, wrong) == [Verdict.UNVERIFIED, Verdict.MISMATCH]


def test_a_document_nobody_stored_and_a_citation_without_a_place_stay_unverified(view: GraphView):
    gone, nowhere = Citation("documents/gone", (0, 1), "x"), Citation("documents/lake", None, "x")
    sourceless = Citation("", None, "")
    assert verdicts(view, gone, nowhere, sourceless) == [Verdict.UNVERIFIED] * 3


def test_a_document_is_read_once_and_the_budget_leaves_the_rest_unverified(view: GraphView):
    turn = Turn(Caps(docs_max=1, work_max=0, latency_ms=10_000))
    metered = MeteredView(view, turn)
    lake, pike = (
        Citation("documents/lake", (0, 4), "Lake"),
        Citation("documents/fish", (0, 4), "Pike"),
    )
    found = verdicts(metered, lake, replace(lake, span=(5, 9), text="Orin"), pike)
    assert found == [Verdict.VERIFIED, Verdict.VERIFIED, Verdict.UNVERIFIED]
    assert verdicts(metered, lake) == [Verdict.VERIFIED]
    assert turn.reads_spent == 1
