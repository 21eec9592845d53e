"""Adjacency as two compressed rows, one a direction, each row heaviest first."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hades.ports.graph import Csr
from hades.snapshot.arrays import Folder
from hades.snapshot.heaps import ArrayReader

PARTS = ("starts", "target", "edge", "type", "weight")


def build(
    near: NDArray[np.int32],
    far: NDArray[np.int32],
    types: NDArray[np.uint8],
    weights: NDArray[np.float32],
    n_nodes: int,
) -> Csr:
    """The rows of one direction: edges by their near end, heaviest first, equal weights in edge order."""
    order = np.lexsort((-weights, near))  # stable, so edge order settles ties
    starts = np.zeros(n_nodes + 1, np.int64)
    np.cumsum(np.bincount(near, minlength=n_nodes), out=starts[1:])
    return Csr(starts, far[order], order.astype(np.int32), types[order], weights[order])


def effective(weights: NDArray[np.float64]) -> NDArray[np.float32]:
    """What a weight counts: itself, or 1.0 where it is missing (NaN)."""
    counted: NDArray[np.float32] = np.where(np.isnan(weights), 1.0, weights).astype(np.float32)
    return counted


def write(folder: Folder, name: str, rows: Csr) -> None:
    """Put one direction into the folder."""
    for part in PARTS:
        folder.whole(f"{name}.{part}", getattr(rows, part))


def read(arrays: ArrayReader, name: str) -> Csr:
    """One direction as it was written, mapped."""
    parts: dict[str, NDArray[Any]] = {part: arrays[f"{name}.{part}"] for part in PARTS}
    return Csr(**parts)
