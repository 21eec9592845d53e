"""An undirected graph as plain arrays. A small change of the topics needs no more, and loading SciPy takes longer."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from models.hierarchy.arrays import Flags, Graph, Weights


@dataclass(frozen=True)
class Links:
    """The neighbours of row r stand, sorted, at `starts[r]:starts[r + 1]` of `others`, with weights above zero.

    Each link stands in both of its rows; there are no loops and no parallel links.
    """

    starts: np.ndarray
    others: np.ndarray
    weights: Weights

    def __len__(self) -> int:
        return len(self.starts) - 1

    @cached_property
    def rows(self) -> np.ndarray:
        """The row of each entry of `others`."""
        return np.repeat(np.arange(len(self)), self.degree)

    @property
    def degree(self) -> np.ndarray:
        """How many neighbours each row has."""
        return np.diff(self.starts)

    def beside(self, chosen: Flags) -> Flags:
        """Which rows have a neighbour among the chosen."""
        found: Flags = np.zeros(len(self), bool)
        found[self.rows[chosen[self.others]]] = True
        return found

    def matrix(self) -> Graph:
        """The same graph for SciPy."""
        from scipy import sparse

        return sparse.csr_matrix((self.weights, self.others, self.starts), shape=(len(self), len(self)))


def join_links(sources: np.ndarray, targets: np.ndarray, weights: np.ndarray, n: int) -> Links:
    """Edges as an undirected graph over n rows; of parallel ones the heaviest counts, loops do not."""
    keep = (sources != targets) & (weights > 0)
    tails = np.concatenate([sources[keep], targets[keep]])
    heads = np.concatenate([targets[keep], sources[keep]])
    both = np.tile(weights[keep], 2).astype(np.float32)
    order = np.lexsort((-both, heads, tails))
    tails, heads, both = tails[order], heads[order], both[order]
    first = np.ones(len(tails), bool)
    first[1:] = (tails[1:] != tails[:-1]) | (heads[1:] != heads[:-1])
    return _from_sorted(tails[first], heads[first], both[first], n)


def add_links(one: Links, other: Links, factor: float) -> Links:
    """The sum of a graph and `factor` times another one over the same rows."""
    if not len(other.others):
        return one
    tails, heads = np.concatenate([one.rows, other.rows]), np.concatenate([one.others, other.others])
    weights = np.concatenate([one.weights, (np.float32(factor) * other.weights).astype(np.float32)])
    order = np.lexsort((heads, tails))
    tails, heads, weights = tails[order], heads[order], weights[order]
    first = np.ones(len(tails), bool)
    first[1:] = (tails[1:] != tails[:-1]) | (heads[1:] != heads[:-1])
    summed = np.add.reduceat(weights, np.flatnonzero(first))  # at most two each
    return _from_sorted(tails[first], heads[first], summed, len(one))


def _from_sorted(tails: np.ndarray, heads: np.ndarray, weights: np.ndarray, n: int) -> Links:
    starts = np.concatenate([[0], np.cumsum(np.bincount(tails, minlength=n))]) if n else np.zeros(1, np.int64)
    return Links(starts, heads, weights)
