"""Arrays to learn from: both directions of edges, several graphs as one, and who is held out."""

from __future__ import annotations

import numpy as np

from models.ranker.infer import Graph, folds, hold_out, join, rows_of, stacked, undirected


def test_both_directions_become_one_adjacency() -> None:
    # 0 -> 1, 0 -> 2, 2 -> 1
    starts, targets = undirected(
        np.array([0, 2, 2, 3]), np.array([1, 2, 1], np.int32), np.array([0, 0, 2, 3]), np.array([0, 2, 0], np.int32)
    )
    near = [targets[starts[node] : starts[node + 1]].tolist() for node in range(3)]
    assert near == [[1, 2], [0, 2], [1, 0]]


def test_joined_graphs_keep_their_edges_to_themselves() -> None:
    one = Graph(np.ones((2, 3), np.float32), np.array([0, 1, 2]), np.array([1, 0], np.int32))
    two = Graph(np.zeros((1, 3), np.float32), np.array([0, 1]), np.array([0], np.int32))
    whole, offsets = join([one, two])
    assert offsets.tolist() == [0, 2]
    assert whole.starts.tolist() == [0, 1, 2, 3]
    assert whole.targets.tolist() == [1, 0, 2]
    assert whole.features[:, 0].tolist() == [1.0, 1.0, 0.0]


def test_the_newest_logged_questions_are_held_out_and_files_by_their_hash() -> None:
    texts = [f"q{number}" for number in range(10)]
    held = hold_out(texts, [float(9 - number) for number in range(10)], 0.2)
    assert np.flatnonzero(held).tolist() == [0, 1]  # the latest two
    by_hash = hold_out(texts, [None] * 10, 0.2)
    assert by_hash.tolist() == (folds(texts, 5) == 0).tolist()
    assert hold_out(texts[::-1], [None] * 10, 0.2).tolist() == by_hash.tolist()[::-1]


def test_a_subset_of_lists_has_their_rows_in_order() -> None:
    lists = stacked([(np.full((2, 1), 1.0), np.array([1, 0])), (np.full((3, 1), 2.0), np.array([0, 0, 1]))], [1.0, 2.0])
    part = lists.subset(np.array([1, 0]))
    assert part.columns[:, 0].tolist() == [2, 2, 2, 1, 1]
    assert part.starts.tolist() == [0, 3, 5]
    assert part.weight.tolist() == [2.0, 1.0]
    assert rows_of(lists.starts, np.array([1])).tolist() == [2, 3, 4]
