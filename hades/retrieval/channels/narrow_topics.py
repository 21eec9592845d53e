"""From a question to the few hundred nodes worth searching: down the topics, widest first, hubs demoted (HiRAG)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hades.ports.graph import Flags, Kind, Numbers
from hades.retrieval.ranking.relevance import ANY, IN, OUT, PATH_TYPES, Relevance, distinct
from hades.retrieval.turn.types import OPEN, Question
from hades.settings.hirag import HiragPathrag
from schemas.edges import ClusterEdgeType
from schemas.intervals import Mask
from schemas.plan import Reason

if TYPE_CHECKING:
    from hades.retrieval.turn.metered_view import MeteredView

SUPER_TOPIC, TOPIC = 2, 1
NEIGHBOUR_SHARE = 4  # candidates are few, so only the best quarter of the cap brings neighbours in


@dataclass(frozen=True)
class NarrowedTopic:
    """A topic that was kept on the way down, and its cosine with the question."""

    node: int
    level: int
    similarity: float


@dataclass(frozen=True)
class CandidateGraph:
    """Where paths are searched: nodes by `hscore`, best first, then by number; and the topics that led there."""

    nodes: Numbers
    hscore: NDArray[np.float32]
    topics: tuple[NarrowedTopic, ...] = ()

    def shown(self, limit: int) -> tuple[NarrowedTopic, ...]:
        """The topics that say most about where the search went: those entered, then the best above them."""
        entered = [topic for topic in self.topics if topic.level == TOPIC][:limit]
        above = [topic for topic in self.topics if topic.level != TOPIC][: limit - len(entered)]
        return (*above, *entered)

    def holds(self, numbers: Numbers) -> Flags:
        """Which of these nodes are candidates."""
        if not len(self._sorted):
            return np.zeros(len(numbers), np.bool_)
        places = np.minimum(np.searchsorted(self._sorted, numbers), len(self._sorted) - 1)
        held: Flags = self._sorted[places] == numbers
        return held

    @cached_property
    def _sorted(self) -> Numbers:
        return np.sort(self.nodes)


def narrow(
    view: MeteredView,
    question: Question,
    rules: HiragPathrag,
    *,
    thresholds: Mapping[int, float] | None = None,
) -> CandidateGraph | None:
    """The candidate graph of a question; None, with the reason, where there is no hierarchy to go down.

    `thresholds` are the least cosine of a topic, by level, in place of the rules'; topics below it are not entered.
    The widths of `rules.beam` are: super-topics kept, topics kept in all, neighbours that each of the best members
    brings in from outside.
    """
    if question.vector is None or question.model not in view.info.models.get(Kind.CLUSTER, ()):
        view.turn.because(Reason.HIERARCHY_UNAVAILABLE)
        return None
    least = {SUPER_TOPIC: rules.topic_thresholds.super_topic, TOPIC: rules.topic_thresholds.topic}
    topics = _descend(view, question, rules, {**least, **(thresholds or {})})
    entered = np.array(sorted(topic.node for topic in topics if topic.level == TOPIC), np.int64)
    found = view.expand(entered, direction=IN, types=[ClusterEdgeType.PART_OF], mask=question.mask)
    nodes = distinct(found.target)
    hscore = _hscores(view, question, nodes, rules)
    if not view.turn.expired() and len(nodes):
        brought = _neighbours(view, question, nodes, hscore, rules)
        nodes = np.concatenate([nodes, brought])
        hscore = np.concatenate([hscore, _hscores(view, question, brought, rules)])
    if len(nodes) > rules.cand_cap:
        view.turn.trimmed(Reason.CAP_EXCEEDED)
    best = _best(nodes, hscore, rules.cand_cap)
    return CandidateGraph(nodes[best], hscore[best].astype(np.float32), topics)


def get_hierarchy_candidates(
    view: MeteredView,
    q_emb: NDArray[np.float32],
    k_topic: int,
    thresholds: Mapping[int, float] | None = None,
    *,
    model: str | None = None,
    mask: Mask = OPEN,
    rules: HiragPathrag = HiragPathrag(),
) -> CandidateGraph | None:
    """`narrow` for a caller that has a vector and no question (C46); `model` is the topics' own when absent."""
    models = view.info.models.get(Kind.CLUSTER, ())
    named = model or (models[0] if models else "")
    vector = np.asarray(q_emb, np.float32)
    question = Question("", vector / max(float(np.linalg.norm(vector)), 1e-12), named, mask)
    return narrow(view, question, rules.model_copy(update={"topic_k": k_topic}), thresholds=thresholds)


