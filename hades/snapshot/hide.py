"""A graph with a part of it hidden, for ablations and withheld edges or passages; the snapshot is not touched."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from hades.ports.graph import Adjacency, BridgePath, Csr, Expansion, Flags, Hits, Kind, Numbers
from hades.ports.store import Direction
from hades.ports.view import GraphView
from hades.snapshot.adjacency import follow, gather, merge, visible
from schemas.ids import Mask

Hides = Callable[[Numbers, Csr], Flags]  # (near ends, rows) -> which entries are hidden


def without_passages(view: GraphView, ids: Sequence[str]) -> GraphView:
    """Without these passages: no search finds them and no edge leads to them."""
    numbers = view.number(list(ids))
    hidden = numbers[numbers >= 0]
    return cast(GraphView, _FewerPassages(view, hidden)) if len(hidden) else view


class PartHidden:
    """Another view, as far as nothing is hidden."""

    def __init__(self, view: GraphView) -> None:
        self._view = view

    def __getattr__(self, name: str) -> Any:
        return getattr(self._view, name)


class FewerEdges(PartHidden):
    """Some edges taken out of the adjacency, so that no walk, no search and no bridge can use them."""

    def __init__(self, view: GraphView, hides: Hides) -> None:
        super().__init__(view)
        whole = view.adjacency()
        self._adjacency = Adjacency(_fewer(whole.out, hides), _fewer(whole.into, hides), whole.validity)

    @cached_property
    def _shown(self) -> frozenset[int]:
        return frozenset(self._adjacency.out.edge.tolist())

    def adjacency(self) -> Adjacency:
        return self._adjacency

    def expand(
        self,
        numbers: Numbers,
        *,
        direction: Direction,
        types: Sequence[str] | None = None,
        fanout: int | None = None,
        mask: Mask = Mask(),
        max_work: int | None = None,
    ) -> Expansion:
        asked = np.asarray(numbers, np.int64)
        if direction == Direction.ANY:
            out = self._one_way(asked, True, types, fanout, mask, max_work)
            left = None if max_work is None else max_work - out.work
            return merge(out, self._one_way(asked, False, types, fanout, mask, left, no_loops=True), fanout)
        return self._one_way(asked, direction == Direction.OUT, types, fanout, mask, max_work)

    def degree(self, numbers: Numbers, *, direction: Direction, types: Sequence[str] | None = None) -> Numbers:
        found = self.expand(numbers, direction=direction, types=types)
        return np.bincount(found.row, minlength=len(numbers)).astype(np.int64)

    def bridges(self, clusters_from: Numbers, clusters_to: Numbers | None = None, *, limit: int) -> list[BridgePath]:
        found = self._view.bridges(clusters_from, clusters_to, limit=limit)
        return [bridge for bridge in found if self._shown.issuperset(bridge.edges)]

    def _one_way(
        self,
        asked: Numbers,
        outbound: bool,
        types: Sequence[str] | None,
        fanout: int | None,
        mask: Mask,
        max_work: int | None,
        no_loops: bool = False,
    ) -> Expansion:
        rows, validity = self._adjacency.out if outbound else self._adjacency.into, self._adjacency.validity
        names = self._view.type_names
        wanted = None if types is None else np.array([names.index(name) for name in types], np.uint8)

        def keep(entry: Numbers, near: Numbers) -> Flags:
            kept = np.ones(len(entry), np.bool_) if wanted is None else np.isin(rows.type[entry], wanted)
            if validity is not None and not mask.is_open:
                kept &= visible(validity, rows.edge[entry], mask)
            return kept & (rows.target[entry] != near) if no_loops else kept

        return gather(rows, follow(rows, asked, keep, fanout, max_work), outbound)


def _fewer(rows: Csr, hides: Hides) -> Csr:
    near = np.repeat(np.arange(len(rows.starts) - 1), np.diff(rows.starts))
    kept = ~hides(near, rows)
    starts = np.concatenate([[0], np.cumsum(kept)])[rows.starts].astype(np.int64)
    return Csr(starts, rows.target[kept], rows.edge[kept], rows.type[kept], rows.weight[kept])


class _FewerPassages(FewerEdges):
    """Some passages taken out of the searches, and their edges out of the adjacency."""

    def __init__(self, view: GraphView, hidden: Numbers) -> None:
        super().__init__(view, lambda near, rows: np.isin(near, hidden) | np.isin(rows.target, hidden))
        self._gone = hidden

    def __hash__(self) -> int:
        return hash(self._view)

    def __eq__(self, other: object) -> bool:
        """Equal to the whole view: what is kept for a view, as the index of its code, need not be made again."""
        return other is self._view or (isinstance(other, _FewerPassages) and other._view is self._view)

    def lexical(self, text: str, *, kind: Kind, limit: int) -> Hits:
        return self._left(self._view.lexical(text, kind=kind, limit=limit + len(self._gone)), limit)

    def nearest(
        self,
        vector: NDArray[np.float32],
        *,
        kind: Kind,
        model: str,
        limit: int,
        level: int | None = None,
        within: Numbers | None = None,
    ) -> Hits:
        more = limit + len(self._gone)
        return self._left(
            self._view.nearest(vector, kind=kind, model=model, limit=more, level=level, within=within), limit
        )

    def nearest_each(self, vectors: Sequence[NDArray[np.float32]], *, kind: Kind, model: str, limit: int) -> list[Hits]:
        more = limit + len(self._gone)
        found = self._view.nearest_each(vectors, kind=kind, model=model, limit=more)
        return [self._left(one, limit) for one in found]

    def _left(self, found: Hits, limit: int) -> Hits:
        kept = np.flatnonzero(~np.isin(found.numbers, self._gone))[:limit]
        return Hits(found.numbers[kept], found.scores[kept], found.is_approximate)
