"""Each part of the hierarchy on arrays that can be checked by hand."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import adjusted_rand_score

from hades.text.sentences import sentences
from models.arrays import unit_rows
from models.topics import (
    NONE,
    Labels,
    Vectors,
    agreement,
    best_sentence,
    centroids,
    characteristic_terms,
    communities,
    consensus_labels,
    cut_tree,
    dense_labels,
    density_labels,
    hop_graph,
    nearest_graph,
    place,
    principal_components,
    reduce,
    symmetric_graph,
    term_counts,
    topic_name,
    without_small,
)

TEXT = (
    "On parsing trees\n\nParsing is hard. We parse sentences with trees, and parsing trees "
    "wins! (See e.g. p. 3.) Bye."
)


def planted(
    groups: int, size: int, *, dimension: int = 16, spread: float = 0.1, seed: int = 0
) -> tuple[Vectors, Labels]:
    """Unit rows, `size` around each of the first axes, and which axis each is around."""
    labels = np.repeat(np.arange(groups), size)
    rows = np.random.default_rng(seed).standard_normal((groups * size, dimension)) * spread
    rows[np.arange(len(rows)), labels] += 1.0
    return unit_rows(rows.astype(np.float32)), labels


def graph_of(n: int, *edges: tuple[int, int]) -> sparse.csr_matrix:
    """Undirected edges of weight one."""
    ends = np.array(edges, np.int64).reshape(-1, 2)
    return symmetric_graph(ends[:, 0], ends[:, 1], np.ones(len(ends)), n)


def test_density_finds_planted_groups_and_calls_the_rest_noise() -> None:
    rows, truth = planted(3, 20)
    rows = np.vstack(
        [rows, -np.eye(6, 16, dtype=np.float32)]
    )  # six points that face away from everybody
    found = density_labels(rows, min_cluster_size=5, min_samples=3)
    assert adjusted_rand_score(found[:60], truth) == 1.0
    assert (found[60:] == NONE).all()
    assert density_labels(rows[:3], min_cluster_size=5, min_samples=3).tolist() == [NONE] * 3


@pytest.mark.parametrize("spread", [0.05, 0.15, 0.3])
@pytest.mark.parametrize("seed", range(4))
def test_scikit_learn_finds_what_hdbscan_finds(
    monkeypatch: pytest.MonkeyPatch, seed: int, spread: float
) -> None:
    pytest.importorskip("hdbscan", reason="this platform has scikit-learn's only")
    rows, _ = planted(5, 40, spread=spread, seed=seed)
    ours = density_labels(rows, min_cluster_size=5, min_samples=3)
    monkeypatch.setitem(sys.modules, "hdbscan", None)
    theirs = density_labels(rows, min_cluster_size=5, min_samples=3)
    assert adjusted_rand_score(ours, theirs) > 0.95


def test_leiden_finds_two_cliques_and_repeats_itself() -> None:
    cliques = graph_of(
        9,
        *[(i, j) for i in range(4) for j in range(i)],
        *[(i, j) for i in range(4, 8) for j in range(4, i)],
        (0, 4),
    )
    found = communities(cliques, resolution=1.0, seed=42)
    assert found.tolist() == [0, 0, 0, 0, 1, 1, 1, 1, 2]
    assert found.tolist() == communities(cliques, resolution=1.0, seed=42).tolist()


def test_a_graph_keeps_the_heaviest_of_parallel_edges_and_no_loops() -> None:
    found = symmetric_graph(
        np.array([0, 1, 0, 2]), np.array([1, 0, 1, 2]), np.array([0.2, 0.7, 0.4, 1.0]), 3
    )
    assert found.toarray().tolist() == pytest.approx(
        np.array([[0, 0.7, 0], [0.7, 0, 0], [0, 0, 0]])
    )


def test_nearest_graph_is_exact() -> None:
    rows, _ = planted(4, 10, spread=0.5)
    cosine = rows @ rows.T
    np.fill_diagonal(cosine, -2)
    found = nearest_graph(rows, 3)
    for row in range(len(rows)):
        assert set(np.argsort(-cosine[row])[:3]) <= set(found[row].indices)
    assert abs(found - found.T).max() == 0
    some = nearest_graph(rows, 3, np.array([0]), np.arange(10, 40))
    assert set(some[0].indices) == set(10 + np.argsort(-cosine[0, 10:])[:3])
    assert nearest_graph(rows[:1], 3).nnz == 0


def test_hop_graph_joins_by_edges_and_by_what_is_shared_but_not_by_hubs() -> None:
    #        direct 0-1;  2 and 3 share 5;  all four share the hub 6
    edges = graph_of(7, (0, 1), (2, 5), (3, 5), *[(point, 6) for point in range(4)])
    found = hop_graph(edges, np.arange(4), hub_degree=3).toarray()
    assert (found[0, 1], found[2, 3], found[0, 2]) == (
        1.0,
        0.5,
        0.0,
    )  # 0.5: 1 / degree of what they share


def test_reduction_keeps_planted_groups_apart_and_all_components_keep_distances() -> None:
    rows, truth = planted(4, 15, spread=0.2)
    smooth = reduce(rows, nearest_graph(rows, 5), dimension=3, steps=8)
    cosine, together = smooth @ smooth.T, truth[:, None] == truth
    assert cosine[together].min() > cosine[~together].max()
    kept, centred = principal_components(rows, 16), rows - rows.mean(0)
    np.testing.assert_allclose(kept @ kept.T, centred @ centred.T, atol=1e-4)


def test_consensus_follows_the_majority_of_partitions_with_a_say() -> None:
    partitions = [
        (np.array([0, 0, 1]), 1.0),
        (np.array([0, 1, 1]), 3.0),
        (np.array([NONE, 0, 0]), 4.0),
    ]
    shares = agreement(np.array([0, 1, 0]), np.array([1, 2, 2]), partitions)
    np.testing.assert_allclose(shares, [1 / 4, 7 / 8, 0.0])
    graph = graph_of(6, (0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5), (2, 3))
    left, right = np.array([0, 0, 0, 1, 1, 1]), np.array([0, 0, 1, 1, 1, 1])
    found = consensus_labels(
        graph, [(left, 1.0), (left, 1.0), (right, 1.0)], share=0.5, resolution=1.0, seed=42
    )
    assert found.tolist() == left.tolist()


def test_small_groups_join_what_they_are_tied_to_or_near() -> None:
    rows, _ = planted(2, 6)
    rows = np.vstack([rows, rows[7], rows[1]])  # 12 is near the second group, 13 near the first
    labels = np.array([0] * 6 + [1] * 6 + [2, 3])
    graph = graph_of(14, (0, 12))  # 12 is tied to the first
    assert without_small(labels, graph, rows, 5).tolist() == [0] * 6 + [1] * 6 + [0, 0]
    assert without_small(np.array([0, 1, 2]), graph_of(3), rows[:3], 5).tolist() == [
        0,
        0,
        0,
    ]  # all are small


def test_supertopics_hold_no_more_than_the_fan_out() -> None:
    rows, truth = planted(4, 5, spread=0.05)
    assert adjusted_rand_score(cut_tree(rows, np.ones(len(rows)), 6), truth) == 1.0
    assert np.bincount(cut_tree(rows, np.ones(len(rows)), 3)).max() <= 3
    assert cut_tree(rows[:3], np.ones(3), 3).tolist() == [0, 0, 0]


def test_placement_listens_to_neighbours_then_to_theirs_then_to_the_vector() -> None:
    middles = np.eye(2, 4, dtype=np.float32)
    vectors = np.zeros((7, 4), np.float32)
    vectors[0], vectors[1] = middles
    vectors[4] = middles[1]  # has a vector only
    edges = graph_of(7, (0, 2), (2, 3))  # 2 knows 0; 3 knows 2; 5 and 6 know nobody
    labels = np.array([0, 1, NONE, NONE, NONE, NONE, 1])
    assert place(edges, vectors, np.ones(7, np.float32), labels, middles).tolist() == [
        0,
        1,
        0,
        0,
        1,
        NONE,
        1,
    ]


def test_a_hub_says_less_than_a_close_neighbour() -> None:
    # 2 has no topic: it knows the hub 0 (topic 0, five neighbours) and 1 (topic 1, one neighbour)
    edges = graph_of(7, (2, 0), (2, 1), (0, 3), (0, 4), (0, 5), (0, 6))
    labels = np.array([0, 1, NONE, 0, 0, 0, 0])
    found = place(
        edges,
        np.zeros((7, 2), np.float32),
        np.ones(7, np.float32),
        labels,
        np.eye(2, dtype=np.float32),
    )
    assert found[2] == 1


def test_centroids_are_mean_directions_and_labels_are_numbered_by_first_member() -> None:
    rows = np.array([[1, 0], [0, 1], [0, 1]], np.float32)
    found = centroids(rows, np.array([0, 0, NONE]), 2)
    np.testing.assert_allclose(found, [[2**-0.5, 2**-0.5], [0, 0]], atol=1e-6)
    assert dense_labels(np.array([7, NONE, 3, 7, 5])).tolist() == [0, NONE, 1, 0, 2]


def test_terms_mark_their_group_and_not_the_others() -> None:
    names = [
        "parsing of trees",
        "tree parsing methods",
        "protein methods",
        "protein folding methods",
    ]
    found = characteristic_terms(*term_counts(names), np.array([0, 0, 1, 1]), 2, 3)
    assert "parsing" in found[0]
    assert next(iter(found[1])) == "protein"
    assert list(found[0].values()) == sorted(found[0].values(), reverse=True)
    assert characteristic_terms(*term_counts(["12", "the"]), np.array([0, NONE]), 1, 5) == [{}]


def test_a_name_does_not_repeat_itself() -> None:
    terms = {"machine translation": 3, "translation": 2, "neural": 1, "phrase": 0.5, "x": 0.1}
    assert topic_name(terms) == "machine translation, neural, phrase"
    assert topic_name({}) == ""


def test_the_sentence_that_says_the_terms_is_quoted_not_the_heading() -> None:
    span = best_sentence(TEXT, sentences(TEXT), {"parsing trees": 2.0, "trees": 1.0})
    assert span is not None
    assert TEXT[slice(*span)] == "We parse sentences with trees, and parsing trees wins!"


def test_a_heading_is_quoted_where_there_is_nothing_else_and_long_sentences_are_cut_at_a_word() -> (
    None
):
    assert best_sentence("Only a heading", [(0, 14)], {}) == (0, 14)
    assert best_sentence("  \n", [], {}) is None
    long = "word " * 200
    span = best_sentence(long, sentences(long), {"word": 1.0})
    assert span is not None
    assert span[1] - span[0] <= 320
    assert long[slice(*span)].endswith("word")


def test_a_sentence_is_quoted_whole_or_another_one_is_quoted() -> None:
    long = "Engines " + "that compute tables of logarithms " * 12 + "were built."
    text = (
        f"{long} The film was directed by Robert Z. Leonard and shows engines. and so on with "
        "engines Robert Z."
    )
    spans = [
        (0, len(long)),
        (len(long) + 1, text.index(" and so on")),
        (text.index("and so on"), len(text)),
    ]
    assert best_sentence(text, spans, {"engines": 1.0}) == spans[1]
    assert best_sentence(long, [(0, len(long))], {"engines": 1.0}) == (0, len(long))
