"""weight = sigma(bias + a sim + b type_prior + g evidence + d freshness), and cost = -ln(weight boost).

All rows at once, in float32; coefficients may differ by type. The same parts give the same bits, wherever in the arrays
they stand, and the formula in double precision differs from them by less than a millionth.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.weights.blocks import blocks_of
from models.weights.components import Codes, Components, Reals

PARTS = ("sim", "type_prior", "evidence", "freshness")
_LOWEST = np.float32(80.0)  # exp of more overflows, and 1e-35 is as good as no weight


@dataclass(frozen=True)
class Coefficients:
    """What each component counts, (n_types,) float32 each."""

    sim: Reals
    type_prior: Reals
    evidence: Reals
    freshness: Reals


def logits(parts: Components, types: Codes, coefficients: Coefficients) -> Reals:
    """The weighted sum of the components, without the bias; (n,) float32."""
    total = np.empty(len(parts), dtype=np.float32)
    for rows in blocks_of(len(total)):
        kinds, block = types[rows], total[rows]
        np.multiply(_of_rows(coefficients.sim, kinds), parts.sim[rows], out=block)
        for name in PARTS[1:]:
            block += _of_rows(getattr(coefficients, name), kinds) * getattr(parts, name)[rows]
    return total


def squash(sums: Reals, bias: float) -> Reals:
    """The logistic function of the sums, in (0, 1]."""
    weights = np.empty(len(sums), dtype=np.float32)
    for rows in blocks_of(len(sums)):
        block = weights[rows]
        np.subtract(np.float32(-bias), sums[rows], out=block)
        np.minimum(block, _LOWEST, out=block)
        np.exp(block, out=block)
        block += 1.0
        np.reciprocal(block, out=block)
    return weights


def costs(weights: Reals, types: Codes, boosts: Reals, eps: float) -> Reals:
    """-ln(max(weight boost, eps)), never below 0 for boosts up to 1: the length that path searches add up."""
    found = np.empty(len(weights), dtype=np.float32)
    for rows in blocks_of(len(weights)):
        block = found[rows]
        np.multiply(weights[rows], boosts.take(types[rows]), out=block)
        np.maximum(block, np.float32(eps), out=block)
        np.log(block, out=block)
        np.subtract(np.float32(0.0), block, out=block)  # not a negation, which would turn 0 into minus 0
    return found


def _of_rows(by_type: Reals, kinds: Codes) -> Reals | np.float32:
    """The coefficient of each row's type, or the one number when all types share it."""
    first: np.float32 = by_type[0]
    return first if (by_type == first).all() else by_type.take(kinds)
