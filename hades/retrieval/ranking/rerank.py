"""A closer look at the best candidates: read them, weigh them again, and take them so that they complete each other.

Base score: cosine, BM25 among the candidates, titles the question spells, and what earlier stages gave. Then greedily:
a candidate gains by question words that nothing before it holds (coverage, as in maximal coverage selection) and by
being named in a text already taken, for the second step of a question is named in the first. docs/retrieval.md has the
figures that chose the weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hades.retrieval.core.metered_view import MeteredView
from hades.retrieval.core.types import FoundPassage, FoundPath, Question
from hades.retrieval.core.words import Array, Body, links, match_titles, passage_body, wording, words
from hades.retrieval.features.passages import COMPLETION, Completion, in_turn, spread

_TITLE, _EARLIER = 0.5, 0.5  # what a spelled title and the score so far count beside cosine and words


def rerank(
    view: MeteredView, question: Question, passages: Sequence[FoundPassage], m: int, completion: Completion = COMPLETION
) -> list[FoundPassage]:
    """The passages with the best `m` in a new order; the others follow as they were.

    Each of the `m` is read once. Where the budget ends the reading, the unread stay behind the read.
    """
    texts = view.passages(np.array([one.node for one in passages[:m]], np.int64))
    if not texts:
        return list(passages)
    looked_at, rest = passages[: len(texts)], passages[len(texts) :]
    bodies = [passage_body(text.title, text.text) for text in texts]
    spoken = wording(question.text, bodies)
    titles = [text.title for text in texts]
    worth = (
        spread(_similarity(view, question, looked_at))
        + spread(spoken.bm25)
        + _TITLE * match_titles(question.text, titles)
        + _EARLIER * spread(np.array([one.score for one in looked_at], np.float64))
    ) / (2.0 + _TITLE + _EARLIER)
    linked = links(titles, bodies, [text.document for text in texts])
    order, gains = in_turn(worth, spoken, linked, completion)
    return _rescore([looked_at[place] for place in order], gains, rest)


def rerank_paths(question: Question, paths: Sequence[FoundPath], texts: Sequence[str], m: int) -> list[FoundPath]:
    """The paths with the best `m` in a new order: their own score, their words, and question words not yet covered.

    `texts` are the paths in words, which whoever calls has read already.
    """
    best = paths[:m]
    if not best:
        return list(paths)
    spoken = wording(question.text, [Body(words(text)) for text in texts[: len(best)]])
    own = np.array([path.score for path in best], np.float64)
    worth = (spread(own) + spread(spoken.bm25)) / 2
    order, _ = in_turn(worth, spoken, np.zeros((len(best), len(best))), Completion(link=0.0))
    return [best[place] for place in order] + list(paths[len(best) :])


def _similarity(view: MeteredView, question: Question, passages: Sequence[FoundPassage]) -> Array:
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