def hub_demoted(similarity: NDArray[np.float64], deg_out: Numbers, deg_alpha: float) -> NDArray[np.float64]:
    """hscore: cosine x 1 / (1 + deg_alpha x out-degree) (requirement C34)."""
    return similarity / (1.0 + deg_alpha * deg_out)


def _descend(
    view: MeteredView, question: Question, rules: HiragPathrag, thresholds: Mapping[int, float]
) -> tuple[NarrowedTopic, ...]:
    """Super-topics by cosine, then the best topics: those under them and those that match by themselves.

    Each level keeps its own width and no more, however many parents there are.
    """
    widths = (*rules.beam, *(rules.beam[-1],) * 2)
    above = _nearest_topics(view, question, SUPER_TOPIC, rules.topic_k, thresholds)[: widths[0]]
    direct = _nearest_topics(view, question, TOPIC, rules.topic_k, thresholds)[: widths[1]]
    below = _children(view, question, above, widths[1], thresholds)
    entered = sorted({*direct, *below}, key=lambda topic: (-topic.similarity, topic.node))[: widths[1]]
    return (*above, *entered)


def _nearest_topics(
    view: MeteredView,
    question: Question,
    level: int,
    limit: int,
    thresholds: Mapping[int, float],
    within: Numbers | None = None,
) -> list[NarrowedTopic]:
    assert question.vector is not None
    hits = view.nearest(
        question.vector, kind=Kind.CLUSTER, model=question.model, limit=limit, level=level, within=within
    )
    pairs = zip(hits.numbers.tolist(), hits.scores.tolist(), strict=True)
    return [NarrowedTopic(node, level, score) for node, score in pairs if score >= thresholds.get(level, -1.0)]


def _children(
    view: MeteredView, question: Question, parents: list[NarrowedTopic], width: int, thresholds: Mapping[int, float]
) -> list[NarrowedTopic]:
    """The best topics under the parents. Membership points up, so the way down is against the edges."""
    if not parents or view.turn.expired():
        return []
    asked = np.array([topic.node for topic in parents], np.int64)
    found = view.expand(asked, direction=IN, types=[ClusterEdgeType.SUBTOPIC_OF], mask=question.mask)
    if not len(found):
        return []
    known = np.unique(found.target)
    return _nearest_topics(view, question, TOPIC, width, thresholds, within=known)


def _hscores(view: MeteredView, question: Question, numbers: Numbers, rules: HiragPathrag) -> NDArray[np.float64]:
    similarity = Relevance(view, question).cosine(numbers)
    return hub_demoted(similarity, view.degree(numbers, direction=OUT), rules.beam_demote.deg_alpha)


def _best(numbers: Numbers, hscore: NDArray[np.float64], limit: int) -> Numbers:
    """Places of the best, then by number; only what may be among them is sorted."""
    places = np.arange(len(numbers))
    if limit < len(numbers):
        places = np.flatnonzero(hscore >= np.partition(hscore, len(hscore) - limit)[len(hscore) - limit])
    return places[np.lexsort((numbers[places], -hscore[places]))][:limit]


def _neighbours(
    view: MeteredView, question: Question, members: Numbers, hscore: NDArray[np.float64], rules: HiragPathrag
) -> Numbers:
    """What the best members lead to outside: the facts of a question rarely end at the border of a topic."""
    widths = (*rules.beam, *(rules.beam[-1],) * 2)
    best = members[_best(members, hscore, max(1, rules.cand_cap // NEIGHBOUR_SHARE))]
    found = view.expand(best, direction=ANY, types=PATH_TYPES, fanout=widths[2], mask=question.mask)
    near = distinct(found.target)
    is_new: Flags = members[np.minimum(np.searchsorted(members, near), len(members) - 1)] != near
    return near[is_new]
