"""Citations are checked against the documents, within the reads allowed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hades.ports.view import EdgeFacts, GraphView
from hades.retrieval.metered import MeteredView
from hades.retrieval.verify import (
    Citation,
    Verdict,
    document_ids,
    edge_citation,
    passage_citation,
    verify_spans,
)
from hades.telemetry.turn import Caps, Turn
from schemas.ids import sha256_text
from tests.unit.hades.retrieval.small_corpus import DOCUMENTS, chunks_of, published

LAKE = DOCUMENTS["lake"][1]


@pytest.fixture(scope="module")
def view(tmp_path_factory: pytest.TempPathFactory) -> GraphView:
    return published(tmp_path_factory.mktemp("corpus"))


def verdicts(view: GraphView, *citations: Citation) -> list[Verdict]:
    return list(verify_spans(view, citations).verdicts)


def test_a_passage_as_it_was_read_is_verified(view: GraphView):
    passage = view.passages(np.array(chunks_of(view, "lake")))[0]
    assert verdicts(view, passage_citation(passage)) == [Verdict.VERIFIED]


@pytest.mark.parametrize(
    ("span", "text"),
    [((0, 9), "Lake Orim"), ((1, 10), "Lake Orin"), ((0, 900), LAKE), ((-9, 9), ""), ((9, 0), "")],
)
def test_other_words_or_an_impossible_place_are_a_mismatch(view: GraphView, span: tuple[int, int], text: str):
    found = verify_spans(view, [Citation("documents/lake", span, text)])
    assert found.verdicts == (Verdict.MISMATCH,)
    assert (found.mismatches, found.unverified) == (1, 0)


def test_the_hash_must_be_the_documents(view: GraphView):
    good = Citation("documents/lake", (0, 9), "Lake Orin", sha256_text(LAKE))
    assert verdicts(view, good, replace(good, sha256=sha256_text("older"))) == [Verdict.VERIFIED, Verdict.MISMATCH]


def test_a_document_nobody_stored_and_a_citation_without_a_place_stay_unverified(view: GraphView):
    gone, nowhere = Citation("documents/gone", (0, 1), "x"), Citation("documents/lake", None, "x")
    assert verdicts(view, gone, nowhere) == [Verdict.UNVERIFIED, Verdict.UNVERIFIED]
    assert verify_spans(view, [gone, nowhere]).unverified == 2


def test_a_document_is_read_once_and_the_budget_leaves_the_rest_unverified(view: GraphView):
    turn = Turn(Caps(docs_max=1, work_max=0, latency_ms=10_000))
    lake, pike = Citation("documents/lake", (0, 4), "Lake"), Citation("documents/fish", (0, 4), "Pike")
    found = verdicts(MeteredView(view, turn), lake, replace(lake, span=(5, 9), text="Orin"), pike)
    assert found == [Verdict.VERIFIED, Verdict.VERIFIED, Verdict.UNVERIFIED]
    assert turn.reads_spent == 1


def test_an_edge_is_checked_where_its_document_is_known(view: GraphView):
    passages = view.passages(np.array(chunks_of(view, "lake", "fish")))
    known = document_ids(passages)
    assert known == {"origin of lake": "documents/lake", "origin of fish": "documents/fish"}
    edge = EdgeFacts("relations/r", "", "", "cites", document="origin of lake", span=(0, 9), snippet="Lake Orin")
    assert verdicts(view, edge_citation(edge, known), edge_citation(edge, {})) == [
        Verdict.VERIFIED,
        Verdict.UNVERIFIED,
    ]
    twice = [passages[0], replace(passages[0], document_id="documents/other")]
    assert document_ids(twice) == {}
