"""Boosted trees over files and symbols (.json)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Complete binary trees over numbered columns, as arrays, and their scores.


Floats = NDArray[np.float64]
Places = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Forest:
    """Trees of one depth: (trees, 2**depth - 1) columns and thresholds of inner nodes, (trees, 2**depth) leaf values.

    A row goes right where its value is above the threshold. The score is the sum of the leaves it ends in.
    """

    columns: tuple[str, ...]
    column: Places
    threshold: Floats
    value: Floats

    def score(self, rows: Floats) -> Floats:
        """(n, columns) to (n,): higher is better; only the order of rows of one question means something."""
        scores = np.zeros(len(rows))
        every = np.arange(len(rows))
        inner = self.column.shape[1]
        for column, threshold, value in zip(self.column, self.threshold, self.value, strict=True):
            node = np.zeros(len(rows), np.int64)
            while len(node) and node[0] < inner:
                node = 2 * node + 1 + (rows[every, column[node]] > threshold[node])
            scores += value[node - inner] if len(node) else 0.0
        return scores

    def to_json(self) -> dict[str, Any]:
        """Lists of plain numbers, rounded to six digits."""
        return {
            "columns": list(self.columns),
            "column": self.column.tolist(),
            "threshold": np.round(self.threshold, 6).tolist(),
            "value": np.round(self.value, 6).tolist(),
        }

    @staticmethod
    def from_json(stored: Mapping[str, Any]) -> Forest:
        """The inverse of `to_json`; shapes that do not fit together give a ValueError."""
        columns: Sequence[str] = tuple(stored["columns"])
        column = np.array(stored["column"], np.int64)
        threshold, value = (np.array(stored[name], np.float64) for name in ("threshold", "value"))
        if column.shape != threshold.shape or value.shape != (len(column), column.shape[1] + 1):
            raise ValueError(f"trees of shapes {column.shape}, {threshold.shape} and {value.shape} do not fit together")
        if column.size and not 0 <= int(column.min()) <= int(column.max()) < len(columns):
            raise ValueError(f"a tree names column {int(column.max())} of {len(columns)}")
        return Forest(tuple(columns), column, threshold, value)
