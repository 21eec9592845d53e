"""Nexus: vector, graph and Bayesian tiers fused into one list that says what each tier gave.

Ranks are fused reciprocally by default, because a cosine, a walk and a chance mean nothing to each other; weights turn
the tiers' own scores, each spread over [0, 1], into one sum. The modes differ in what they may spend.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

from hades.errors import BadQuery
from hades.retrieval.ranking.feedback_belief import Beliefs, pair
from hades.retrieval.turn.types import FoundPassage, Question, Seed
from hades.retrieval.walks.hipporag import hippo_search, multi_hop_rules
from hades.retrieval.walks.restart import nearest_passages
from hades.retrieval.walks.walk_search import rules_of
from hades.settings.hipporag import HippoSettings

if TYPE_CHECKING:
    from hades.retrieval.turn.metered_view import MeteredView

RANK_OFFSET = 10  # Cormack et al. (2009) take 60, for rankings of equal worth; the graph tier's first ranks are better


class Tier(StrEnum):
    """Where a passage can come from."""

    VECTOR = "vector"
    GRAPH = "graph"
    BAYES = "bayes"


@dataclass(frozen=True)
class Mode:
    """What a mode may spend: its tiers, how many passages come back, and whether walks follow the first two."""

    tiers: tuple[Tier, ...]
    results: int
    is_multi_hop: bool = False


MODES: Mapping[str, Mode] = {
    "execution": Mode((Tier.VECTOR, Tier.GRAPH), 5),
    "planning": Mode(tuple(Tier), 10),
    "brainstorming": Mode(tuple(Tier), 20, is_multi_hop=True),
}


@dataclass(frozen=True)
class NexusRules:
    """How tiers are fused: `by` rank or score, with these weights; `beliefs` are what judged answers taught.

    `walk` is the section `hipporag` of the settings, which the graph tier follows.
    """

    by: str = "rank"
    weights: Mapping[Tier, float] = field(default_factory=lambda: {Tier.VECTOR: 1.0, Tier.GRAPH: 8.0, Tier.BAYES: 4.0})
    beliefs: Beliefs = field(default_factory=Beliefs)
    depth: int = 50
    level: float = 0.9
    walk: HippoSettings = field(default_factory=HippoSettings)


def nexus(
    view: MeteredView,
    question: Question,
    rules: NexusRules = NexusRules(),
    mode: str = "planning",
) -> list[FoundPassage]:
    """Passages best first, each once. `tiers` holds each tier's share of the score, which sum to 1.

    Where the Bayesian tier knows a passage it also holds `belief`, the chance that it is good, and the ends of its
    interval, `belief_low` and `belief_high`.
    """
    if mode not in MODES or rules.by not in ("rank", "score"):
        raise BadQuery(f"mode must be one of {', '.join(MODES)} and by rank or score, not {mode!r} and {rules.by!r}")
    chosen = MODES[mode]
    rankings: dict[Tier, list[tuple[int, float]]] = {}
    near = nearest_passages(view, question, rules.depth)
    rankings[Tier.VECTOR] = list(zip(near.numbers.tolist(), near.scores.tolist(), strict=True))
    walk = multi_hop_rules(rules.walk) if chosen.is_multi_hop else rules_of(rules.walk)
    found = hippo_search(view, question, replace(walk, limit=rules.depth))
    rankings[Tier.GRAPH] = [(one.node, one.score) for one in found.passages]
    beliefs: dict[int, dict[str, float]] = {}
    if Tier.BAYES in chosen.tiers:
        nodes = list(dict.fromkeys(node for ranking in rankings.values() for node, _ in ranking))
        beliefs = _believe(view, nodes, found.entities, rules)
        if beliefs:  # what nobody judged stands at the prior, between the good and the bad
            prior = rules.beliefs.of(()).mean
            rankings[Tier.BAYES] = [(node, beliefs.get(node, {"belief": prior})["belief"]) for node in nodes]
    fused = fuse(rankings, rules)
    return [replace(one, tiers=one.tiers | beliefs.get(one.node, {})) for one in fused[: chosen.results]]


def fuse(rankings: Mapping[Tier, Sequence[tuple[int, float]]], rules: NexusRules) -> list[FoundPassage]:
    """Rankings of (node, score), best first, as one list: sorted, each node once, equal ones by node.

    Scores are shares of the best; a node's tiers are shares of its score.
    """
    gained: dict[int, dict[str, float]] = {}
    for tier, ranking in rankings.items():
        weight = rules.weights.get(tier, 0.0)
        if weight <= 0.0:
            continue
        parts = _chances(ranking, rules.by) if tier is Tier.BAYES else _parts(ranking, rules.by)
        for (node, _), part in zip(ranking, parts, strict=True):
            own = gained.setdefault(node, {})
            own[tier.value] = max(own.get(tier.value, 0.0), weight * part)
    totals = {node: sum(own.values()) for node, own in gained.items()}
    best = max(totals.values(), default=0.0)
    if best <= 0.0:
        return []
    order = sorted((node for node in totals if totals[node] > 0.0), key=lambda node: (-totals[node], node))
    return [
        FoundPassage(node, totals[node] / best, {name: part / totals[node] for name, part in gained[node].items()})
        for node in order
    ]


def _chances(ranking: Sequence[tuple[int, float]], by: str) -> list[float]:
    """What a belief gives: in proportion to the chance, so that a bad judgement gives less than none."""
    best = 1.0 / (RANK_OFFSET + 1) if by == "rank" else 1.0
    return [best * chance for _, chance in ranking]


def _parts(ranking: Sequence[tuple[int, float]], by: str) -> list[float]:
    if by == "rank":
        return [1.0 / (RANK_OFFSET + place) for place in range(1, len(ranking) + 1)]
    scores = np.array([score for _, score in ranking], np.float64)
    low, high = (float(scores.min()), float(scores.max())) if len(scores) else (0.0, 0.0)
    spread: list[float] = ((scores - low) / (high - low) if high > low else np.ones(len(scores))).tolist()
    return spread


def _believe(
    view: MeteredView, nodes: list[int], entities: Sequence[Seed], rules: NexusRules
) -> dict[int, dict[str, float]]:
    """What judged answers say of these passages and of their edges to what the question names; only where they do."""
    if not rules.beliefs.counts or not nodes:
        return {}
    ids = view.ids(np.array([*nodes, *(one.node for one in entities)], np.int64))
    named = ids[len(nodes) :]
    believed: dict[int, dict[str, float]] = {}
    for node, passage in zip(nodes, ids, strict=False):
        keys = [(passage,), *(pair(passage, entity) for entity in named)]
        if rules.beliefs.knows(keys):
            posterior = rules.beliefs.of(keys)
            low, high = posterior.interval(rules.level)
            believed[node] = {"belief": posterior.mean, "belief_low": low, "belief_high": high}
    return believed
