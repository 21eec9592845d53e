"""Personalized PageRank as retrieval calls it: bounds, fallbacks, both ways to walk."""

from __future__ import annotations

import numpy as np
import pytest

from hades.errors import BadQuery
from hades.ports.graph import Kind
from hades.retrieval.walks.pagerank import personalized_pagerank
from tests.unit.hades.retrieval.memory_view import Graph, MemoryView
from tests.unit.hades.retrieval.pushed_graphs import adjacency, communities


def passages() -> Graph:
    """Two passages name python, one of them also names snakes."""
    graph = Graph()
    python, snakes = graph.node(Kind.ENTITY, "python"), graph.node(Kind.ENTITY, "snakes")
    both, one = graph.node(Kind.CHUNK, "python and snakes"), graph.node(Kind.CHUNK, "python")
    for chunk, entity in ((both, python), (both, snakes), (one, python)):
        graph.edge(chunk, entity, "mentions", 1.0)
    return graph


def test_a_walk_from_an_entity_reaches_the_passages_that_name_it_though_edges_point_the_other_way():
    found = personalized_pagerank(
        MemoryView(passages()), np.array([0]), np.array([1.0]), epsilon=1e-9
    )
    scores = dict(zip(found.numbers.tolist(), found.scores.tolist(), strict=True))
    assert scores[2] > scores[3] > 0
    assert found.bound <= 1e-9
    assert found.scores.sum() + found.residue == pytest.approx(1.0)


def test_types_leave_edges_out():
    view = MemoryView(passages())
    nothing = personalized_pagerank(view, np.array([0]), np.array([1.0]), factors={"mentions": 0.0})
    assert (nothing.numbers.tolist(), nothing.scores.tolist()) == ([0], [1.0])
    with pytest.raises(BadQuery, match="'likes' is not an edge type"):
        personalized_pagerank(view, np.array([0]), np.array([1.0]), factors={"likes": 1.0})


def test_without_any_work_the_restart_nodes_come_by_weight_and_degree():
    graph = adjacency([(0, 1, 1.0), (0, 2, 1.0), (0, 3, 1.0), (4, 3, 1.0)], 5)
    found = personalized_pagerank(graph, np.array([0, 4]), np.array([1.0, 1.0]), max_work=0)
    assert found.numbers.tolist() == [0, 4]
    assert found.scores.sum() + found.residue == pytest.approx(1.0)
    assert (found.capped, found.bound, found.work) == (True, 0.5, 0)


def test_the_clock_ends_a_walk_in_the_middle():
    edges = communities(2000, 40_000, 200, 3)
    asked: list[int] = []

    def stop() -> bool:
        asked.append(1)
        return True

    found = personalized_pagerank(
        adjacency(edges, 2000),
        np.array([0]),
        np.array([1.0]),
        epsilon=1e-12,
        max_work=10**9,
        stop=stop,
    )
    assert found.capped
    assert len(asked) == 1


@pytest.mark.parametrize("wrong", [{"damping": 1.0}, {"damping": -0.1}, {"epsilon": 0.0}])
def test_impossible_settings_are_refused(wrong):
    with pytest.raises(BadQuery, match="need 0 <= damping < 1 and epsilon > 0"):
        personalized_pagerank(adjacency([(0, 1, 1.0)], 2), np.array([0]), np.array([1.0]), **wrong)
    with pytest.raises(BadQuery, match="finite weights"):
        personalized_pagerank(adjacency([(0, 1, 1.0)], 2), np.array([0]), np.array([np.nan]))
