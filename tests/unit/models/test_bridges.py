"""What edges and paths are worth, which pairs of topics are hot, and the best paths between two of
them.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.bridges import (
    Blocks,
    Heat,
    TopicPath,
    best_paths,
    block_edges,
    edge_logs,
    heat_of,
    hot_pairs,
    path_score,
    region_of,
    region_topics,
)
from tests.patience import examples

PENALTY = 0.3
Edge = tuple[int, int, float]
logs = st.lists(st.floats(math.log(1e-6), 0.0), min_size=1, max_size=5)


def test_an_edge_counts_its_weight_times_its_boost_and_never_less_than_eps() -> None:
    found = edge_logs(np.array([0.5, 0.0, np.nan]), np.array([0.8, 1.0, 1.0]), 1e-6)
    assert found[:2].tolist() == pytest.approx([math.log(0.4), math.log(1e-6)])
    assert np.isnan(found[2])


# Requirement X-48: by the formula of the specification more edges of the same evidence would win.
@given(logs.filter(lambda steps: len(steps) < 5), st.floats(0.01, 2.0))
def test_more_edges_of_the_same_mean_never_score_higher(steps: list[float], penalty: float) -> None:
    mean = math.fsum(steps) / len(steps)
    assert path_score([*steps, mean], penalty) < path_score(steps, penalty)


def heat(n_topics: int, *edges: tuple[int, int, float]) -> Heat:
    tail, head = (np.array([edge[side] for edge in edges], np.int64) for side in (0, 1))
    return heat_of(tail, head, np.array([edge[2] for edge in edges], np.float64), n_topics)


def test_the_hottest_pairs_come_first_and_ties_fall_to_the_order_of_topics() -> None:
    found = heat(4, (2, 3, 0.5), (0, 1, 0.5), (1, 2, 0.9))
    assert hot_pairs(found, near=3, far=0) == [(1, 2), (0, 1), (2, 3)]
    assert hot_pairs(found, near=1, far=0) == [(1, 2)]


def test_far_pairs_are_those_a_third_topic_carries_between() -> None:
    #  0 --.9-- 1 --.4-- 2 --.8-- 3
    found = heat(4, (0, 1, 0.9), (1, 2, 0.4), (2, 3, 0.8))
    assert hot_pairs(found, near=0, far=9) == [(0, 2), (1, 3)]  # both carry .4
    stronger = heat(4, (0, 1, 0.9), (1, 2, 0.4), (2, 3, 0.8), (3, 0, 0.6))
    assert hot_pairs(stronger, near=0, far=9) == [(0, 2), (1, 3)]
    assert hot_pairs(heat(3, (0, 1, 0.9), (1, 2, 0.4), (0, 2, 0.1)), near=0, far=9) == []


def test_a_region_prefers_what_is_joined_to_both() -> None:
    found = heat(6, (0, 2, 0.9), (0, 3, 0.3), (3, 1, 0.5), (4, 1, 0.8), (0, 5, 0.2), (5, 1, 0.9))
    assert region_topics(found, 0, 1, 3).tolist() == [0, 1, 3, 5, 2]
    assert region_topics(found, 0, 1, 9).tolist() == [0, 1, 3, 5, 2, 4]


def blocks_of(edges: list[Edge], topic: list[int]) -> Blocks:
    tail, head = (np.array([edge[side] for edge in edges], np.int64) for side in (0, 1))
    log = np.log(np.array([edge[2] for edge in edges], np.float64))
    return block_edges(tail, head, log, np.array(topic, np.int64), max(topic) + 1)


def search(
    blocks: Blocks, *topics: int, n_paths: int = 3, max_hops: int = 5, max_work: int = 10**6
) -> list[TopicPath]:
    region = region_of(blocks, np.array(topics, np.int64))
    rules = {"n_paths": n_paths, "max_hops": max_hops, "penalty": PENALTY, "max_work": max_work}
    return best_paths(blocks, region, **rules)[0]


def by_hand(edges: list[Edge], topic: list[int], region: list[int], max_hops: int) -> list[float]:
    """Scores of all paths from topic region[0] to region[1], best first; of parallel edges the
    heaviest counts.
    """
    heaviest: dict[tuple[int, int], float] = {}
    for tail, head, weight in edges:
        for step in ((tail, head), (head, tail)):
            heaviest[step] = max(weight, heaviest.get(step, 0.0))
    scores, stack = [], [[node] for node, of in enumerate(topic) if of == region[0]]
    while stack:
        walk = stack.pop()
        if topic[walk[-1]] == region[1]:
            scores.append(
                path_score([float(np.log(heaviest[step])) for step in pairwise(walk)], PENALTY)
            )
            continue
        if len(walk) <= max_hops:
            stack += [
                [*walk, head]
                for tail, head in heaviest
                if tail == walk[-1] and head not in walk and topic[head] in region[1:]
            ]
    return sorted(scores, reverse=True)


graphs = st.integers(4, 9).flatmap(
    lambda n: st.tuples(
        st.lists(
            st.tuples(
                st.integers(0, n - 1),
                st.integers(0, n - 1),
                st.sampled_from([0.1, 0.35, 0.5, 0.8, 1.0]),
            ),
            min_size=1,
            max_size=18,
        ).map(lambda edges: [edge for edge in edges if edge[0] != edge[1]]),
        st.lists(st.integers(0, 3), min_size=n, max_size=n),
    )
)


@settings(max_examples=examples(50), deadline=None)
@given(graphs, st.integers(1, 5))
def test_the_best_paths_are_those_a_full_enumeration_finds(
    graph: tuple[list[Edge], list[int]], max_hops: int
) -> None:
    edges, topic = graph
    topic = [*topic, 0, 1, 2, 3]  # every topic has somebody
    if not edges:
        return
    found = search(blocks_of(edges, topic), 0, 1, 2, 3, n_paths=4, max_hops=max_hops)
    logs = np.log([edge[2] for edge in edges])
    scores = [path_score(logs[list(path.edges)].tolist(), PENALTY) for path in found]
    np.testing.assert_allclose(
        scores, by_hand(edges, topic, [0, 1, 2, 3], max_hops)[:4], rtol=1e-12
    )
    for path in found:
        assert len(set(path.nodes)) == len(path.nodes) == len(path.edges) + 1 <= max_hops + 1
        for (near, far), edge in zip(pairwise(path.nodes), path.edges, strict=True):
            assert {near, far} == set(edges[edge][:2])
        assert (
            [topic[node] for node in path.nodes].count(0)
            == [topic[node] for node in path.nodes].count(1)
            == 1
        )
