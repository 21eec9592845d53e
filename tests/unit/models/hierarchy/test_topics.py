"""Each part of the hierarchy on arrays that can be checked by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from models.topics.cluster import (
    NONE,
    Links,
    add_links,
    agreement,
    centroids,
    communities,
    consensus_labels,
    dense_labels,
    density_labels,
    hop_graph,
    join_links,
    nearest_graph,
    principal_components,
    reduce,
    without_small,
)
from models.topics.describe import Points, place, supertopics
from tests.unit.models.hierarchy.points import planted, same_partition


def links_of(n: int, *edges: tuple[int, int]) -> Links:
    """Undirected edges of weight one."""
    ends = np.array(edges, np.int64).reshape(-1, 2)
    return join_links(ends[:, 0], ends[:, 1], np.ones(len(ends)), n)


def graph_of(n: int, *edges: tuple[int, int]) -> sparse.csr_matrix:
    """The same as a matrix."""
    return links_of(n, *edges).matrix()


@pytest.mark.parametrize("seed", range(8))
def test_links_give_what_the_matrices_of_scipy_give(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, topics = 60, 5
    tails, heads = rng.integers(0, n, (2, 300))
    first, second = (join_links(tails[half], heads[half], rng.random(150), n) for half in (slice(150), slice(150, 300)))
    both, matrix = add_links(first, second, 0.7), (first.matrix() + 0.7 * second.matrix()).tocsr()
    assert both.matrix().indices.tolist() == matrix.indices.tolist()
    assert both.weights.tolist() == matrix.data.tolist()
    chosen = rng.random(n) < 0.3
    assert both.beside(chosen).tolist() == (matrix @ chosen.astype(np.float32) > 0).tolist()
    labels = rng.integers(-1, topics, n)
    member = sparse.csr_matrix((np.ones(n, np.float32), (np.arange(n), labels + 1)), shape=(n, topics + 1))
    voice = sparse.diags((1.0 / np.maximum(np.diff(matrix.indptr), 1)).astype(np.float32))
    votes = np.asarray((matrix @ voice @ member).todense())[:, 1:]
    vectors = rng.random((n, 4)).astype(np.float32)
    points = Points(vectors, both, np.zeros(n, np.float32))
    placed = place(points, labels, np.zeros((topics, 4), np.float32), np.arange(n) == 7)
    assert placed[7] == (votes[7].argmax() if votes[7].any() else 0)


def test_density_finds_planted_groups_and_calls_the_rest_noise() -> None:
    rows, truth = planted(3, 20)
    rows = np.vstack([rows, -np.eye(6, 16, dtype=np.float32)])  # six points that face away from everybody
    found = density_labels(rows, min_cluster_size=5, min_samples=3)
    assert same_partition(found[:60], truth)
    assert (found[60:] == NONE).all()


def test_density_of_too_few_points_is_all_noise() -> None:
    rows, _ = planted(1, 3)
    assert density_labels(rows, min_cluster_size=5, min_samples=3).tolist() == [NONE] * 3


def test_leiden_finds_two_cliques_and_repeats_itself() -> None:
    cliques = graph_of(
        9, *[(i, j) for i in range(4) for j in range(i)], *[(i, j) for i in range(4, 8) for j in range(4, i)], (0, 4)
    )
    found = communities(cliques, resolution=1.0, seed=42)
    assert found.tolist() == [0, 0, 0, 0, 1, 1, 1, 1, 2]
    assert found.tolist() == communities(cliques, resolution=1.0, seed=42).tolist()


def test_nearest_graph_is_exact() -> None:
    rows, _ = planted(4, 10, spread=0.5)
    cosine = rows @ rows.T
    np.fill_diagonal(cosine, -2)
    found = nearest_graph(rows, 3)
    for row in range(len(rows)):
        assert set(np.argsort(-cosine[row])[:3]) <= set(found[row].indices)
    assert abs(found - found.T).max() == 0


def test_hop_graph_joins_by_edges_and_by_what_is_shared_but_not_by_hubs() -> None:
    #        direct 0-1;  2 and 3 share 5;  all four share the hub 6
    edges = graph_of(7, (0, 1), (2, 5), (3, 5), *[(point, 6) for point in range(4)])
    found = hop_graph(edges, np.arange(4), hub_degree=3).toarray()
    assert found[0, 1] == 1.0
    assert found[2, 3] == 0.5  # 1 / degree of what they share
    assert found[0, 2] == 0.0


def test_reduction_keeps_planted_groups_apart() -> None:
    rows, truth = planted(4, 15, spread=0.2)
    smooth = reduce(rows, nearest_graph(rows, 5), dimension=3, steps=8)
    assert smooth.shape == (60, 3)
    cosine = smooth @ smooth.T
    together = truth[:, None] == truth
    assert cosine[together].min() > cosine[~together].max()


def test_principal_components_keep_the_distances_when_nothing_is_left_out() -> None:
    rows, _ = planted(3, 5)
    kept = principal_components(rows, 16)
    np.testing.assert_allclose(kept @ kept.T, (rows - rows.mean(0)) @ (rows - rows.mean(0)).T, atol=1e-4)


def test_agreement_is_the_share_of_partitions_with_a_say() -> None:
    partitions = [(np.array([0, 0, 1]), 1.0), (np.array([0, 1, 1]), 3.0), (np.array([NONE, 0, 0]), 4.0)]
    shares = agreement(np.array([0, 1, 0]), np.array([1, 2, 2]), partitions)
    np.testing.assert_allclose(shares, [1 / 4, 7 / 8, 0.0])


def test_consensus_follows_the_majority_of_partitions() -> None:
    graph = graph_of(6, (0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5), (2, 3))
    left, right = np.array([0, 0, 0, 1, 1, 1]), np.array([0, 0, 1, 1, 1, 1])
    partitions = [(left, 1.0), (left, 1.0), (right, 1.0)]
    found = consensus_labels(graph, partitions, share=0.5, resolution=1.0, seed=42)
    assert found.tolist() == left.tolist()


def test_small_groups_join_what_they_are_tied_to_or_near() -> None:
    rows, _ = planted(2, 6)
    rows = np.vstack([rows, rows[7], rows[1]])  # 12 is near the second group, 13 near the first
    labels = np.array([0] * 6 + [1] * 6 + [2, 3])
    graph = graph_of(14, (0, 12))  # 12 is tied to the first
    assert without_small(labels, graph, rows, 5).tolist() == [0] * 6 + [1] * 6 + [0, 0]


def test_when_every_group_is_small_there_is_one() -> None:
    rows, _ = planted(3, 1)
    assert without_small(np.array([0, 1, 2]), graph_of(3), rows, 5).tolist() == [0, 0, 0]


def test_supertopics_hold_no_more_than_the_fan_out() -> None:
    rows, truth = planted(4, 5, spread=0.05)
    found = supertopics(rows, max_fanout=6)
    assert same_partition(found, truth)
    assert np.bincount(supertopics(rows, max_fanout=3)).max() <= 3
    assert supertopics(rows[:3], max_fanout=3).tolist() == [0, 0, 0]


def test_placement_listens_to_neighbours_then_to_theirs_then_to_the_vector() -> None:
    middles = np.eye(2, 4, dtype=np.float32)
    vectors = np.zeros((7, 4), np.float32)
    vectors[0], vectors[1] = middles
    vectors[4] = middles[1]  # has a vector only
    edges = links_of(7, (0, 2), (2, 3))  # 2 knows 0; 3 knows 2; 5 and 6 know nobody
    points = Points(vectors, edges, np.ones(7, np.float32))
    labels = np.array([0, 1, NONE, NONE, NONE, NONE, 1])
    asked = np.array([False, False, True, True, True, True, False])
    assert place(points, labels, middles, asked).tolist() == [0, 1, 0, 0, 1, NONE, 1]


def test_a_hub_says_less_than_a_close_neighbour() -> None:
    # 2 is asked: it knows the hub 0 (topic 0, five neighbours) and 1 (topic 1, one neighbour)
    edges = links_of(7, (2, 0), (2, 1), (0, 3), (0, 4), (0, 5), (0, 6))
    points = Points(np.zeros((7, 2), np.float32), edges, np.ones(7, np.float32))
    labels = np.array([0, 1, NONE, 0, 0, 0, 0])
    assert place(points, labels, np.eye(2, dtype=np.float32), labels == NONE)[2] == 1


def test_loyalty_keeps_an_entity_where_little_speaks_for_leaving() -> None:
    middles = np.eye(2, dtype=np.float32)
    vectors = np.array([[0.69, 0.72]], np.float32)
    points = Points(vectors, links_of(1), np.ones(1, np.float32))
    asked = np.array([True])
    assert place(points, np.array([0]), middles, asked).tolist() == [1]
    assert place(points, np.array([0]), middles, asked, loyalty=0.2).tolist() == [0]


def test_centroids_are_mean_directions_and_zero_for_the_empty() -> None:
    rows = np.array([[1, 0], [0, 1], [0, 1]], np.float32)
    found = centroids(rows, np.array([0, 0, NONE]), 2)
    np.testing.assert_allclose(found, [[2**-0.5, 2**-0.5], [0, 0]], atol=1e-6)


def test_labels_are_numbered_by_first_member() -> None:
    assert dense_labels(np.array([7, NONE, 3, 7, 5])).tolist() == [0, NONE, 1, 0, 2]
