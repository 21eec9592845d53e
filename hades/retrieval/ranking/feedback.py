"""Beliefs from judged answers; nexus; exploration."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import combinations
from typing import Any

import numpy as np

from hades.errors import StoreError
from hades.ports.store import GraphStore, scan_rows
from hades.retrieval.core.metered_view import MeteredView
from hades.retrieval.core.types import FoundPassage, Question, Seed
from hades.retrieval.core.words import MENTIONS, OUT
from hades.retrieval.search.restart import nearest_passages
from hades.retrieval.search.walk_search import MULTI_HOP, HippoRules, WalkCaps, hippo_search
from hades.settings.tree import HippoSettings
from schemas.telemetry import Feedback, ShownResults

# What judged answers say about an edge or a passage: a Beta posterior with its interval, and a
# check of calibration. Every judgement of a shown result is one trial. Before any, a result is as
# likely good as the prior says; each judgement moves the chance, and the interval says how far it
# could still move (requirement X-91).
Key = tuple[str, ...]  # the ids of two neighbours, in order of text; or of one passage


@dataclass(frozen=True)
class Posterior:
    """Beta(alpha, beta) over the chance that a result is good."""

    alpha: float
    beta: float

    @property
    def mean(self) -> float:
        """The expected chance."""
        return self.alpha / (self.alpha + self.beta)

    def interval(self, level: float = 0.9) -> tuple[float, float]:
        """The central interval that holds the chance with this probability."""
        from scipy.special import betaincinv

        tail = (1.0 - level) / 2.0
        low, high = betaincinv(
            self.alpha,
            self.beta,
            np.array([tail, 1.0 - tail]),
        )
        return float(low), float(high)


@dataclass(frozen=True)
class Judgement:
    """A shown result, by the keys of what it was made of, and whether somebody judged it good."""

    keys: tuple[Key, ...]
    is_good: bool


@dataclass(frozen=True)
class Beliefs:
    """Posteriors by key; what was never judged has the prior."""

    counts: Mapping[Key, tuple[int, int]] = field(default_factory=dict)
    prior: tuple[float, float] = (1.0, 1.0)

    def of(self, keys: Iterable[Key]) -> Posterior:
        """What all judgements of these keys together say."""
        known = []
        for key in set(keys):
            if key in self.counts:
                known.append(self.counts[key])

        good = sum(good_count for good_count, _ in known)
        bad = sum(bad_count for _, bad_count in known)
        return Posterior(self.prior[0] + good, self.prior[1] + bad)

    def knows(self, keys: Iterable[Key]) -> bool:
        """Whether any of these was ever judged."""
        return any(key in self.counts for key in keys)


def learn_beliefs(judgements: Iterable[Judgement]) -> Beliefs:
    """Count the judgements; their order does not matter."""
    counts: dict[Key, tuple[int, int]] = {}
    for judgement in judgements:
        for key in set(judgement.keys):
            good, bad = counts.get(key, (0, 0))
            counts[key] = (good + judgement.is_good, bad + (not judgement.is_good))

    return Beliefs(counts)


def judgements_in(logs: Iterable[Mapping[str, Any]]) -> list[Judgement]:
    """The judgements in rows of `query_logs`, whose `results` and `feedback` are JSON text."""
    judgements: list[Judgement] = []
    for log in logs:
        feedback_fields = json.loads(log["feedback"] or "{}")
        if not feedback_fields:
            continue

        feedback = Feedback.model_validate(feedback_fields)
        shown = ShownResults.model_validate_json(log["results"])
        for judged, is_good in ((feedback.good, True), (feedback.bad, False)):
            paths = [path for path in shown.paths if path.rank in judged.paths]
            keys = []
            for path in paths:
                keys.append(tuple(map(edge_key, path.nodes, path.nodes[1:])))

            keys += [((hit.id,),) for hit in shown.passages if hit.rank in judged.passages]
            judgements += [Judgement(result_keys, is_good) for result_keys in keys]

    return judgements


def edge_key(first: str, second: str) -> Key:
    """The key of the edge between two nodes, whichever way it points."""
    if first <= second:
        return (first, second)
    return (second, first)


LOGS = "query_logs"


class StoredBeliefs:
    """Calling it gives what judged answers taught up to now; nothing where no store can be opened.

    The store's mark of the query log says whether a row changed, so an unchanged log is not read
    again. `check` raises where the rows of a collection cannot be read at once: no question waits
    for them.
    """

    def __init__(
        self,
        open_store: Callable[[], GraphStore],
        check: Callable[[str], None] = lambda collection: None,
    ) -> None:
        self._open_store, self._check = open_store, check
        self._lock = threading.Lock()
        self._mark: str | None = None
        self._beliefs: Beliefs | None = None

    def __call__(self) -> Beliefs:
        """The beliefs of this moment."""
        with self._lock:
            try:
                self._check(LOGS)
                with closing(self._open_store()) as store:
                    mark = store.marks([LOGS]).get(LOGS)
                    if mark is None or mark != self._mark:
                        logs = scan_rows(
                            store,
                            LOGS,
                            columns=["_key", "results", "feedback"],
                        )
                        self._beliefs, self._mark = learn_beliefs(judgements_in(logs)), mark
            except StoreError:
                return Beliefs()

            return self._beliefs or Beliefs()


# Nexus: vector, graph and Bayesian tiers fused into one list that says what each tier gave. Ranks
# are fused reciprocally, because a cosine, a walk and a chance mean nothing to each other. The
# modes differ in what they may spend.
# Cormack et al. (2009) take 60, for rankings of equal worth; the graph tier's first ranks are
# better.
RANK_OFFSET = 10


class Tier(StrEnum):
    """Where a passage can come from."""

    VECTOR = "vector"
    GRAPH = "graph"
    BAYES = "bayes"


@dataclass(frozen=True)
class Mode:
    """What a mode may spend: its tiers, how many passages come back, and whether walks follow the
    first two.
    """

    tiers: tuple[Tier, ...]
    results: int
    is_multi_hop: bool = False


MODES: Mapping[str, Mode] = {
    "execution": Mode((Tier.VECTOR, Tier.GRAPH), 5),
    "planning": Mode(tuple(Tier), 10),
    "brainstorming": Mode(tuple(Tier), 20, is_multi_hop=True),
}
WEIGHTS: Mapping[Tier, float] = {
    Tier.VECTOR: 1.0,
    Tier.GRAPH: 8.0,
    Tier.BAYES: 4.0,
}
_DEPTH = 50  # passages of each tier


def nexus(
    view: MeteredView,
    question: Question,
    mode: str = "planning",
    beliefs: Beliefs = Beliefs(),
    walk: HippoSettings = HippoSettings(),
    caps: WalkCaps = WalkCaps(),
) -> list[FoundPassage]:
    """Passages best first, each once. `tiers` holds each tier's share of the score, which sum to 1.

    Where the Bayesian tier knows a passage it also holds `belief`, the chance that it is good, and
    the ends of its interval, `belief_low` and `belief_high`.
    """
    mode_rules = MODES[mode]
    cosines = nearest_passages(view, question, _DEPTH).by_number()
    walk_rules = replace(
        MULTI_HOP if mode_rules.is_multi_hop else HippoRules(),
        walk=walk,
        limit=min(_DEPTH, caps.passages),
        caps=caps,
    )
    passages, entities = hippo_search(view, question, walk_rules)

    walk_scores = {}
    for passage in passages:
        walk_scores[passage.node] = passage.score

    candidates = set(list({**walk_scores, **cosines})[: caps.passages])
    vector_scores = {}
    for node, cosine in cosines.items():
        if node in candidates:
            vector_scores[node] = cosine

    rankings = {
        Tier.VECTOR: list(vector_scores.items()),
        Tier.GRAPH: list(walk_scores.items()),
    }
    belief_tiers: dict[int, dict[str, float]] = {}
    if Tier.BAYES in mode_rules.tiers:
        nodes = list({**vector_scores, **walk_scores})
        belief_tiers = _believe(view, nodes, entities, beliefs)
        if belief_tiers:  # what nobody judged stands at the prior, between the good and the bad
            prior = {"belief": beliefs.of(()).mean}
            rankings[Tier.BAYES] = [
                (node, belief_tiers.get(node, prior)["belief"]) for node in nodes
            ]

    best = fuse(rankings)[: mode_rules.results]
    return [
        replace(
            passage,
            tiers=passage.tiers | belief_tiers.get(passage.node, {}),
        )
        for passage in best
    ]


def fuse(
    rankings: Mapping[Tier, Sequence[tuple[int, float]]],
    weights: Mapping[Tier, float] = WEIGHTS,
) -> list[FoundPassage]:
    """Rankings of (node, score), best first, as one list: sorted, each node once, equal ones by
    node.

    Scores are shares of the best; a node's tiers are shares of its score.
    """
    parts: dict[int, dict[str, float]] = {}
    for tier, ranking in rankings.items():
        for rank, (node, score) in enumerate(ranking, 1):
            part = 1.0 / (RANK_OFFSET + rank)
            if tier is Tier.BAYES:  # by the chance: a bad judgement gives less than none
                part = score / (RANK_OFFSET + 1)

            node_parts = parts.setdefault(node, {})
            node_parts[tier.value] = max(node_parts.get(tier.value, 0.0), weights[tier] * part)

    totals = {node: sum(node_parts.values()) for node, node_parts in parts.items()}
    best = max(totals.values(), default=0.0)
    nodes = [node for node, total in totals.items() if total > 0.0]

    fused = []
    for node in sorted(nodes, key=lambda node: (-totals[node], node)):
        tiers = {name: part / totals[node] for name, part in parts[node].items()}
        fused.append(FoundPassage(node, totals[node] / best, tiers))

    return fused


def _believe(
    view: MeteredView,
    nodes: list[int],
    entities: Sequence[Seed],
    beliefs: Beliefs,
) -> dict[int, dict[str, float]]:
    """What judged answers say of these passages, of their edges to what the question names, and of
    edges between names that they mention; only where they do.
    """
    if not beliefs.counts or not nodes:
        return {}

    mentions = view.expand(
        np.array(nodes, np.int64),
        direction=OUT,
        types=[MENTIONS],
    )
    mentioned: dict[int, set[str]] = {}
    for row, entity_id in zip(mentions.row.tolist(), view.ids(mentions.target), strict=True):
        mentioned.setdefault(row, set()).add(entity_id)

    ids = view.ids(np.array([*nodes, *(entity.node for entity in entities)], np.int64))
    named_ids = ids[len(nodes) :]

    belief_tiers: dict[int, dict[str, float]] = {}
    for row, (node, passage_id) in enumerate(zip(nodes, ids, strict=False)):
        edges = combinations(sorted(mentioned.get(row, ())), 2)
        keys = [(passage_id,), *(edge_key(passage_id, named_id) for named_id in named_ids), *edges]
        if beliefs.knows(keys):
            posterior = beliefs.of(keys)
            low, high = posterior.interval()
            belief_tiers[node] = {
                "belief": posterior.mean,
                "belief_low": low,
                "belief_high": high,
            }

    return belief_tiers
