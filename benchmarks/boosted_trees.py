"""Fit trees that put the right rows of each question first: boosting over pairs (LambdaMART, Burges
2010).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from models.arrays import Floats
from models.rankings import Forest

Places = NDArray[np.int64]

_BINS = 24


@dataclass(frozen=True)
class FitRules:
    """How trees are grown."""

    trees: int = 120
    depth: int = 3
    rate: float = 0.08
    smoothing: float = 8.0
    least_rows: int = 20
    column_share: float = 0.5
    seed: int = 7


def fit_forest(
    columns: Sequence[str],
    rows: Floats,
    right: NDArray[np.bool_],
    group: Places,
    rules: FitRules = FitRules(),
) -> Forest:
    """`rows` (n, columns) of all questions, `right` (n,) which are wanted, `group` (n,) sorted
    numbers of questions.
    """
    binned, edges = _bin(rows)
    starts = np.flatnonzero(np.concatenate(([True], group[1:] != group[:-1])))
    spans = [
        slice(int(a), int(b))
        for a, b in zip(starts, np.append(starts[1:], len(group)), strict=True)
    ]
    spans = [span for span in spans if 0 < right[span].sum() < span.stop - span.start]
    scores = np.zeros(len(rows))
    random = np.random.default_rng(rules.seed)
    grown = []
    for _ in range(rules.trees):
        pull, weight = np.zeros(len(rows)), np.zeros(len(rows))
        for span in spans:
            _add_pairs(scores[span], right[span], pull[span], weight[span])
        count = max(1, int(rules.column_share * rows.shape[1]))
        chosen = np.sort(random.choice(rows.shape[1], count, replace=False))
        tree = _grow(binned, edges, pull, weight, chosen, rules)
        grown.append(tree)
        one = Forest(tuple(columns), tree[0][None], tree[1][None], tree[2][None])
        scores += one.score(rows)
    return Forest(
        tuple(columns),
        np.stack([tree[0] for tree in grown]),
        np.stack([tree[1] for tree in grown]),
        np.stack([tree[2] for tree in grown]),
    )


def _bin(rows: Floats) -> tuple[NDArray[np.int64], list[Floats]]:
    edges = [
        np.unique(np.quantile(column, np.linspace(0, 1, _BINS + 1)[1:-1])) for column in rows.T
    ]
    binned = np.stack(
        [
            np.searchsorted(edge, column, side="left")
            for edge, column in zip(edges, rows.T, strict=True)
        ],
        1,
    )
    return binned.astype(np.int64), edges


def _add_pairs(scores: Floats, right: NDArray[np.bool_], pull: Floats, weight: Floats) -> None:
    """Each wanted row against each other, weighted by what swapping the two would change of the
    discounted gain.
    """
    order = np.argsort(-scores, kind="stable")
    place = np.empty(len(scores), np.int64)
    place[order] = np.arange(len(scores))
    discount = 1.0 / np.log2(2.0 + place)
    good, bad = np.flatnonzero(right), np.flatnonzero(~right)
    ideal = (1.0 / np.log2(2.0 + np.arange(len(good)))).sum()
    change = np.abs(discount[good][:, None] - discount[bad][None, :]) / ideal
    chance = 1.0 / (1.0 + np.exp(np.clip(scores[good][:, None] - scores[bad][None, :], -30, 30)))
    force, curve = change * chance, change * chance * (1 - chance)
    pull[good] += force.sum(1)
    pull[bad] -= force.sum(0)
    weight[good] += curve.sum(1)
    weight[bad] += curve.sum(0)


def _grow(
    binned: NDArray[np.int64],
    edges: list[Floats],
    pull: Floats,
    weight: Floats,
    chosen: Places,
    rules: FitRules,
) -> tuple[Places, Floats, Floats]:
    """One complete tree; a node without a gainful split sends all its rows left."""
    inner = 2**rules.depth - 1
    column, threshold = np.zeros(inner, np.int64), np.full(inner, np.inf)
    value = np.zeros(inner + 1)
    node = np.zeros(len(pull), np.int64)
    for here in range(inner):
        rows = np.flatnonzero(node == here)
        split = (
            _best_split(binned[rows], pull[rows], weight[rows], chosen, rules)
            if len(rows)
            else None
        )
        if split is not None:
            column[here], threshold[here] = split[0], edges[split[0]][split[1]]
        goes_right = (
            binned[rows, column[here]] > split[1]
            if split is not None
            else np.zeros(len(rows), np.bool_)
        )
        node[rows] = 2 * here + 1 + goes_right
    for leaf in range(inner + 1):
        rows = np.flatnonzero(node == inner + leaf)
        value[leaf] = rules.rate * pull[rows].sum() / (weight[rows].sum() + rules.smoothing * 0.1)
    return column, threshold, value


def _best_split(
    binned: NDArray[np.int64], pull: Floats, weight: Floats, chosen: Places, rules: FitRules
) -> tuple[int, int] | None:
    smooth = rules.smoothing * 0.1
    total, mass = pull.sum(), weight.sum()
    best, gain = None, 1e-9 + total**2 / (mass + smooth)
    for column in chosen.tolist():
        bins = binned[:, column]
        left = np.cumsum(np.bincount(bins, pull, _BINS))[:-1]
        left_mass = np.cumsum(np.bincount(bins, weight, _BINS))[:-1]
        count = np.cumsum(np.bincount(bins, minlength=_BINS))[:-1]
        found = left**2 / (left_mass + smooth) + (total - left) ** 2 / (mass - left_mass + smooth)
        found[(count < rules.least_rows) | (len(bins) - count < rules.least_rows)] = -np.inf
        place = int(np.argmax(found))
        if found[place] > gain:
            best, gain = (column, place), float(found[place])
    return best
