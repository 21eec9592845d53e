"""A closer look at candidates and paths by weights that people chose; what a home learned about the
default.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hades.ports.graph import RankerState
from hades.retrieval.core.metered_view import MeteredView
from hades.retrieval.core.types import FoundPassage, FoundPath, Question
from hades.retrieval.core.words import (
    Body,
    Floats,
    Wording,
    links,
    match_titles,
    passage_body,
    wording,
    words,
)
from hades.retrieval.features.passages import Columns
from models.ranker.infer import COLUMNS, BadModel, RankerModel, unpack
from schemas.plan import Reason


class Judge:
    """Adjusts the default ranking to a home; this one has learned nothing. Callers notice no
    difference (B12).
    """

    def likeness(self, nodes: Sequence[int]) -> Floats:
        """(n,) how near the states of passages are to that of the question; 0 where nobody
        knows.
        """
        return np.zeros(len(nodes))

    def adjust(
        self,
        nodes: Sequence[int],
        worth: Floats,
        columns: Callable[[], Columns],
    ) -> Floats:
        """(n,) the worth that the shipped weights give, with what this corpus taught about its
        columns.
        """
        return worth

    def margin(self, shipped: float, signals: Floats) -> float:
        """What speaks for answering by the shipped rule, with what this corpus taught about its
        signals.
        """
        return shipped


class LearnedJudge(Judge):
    """A `Judge` by a fitted model: numpy over arrays of the snapshot, no read and no library
    more.
    """

    def __init__(
        self,
        model: RankerModel,
        states: NDArray[np.float16],
        vector: NDArray[np.float32],
    ) -> None:
        abstain = model.arrays.get("abstain")
        self._states = states
        self._line_weights = model.arrays["line"].astype(np.float64)
        self._abstain_weights = None if abstain is None else abstain.astype(np.float64)
        self._question_state = model.question_state(vector) if model.has_states else None

    def likeness(self, nodes: Sequence[int]) -> Floats:
        if self._question_state is None:
            return super().likeness(nodes)

        states = self._states[list(nodes)].astype(np.float32)
        return (states @ self._question_state).astype(np.float64)

    def adjust(
        self,
        nodes: Sequence[int],
        worth: Floats,
        columns: Callable[[], Columns],
    ) -> Floats:
        """See `Judge.adjust`: in units of the spread of the worth."""
        features = columns()
        table = np.column_stack([features[name] for name in COLUMNS])
        correction: Floats = table @ self._line_weights
        return worth + float(worth.std()) * correction

    def margin(self, shipped: float, signals: Floats) -> float:
        if self._abstain_weights is None:
            return shipped
        return shipped + float(self._abstain_weights @ signals)


BY_HAND = Judge()


def judge_of(view: MeteredView, question: Question) -> Judge:
    """The ranker of the snapshot; the shipped weights where it has none, with the reason where it
    cannot be asked.
    """
    if not view.info.parts.get("ranker"):
        return BY_HAND

    fitted = view.fitted()
    model = None if fitted is None else _model(fitted)
    if fitted is None or model is None or not _fits(model, fitted, question):
        view.turn.because(Reason.RANKER_UNAVAILABLE)
        return BY_HAND

    return LearnedJudge(
        model,
        fitted.states,
        np.asarray(question.vector, np.float32),
    )


@lru_cache(maxsize=4)
def _model(fitted: RankerState) -> RankerModel | None:
    """The model of a snapshot, laid out once; None where this version cannot use it."""
    try:
        return unpack(fitted.signature.tobytes(), fitted.numbers)
    except BadModel:
        return None


def _fits(
    model: RankerModel,
    fitted: RankerState,
    question: Question,
) -> bool:
    """Whether the question's vector is of the model's kind, and the states are of this graph."""
    shape = (len(fitted.states), int(model.signature["state"]))
    return (
        question.vector is not None
        and question.model == model.signature["model"]
        and fitted.states.shape == shape
    )


# A closer look at the best candidates: read them, weigh them again, and take them so that they
# complete each other. First cosine, BM25 among the candidates, titles the question spells, and what
# earlier stages gave. Then greedily: a candidate gains by question words that nothing before it
# holds (coverage, as in maximal coverage selection) and by being named in a text already taken, for
# the second step of a question is named in the first. docs/retrieval.md has the figures that chose
# the weights.

# What a spelled title and the score so far count beside cosine and words.
_TITLE, _EARLIER = 0.5, 0.5
# What a candidate gains by what was taken before it, in units of the worth: words that nothing
# before it holds, and being named by it.
_COVERAGE, _LINK = 0.33, 0.32


def rerank(
    view: MeteredView,
    question: Question,
    passages: Sequence[FoundPassage],
    m: int,
) -> list[FoundPassage]:
    """The passages with the best `m` in a new order; the others follow as they were.

    Each of the `m` is read once. Where the budget ends the reading, the unread stay behind the
    read.
    """
    texts = view.passages(np.array([passage.node for passage in passages[:m]], np.int64))
    if not texts:
        return list(passages)

    candidates = passages[: len(texts)]
    unread = passages[len(texts) :]
    titles = [text.title for text in texts]
    bodies = [passage_body(text.title, text.text) for text in texts]
    overlap = wording(question.text, bodies)
    earlier = np.array([passage.score for passage in candidates], np.float64)
    worth = _spread(_similarity(view, question, candidates)) + _spread(overlap.bm25)
    worth = worth + _TITLE * match_titles(question.text, titles) + _EARLIER * _spread(earlier)
    worth = worth / (2.0 + _TITLE + _EARLIER)
    linked = links(
        titles,
        bodies,
        [text.document for text in texts],
    )
    order, gains = _take_greedily(worth, overlap, linked)
    return _rescore(
        [candidates[place] for place in order],
        gains,
        unread,
    )


def rerank_paths(
    question: Question,
    paths: Sequence[FoundPath],
    texts: Sequence[str],
) -> list[FoundPath]:
    """The paths, the first ones in a new order: their own score, their words, and question words
    not yet covered.

    `texts` are the first paths in words, which the caller has read already.
    """
    best = paths[: len(texts)]
    if not best:
        return list(paths)

    overlap = wording(question.text, [Body(words(text)) for text in texts])
    scores = np.array([path.score for path in best], np.float64)
    worth = (_spread(scores) + _spread(overlap.bm25)) / 2
    order, _ = _take_greedily(
        worth,
        overlap,
        np.zeros((len(best), len(best))),
    )
    return [best[place] for place in order] + list(paths[len(best) :])


def _spread(values: Floats) -> Floats:
    """Values over [0, 1]; all 0 where they do not differ."""
    if not len(values) or values.max() <= values.min():
        return np.zeros(len(values))
    return np.asarray(
        (values - values.min()) / (values.max() - values.min()),
        np.float64,
    )


def _take_greedily(
    worth: Floats,
    overlap: Wording,
    linked: Floats,
) -> tuple[list[int], list[float]]:
    """Places in the order taken, greedily, with what each was worth then; ties fall to the earlier
    place.
    """
    uncovered = overlap.rarity.copy()
    if uncovered.sum() > 0:
        uncovered /= uncovered.sum()

    available = worth.copy()
    bonus = np.zeros(len(worth))
    order: list[int] = []

    gains: list[float] = []
    for _ in range(len(worth)):
        total = available + bonus + _COVERAGE * (uncovered @ overlap.holds)
        place = int(total.argmax())
        order.append(place)
        gains.append(float(total[place]))
        available[place] = -np.inf
        uncovered = uncovered * (1 - overlap.holds[:, place])
        bonus = np.maximum(bonus, _LINK * linked[place] * worth[place])

    return order, gains


def _similarity(
    view: MeteredView,
    question: Question,
    passages: Sequence[FoundPassage],
) -> Floats:
    """Cosine of each passage with the question; 0 where either has no vector."""
    if question.vector is None:
        return np.zeros(len(passages))

    nodes = np.array([passage.node for passage in passages], np.int64)
    vectors, has_vector = view.vectors(nodes, model=question.model)
    if not has_vector.any():
        return np.zeros(len(passages))

    lengths = np.linalg.norm(vectors, axis=1)
    cosines = (vectors @ question.vector) / np.where(lengths > 0, lengths, 1.0)
    return np.where(has_vector, cosines, 0.0).astype(np.float64)


def _rescore(
    reranked: Sequence[FoundPassage],
    gains: Sequence[float],
    unread: Sequence[FoundPassage],
) -> list[FoundPassage]:
    """Scores that fall with the rank: of the reranked what they gained, of the unread their own,
    below all of them.
    """
    rescored: list[FoundPassage] = []
    ceiling = 1.0

    for passage, gain in zip(reranked, gains, strict=True):
        ceiling = min(ceiling, gain)
        rescored.append(
            replace(
                passage,
                score=ceiling,
                tiers={**passage.tiers, "rerank": gain},
            )
        )

    highest = max((passage.score for passage in unread), default=0.0)
    scale = ceiling / highest if highest > ceiling else 1.0
    return rescored + [replace(passage, score=passage.score * scale) for passage in unread]
