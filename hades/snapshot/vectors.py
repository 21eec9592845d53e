"""Vectors by node and nodes by vector, exact, within one model."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hades.errors import BadQuery
from hades.ports.view import Flags, Numbers, Weights
from hades.snapshot.heaps import ArrayReader
from hades.snapshot.ranking import best


class VectorSpace:
    """The vectors of one model in one collection; rows are places in the collection."""

    def __init__(self, arrays: ArrayReader, collection: str, number: int) -> None:
        prefix = f"vector.{collection}.{number}"
        self._value: NDArray[np.float32] = arrays[f"{prefix}.value"]
        self._norm: NDArray[np.float32] = arrays[f"{prefix}.norm"]
        self._row: NDArray[np.int32] = arrays[f"{prefix}.row"]
        self._place: NDArray[np.int32] = arrays[f"{prefix}.place"]

    @property
    def dimension(self) -> int:
        """Numbers in a vector."""
        return int(self._value.shape[1])

    def take(self, rows: Numbers) -> tuple[NDArray[np.float32], Flags]:
        """(n, dimension) and which rows have a vector; the others are zeros."""
        place = self._place[rows]
        there = place >= 0
        values = np.zeros((len(rows), self.dimension), np.float32)
        values[there] = self._value[place[there]]
        return values, there

    def nearest(self, unit: NDArray[np.float32], limit: int, rows: Numbers | None) -> tuple[Numbers, Weights]:
        """Rows by cosine to a vector of length 1, highest first, then by row; a vector of zeros scores 0."""
        if len(unit) != self.dimension:
            raise BadQuery(f"the vector has dimension {len(unit)}, the model makes {self.dimension}")
        if rows is None:
            value, norm, row = self._value, self._norm, self._row
        else:
            place = self._place[rows]
            place = np.sort(place[place >= 0])
            value, norm, row = self._value[place], self._norm[place], self._row[place]
        length = np.where(norm == 0, np.float32(1), norm)
        scores: Weights = np.asarray(np.divide(value @ unit, length), np.float32)
        kept = best(scores, row, limit)
        return row[kept].astype(np.int64), scores[kept]


def unit_vector(vector: NDArray[np.float32]) -> NDArray[np.float32]:
    """The question at length 1; refuses what points nowhere."""
    asked = np.asarray(vector, np.float32)
    if asked.ndim != 1 or asked.size == 0 or not np.isfinite(asked).all():
        raise BadQuery("the vector must be one row of finite numbers")
    norm = float(np.linalg.norm(asked))
    if norm == 0.0:
        raise BadQuery("the vector is all zeros and points nowhere")
    unit: NDArray[np.float32] = asked / np.float32(norm)
    return unit
