"""How near versions are to a question: words and meaning together, only vectors of one model compared."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hades.memory.history.names import STATES
from hades.ports.store import Predicate, RowStore
from hades.ports.text import Embedder, Vectors

# A convex combination of normalised scores: Bruch, Gai, Ingber (2023), "An Analysis of Fusion Functions", section 4.
MEANING = 0.5  # the weight of meaning; words have the rest


@dataclass(frozen=True)
class SimilarState:
    """One version and why it is near; `semantic` is None where it has no vector of the embedder's model."""

    key: str
    similarity: float
    semantic: float | None
    lexical: float


@dataclass(frozen=True)
class MemoryQuery:
    """A question as both searches take it."""

    text: str
    vector: Vectors | None
    model: str

    @classmethod
    def of(cls, text: str, embedder: Embedder | None) -> MemoryQuery:
        """The question, embedded where there is an embedder."""
        if embedder is None:
            return cls(text, None, "")
        return cls(text, embedder.embed([text])[0], embedder.model.tag)


def nearest(rows: RowStore, asked: MemoryQuery, *, limit: int, where: Predicate = ()) -> list[SimilarState]:
    """Versions by similarity, highest first: the best `limit` by meaning and the best `limit` by words."""
    words = _scores(rows.search(STATES, asked.text, limit=limit, where=where)) if asked.text.strip() else {}
    meaning: dict[str, float] = {}
    if asked.vector is not None:
        vector = asked.vector.tolist()
        meaning = _scores(rows.nearest(STATES, vector, model=asked.model, limit=limit, where=where))
        meaning |= cosines(rows, sorted(words.keys() - meaning.keys()), asked)
    top = max(words.values(), default=0.0)
    found = [_near(key, meaning.get(key), words.get(key, 0.0) / top if top > 0 else 0.0)
             for key in words.keys() | meaning.keys()]  # fmt: skip
    return sorted(found, key=lambda one: (-one.similarity, one.key))


def cosines(rows: RowStore, keys: Sequence[str], asked: MemoryQuery) -> dict[str, float]:
    """The cosine of the versions among these that carry a vector of the model."""
    held, vectors = vectors_of(rows, keys, asked.model)
    if asked.vector is None or not held:
        return {}
    return dict(zip(held, (vectors @ asked.vector).tolist(), strict=True))


def vectors_of(rows: RowStore, keys: Sequence[str], model: str) -> tuple[list[str], Vectors]:
    """Keys and unit vectors, (n_keys, dimension) float32, of the versions that carry one of this model."""
    held = rows.get(STATES, keys, columns=["embedding", "embedding_model"]).to_pylist() if keys else []
    kept = [row for row in held if row["embedding_model"] == model and row["embedding"] is not None]
    if not kept:
        return [], np.zeros((0, 0), np.float32)
    matrix = np.array([row["embedding"] for row in kept], np.float32)
    norms = np.linalg.norm(matrix, axis=1, keepdims=True)
    return [row["_key"] for row in kept], (matrix / np.where(norms == 0, 1, norms)).astype(np.float32)


def mix(semantic: float | None, lexical: float) -> float:
    """Words and meaning as one figure in [0, 1]; words alone where there is no meaning to compare."""
    if semantic is None:
        return lexical
    return MEANING * max(0.0, semantic) + (1 - MEANING) * lexical


def _near(key: str, semantic: float | None, lexical: float) -> SimilarState:
    return SimilarState(key, round(mix(semantic, lexical), 9), semantic, lexical)


def _scores(hits: pa.Table) -> dict[str, float]:
    scores = zip(hits.column("_key").to_pylist(), hits.column("score").to_pylist(), strict=True)
    return {key: score for key, score in scores if math.isfinite(score)}
