"""Passages that were read, described by numbers for a learned ranker: each alone, beside the others, and as by hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hades.retrieval.ranking.fitted_files import linear_looks
from hades.retrieval.ranking.multihop_reranker import Pool, first_look, reciprocal, second_look, weigh
from hades.retrieval.ranking.rerank import COMPLETION, in_turn, spread
from hades.retrieval.ranking.sentence_match import Floats, QuestionWords
from hades.retrieval.ranking.word_overlap import Body, links, match_titles, wording, words


def describe(question: str, pool: Pool, want: QuestionWords, earlier: Floats) -> dict[str, Floats]:
    """The columns `models.ranker.features.READ` of a pool; `earlier` is what an earlier stage gave."""
    alone, linked = first_look(pool, want)
    looks = linear_looks("multihop")
    first = weigh(alone, looks.first)
    beside = second_look(pool, want, first, linked)
    worth = weigh(beside, looks.second)
    cosine = (pool.vectors @ pool.asked).astype(np.float64)
    titles = [reading.title for reading in pool.readings]
    bodies = [[*words(reading.title), *" ".join(reading.spoken).split()] for reading in pool.readings]
    return {
        **{f"alone_{name}": column for name, column in alone.items()},
        **{f"beside_{name}": column for name, column in beside.items()},
        "worth": worth - worth.max(),
        "worth_rank": reciprocal(worth),
        "worth_place": np.log(reciprocal(worth)),
        **_by_hand(question, titles, bodies, cosine, earlier),
        "cosine_rank": reciprocal(cosine),
    }


def doubts(scores: Floats, described: dict[str, Floats], reach: Floats, cosine: Floats) -> dict[str, Floats]:
    """The columns `models.ranker.features.SURE`: what says whether a passage supports an answer at all."""
    shares = np.exp(scores - scores.max())
    ranked = np.sort(scores)[::-1]
    ahead = float(ranked[0] - ranked[1]) if len(ranked) > 1 else 0.0
    ones = np.ones(len(scores))
    return {
        "share": shares / shares.sum(),
        "gap": np.maximum(scores - scores.max(), -12.0),
        "place": reciprocal(scores),
        "margin": ahead * ones,
        "cosine": cosine,
        **{name: described[f"alone_{name}"] for name in ("words", "title_words", "best_sentence")},
        "title": described["title"],
        "most_cosine": cosine.max() * ones,
        "most_words": described["alone_words"].max() * ones,
        "reach": np.maximum(reach - reach.max(), -12.0),
    }


def _by_hand(
    question: str, titles: Sequence[str], bodies: Sequence[Sequence[str]], cosine: Floats, earlier: Floats
) -> dict[str, Floats]:
    """What the weights by hand think, and in which order they would take the passages."""
    texts = [Body(body) for body in bodies]
    spoken = wording(question, texts)
    title = match_titles(question, titles)
    hand = (spread(cosine) + spread(spoken.bm25) + 0.5 * title + 0.5 * spread(earlier)) / 3.0
    order, gains = in_turn(hand, spoken, links(titles, texts, titles), COMPLETION)
    gain, place = np.empty(len(hand)), np.empty(len(hand))
    gain[order], place[order] = np.minimum.accumulate(gains), np.arange(len(hand))
    return {
        "hand": hand,
        "gain": gain - gain.max(),
        "gain_rank": 1.0 / (1.0 + place),
        "gain_place": -np.log1p(place),
        "bm25": spread(spoken.bm25),
        "bm25_rank": reciprocal(spoken.bm25),
        "title": title,
    }
