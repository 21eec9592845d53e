"""Where names lead from passage to passage: features of a pool, and the one ranking over them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hades.retrieval.core.words import Floats, shipped_ranking
from hades.retrieval.features.passages import (
    Columns,
    Pool,
    pairwise_features,
    passage_features,
    share_of_best,
)
from hades.retrieval.features.sentences import (
    LeadingMatrices,
    QuestionWords,
    combine_bridges,
    find_bridges,
    find_sentence_bridges,
    hold_shares,
)

LEADS = {"leads": 1.0}  # the context of a walk along names


@dataclass(frozen=True)
class Connections:
    """How the passages lead to each other: (n, n) links by title, and by names.

    `holds` (n, words): what of the question each passage holds.
    """

    linked: Floats
    holds: Floats
    leading: LeadingMatrices


def score_multihop(pool: Pool, want: QuestionWords) -> Floats:
    """(n,) the worth of passages that a walk brought up; only differences mean something."""
    return rank_looks(LEADS, pool_columns(pool), pool, want)


def pool_columns(pool: Pool) -> Columns:
    """What every context weighs: words, cosines, and both where there are no tokens."""
    words = standard(pool.lexical)
    cosine = standard((pool.vectors @ pool.question_vector).astype(np.float64))
    return {
        "words": words,
        "cosine": cosine,
        "tokens": (words + cosine) / 2.0,
    }


def rank_looks(
    contexts: Mapping[str, float],
    columns: Columns,
    pool: Pool,
    want: QuestionWords,
) -> Floats:
    """(n,) the worth of each passage by the shipped ranking.

    Passages are looked at beside each other where names may lead, and while there is time.
    """
    ranking = shipped_ranking()
    last = len(ranking.looks) - 1

    if not contexts.get("leads"):
        return ranking.score(last, contexts, columns)

    alone, linked = passage_features(pool, want)
    columns = {**columns, **alone}
    worth = ranking.score(0, contexts, columns)

    if pool.is_late():
        return worth

    connections = connect(pool, want, linked)
    for look in range(1, last + 1):
        beside = beside_columns(worth, connections)
        worth = ranking.score(look, contexts, {**columns, **beside})
        if pool.is_late():
            break

    return worth


def connect(
    pool: Pool,
    want: QuestionWords,
    linked: Floats,
) -> Connections:
    """How the passages of a pool lead to each other, given their links by title."""
    holds = hold_shares(pool.readings, want)
    bridges = find_bridges(pool.readings, want, holds)
    name_bridges = find_sentence_bridges(pool.readings, want)
    remaining = compare_remaining(pool.vectors, pool.question_vector)
    return Connections(
        linked,
        holds,
        combine_bridges(bridges, name_bridges, remaining),
    )


def beside_columns(worth: Floats, connections: Connections) -> Columns:
    """Columns of the passages beside each other, given the worth that an earlier look gave."""
    pair_columns = pairwise_features(
        worth,
        connections.linked,
        connections.holds,
    )
    pair_columns |= connections.leading.columns(share_of_best(worth))
    return {f"beside_{name}": column for name, column in pair_columns.items()}


def compare_remaining(
    vectors: NDArray[np.float32],
    question_vector: NDArray[np.float32],
) -> Floats:
    """(n, n): at [k, i] the cosine of i with the question's vector without the part that lies along
    k; at least 0.
    """
    cosine = vectors @ question_vector
    remaining_vectors = question_vector[None, :] - cosine[:, None] * vectors
    length = np.maximum(
        np.linalg.norm(
            remaining_vectors,
            axis=1,
            keepdims=True,
        ),
        1e-9,
    )
    remaining: Floats = np.maximum((remaining_vectors / length) @ vectors.T, 0.0).astype(np.float64)
    return remaining


def standard(values: Floats) -> Floats:
    """Values minus their mean, over their spread; all 0 where they do not differ."""
    spread = float(values.std()) if len(values) else 0.0
    return (values - values.mean()) / spread if spread > 1e-9 else np.zeros(len(values))
