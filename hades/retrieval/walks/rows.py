"""Rows of the adjacency as walks read them: whole arrays at a time, and no further than a walk
needs.
"""

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
    """Edges of some nodes, those that leave a node first: whose they are, where they lead, what
    they weigh.

    `place` is that of the node among those asked for, `at` where the entry stands in its direction
    of the adjacency.
    """

    place: Numbers
    target: Numbers
    weight: Floats
    at: Numbers
    leaving: int  # how many of them leave their node


class Rows:
    """The undirected weighted graph of both directions together, and how much of it was read.

    The row of a node holds what leaves it, then what reaches it. An edge counts its weight times
    the factor of its type, and nothing where the moments (as_of and known_at) hide it. An edge to
    itself counts once; as `shares` of what a node passes on it counts nothing, and weights are cut
    to [0, 1]. `total` is the sum of a row; where moments hide some edges, of the first `cursor`
    entries that were read for that.
    """

    def __init__(
        self,
        adjacency: Adjacency,
        factors: Floats,
        moments: tuple[int, int],
        *,
        shares: bool,
    ) -> None:
        self._adjacency = adjacency
        self._factors = factors
        self._moments = moments
        self._shares = shares
        self.best_factor = float(factors.max(initial=0.0))
        self.size = max(1, len(adjacency.out.starts) - 1)
        self.work = 0
        self.cursor: Numbers | None = None
        is_dated = adjacency.validity is not None

        if adjacency.fetched is None and is_dated and moments != (ALWAYS, ALWAYS):
            self.total = np.zeros(self.size)
            self.cursor = np.zeros(self.size, np.int64)
            return

        key = (factors.tobytes(), shares, *(moments if is_dated else ()))
        if key not in adjacency.sums:
            if len(adjacency.sums) >= _SUMS:
                adjacency.sums.clear()
            adjacency.sums[key] = self._sum_all()

        self.total = adjacency.sums[key]

    def count(self, nodes: Numbers) -> Numbers:
        """How many entries the rows of nodes have; nothing is read."""
        into = self._adjacency.into.starts
        return self._leaving(nodes) + into[nodes + 1] - into[nodes]

    def heaviest(self, nodes: Numbers) -> Floats:
        """The weight of each node's heaviest edge, without factors; 0 without edges."""
        self._note(nodes)
        weights = np.zeros(len(nodes))

        for rows in (self._adjacency.out, self._adjacency.into):
            has = rows.starts[nodes + 1] > rows.starts[nodes]
            weights[has] = np.maximum(weights[has], rows.weight[rows.starts[nodes[has]]])

        return np.minimum(weights, 1.0) if self._shares else weights

    def read(
        self,
        nodes: Numbers,
        first: Numbers | None = None,
        width: Numbers | None = None,
    ) -> Entries:
        """The entries of each node, all or `width` of them from `first` on; what they cost is
        counted.
        """
        self._note(nodes)

        halves = []
        for rows, outbound in ((self._adjacency.out, True), (self._adjacency.into, False)):
            low = rows.starts[nodes]
            counts = rows.starts[nodes + 1] - low
            if first is not None and width is not None:
                preceding = 0 if outbound else self._leaving(nodes)
                start = np.minimum(np.maximum(first - preceding, 0), counts)
                end = np.minimum(np.maximum(first + width - preceding, 0), counts)
                counts = end - start
                low = low + start

            place = np.repeat(np.arange(len(nodes)), counts)
            at = np.arange(len(place)) + np.repeat(low - (np.cumsum(counts) - counts), counts)
            target = rows.target[at]
            weight = self._weigh(rows, at)

            if self._shares or not outbound:
                weight[target == nodes[place]] = 0.0

            halves.append((place, target, weight, at))

        place, target, weight, at = (np.concatenate(both) for both in zip(*halves, strict=True))
        self.work += len(place)
        return Entries(
            place,
            target,
            weight,
            at,
            leaving=len(halves[0][0]),
        )

    def edges(self, entries: Entries, chosen: Numbers) -> tuple[Numbers, Flags]:
        """Handles of some entries, by their places among those that were read, and whether they
        leave their node.
        """
        outbound = chosen < entries.leaving
        at = entries.at[chosen]
        edge = np.empty(len(chosen), np.int64)
        edge[outbound] = self._adjacency.out.edge[at[outbound]]
        edge[~outbound] = self._adjacency.into.edge[at[~outbound]]
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
        if self._adjacency.hidden is not None:
            weight[self._adjacency.hidden[rows.edge[at]]] = 0.0

        validity = self._adjacency.validity
        as_of, known_at = self._moments
        if validity is not None and as_of != ALWAYS:
            edge = rows.edge[at]
            is_early = as_of < validity.valid_from[edge]
            weight[is_early | (validity.valid_until[edge] <= as_of)] = 0.0

        if validity is not None and known_at != ALWAYS:
            edge = rows.edge[at]
            is_early = known_at < validity.recorded_at[edge]
            weight[is_early | (validity.retracted_at[edge] <= known_at)] = 0.0

        return weight

    def _sum_all(self) -> Floats:
        """The sum of every row; entries are not counted as work, since the next walk need not read
        them.
        """
        total = np.zeros(self.size)
        for rows, outbound in ((self._adjacency.out, True), (self._adjacency.into, False)):
            node = np.repeat(np.arange(len(rows.starts) - 1), np.diff(rows.starts))
            weight = self._weigh(rows, np.arange(len(node)))
            if self._shares or not outbound:
                weight[rows.target == node] = 0.0

            total += np.bincount(node, weight, minlength=self.size)

        fetched = self._adjacency.fetched
        if fetched is None:
            return total

        sums = fetched.sums @ self._factors[: fetched.sums.shape[1]]
        return np.where(fetched.is_whole, total, sums)

    def sum_until(
        self,
        nodes: Numbers,
        enough: Floats,
        max_work: int,
    ) -> None:
        """Read the rows of distinct nodes until the sum of each is known or more than `enough`, or
        the work ends.

        So no hub is read for the sake of a sum that is too great anyway.
        """
        while self.cursor is not None:
            remaining = self.count(nodes) - self.cursor[nodes]
            width = np.minimum(remaining, np.maximum(_FIRST_LOOK, self.cursor[nodes]))
            width[self.total[nodes] > enough] = 0
            room = max_work - self.work - (np.cumsum(width) - width)
            width = np.minimum(width, np.maximum(room, 0))

            if not width.any():
                return

            entries = self.read(nodes, self.cursor[nodes], width)
            self.total[nodes] += np.bincount(
                entries.place,
                entries.weight,
                minlength=len(nodes),
            )
            self.cursor[nodes] += width

    def are_read(self, nodes: Numbers) -> Flags:
        """Whether the sums of nodes are known."""
        if self.cursor is None:
            return np.ones(len(nodes), np.bool_)

        are_read: Flags = self.cursor[nodes] == self.count(nodes)
        return are_read
