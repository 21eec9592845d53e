"""Tables that a view over AQL keeps in memory: ids as small integers, and the edges of nodes for one turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hades.errors import BadQuery
from hades.ports.graph import Codes, Expansion, Flags, Numbers, Weights
from hades.ports.store import Direction

ROW_EDGES = 400  # the heaviest edges of a node that a turn keeps; few nodes have more


class IdTable:
    """Two-way table of ids and numbers."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._numbers: dict[str, int] = {}
        self._names: list[str] = []

    def __contains__(self, name: str) -> bool:
        return name in self._numbers

    def add(self, names: Sequence[str]) -> Numbers:
        """The number of each id, a new one where it is met for the first time."""
        for name in names:
            if name not in self._numbers:
                self._numbers[name] = len(self._names)
                self._names.append(name)
        return self.find(names)

    def find(self, names: Sequence[str]) -> Numbers:
        """The number of each id, -1 where it has none."""
        return np.fromiter((self._numbers.get(name, -1) for name in names), np.int64, len(names))

    def names(self, numbers: Numbers) -> list[str]:
        """The id of each number; refuses one that was never given out."""
        asked = np.asarray(numbers, np.int64)
        wrong = asked[(asked < 0) | (asked >= len(self._names))]
        if wrong.size:
            raise BadQuery(
                f"{int(wrong[0])} is not a {self._what} of this view; numbers come from the view that is asked"
            )
        return [self._names[number] for number in asked.tolist()]


@dataclass(frozen=True)
class NodeRow:
    """Edges that touch one node, heaviest first."""

    target: Numbers
    edge: Numbers
    type: Codes
    weight: Weights
    outbound: Flags

    def select(self, node: int, direction: Direction, types: Codes | None, fanout: int | None) -> NodeRow:
        """The edges of a direction and of these type codes, at most `fanout`."""
        kept = np.ones(len(self.target), np.bool_)
        outbound = self.outbound
        if direction == Direction.OUT:
            kept &= self.outbound
        elif direction == Direction.IN:
            kept &= ~self.outbound | (self.target == node)
            outbound = np.zeros(len(self.outbound), np.bool_)
        if types is not None:
            kept &= np.isin(self.type, types)
        rows = np.flatnonzero(kept)[:fanout]
        return NodeRow(self.target[rows], self.edge[rows], self.type[rows], self.weight[rows], outbound[rows])


def split_rows(found: Expansion, nodes: int) -> list[NodeRow]:
    """The rows by asked node; where the expansion was capped, the row that was cut and later ones are left out."""
    whole = nodes if not found.capped else max(1, int(found.row.max(initial=0)))
    bounds = np.searchsorted(found.row, np.arange(whole + 1))
    return [
        NodeRow(found.target[a:b], found.edge[a:b], found.type[a:b], found.weight[a:b], found.outbound[a:b])
        for a, b in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)
    ]


def join_rows(rows: Sequence[NodeRow], places: Sequence[int], limit: int | None) -> Expansion:
    """One expansion of the rows of the asked places, cut after `limit` edges."""
    row = np.repeat(np.array(places, np.int64), [len(one.target) for one in rows])
    parts = [
        np.concatenate([np.empty(0, kind), *(getattr(one, name) for one in rows)])
        for name, kind in (
            ("target", np.int64),
            ("edge", np.int64),
            ("type", np.uint8),
            ("weight", np.float32),
            ("outbound", np.bool_),
        )
    ]
    capped = limit is not None and len(row) >= limit
    cut = slice(0, limit)
    return Expansion(
        row[cut],
        parts[0][cut],
        parts[1][cut],
        parts[2][cut].astype(np.uint8),
        parts[3][cut].astype(np.float32),
        parts[4][cut].astype(np.bool_),
        len(row[cut]),
        capped,
    )
