"""Parts of a weight, squashed into weight and cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from models.kernels import blocks_of

# The parts of a weight, each an array in [0, 1]: how alike the ends are, how well it is supported, how recent it
# is. Arrays are float32, which is as exact as any of these can be known. Every part is rounded to six decimals
# before it is used, so that what is stored is what the weight was made of.


Reals = NDArray[np.float32]
Longs = NDArray[np.int64]
Codes = NDArray[np.uint8]
PART_DECIMALS = 6
NEUTRAL = 0.5  # where nothing at all is known
NEUTRAL_STEP = 0.05
_GATHERED = 8_192  # pairs of vectors held at a time
_FORGOTTEN = 16.0  # after this number of time constants freshness rounds to 0


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
    faded: Reals = table[types, np.clip(age_days, 0, len(days) - 1)]
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


# weight = sigma(bias + a sim + b type_prior + g evidence + d freshness), and cost = -ln(weight boost). All rows at
# once, in float32; coefficients may differ by type. The same parts give the same bits, wherever in the arrays they
# stand, and the formula in double precision differs from them by less than a millionth.


PARTS = ("sim", "type_prior", "evidence", "freshness")
_LOWEST = np.float32(80.0)  # exp of more overflows, and 1e-35 is as good as no weight


def logits(parts: Mapping[str, Reals], types: Codes, coefficients: Mapping[str, Reals]) -> Reals:
    """The weighted sum of the `PARTS`, (n,) each, without the bias; what each counts is (n_types,)."""
    total: Reals = np.zeros(len(types), dtype=np.float32)
    for name in PARTS:
        total += coefficients[name][types] * parts[name]
    return total


def squash(sums: Reals, bias: float) -> Reals:
    """The logistic function of the sums, in (0, 1]."""
    weights: Reals = 1.0 / (1.0 + np.exp(np.minimum(np.float32(-bias) - sums, _LOWEST)))
    return weights


def costs(weights: Reals, types: Codes, boosts: Reals, eps: float) -> Reals:
    """-ln(max(weight boost, eps)), never below 0 for boosts up to 1: the length that path searches add up."""
    found: Reals = np.float32(0.0) - np.log(np.maximum(weights * boosts[types], np.float32(eps)))  # no minus 0
    return found


# The bias that puts the median weight where it should be. Components are never negative, so without a bias no
# weight would fall below .5 and all would crowd above it.


BIAS_STEP = 0.05  # a grid, so that a few new edges do not shift every weight; it moves the median by .006 at most


def bias_for(sums: Reals, median: float = 0.5) -> float:
    """The bias on the grid with which about half of the edges weigh more than `median`; 0 without edges."""
    if not len(sums):
        return 0.0
    wanted = float(np.log(median / (1.0 - median)))
    steps = round((wanted - float(np.median(sums))) / BIAS_STEP)
    return round(steps * BIAS_STEP, 6) + 0.0  # + 0.0: no minus zero in reports


# What it means that a passage names an entity: how often, whether its title does, and what kind of name it is.


@dataclass(frozen=True)
class MentionRules:
    """How mentions are weighed.

    `title_counts`: the title says what the whole passage is about, so it stands for several mentions.
    `half`: this number of mentions weighs one half of what endless ones would.
    `term_share`: a plain repeated term weighs this much of a name; it is in many passages and tells less about each.
    """

    title_counts: float = 3.0
    half: float = 1.0
    term_share: float = 0.2


def weigh_mentions(count: Longs, in_title: NDArray[np.bool_], is_term: NDArray[np.bool_], rules: MentionRules) -> Reals:
    """(n,) float32 in [0, 1]: said / (said + half), for terms a share of it.

    `count` includes the title's mention, where there is one. One mention of a name weighs .5, three .75, an endless
    repetition 1: saturating, like the term frequency of BM25.
    """
    said = count + np.where(in_title, rules.title_counts - 1.0, 0.0)
    weight: Reals = (said / (said + rules.half) * np.where(is_term, rules.term_share, 1.0)).astype(np.float32)
    return weight
