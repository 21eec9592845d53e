"""What the one ranking sees of a passage: every channel's figures, scaled so that corpora and embedders compare.

The first columns describe each passage alone, the second ones the passages beside each other, given an earlier worth.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hades.retrieval.ranking.bridge_features import Bridges, bridge_columns, find_bridges
from hades.retrieval.ranking.memory_features import Columns, Floats, speech
from hades.retrieval.ranking.multihop_reranker import first_look, reciprocal, second_look, voice_of
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
    return {**alone, **told, **own}, Connections(linked, find_bridges(evidence.pool.readings, evidence.want))


@dataclass(frozen=True)
class Connections:
    """How the passages lead to each other: (n, n) links by title, and bridges by names."""

    linked: Floats
    bridges: Bridges


def second_columns(evidence: Evidence, worth: Floats, connections: Connections) -> Columns:
    """Columns of the passages beside each other, given the worth that an earlier look gave."""
    beside = second_look(evidence.pool, evidence.want, worth, connections.linked)
    beside |= bridge_columns(connections.bridges, voice_of(worth))
    return {f"beside_{name}": column for name, column in beside.items()}


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
