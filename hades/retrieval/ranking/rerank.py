"""A closer look at the best candidates: read them, weigh them again, and take them so that they complete each other.

Base score: cosine, BM25 among the candidates, titles the question spells, and what earlier stages gave. Then greedily:
a candidate gains by question words that nothing before it holds (coverage, as in maximal coverage selection) and by
being named in a text already taken, for the second step of a question is named in the first. docs/context.md has the
figures that chose the weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from hades.ports.graph import Passage
from hades.ports.view import GraphView
from hades.retrieval.core.types import FoundPassage, FoundPath, Question
from hades.retrieval.core.words import Array, Body, Wording, links, match_titles, passage_body, wording, words
from hades.retrieval.features.passages import COMPLETION, Completion, in_turn, spread


@dataclass(frozen=True)
class Candidates:
    """What a scorer sees, arrays of one length: the passages, their text, cosine with the question, their wording."""

    found: Sequence[FoundPassage]
    texts: Sequence[Passage]
    similarity: Array
    words: Wording


class Scorer(Protocol):
    """Gives each candidate a worth; a trained ranker takes the place of `Weights` here and nothing else changes."""

    def score(self, question: Question, candidates: Candidates) -> Array:
        """(n,) float64, higher is better, in [0, 1]."""
        ...


@dataclass(frozen=True)
class Weights:
    """The worth of a candidate as a weighted mean of its signals, each spread over [0, 1] among the candidates."""

    similarity: float = 1.0
    words: float = 1.0
    title: float = 0.5
    earlier: float = 0.5

    def score(self, question: Question, candidates: Candidates) -> Array:
        """See `Scorer`."""
        titles = [text.title for text in candidates.texts]
        total = (
            self.similarity * spread(candidates.similarity)
            + self.words * spread(candidates.words.bm25)
            + self.title * match_titles(question.text, titles)
            + self.earlier * spread(np.array([one.score for one in candidates.found], np.float64))
        )
        weight = self.similarity + self.words + self.title + self.earlier
        return np.asarray(total / weight if weight > 0 else total, np.float64)


BY_HAND = Weights()


def rerank(
    view: GraphView,
    question: Question,
    passages: Sequence[FoundPassage],
    m: int,
    *,
    scorer: Scorer = BY_HAND,
    completion: Completion = COMPLETION,
    read: dict[int, Passage] | None = None,
) -> list[FoundPassage]:
    """The passages with the best `m` in a new order; the others follow as they were.

    Each of the `m` is read once; `read` holds passages known by node and takes in those read here, so that nothing is
    read twice. Where the budget ends the reading, the unread stay behind the read.
    """
    known = {} if read is None else read
    missing = [one.node for one in passages[:m] if one.node not in known]
    if missing:
        known |= dict(zip(missing, view.passages(np.array(missing, np.int64)), strict=False))
    looked_at = [one for one in passages[:m] if one.node in known]
    rest = [one for one in passages[:m] if one.node not in known] + list(passages[m:])
    if not looked_at:
        return list(passages)
    texts = [known[one.node] for one in looked_at]
    bodies = [passage_body(text.title, text.text) for text in texts]
    spoken = wording(question.text, bodies)
    worth = scorer.score(question, Candidates(looked_at, texts, _similarity(view, question, looked_at), spoken))
    linked = links([text.title for text in texts], bodies, [text.document for text in texts])
    order, gains = in_turn(worth, spoken, linked, completion)
    return _rescore([looked_at[place] for place in order], gains, rest)


def rerank_paths(
    question: Question, paths: Sequence[FoundPath], texts: Sequence[str], m: int, coverage: float = 0.33
) -> list[FoundPath]:
    """The paths with the best `m` in a new order: their own score, their words, and question words not yet covered.

    `texts` are the paths in words, which whoever calls has read already.
    """
    best = paths[:m]
    if not best:
        return list(paths)
    spoken = wording(question.text, [Body(words(text)) for text in texts[: len(best)]])
    own = np.array([path.score for path in best], np.float64)
    worth = (spread(own) + spread(spoken.bm25)) / 2
    order, _ = in_turn(worth, spoken, np.zeros((len(best), len(best))), Completion(coverage, 0.0))
    return [best[place] for place in order] + list(paths[len(best) :])


def _similarity(view: GraphView, question: Question, passages: Sequence[FoundPassage]) -> Array:
    """Cosine of each passage with the question; 0 where either has no vector."""
    if question.vector is None:
        return np.zeros(len(passages))
    vectors, there = view.vectors(np.array([one.node for one in passages], np.int64), model=question.model)
    if not there.any():
        return np.zeros(len(passages))
    lengths = np.linalg.norm(vectors, axis=1)
    cosines = (vectors @ question.vector) / np.where(lengths > 0, lengths, 1.0)
    return np.where(there, cosines, 0.0).astype(np.float64)


def _rescore(taken: Sequence[FoundPassage], gains: Sequence[float], rest: Sequence[FoundPassage]) -> list[FoundPassage]:
    """Scores that fall with the rank: of the taken what they gained, of the rest their own, below all of them."""
    result: list[FoundPassage] = []
    ceiling = 1.0
    for one, gain in zip(taken, gains, strict=True):
        ceiling = min(ceiling, gain)
        result.append(replace(one, score=ceiling, tiers={**one.tiers, "rerank": gain}))
    highest = max((one.score for one in rest), default=0.0)
    scale = ceiling / highest if highest > ceiling else 1.0
    return result + [replace(one, score=one.score * scale) for one in rest]
