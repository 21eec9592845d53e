"""What holds for flow on every graph: scores in [0, 1], what the plain rule finds, caps kept."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hades.retrieval.answer.assemble import flow_of
from hades.retrieval.core.types import Question, Seed
from hades.retrieval.core.words import ANY, gains
from hades.retrieval.walks.flow import (
    DECAY_RATE,
    FlowRules,
    calculate_path_score,
    flow_paths,
    prune_paths,
)
from tests.patience import examples
from tests.properties.made_up_views import MadeUpView, views
from tests.unit.hades.retrieval.graphs import metered

WEIGHTS = st.floats(0.0, 1.0, allow_nan=False)


@given(st.lists(WEIGHTS, min_size=1, max_size=7), st.floats(0.0, 1.0))
def test_a_path_scores_within_zero_and_one(weights: list[float], decay: float) -> None:
    ids = [f"e/{place}" for place in range(len(weights) + 1)]
    edges = [
        {"_from": ids[n], "_to": ids[n + 1], "weight": weight} for n, weight in enumerate(weights)
    ]
    assert 0.0 <= calculate_path_score({"vertices": ids, "edges": edges}, ids[0], decay) <= 1.0


@given(st.lists(WEIGHTS, max_size=8), st.floats(0.0, 1.0))
def test_pruning_keeps_exactly_what_reaches_the_threshold(
    weights: list[float], threshold: float
) -> None:
    paths: list[dict[str, Any]] = [
        {"vertices": ["a", "b"], "edges": [{"_from": "a", "_to": "b", "weight": weight}]}
        for weight in weights
    ]
    kept = prune_paths(paths, threshold)
    assert sorted(one["reliability"] for one in kept) == sorted(
        score for score in (calculate_path_score(one, "a") for one in paths) if score >= threshold
    )


@settings(max_examples=examples(50), deadline=None)
@given(views(), st.sampled_from([0.0, 0.01, 0.1]))
def test_spreading_finds_what_walking_edge_by_edge_finds(view: MadeUpView, theta: float) -> None:
    rules = FlowRules(hops=3, theta=theta, max_paths=1000)
    seeds = [Seed(node, 0.5 + node / 100) for node in range(min(4, view.n_nodes))]
    walked = flow_paths(metered(view), Question("q"), seeds, rules)
    scores = {seed.node: seed.score for seed in seeds}
    plain: dict[frozenset[int], float] = {}  # a path and its way back are one, the stronger of them
    for seed in seeds:
        for nodes, edges, flows in walk_plainly(view, rules, (seed.node,)):
            if nodes[-1] in scores:
                given = (seed.score + scores[nodes[-1]]) / 2  # what its ends give out
                key = frozenset(edges)
                plain[key] = max(given * sum(flows) / len(flows), plain.get(key, 0.0))
    assert {frozenset(path.edges): path.reliability for path in walked.paths} == pytest.approx(
        plain, rel=1e-9
    )
    assert [flow_of(path.shares) for path in walked.paths] == pytest.approx(
        [one.reliability for one in walked.paths]
    )


def walk_plainly(
    view: MadeUpView,
    rules: FlowRules,
    nodes: tuple[int, ...],
    edges: tuple[int, ...] = (),
    flows: tuple[float, ...] = (),
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...], tuple[float, ...]]]:
    """Every loopless walk that carries enough, by the rule that `walks/flow.py` states."""
    found = view.expand(np.array([nodes[-1]]), direction=ANY)
    weights = (
        np.clip(found.weight.astype(np.float64), 0.0, 1.0)
        * gains(view.type_names, rules.boosts)[found.type]
    )
    weights[found.target == nodes[-1]] = 0.0
    carried = flows[-1] if flows else 1.0
    if len(edges) == rules.hops or not weights.sum() or carried * DECAY_RATE < rules.theta:
        return
    scale = carried * DECAY_RATE / weights.sum()
    for target, edge, weight in zip(
        found.target.tolist(), found.edge.tolist(), weights.tolist(), strict=True
    ):
        flow = scale * weight
        if flow >= rules.theta and flow > 0.0 and target not in nodes:
            longer = (*nodes, target), (*edges, edge), (*flows, flow)
            yield longer
            yield from walk_plainly(view, rules, *longer)


@settings(max_examples=examples(50), deadline=None)
@given(views(), st.integers(0, 60), st.sampled_from([0.0, 0.01]))
def test_paths_are_loopless_reliable_and_within_the_work(
    view: MadeUpView, work: int, theta: float
) -> None:
    account = metered(view, work=work)
    seeds = [Seed(node, 1.0) for node in range(min(4, view.n_nodes))]
    found = flow_paths(account, Question("q"), seeds, FlowRules(theta=theta, max_paths=1000))
    assert account.turn.work_spent <= work
    for path in found.paths:
        assert len(set(path.nodes)) == len(path.nodes) == len(path.edges) + 1
        assert max(theta, 0.0) <= path.reliability <= 1.0


@settings(max_examples=examples(20), deadline=None)
@given(views())
def test_a_lower_threshold_only_adds_paths(view: MadeUpView) -> None:
    seeds = [Seed(node, 1.0) for node in range(min(4, view.n_nodes))]
    kept = [
        {
            path.edges
            for path in flow_paths(
                metered(view), Question("q"), seeds, FlowRules(theta=theta, max_paths=9999)
            ).paths
        }
        for theta in (0.1, 0.01, 0.0)
    ]
    sets = [{frozenset(edges) for edges in one} for one in kept]
    assert sets[0] <= sets[1] <= sets[2]


def test_a_hub_of_a_million_edges_costs_what_the_threshold_allows() -> None:
    leaves = 1_000_000
    tails = np.concatenate([[0], np.ones(leaves, np.int64)])
    heads = np.concatenate([[1], np.arange(2, leaves + 2)])
    view = MadeUpView(leaves + 2, tails, heads, np.ones(leaves + 1, np.float32))
    account = metered(view)
    found = flow_paths(account, Question("q"), [Seed(0, 1.0), Seed(2, 1.0)], FlowRules(theta=0.005))
    assert found.paths == ()
    assert account.turn.work_spent < 1000
