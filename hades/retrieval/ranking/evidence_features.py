"""What the one ranking sees of a passage: every channel's figures, scaled so that corpora and embedders compare.

The first columns describe each passage alone, the second ones the passages beside each other, given an earlier worth.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hades.retrieval.ranking.bridge_features import Bridges, bridge_columns, find_bridges, hold_shares
from hades.retrieval.ranking.memory_features import Columns, Floats, speech
from hades.retrieval.ranking.multihop_reranker import first_look, reciprocal, second_look, voice_of
from hades.retrieval.ranking.sentence_bridges import SentenceBridges, find_sentence_bridges, sentence_bridge_columns
from hades.retrieval.walks.evidence_search import Evidence


def first_columns(evidence: Evidence) -> tuple[Columns, Connections]:
    """Columns of each passage alone, by name; and how the passages lead to each other."""
    alone, linked = first_look(evidence.pool, evidence.want)
    cosine = (evidence.pool.vectors @ evidence.pool.asked).astype(np.float64)
    told = {f"told_{name}": column for name, column in evidence.columns.items()}
    own = {
        "cosine_z": standard(cosine),
        "cosine_rank": reciprocal(cosine),
        "remaining_z": standard(alone["remaining_cosine"]),
        "lexical_rank": reciprocal(evidence.pool.lexical),
        "clause": standard(evidence.clauses.max(axis=1)) if evidence.clauses.shape[1] else np.zeros(len(cosine)),
        "clause_rank": _best_rank(evidence.clauses),
        **speech(evidence.passages),
    }
    readings = evidence.pool.readings
    holds = hold_shares(readings, evidence.want)
    connections = Connections(
        linked,
        holds,
        find_bridges(readings, evidence.want, holds),
        find_sentence_bridges(readings, evidence.want),
        compare_remaining(evidence.pool.vectors, evidence.pool.asked),
    )
    return {**alone, **told, **own}, connections


@dataclass(frozen=True)
class Connections:
    """How the passages lead to each other: (n, n) links by title, and bridges by names.

    `holds` (n, words): what of the question each passage holds. `remaining` (n, n): at [k, i] the cosine of i with what
    k leaves of the question, at least 0.
    """

    linked: Floats
    holds: Floats
    bridges: Bridges
    sentences: SentenceBridges
    remaining: Floats


def second_columns(evidence: Evidence, worth: Floats, connections: Connections) -> Columns:
    """Columns of the passages beside each other, given the worth that an earlier look gave."""
    beside = second_look(evidence.pool, evidence.want, worth, connections.linked, connections.holds)
    voice, bridges = voice_of(worth), connections.bridges
    beside |= bridge_columns(bridges, voice)
    beside |= sentence_bridge_columns(connections.sentences, bridges.adds, connections.remaining, voice)
    return {f"beside_{name}": column for name, column in beside.items()}


def compare_remaining(vectors: NDArray[np.float32], asked: NDArray[np.float32]) -> Floats:
    """(n, n): at [k, i] the cosine of i with the question's vector without the part that lies along k; at least 0."""
    cosine = vectors @ asked
    rest = asked[None, :] - cosine[:, None] * vectors
    length = np.maximum(np.linalg.norm(rest, axis=1, keepdims=True), 1e-9)
    remaining: Floats = np.maximum((rest / length) @ vectors.T, 0.0).astype(np.float64)
    return remaining


def standard(values: Floats) -> Floats:
    """Values minus their mean, over their spread; all 0 where they do not differ."""
    spread = float(values.std()) if len(values) else 0.0
    return (values - values.mean()) / spread if spread > 1e-9 else np.zeros(len(values))


def _best_rank(clauses: Floats) -> Floats:
    """For each passage the best reciprocal rank among the clauses; 0 where the question has one clause only."""
    if not clauses.shape[1]:
        return np.zeros(len(clauses))
    best: Floats = np.max([reciprocal(clauses[:, place]) for place in range(clauses.shape[1])], axis=0)
    return best
