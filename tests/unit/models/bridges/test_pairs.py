"""Which pairs of topics are hot, and what lies between them."""

from __future__ import annotations

import numpy as np
import pytest

from models.bridges import Heat, heat_of, hot_pairs, pairs_of, region_topics


def heat(n_topics: int, *edges: tuple[int, int, float]) -> Heat:
    tail, head = (np.array([edge[side] for edge in edges], np.int64) for side in (0, 1))
    return heat_of(tail, head, np.array([edge[2] for edge in edges], np.float64), n_topics)


def test_heat_adds_up_bridges_of_both_directions() -> None:
    found = heat(3, (0, 1, 0.5), (1, 0, 0.25), (2, 1, 0.9))
    assert list(zip(found.first, found.second, found.weight, strict=True)) == [(0, 1, 0.75), (1, 2, 0.9)]
    neighbours, strength = found.of(1)
    assert (neighbours.tolist(), strength.tolist()) == ([2, 0], [0.9, 0.75])


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


def test_no_bridges_have_no_pairs() -> None:
    nothing = heat(3)
    assert hot_pairs(nothing, near=5, far=5) == pairs_of(nothing, 1, 4) == []
    assert region_topics(nothing, 0, 2, 4).tolist() == [0, 2]


def test_a_region_prefers_what_is_joined_to_both() -> None:
    found = heat(6, (0, 2, 0.9), (0, 3, 0.3), (3, 1, 0.5), (4, 1, 0.8), (0, 5, 0.2), (5, 1, 0.9))
    assert region_topics(found, 0, 1, 3).tolist() == [0, 1, 3, 5, 2]
    assert region_topics(found, 0, 1, 9).tolist() == [0, 1, 3, 5, 2, 4]


@pytest.mark.parametrize("limit", [1, 2])
def test_a_topic_is_paired_with_its_strongest_neighbours(limit: int) -> None:
    found = heat(4, (3, 1, 0.9), (1, 0, 0.5), (1, 2, 0.7))
    assert pairs_of(found, 1, limit) == [(1, 3), (1, 2)][:limit]
