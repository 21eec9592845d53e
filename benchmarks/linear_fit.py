"""Fit the coefficients of a linear ranking to lists of candidates."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

Floats = NDArray[np.float64]


def fit_listwise(
    columns: Sequence[Floats], wanted: Sequence[Floats], counts: Sequence[float], penalty: float
) -> Floats:
    """Softmax regression over lists, on columns scaled to unit spread, with a penalty on the
    squares.
    """
    everything = np.concatenate(columns)
    spread = everything.std(axis=0) + 1e-9
    scaled, goal = everything / spread, np.concatenate([one / one.sum() for one in wanted])
    lengths = np.array([len(one) for one in wanted])
    starts, group = np.cumsum(lengths) - lengths, np.repeat(np.arange(len(lengths)), lengths)
    share = np.repeat(np.array(counts), lengths)

    def loss(weights: Floats) -> tuple[float, Floats]:
        score = scaled @ weights
        score = score - np.maximum.reduceat(score, starts)[group]
        total = np.add.reduceat(np.exp(score), starts)[group]
        value = -(share * goal * (score - np.log(total))).sum() + penalty * weights @ weights
        return float(value), scaled.T @ (
            share * (np.exp(score) / total - goal)
        ) + 2.0 * penalty * weights

    solved: Floats = (
        minimize(loss, np.zeros(scaled.shape[1]), jac=True, method="L-BFGS-B").x / spread
    )
    return solved


def fit_gold_apart(
    columns: Sequence[Floats], wanted: Sequence[Floats], counts: Sequence[float], penalty: float
) -> Floats:
    """As `fit_listwise`, but each wanted row competes with the rows that are not wanted, never with
    another wanted one.

    A list that has one wanted row counts the same in both. With several, `fit_listwise` asks for
    equal scores of all.
    """
    everything = np.concatenate(columns)
    spread = everything.std(axis=0) + 1e-9
    scaled, is_wanted = everything / spread, np.concatenate(wanted) > 0
    lengths = np.array([len(one) for one in wanted])
    starts, group = np.cumsum(lengths) - lengths, np.repeat(np.arange(len(lengths)), lengths)
    share = (np.array(counts) / np.add.reduceat(is_wanted.astype(np.float64), starts))[
        group
    ] * is_wanted

    def loss(weights: Floats) -> tuple[float, Floats]:
        score = scaled @ weights
        score = score - np.maximum.reduceat(score, starts)[group]
        odds = np.exp(score)
        total = odds + np.add.reduceat(odds * ~is_wanted, starts)[group]
        value = (share * (np.log(total) - score)).sum() + penalty * weights @ weights
        against = np.add.reduceat(share / total, starts)[group]
        pull = share * (odds / total - 1.0) + ~is_wanted * odds * against
        return float(value), scaled.T @ pull + 2.0 * penalty * weights

    solved: Floats = (
        minimize(loss, np.zeros(scaled.shape[1]), jac=True, method="L-BFGS-B").x / spread
    )
    return solved
