"""The parts of a weight, each an array in [0, 1]: how alike the ends are, how well it is supported, how recent it is.

Arrays are float32, which is as exact as any of these can be known. Every part is rounded to six decimals before it is
used, so that what is stored is what the weight was made of.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from models.weights.blocks import blocks_of

Reals = NDArray[np.float32]
Longs = NDArray[np.int64]
Codes = NDArray[np.uint8]

PART_DECIMALS = 6
NEUTRAL = 0.5  # where nothing at all is known
NEUTRAL_STEP = 0.05
_GATHERED = 8_192  # pairs of vectors held at a time
_FORGOTTEN = 16.0  # after this number of time constants freshness rounds to 0


@dataclass(frozen=True)
class Components:
    """Four arrays of one length, a row an edge."""

    sim: Reals
    type_prior: Reals
    evidence: Reals
    freshness: Reals

    def __len__(self) -> int:
        return len(self.sim)


def similarity(vectors: Reals, source: Longs, target: Longs) -> Reals:
    """Cosine of the vectors of both ends, at least 0; NaN where an end has none.

    `vectors` is (n_nodes, dim) of any length; `source` and `target` are its rows, -1 for a node without vector.
    Opposite is not less related than unrelated, so negative cosines count 0.
    """
    norms = np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64)) if len(vectors) else np.zeros(0)
    cosine = np.full(len(source), np.nan)
    known = np.flatnonzero((source >= 0) & (target >= 0))
    known = known[(norms[source[known]] > 0) & (norms[target[known]] > 0)]
    for block in blocks_of(len(known), _GATHERED):
        rows = known[block]
        tail, head = source[rows], target[rows]
        product = np.einsum("ij,ij->i", vectors[tail], vectors[head], dtype=np.float64)
        cosine[rows] = product / (norms[tail] * norms[head])
    return rounded(np.clip(cosine, 0.0, 1.0))


def support(count: Longs, strength: Reals, full: int) -> Reals:
    """How well an edge is supported: log2(1 + count) / log2(1 + full), at most 1, times its strength where it has one.

    The logarithm: the second place that states a fact says much, the twentieth little. The strength of an association
    (how much more often two names meet than chance would have it) discounts what mere frequency explains.
    """
    table = rounded(np.log2(1.0 + np.arange(full + 1)) / np.log2(1.0 + full))
    found: Reals = table.take(count, mode="clip")
    rated = np.flatnonzero(~np.isnan(strength))
    found[rated] = rounded(found[rated].astype(np.float64) * strength[rated])
    return found


def freshness(age_days: Longs, types: Codes, tau_days: NDArray[np.float64]) -> Reals:
    """exp(-age / tau) with the time constant of each edge's type; an event after `as_of` is fresh.

    Ages are whole days, so there are few different values: they are computed once a type and day, then looked up.
    """
    oldest = int(age_days.max(initial=0))
    days = np.arange(min(oldest, int(np.ceil(_FORGOTTEN * tau_days.max(initial=1.0)))) + 1)
    table = rounded(np.exp(-days / tau_days[:, None]))
    faded = np.empty(len(age_days), dtype=np.float32)
    for rows in blocks_of(len(faded)):
        place = types[rows].astype(np.int64)
        place *= len(days)
        place += np.minimum(np.maximum(age_days[rows], 0), len(days) - 1)
        table.take(place, out=faded[rows], mode="clip")
    return faded


def neutral_of(values: Reals) -> float:
    """What an unknown value counts: the median of the known ones on a grid, so that not knowing moves an edge neither
    way and a few new edges do not change what it counts."""
    known = values[~np.isnan(values)]
    return round(round(float(np.median(known)) / NEUTRAL_STEP) * NEUTRAL_STEP, PART_DECIMALS) if len(known) else NEUTRAL


def fill(values: Reals, neutral: float) -> Reals:
    """The values with unknown ones replaced."""
    return np.where(np.isnan(values), np.float32(neutral), values)


def rounded(values: NDArray[np.float64]) -> Reals:
    """Values as parts are kept: the float32 nearest to six decimals."""
    parts: Reals = np.round(values, PART_DECIMALS).astype(np.float32)
    return parts
