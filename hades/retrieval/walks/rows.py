"""Rows of the adjacency as walks read them: whole arrays at a time, and no further than a walk needs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hades.ports.graph import ALWAYS, Adjacency, Csr, Flags, Numbers

Floats = NDArray[np.float64]
SLICE = 100_000  # entries between two looks at the clock, about five milliseconds
_SUMS = 16  # sets of factors whose sums are kept; a caller may name its own
_FIRST_LOOK = 64  # entries of a row that are read first; what is read is doubled until it suffices


@dataclass(frozen=True)
class Entries:
    """Edges of some nodes, those that leave a node first: whose they are, where they lead, what they weigh.

    `place` is that of the node among those asked for, `at` where the entry stands in its direction of the adjacency.
    """

    place: Numbers
    target: Numbers
    weight: Floats
    at: Numbers
    leaving: int  # how many of them leave their node


class Rows:
    """The undirected weighted graph of both directions together, and how much of it was read.

    The row of a node holds what leaves it, then what reaches it. An edge counts its weight times the factor of its
    type, and nothing where the moments (as_of and known_at) hide it. An edge to itself counts once; as `shares` of
    what a node passes on it counts nothing, and weights are cut to [0, 1].
    `total` is the sum of a row; where moments hide some edges, of the first `cursor` entries that were read for that.
    """

    def __init__(self, adjacency: Adjacency, factors: Floats, moments: tuple[int, int], *, shares: bool) -> None:
        self._adjacency, self._factors, self._moments, self._shares = adjacency, factors, moments, shares
        self.best_factor = float(factors.max(initial=0.0))
        self.size = max(1, len(adjacency.out.starts) - 1)
        self.work = 0
        if adjacency.fetched is not None or adjacency.validity is None or moments == (ALWAYS, ALWAYS):
            known = (factors.tobytes(), shares, *(moments if adjacency.validity is not None else ()))
            if known not in adjacency.sums:
                if len(adjacency.sums) >= _SUMS:
                    adjacency.sums.clear()
                adjacency.sums[known] = self._sum_all()
            self.total, self.cursor = adjacency.sums[known], None
        else:
            self.total, self.cursor = np.zeros(self.size), np.zeros(self.size, np.int64)

    def count(self, nodes: Numbers) -> Numbers:
        """How many entries the rows of nodes have; nothing is read."""
        into = self._adjacency.into.starts
        return self._leaving(nodes) + into[nodes + 1] - into[nodes]

    def heaviest(self, nodes: Numbers) -> Floats:
        """The weight of each node's heaviest edge, without factors; 0 without edges."""
        self._note(nodes)
        found = np.zeros(len(nodes))
        for rows in (self._adjacency.out, self._adjacency.into):
            has = rows.starts[nodes + 1] > rows.starts[nodes]
            found[has] = np.maximum(found[has], rows.weight[rows.starts[nodes[has]]])
        return np.minimum(found, 1.0) if self._shares else found

    def read(self, nodes: Numbers, first: Numbers | None = None, width: Numbers | None = None) -> Entries:
        """The entries of each node, all or `width` of them from `first` on; what they cost is counted."""
        self._note(nodes)
        halves = []
        for rows, outbound in ((self._adjacency.out, True), (self._adjacency.into, False)):
            low = rows.starts[nodes]
            here = rows.starts[nodes + 1] - low
            if first is not None and width is not None:
                before, length = (0 if outbound else self._leaving(nodes)), here
                start = np.minimum(np.maximum(first - before, 0), length)
                here = np.minimum(np.maximum(first + width - before, 0), length) - start
                low = low + start
            place = np.repeat(np.arange(len(nodes)), here)
            at = np.arange(len(place)) + np.repeat(low - (np.cumsum(here) - here), here)
            target = rows.target[at]
            weight = self._weigh(rows, at)
            if self._shares or not outbound:
                weight[target == nodes[place]] = 0.0
            halves.append((place, target, weight, at))
        self.work += sum(len(one[0]) for one in halves)
        place, target, weight, at = (np.concatenate(both) for both in zip(*halves, strict=True))
        return Entries(place, target, weight, at, len(halves[0][0]))

    def edges(self, found: Entries, chosen: Numbers) -> tuple[Numbers, Flags]:
        """Handles of some entries, by their places among those that were read, and whether they leave their node."""
        outbound, at = chosen < found.leaving, found.at[chosen]
        edge = np.empty(len(chosen), np.int64)
        edge[outbound], edge[~outbound] = (
            self._adjacency.out.edge[at[outbound]],
            self._adjacency.into.edge[at[~outbound]],
        )
        return edge, outbound

    def _note(self, nodes: Numbers) -> None:
        if self._adjacency.fetched is not None:
            self._adjacency.fetched.want(nodes)

    def _leaving(self, nodes: Numbers) -> Numbers:
        starts = self._adjacency.out.starts
        leaving: Numbers = starts[nodes + 1] - starts[nodes]
        return leaving

    def _weigh(self, rows: Csr, at: Numbers) -> Floats:
        weight = rows.weight[at].astype(np.float64)
        if self._shares:
            np.clip(weight, 0.0, 1.0, out=weight)
        weight *= self._factors[rows.type[at]]
        validity, (as_of, known_at) = self._adjacency.validity, self._moments
        if validity is not None and as_of != ALWAYS:
            edge = rows.edge[at]
            weight[(as_of < validity.valid_from[edge]) | (validity.valid_until[edge] <= as_of)] = 0.0
        if validity is not None and known_at != ALWAYS:
            edge = rows.edge[at]
            weight[(known_at < validity.recorded_at[edge]) | (validity.retracted_at[edge] <= known_at)] = 0.0
        return weight

    def _sum_all(self) -> Floats:
        """The sum of every row; entries are not counted as work, since the next walk need not read them."""
        total = np.zeros(self.size)
        for rows, outbound in ((self._adjacency.out, True), (self._adjacency.into, False)):
            near = np.repeat(np.arange(len(rows.starts) - 1), np.diff(rows.starts))
            weight = self._weigh(rows, np.arange(len(near)))
            if self._shares or not outbound:
                weight[rows.target == near] = 0.0
            total += np.bincount(near, weight, minlength=self.size)
        fetched = self._adjacency.fetched
        if fetched is not None:
            total = np.where(fetched.is_whole, total, fetched.sums @ self._factors[: fetched.sums.shape[1]])
        return total

    def sum_until(self, nodes: Numbers, enough: Floats, max_work: int) -> None:
        """Read the rows of distinct nodes until the sum of each is known or more than `enough`, or the work ends.

        So no hub is read for the sake of a sum that is too great anyway.
        """
        while self.cursor is not None:
            left = self.count(nodes) - self.cursor[nodes]
            width = np.minimum(left, np.maximum(_FIRST_LOOK, self.cursor[nodes]))
            width[self.total[nodes] > enough] = 0
            room = max_work - self.work - (np.cumsum(width) - width)
            width = np.minimum(width, np.maximum(room, 0))
            if not width.any():
                return
            found = self.read(nodes, self.cursor[nodes], width)
            self.total[nodes] += np.bincount(found.place, found.weight, minlength=len(nodes))
            self.cursor[nodes] += width

    def are_read(self, nodes: Numbers) -> Flags:
        """Whether the sums of nodes are known."""
        return np.ones(len(nodes), np.bool_) if self.cursor is None else self.cursor[nodes] == self.count(nodes)
