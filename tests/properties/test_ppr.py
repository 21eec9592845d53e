"""Push against the exact answer: the bound holds on every graph, and the first ranks agree in
communities.
"""

from __future__ import annotations

import networkx
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hades.retrieval.walks.pagerank import personalized_pagerank
from tests.patience import examples
from tests.unit.hades.retrieval.pushed_graphs import Edge, adjacency, communities, exact, transition

N = 12
WEIGHTS = st.sampled_from([0.0, 0.01, 0.25, 0.5, 1.0])
EDGES = st.lists(st.tuples(st.integers(0, N - 1), st.integers(0, N - 1), WEIGHTS), max_size=40)
RESTART = st.dictionaries(
    st.integers(0, N - 1), st.sampled_from([0.1, 1.0, 5.0]), min_size=1, max_size=4
)


def dense(found: object, n_nodes: int) -> np.ndarray:
    scores = np.zeros(n_nodes)
    scores[found.numbers] = found.scores  # type: ignore[attr-defined]
    return scores


@settings(max_examples=examples(100), deadline=None)
@given(
    EDGES,
    RESTART,
    st.sampled_from([0.0, 0.15, 0.5, 0.85]),
    st.sampled_from([1e-1, 1e-2, 1e-4, 1e-8]),
)
def test_the_error_of_every_node_stays_within_epsilon_times_its_degree(
    edges: list[Edge], restart: dict[int, float], damping: float, epsilon: float
) -> None:
    mass = np.bincount(list(restart), list(restart.values()), minlength=N)
    truth = exact(edges, N, mass / mass.sum(), damping)
    degree = transition(edges, N)[1]
    found = personalized_pagerank(
        adjacency(edges, N),
        np.array(list(restart)),
        np.array(list(restart.values())),
        damping=damping,
        epsilon=epsilon,
        max_work=10**8,
    )
    error = truth - dense(found, N)
    assert not found.capped
    assert found.bound <= epsilon
    assert (error >= -1e-9).all()
    assert (error <= epsilon * degree + 1e-9).all()
    assert found.scores.sum() + found.residue == pytest.approx(1.0)


@settings(max_examples=examples(50), deadline=None)
@example([(0, 1, 0.5), (2, 3, 0.0)], {0: 1.0, 2: 1.0}, 1)  # infinity times a degree of 0
@given(EDGES, RESTART, st.integers(0, 200))
def test_no_work_cap_is_exceeded_and_what_is_missing_is_told(
    edges: list[Edge], restart: dict[int, float], max_work: int
) -> None:
    nodes, weights = np.array(list(restart)), np.array(list(restart.values()))
    found = personalized_pagerank(
        adjacency(edges, N), nodes, weights, epsilon=1e-9, max_work=max_work
    )
    assert found.work <= max_work
    if found.work:
        truth = exact(edges, N, np.bincount(nodes, weights / weights.sum(), minlength=N), 0.5)
        missing = truth - dense(found, N)
        if np.isfinite(found.bound):  # an infinite bound says nothing of a node of degree 0
            assert (missing <= found.bound * transition(edges, N)[1] + 1e-9).all()
        assert np.abs(missing).sum() <= found.residue + 1e-9 or not found.numbers.size


@settings(max_examples=examples(33), deadline=None)
@given(EDGES, RESTART, st.randoms(use_true_random=False))
def test_the_order_of_edges_and_of_restart_nodes_does_not_matter(
    edges: list[Edge], restart: dict[int, float], chance
) -> None:  # type: ignore[no-untyped-def]
    def asked(edges: list[Edge], nodes: list[int]) -> np.ndarray:
        weights = np.array([restart[node] for node in nodes])
        return dense(
            personalized_pagerank(adjacency(edges, N), np.array(nodes), weights, epsilon=1e-10), N
        )

    shuffled, nodes = list(edges), list(restart)
    chance.shuffle(shuffled)
    chance.shuffle(nodes)
    turned = [(target, source, weight) for source, target, weight in shuffled]
    assert asked(turned, nodes) == pytest.approx(asked(edges, list(restart)), abs=1e-7)


@pytest.mark.parametrize("seed", range(4))
def test_how_nodes_are_numbered_changes_nothing(seed: int) -> None:
    n_nodes = 400
    edges, number = (
        communities(n_nodes, 3000, 40, seed),
        np.random.default_rng(seed).permutation(n_nodes),
    )
    renamed = [
        (int(number[int(source)]), int(number[int(target)]), weight)
        for source, target, weight in edges
    ]
    plain = personalized_pagerank(
        adjacency(edges, n_nodes), np.array([3, 5]), np.ones(2), epsilon=1e-4
    )
    other = personalized_pagerank(
        adjacency(renamed, n_nodes), number[[3, 5]], np.ones(2), epsilon=1e-4
    )
    assert dense(other, n_nodes)[number] == pytest.approx(dense(plain, n_nodes), abs=1e-12)
    assert other.work == plain.work


@pytest.mark.parametrize("damping", [0.5, 0.85])
@pytest.mark.parametrize("seed", range(4))
def test_the_first_twenty_agree_with_exact_pagerank_where_there_are_communities(
    seed: int, damping: float
) -> None:
    n_nodes = 400
    edges = communities(n_nodes, 3000, 40, seed)
    graph, agreed = adjacency(edges, n_nodes), []
    every = exact(edges, n_nodes, np.eye(n_nodes), damping)
    for node in range(0, n_nodes, 40):
        truth = every[:, node]
        found = personalized_pagerank(
            graph, np.array([node]), np.array([1.0]), damping=damping, epsilon=1e-4, top=20
        )
        agreed.append(
            len(
                set(np.argsort(-truth, kind="stable")[:20].tolist())
                & set(found.numbers[:20].tolist())
            )
            / 20
        )
    assert np.mean(agreed) >= 0.98


def test_the_exact_answer_is_that_of_networkx() -> None:
    edges = [edge for edge in communities(80, 400, 20, 9) if edge[0] != edge[1]]
    graph = networkx.MultiGraph()
    graph.add_weighted_edges_from(edges)
    theirs = networkx.pagerank(
        graph, alpha=0.85, personalization={5: 1.0}, tol=1e-12, max_iter=1000
    )
    found = personalized_pagerank(
        adjacency(edges, 80),
        np.array([5]),
        np.array([1.0]),
        damping=0.85,
        epsilon=1e-10,
        max_work=10**8,
    )
    ours = dense(found, 80)
    assert [ours[node] for node in sorted(theirs)] == pytest.approx(
        [theirs[node] for node in sorted(theirs)], abs=1e-6
    )
