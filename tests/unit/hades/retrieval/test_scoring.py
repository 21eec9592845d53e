"""Reliability of paths given as documents (requirements A8 to A18, X-01 to X-05)."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from hades.retrieval.walks.flow import PRUNING_THRESHOLD, calculate_path_score, prune_paths


def path(*weights: float | None, documents: bool = True, **vertex: Any) -> dict[str, Any]:
    """v0 -> v1 -> ... with these weights; None leaves the weight out."""
    ids = [f"entities/v{place}" for place in range(len(weights) + 1)]
    edges = [
        {"_from": ids[place], "_to": ids[place + 1]}
        | ({} if weight is None else {"weight": weight})
        for place, weight in enumerate(weights)
    ]
    return {
        "vertices": [{"_id": one, **vertex} if documents else one for one in ids],
        "edges": edges,
    }


def test_flow_is_weight_times_one_decay_a_hop() -> None:
    assert calculate_path_score(path(0.5), "entities/v0") == pytest.approx(0.5 * 0.85)
    first, second = 0.5 * 0.85, 0.5 * 0.85 * 0.4 * 0.85
    assert calculate_path_score(path(0.5, 0.4), "entities/v0") == pytest.approx(
        (first + second) / 2
    )
    assert calculate_path_score(path(0.5), "entities/v0", decay_rate=0.5) == pytest.approx(0.25)


def test_the_source_may_be_a_document_or_an_id() -> None:
    by_id = calculate_path_score(path(0.5, 0.4, documents=False), "entities/v0")
    assert calculate_path_score(path(0.5, 0.4), {"_id": "entities/v0", "name": "V"}) == by_id
    assert calculate_path_score(path(0.5, 0.4), None) == by_id


def test_a_missing_weight_counts_one_and_a_zero_counts_zero() -> None:
    assert calculate_path_score(path(None), "entities/v0") == pytest.approx(0.85)
    assert calculate_path_score(path(0.0), "entities/v0") == 0.0
    assert calculate_path_score(path(0.0, 1.0), "entities/v0") == 0.0


def test_nodes_that_are_not_reached_carry_nothing() -> None:
    assert calculate_path_score(path(0.5, 0.5), "entities/v1") == pytest.approx(0.5 * 0.85 / 2)
    assert calculate_path_score(path(0.5), "entities/elsewhere") == 0.0


def test_a_weight_above_one_cannot_make_a_score_above_one() -> None:
    assert calculate_path_score(path(3.0, 3.0), "entities/v0") <= 1.0


def test_a_path_that_comes_back_scores_no_more_than_one() -> None:
    ids = ["a", "b"] * 7
    edges = [{"_from": one, "_to": other} for one, other in pairwise(ids)]
    assert calculate_path_score({"vertices": ids, "edges": edges}, "a", decay_rate=1.0) == 1.0


def test_an_edge_that_is_walked_against_its_direction_carries_flow() -> None:
    against = {"vertices": ["a", "b"], "edges": [{"from": "b", "to": "a", "weight": 0.5}]}
    assert calculate_path_score(against, "a") == pytest.approx(0.5 * 0.85)


def test_incomplete_paths_have_the_documented_values() -> None:
    assert calculate_path_score(None, None) == 0.1
    assert calculate_path_score({"vertices": []}, None) == 0.1
    assert calculate_path_score({"vertices": ["a", "b", "c"]}, "a") == pytest.approx(0.15)
    assert calculate_path_score({"vertices": ["a"], "edges": []}, "a") == pytest.approx(0.3)


def test_flow_splits_by_out_degree_where_the_documents_state_it() -> None:
    assert calculate_path_score(path(1.0, deg_out=10), None) == pytest.approx(0.085)
    stated = path(1.0)
    stated["edges"][0]["share"] = 0.25
    assert calculate_path_score(stated, None) == pytest.approx(0.25 * 0.85)


def test_the_specifications_formula_is_kept_as_v0() -> None:
    # Requirement X-02: n unit edges score 1, .925, .821, .710, .608.
    scores = [calculate_path_score(path(*[1.0] * n), None, scoring="v0") for n in range(1, 6)]
    assert scores == pytest.approx([1.0, 0.925, 0.821, 0.710, 0.608], abs=5e-4)


def test_pruning_keeps_what_equals_the_threshold_most_reliable_first() -> None:
    weak, equal, strong = path(0.1), path(0.5), path(0.9)
    kept = prune_paths([weak, equal, strong], pruning_threshold=calculate_path_score(equal, None))
    assert [one["reliability"] for one in kept] == pytest.approx([0.9 * 0.85, 0.5 * 0.85])
    assert "reliability" not in strong
    assert kept[0]["edges"] == strong["edges"]


def test_the_default_threshold_prunes_behind_a_hub() -> None:
    behind_a_hub, beside_it = path(1.0, 1.0, deg_out=1000), path(1.0, 1.0, deg_out=4)
    assert [one["vertices"] for one in prune_paths([behind_a_hub, beside_it])] == [
        beside_it["vertices"]
    ]
    assert calculate_path_score(behind_a_hub, None) < PRUNING_THRESHOLD
