"""What edges and paths are worth."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.bridges import bridge_labels, edge_logs, path_cost, path_score, path_weight

logs = st.lists(st.floats(math.log(1e-6), 0.0), min_size=1, max_size=5)


def test_an_edge_counts_its_weight_times_its_boost_and_never_less_than_eps() -> None:
    found = edge_logs(np.array([0.5, 0.0, np.nan]), np.array([0.8, 1.0, 1.0]), 1e-6)
    assert found[:2].tolist() == pytest.approx([math.log(0.4), math.log(1e-6)])
    assert np.isnan(found[2])


@given(logs, st.floats(0.0, 2.0))
def test_weight_and_cost_stay_in_their_bounds(steps: list[float], penalty: float) -> None:
    assert 0.0 <= path_weight(steps, penalty) <= 1.0
    assert path_cost(steps) >= 0.0


@given(logs.filter(lambda steps: len(steps) < 5), st.floats(0.01, 2.0))
def test_more_edges_of_the_same_mean_never_score_higher(steps: list[float], penalty: float) -> None:
    mean = math.fsum(steps) / len(steps)
    assert path_score([*steps, mean], penalty) < path_score(steps, penalty)


def test_the_same_evidence_over_more_edges_does_not_win() -> None:
    # Requirement X-48: by the formula of the specification five edges of a total of .25 would beat two.
    two, five = [math.log(0.5)] * 2, [math.log(0.5)] * 5
    assert path_score(two, 0.3) == pytest.approx(math.log(0.5) - 0.3)
    assert path_score(five, 0.3) < path_score(two, 0.3)


def test_bridges_are_heavy_edges_between_topics_of_a_type_that_may_be_one() -> None:
    labels = bridge_labels(
        weight=np.array([0.5, 0.49, 0.9, 0.9, np.nan, 0.9]),
        tail_topic=np.array([0, 0, 0, 0, 0, -1]),
        head_topic=np.array([1, 1, 0, 1, 1, 1]),
        never=np.array([False, False, False, True, False, False]),
        threshold=0.5,
    )
    assert labels.tolist() == [True, False, False, False, False, False]
