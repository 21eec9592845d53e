"""The search finds exactly the best loopless paths, and nothing outside its region changes the answer."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from models.bridges import Blocks, Search, best_paths, block_edges, hash_texts, path_score, region_of
from tests.patience import examples

PENALTY = 0.3
Edge = tuple[int, int, float]


def blocks_of(edges: list[Edge], topic: list[int], names: list[str] | None = None) -> Blocks:
    keys = [name.encode() for name in names or [f"r{number}" for number in range(len(edges))]]
    ends = np.cumsum([0, *map(len, keys)], dtype=np.int64)
    hashes = hash_texts(ends, np.frombuffer(b"".join(keys), np.uint8))
    tail, head = (np.array([edge[side] for edge in edges], np.int64) for side in (0, 1))
    log = np.log(np.array([edge[2] for edge in edges], np.float64))
    return block_edges(tail, head, log, hashes, np.array(topic, np.int64), max(topic) + 1)


def search(blocks: Blocks, *topics: int, n_paths: int = 3, max_hops: int = 5, max_work: int = 10**6) -> Search:
    region = region_of(blocks, np.array(topics, np.int64))
    return best_paths(blocks, region, n_paths=n_paths, max_hops=max_hops, penalty=PENALTY, max_work=max_work)


def plain_search(blocks: Blocks, *topics: int, n_paths: int, max_hops: int, max_work: int) -> Search:
    limits = {"n_paths": n_paths, "max_hops": max_hops, "max_work": max_work}
    return best_paths(blocks, region_of(blocks, np.array(topics, np.int64)), penalty=PENALTY, compiled=False, **limits)


def by_hand(edges: list[Edge], topic: list[int], region: list[int], max_hops: int) -> list[float]:
    """Scores of all paths from topic region[0] to region[1], best first; of parallel edges the heaviest counts."""
    heaviest: dict[tuple[int, int], float] = {}
    for tail, head, weight in edges:
        for step in ((tail, head), (head, tail)):
            heaviest[step] = max(weight, heaviest.get(step, 0.0))
    scores, stack = [], [[node] for node, of in enumerate(topic) if of == region[0]]
    while stack:
        walk = stack.pop()
        if topic[walk[-1]] == region[1]:
            scores.append(path_score([float(np.log(heaviest[step])) for step in pairwise(walk)], PENALTY))
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
            st.tuples(st.integers(0, n - 1), st.integers(0, n - 1), st.sampled_from([0.1, 0.35, 0.5, 0.8, 1.0])),
            min_size=1,
            max_size=18,
        ).map(lambda edges: [edge for edge in edges if edge[0] != edge[1]]),
        st.lists(st.integers(0, 3), min_size=n, max_size=n),
    )
)


@settings(max_examples=examples(50), deadline=None)
@given(graphs, st.integers(1, 5))
def test_the_best_paths_are_those_a_full_enumeration_finds(graph: tuple[list[Edge], list[int]], max_hops: int) -> None:
    edges, topic = graph
    topic = [*topic, 0, 1, 2, 3]  # every topic has somebody
    if not edges:
        return
    found = search(blocks_of(edges, topic), 0, 1, 2, 3, n_paths=4, max_hops=max_hops)
    logs = np.log([edge[2] for edge in edges])
    scores = [path_score(logs[list(path.edges)].tolist(), PENALTY) for path in found.paths]
    np.testing.assert_allclose(scores, by_hand(edges, topic, [0, 1, 2, 3], max_hops)[:4], rtol=1e-12)
    for path in found.paths:
        assert len(set(path.nodes)) == len(path.nodes) == len(path.edges) + 1 <= max_hops + 1
        for (near, far), edge in zip(pairwise(path.nodes), path.edges, strict=True):
            assert {near, far} == set(edges[edge][:2])
        assert [topic[node] for node in path.nodes].count(0) == [topic[node] for node in path.nodes].count(1) == 1


def test_a_direct_edge_is_a_path_and_a_long_way_must_be_worth_its_length() -> None:
    #  0 --.2-- 1      topics 0 and 1, and 0 --.9-- 2 --.9-- 1 through topic 2
    edges = [(0, 1, 0.2), (0, 2, 0.9), (1, 2, 0.9)]
    found = search(blocks_of(edges, [0, 1, 2]), 0, 1, 2)
    assert [path.nodes for path in found.paths] == [(0, 2, 1), (0, 1)]
    edges[0] = (0, 1, 0.8)
    assert [path.nodes for path in search(blocks_of(edges, [0, 1, 2]), 0, 1, 2).paths] == [(0, 1), (0, 2, 1)]


def test_a_strong_edge_inside_a_topic_pads_no_path() -> None:
    edges = [(0, 1, 1.0), (1, 2, 0.1)]  # 0 and 1 are of the first topic
    assert [path.nodes for path in search(blocks_of(edges, [0, 0, 1]), 0, 1).paths] == [(1, 2)]


def test_of_parallel_edges_the_heaviest_is_walked() -> None:
    found = search(blocks_of([(0, 1, 0.3), (1, 0, 0.6), (0, 1, 0.6)], [0, 1]), 0, 1)
    assert [path.edges for path in found.paths] == [(1,)]


def test_a_budget_shortens_the_search_and_says_so() -> None:
    edges = [(0, 1, 0.2), (0, 2, 0.9), (1, 2, 0.9)]
    found = search(blocks_of(edges, [0, 1, 2]), 0, 1, 2, max_work=3)
    assert found.capped
    assert [path.nodes for path in found.paths] == [(0, 1)]
    whole = search(blocks_of(edges, [0, 1, 2]), 0, 1, 2)
    assert not whole.capped
    assert whole.work < 40


def test_topics_without_an_edge_between_them_have_no_path() -> None:
    assert search(blocks_of([(0, 2, 0.5)], [0, 1, 2]), 0, 1).paths == ()
    assert search(blocks_of([(0, 2, 0.5)], [0, 1, 2]), 0, 1, 2).paths == ()


@settings(max_examples=examples(20), deadline=None)
@given(graphs, st.integers(0, 17), st.sampled_from([0.2, 0.7]))
def test_a_region_has_the_same_digests_exactly_while_its_edges_are_the_same(
    graph: tuple[list[Edge], list[int]], changed: int, weight: float
) -> None:
    edges, topic = graph
    topic = [*topic, 0, 1, 2, 3]
    distinct = list({frozenset(edge[:2]): edge for edge in edges}.values())
    if not distinct:
        return
    place = changed % len(distinct)
    tail, head, before = distinct[place]
    other = [*distinct[:place], (tail, head, weight * before), *distinct[place + 1 :]]
    region = np.array([0, 1, 2], np.int64)
    first, second = (region_of(blocks_of(one, topic), region) for one in (distinct, other))
    ends = {topic[tail], topic[head]}
    walked = ends <= {0, 1, 2} and ends not in ({0}, {1})
    assert np.array_equal(first.digests, second.digests) != walked


def test_swapping_two_keys_changes_the_digest() -> None:
    edges, region = [(0, 1, 0.5), (0, 2, 0.7)], np.array([0, 1], np.int64)
    named = [region_of(blocks_of(edges, [0, 1, 1], names), region).digests for names in (["a", "b"], ["b", "a"])]
    assert not np.array_equal(*named)


@settings(max_examples=examples(50), deadline=None)
@given(graphs, st.integers(1, 5), st.integers(1, 5), st.integers(1, 120))
def test_the_search_without_a_compiler_does_what_the_compiled_one_does(
    graph: tuple[list[Edge], list[int]], n_paths: int, max_hops: int, max_work: int
) -> None:
    edges, topic = graph
    if not edges:
        return
    blocks = blocks_of(edges, [*topic, 0, 1, 2, 3])
    limits = {"n_paths": n_paths, "max_hops": max_hops, "max_work": max_work}
    assert plain_search(blocks, 0, 1, 2, 3, **limits) == search(blocks, 0, 1, 2, 3, **limits)
