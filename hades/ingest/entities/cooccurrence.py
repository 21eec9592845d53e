"""Things that are named together: pairs that share sentences, scored by how much more often than chance.

The score is normalised pointwise mutual information over sentences, in [0, 1] for pairs that attract each other. Each
thing keeps only its strongest partners, so that what is everywhere does not tie everything to everything.

From 256 sentences on their number counts in steps of 2^(1/4): a document that is added or removed then leaves the score
of every pair that it does not name as it was, and topics, weights and bridges have only its own pairs to follow.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hades.ingest.entities.rules import EntityRules
from hades.text.arrays import Flags, Ints, Longs, distinct, place_in_run

_FEW = 256
_STEPS = 4  # to a doubling of the number of sentences
_WINDOW = 12  # mentions of one sentence that are paired with each other


@dataclass(frozen=True)
class Together:
    """Pairs left < right, how many sentences hold both, the score, and the first mention in the first such sentence."""

    left: Longs
    right: Longs
    count: Longs
    strength: NDArray[np.float64]
    mention: Longs


def co_occurrences(thing: Ints, sentence: Longs, rules: EntityRules) -> Together:
    """Pairs of things named in the same sentences. Mentions come in order of place; `sentence` never decreases."""
    size = int(thing.max(initial=-1)) + 1
    lefts, rights, wheres, firsts = [], [], [], []
    for step in range(1, _WINDOW):
        here = np.flatnonzero(sentence[step:] == sentence[: max(0, len(sentence) - step)])
        one, other = thing[here].astype(np.int64), thing[here + step].astype(np.int64)
        differ = one != other
        lefts.append(np.minimum(one, other)[differ])
        rights.append(np.maximum(one, other)[differ])
        wheres.append(sentence[here][differ])
        firsts.append(here[differ])
    left, right = np.concatenate(lefts), np.concatenate(rights)
    where, first = np.concatenate(wheres), np.concatenate(firsts)
    order = np.lexsort((first, where, right, left))
    left, right, where, first = left[order], right[order], where[order], first[order]
    fresh = np.ones(len(left), dtype=np.bool_)
    fresh[1:] = (left[1:] != left[:-1]) | (right[1:] != right[:-1])
    anew = fresh.copy()
    anew[1:] |= where[1:] != where[:-1]
    begin = np.flatnonzero(fresh)
    count = np.add.reduceat(anew.astype(np.int64), begin) if len(begin) else np.zeros(0, dtype=np.int64)
    enough = count >= rules.min_together
    begin, count = begin[enough], count[enough]
    alone = np.bincount(distinct(_codes(sentence, thing, size)) % max(1, size), minlength=size)
    total = nearest_step(len(distinct(sentence)))
    strength = _strength(count, alone[left[begin]], alone[right[begin]], total)
    keep = (strength > 0) & _strongest(left[begin], right[begin], strength, count, rules.max_related)
    begin = begin[keep]
    return Together(left[begin], right[begin], count[keep], strength[keep], first[begin])


def nearest_step(count: int) -> float:
    """The count, at least 2; of a larger corpus the nearest power of 2^(1/4)."""
    if count < _FEW:
        return float(max(2, count))
    return float(2.0 ** (round(_STEPS * math.log2(count)) / _STEPS))


def _codes(sentence: Longs, thing: Ints, size: int) -> Longs:
    return sentence * np.int64(max(1, size)) + thing


def _strength(count: Longs, left: Longs, right: Longs, total: float) -> NDArray[np.float64]:
    """Normalised pointwise mutual information, cut to [0, 1]; 1 when the two are never seen apart."""
    together = np.minimum(count / total, 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        score = np.log(count * total / (left * right.astype(np.float64))) / -np.log(together)
    return np.clip(np.where(together >= 1.0, 1.0, score), 0.0, 1.0)


def _strongest(left: Longs, right: Longs, strength: NDArray[np.float64], count: Longs, most: int) -> Flags:
    """Which pairs are among the strongest of both their ends, so that no thing keeps more than `most`."""
    worth = strength * np.log1p(count)
    end, partner = np.concatenate([left, right]), np.concatenate([right, left])
    order = np.lexsort((partner, -np.concatenate([worth, worth]), end))
    rank = np.empty(len(end), dtype=np.int64)
    rank[order] = place_in_run(end[order])
    strong = rank < most
    return strong[: len(left)] & strong[len(left) :]
