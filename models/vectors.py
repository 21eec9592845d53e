"""Rows of vectors at unit length: the one normalisation that every part uses."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def unit_rows(rows: NDArray[Any]) -> NDArray[np.float32]:
    """(n, dim) float32: each row at length one; a zero row stays zero."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    scaled: NDArray[np.float32] = (rows / np.where(lengths > 0, lengths, 1)).astype(np.float32)
    return scaled
