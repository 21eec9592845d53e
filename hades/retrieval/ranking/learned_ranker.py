"""The learned ranker as it serves: numpy over arrays of the snapshot, no read and no library more than by hand.

Passages: the net is cast twice around the best ones (`reach`), the most promising are read, and a small network orders
them by what they say (`described`). Paths: a small network over hops, weights, words and states. A head that the gate
left out, or a question that cannot be compared, is judged by hand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hades.ports.graph import Numbers, Passage, RankerState
from hades.retrieval.ranking.abstain import Support
from hades.retrieval.ranking.judge import BY_HAND, ByHand, Judge, ranks_of
from hades.retrieval.ranking.multihop_reranker import Pool
from hades.retrieval.ranking.path_features import path_columns
from hades.retrieval.ranking.ranker_features import describe, doubts
from hades.retrieval.ranking.sentence_match import Floats, QuestionWords, Reading, read_closely, wanted
from hades.retrieval.turn.types import FoundPassage, FoundPath, Question
from hades.retrieval.walks.second_hop import Net, ReachRules, ReachState, cast_net
from models.ranker.features import matrix
from models.ranker.infer import BadModel, Head, RankerModel, unpack
from models.vectors import unit_rows
from schemas.plan import Reason

if TYPE_CHECKING:
    from hades.retrieval.turn.metered_view import MeteredView

CONFIDENCE = "confidence"
LIKELY = 0.5
RULES = ReachRules()


def learned_judge(view: MeteredView, question: Question) -> Judge:
    """The ranker of the snapshot; weights by hand, with the reason, where it cannot be asked."""
    fitted = view.fitted()
    model = None if fitted is None else _model(fitted)
    if fitted is None or model is None or not _fits(model, fitted, question):
        view.turn.because(Reason.RANKER_UNAVAILABLE)
        return BY_HAND
    asked = model.question_state(np.asarray(question.vector, np.float32))
    return LearnedJudge(model, ReachState(fitted.states, asked))


@dataclass(frozen=True)
class PassagePool:
    """Passages that were read, with what is known of them before the network judges."""

    found: list[FoundPassage]
    described: dict[str, Floats]
    columns: dict[str, Floats]
    reach: Floats
    cosine: Floats


class LearnedJudge(ByHand):
    """A `Judge` by a fitted model."""

    def __init__(self, model: RankerModel, known: ReachState) -> None:
        self._model, self._known = model, known

    def passages(
        self, view: MeteredView, question: Question, found: Sequence[FoundPassage], m: int
    ) -> list[FoundPassage]:
        """See `Judge.passages`."""
        reach, again, read = (self._model.head(name) for name in ("reach", "again", "read"))
        if reach is None or again is None or read is None or not found or m < 1:
            return super().passages(view, question, found, m)
        first = first_net(view, question, found, self._known)
        second = second_net(view, question, found, first, _scores(reach, "reach", first.columns), self._known)
        pooled = read_best(view, question, second, _scores(again, "again", second.columns), m, found)
        if pooled is None or view.turn.expired():
            return list(found)
        scores = _scores(read, "read", pooled.columns)
        return self._order(pooled, scores) + [one for one in found[m:] if one.node not in set(second.nodes.tolist())]

    def walked(self, question: Question, nodes: Sequence[int], pool: Pool, want: QuestionWords) -> Floats:
        """See `Judge.walked`."""
        head = self._model.head("walk")
        if head is None:
            return super().walked(question, nodes, pool, want)
        return _scores(head, "walk", describe(question.text, pool, want, pool.walk))

    def paths(
        self, view: MeteredView, question: Question, paths: Sequence[FoundPath], texts: Sequence[str]
    ) -> list[FoundPath]:
        """See `Judge.paths`."""
        head = self._model.head("path")
        if head is None or not texts:
            return super().paths(view, question, paths, texts)
        looked_at = list(paths[: len(texts)])
        scores = _scores(head, "path", path_columns(view, question, looked_at, texts, self._known))
        return [looked_at[place] for place in ranks_of(scores)] + list(paths[len(texts) :])

    def support(self, question: Question, passages: Sequence[FoundPassage], read: Sequence[Passage]) -> Support:
        """See `Judge.support`. Where the rule by hand doubts too, the best must be more likely right than not."""
        known = [one.tiers[CONFIDENCE] for one in passages if CONFIDENCE in one.tiers]
        by_hand = super().support(question, passages, read)
        if not known:
            return by_hand
        best = max(known)
        needed = LIKELY if by_hand.should_abstain else self._model.doubt
        why = f"confidence of the best passage {best:.2f}, {needed:.2f} needed; {by_hand.why}"
        return replace(by_hand, margin=best - needed, why=why)

    def _order(self, pooled: PassagePool, scores: Floats) -> list[FoundPassage]:
        """Best first; scores fall from 1, and `confidence` says how likely each supports an answer."""
        shown = 2.0 / (1.0 + np.exp(scores.max() - scores))
        sure = self._model.head("sure")
        tiers = [one.tiers for one in pooled.found]
        if sure is not None:
            columns = doubts(scores, pooled.described, pooled.reach, pooled.cosine)
            chances = self._model.confidence(sure.score(matrix("sure", columns)))
            tiers = [{**own, CONFIDENCE: float(chance)} for own, chance in zip(tiers, chances, strict=True)]
        return [
            replace(pooled.found[place], score=float(shown[place]), tiers=tiers[place]) for place in ranks_of(scores)
        ]


def first_net(view: MeteredView, question: Question, found: Sequence[FoundPassage], known: ReachState) -> Net:
    """Around the best of what the searches found."""
    anchors = np.array([one.node for one in found[: RULES.anchors]], np.int64)
    return cast_net(view, question, found, anchors, known, rules=RULES)


def second_net(
    view: MeteredView, question: Question, found: Sequence[FoundPassage], first: Net, scores: Floats, known: ReachState
) -> Net:
    """Around the best of the first net; its own best stay."""
    best = first.nodes[ranks_of(scores)]
    kept = best[: RULES.kept].tolist()
    return cast_net(view, question, found, best[: RULES.anchors], known, kept=kept, rules=RULES)


def read_best(
    view: MeteredView,
    question: Question,
    net: Net,
    scores: Floats,
    m: int,
    found: Sequence[FoundPassage],
) -> PassagePool | None:
    """Read the `m` most promising and describe them; None where the budget allows none."""
    order = np.array(ranks_of(scores)[:m], np.int64)
    texts = view.passages(net.nodes[order])
    order = order[: len(texts)]
    if not len(order):
        return None
    nodes, reach = net.nodes[order], np.asarray(scores, np.float64)[order]
    readings = [read_closely(text) for text in texts]
    vectors = _units(view, question, nodes)
    asked = np.asarray(question.vector, np.float32)
    own = {name: column[order] for name, column in net.columns.items()}
    walk = np.exp(reach - reach.max())
    pool = Pool(readings, walk, own["linked_sum"] + 1e-6, own["lexical"], vectors, asked)
    described = describe(question.text, pool, _question_words(view, question, readings), reach)
    columns = {**described, **{f"net_{name}": column for name, column in own.items()}, "reach": reach - reach.max()}
    tiers = {one.node: one.tiers for one in found}
    cosine = (vectors @ asked).astype(np.float64)
    passages = [
        FoundPassage(node, 0.0, tiers.get(node, {"graph": float(own["linked_sum"][place])}))
        for place, node in enumerate(nodes.tolist())
    ]
    return PassagePool(passages, described, columns, reach, cosine)


def _question_words(view: MeteredView, question: Question, readings: Sequence[Reading]) -> QuestionWords:
    """What the question asks for; its names are the spelled-out entities with a capital."""
    found = view.match_names(question.text)
    spans = zip(found.starts.tolist(), found.ends.tolist(), strict=True)
    names = [question.text[start:end] for start, end in spans]
    return wanted(question.text, [name for name in names if name[:1].isupper()], readings)


def _units(view: MeteredView, question: Question, nodes: Numbers) -> NDArray[np.float32]:
    vectors, _ = view.vectors(nodes, model=question.model)
    return unit_rows(vectors)


def _scores(head: Head, name: str, columns: Mapping[str, Floats]) -> Floats:
    return head.score(matrix(name, columns)).astype(np.float64)


@lru_cache(maxsize=4)
def _model(fitted: RankerState) -> RankerModel | None:
    """The model of a snapshot, laid out once; None where this version cannot use it."""
    try:
        return unpack(fitted.signature.tobytes(), fitted.numbers)
    except BadModel:
        return None


def _fits(model: RankerModel, fitted: RankerState, question: Question) -> bool:
    """Whether the question's vector is of the model's kind, and the states are of this graph."""
    width = (len(fitted.states), int(model.signature["state"]))
    return question.vector is not None and question.model == model.signature["model"] and fitted.states.shape == width
