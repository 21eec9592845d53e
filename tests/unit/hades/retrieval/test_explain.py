"""Why a node was not reached: one claim a cause."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hades.retrieval.core.types import CandidateGraph, Question
from hades.retrieval.explain import Cause, Explanation, Limits, explain_missing
from hades.retrieval.walks.beam import BeamRules, search_beam
from hades.retrieval.walks.flow import FlowRules
from hades.snapshot.view import GraphView
from schemas.ids import Mask
from tests.contract.examples import day, relation
from tests.unit.hades.retrieval.graphs import metered, number, published, question, seeds

BEAM = BeamRules(hops=2, fanout=2, beam=8, look=8)


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> GraphView:
    """s leads to a, b and c by falling weight, a on to a2, a3 and a4; `late` came on day 5; z is
    alone.
    """
    late = relation("s", "late", weight=1.0) | {"valid_from": day(5)}
    chain = [("a", "a2", 0.9), ("a2", "a3", 0.9), ("a3", "a4", 0.9)]
    return published(
        tmp_path_factory.mktemp("explained"),
        [("s", "a", 0.9), ("s", "b", 0.8), ("s", "c", 0.1), *chain],
        names=["z"],
        relations=[late],
        mentions={"about-c": ["c"]},
    )


def why(graph: GraphView, key: str, limits: Limits, asked: Question | None = None) -> Explanation:
    asked = asked or replace(question(), mask=Mask(as_of=day(6)))
    return explain_missing(metered(graph), asked, seeds(graph, "s"), number(graph, key), limits)


def test_a_node_that_was_reached_is_called_reached(graph: GraphView) -> None:
    assert why(graph, "a", Limits(BEAM)).code is Cause.REACHED


def test_a_better_neighbour_took_the_place(graph: GraphView) -> None:
    found = why(graph, "c", Limits(BEAM))
    assert found.code is Cause.FANOUT
    assert "2 better neighbours" in found.sentence


def test_a_better_path_took_the_place(graph: GraphView) -> None:
    assert why(graph, "a2", Limits(replace(BEAM, beam=2))).code is Cause.BEAM


def test_it_is_too_far(graph: GraphView) -> None:
    assert why(graph, "a3", Limits(BEAM)).code is Cause.HOPS
    far = why(graph, "a4", Limits(BEAM))
    assert (far.code, far.evidence["distance"]) == (Cause.HOPS, 4)


def test_it_was_not_true_yet(graph: GraphView) -> None:
    early = replace(question(), mask=Mask(as_of=day(4)))
    assert why(graph, "late", Limits(BEAM), early).code is Cause.MASK


def test_it_is_outside_the_candidates(graph: GraphView) -> None:
    inside = CandidateGraph(np.array([number(graph, "b")]), np.ones(1, np.float32))
    assert why(graph, "a", Limits(BEAM, candidate_graph=inside)).code is Cause.CANDIDATES


def test_too_little_flow_arrives(graph: GraphView) -> None:
    limits = Limits(replace(BEAM, hops=0), FlowRules(theta=0.9))
    asked = seeds(graph, "s", "c")
    found = explain_missing(metered(graph), question(), asked, number(graph, "c"), limits)
    assert found.code is Cause.THRESHOLD
    assert "0.9" in found.sentence


def test_it_is_not_connected(graph: GraphView) -> None:
    assert why(graph, "z", Limits(BEAM)).code is Cause.NOT_CONNECTED


def test_a_chunk_is_reached_through_what_it_names(graph: GraphView) -> None:
    assert why(graph, "doc_chunks/about-c", Limits(BEAM)).code is Cause.FANOUT
    assert why(graph, "doc_chunks/about-c", Limits(replace(BEAM, fanout=4))).code is Cause.REACHED


def test_without_seeds_nothing_was_searched(graph: GraphView) -> None:
    assert (
        explain_missing(metered(graph), question(), [], number(graph, "a"), Limits(BEAM)).code
        is Cause.NO_SEEDS
    )


def test_short_work_is_not_taken_for_an_answer(graph: GraphView) -> None:
    found = explain_missing(
        metered(graph, work=1), question(), seeds(graph, "s"), number(graph, "z"), Limits(BEAM)
    )
    assert found.code is Cause.UNDECIDED


def test_a_kept_path_is_explained_by_its_terms(graph: GraphView) -> None:
    path = search_beam(metered(graph), question(), seeds(graph, "s"), BEAM).paths[0]
    assert "weight 0.2*" in path.why
