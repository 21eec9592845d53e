"""Bridges found by the topics they join; only those of the topics asked are looked at."""

from __future__ import annotations

import numpy as np

from hades.ports.graph import BridgePath, Numbers
from hades.snapshot.heaps import ArrayReader
from hades.snapshot.top_k import best


class BridgeIndex:
    """Reads what `BridgeRows` wrote."""

    def __init__(self, arrays: ArrayReader) -> None:
        self._arrays = arrays

    def find(self, starts: Numbers, ends: Numbers | None, limit: int) -> list[BridgePath]:
        """See `GraphView.bridges`."""
        tail, head = self._arrays["bridge.from"], self._arrays["bridge.to"]
        rows = self._touching(np.unique(starts))
        forward, backward = np.isin(tail[rows], starts), np.isin(head[rows], starts)
        if ends is not None:
            forward &= np.isin(head[rows], ends)
            backward &= np.isin(tail[rows], ends)
        rows, forward = rows[forward | backward], forward[forward | backward]
        kept = best(self._arrays["bridge.weight"][rows], rows, limit)
        return [
            self._path(row) if as_kept else self._path(row).reversed()
            for row, as_kept in zip(rows[kept].tolist(), forward[kept].tolist(), strict=True)
        ]

    def _touching(self, topics: Numbers) -> Numbers:
        """Rows with an end in one of these topics, each once."""
        among = self._arrays["bridge.topic"]
        first, last = np.searchsorted(among, topics, side="left"), np.searchsorted(among, topics, side="right")
        counts = last - first
        skipped = np.cumsum(counts) - counts
        places = np.repeat(first - skipped, counts) + np.arange(int(counts.sum()))
        return np.unique(self._arrays["bridge.row"][places]).astype(np.int64)

    def _path(self, row: int) -> BridgePath:
        arrays = self._arrays
        start, end = arrays["bridge.starts"][row : row + 2].tolist()
        nodes, edges = arrays["bridge.node"][start:end], arrays["bridge.edge"][start - row : end - row - 1]
        return BridgePath(
            int(arrays["bridge.from"][row]),
            int(arrays["bridge.to"][row]),
            tuple(nodes.tolist()),
            tuple(edges.tolist()),
            tuple((arrays["edge.source"][edges] == nodes[:-1]).tolist()),
            float(arrays["bridge.weight"][row]),
            float(arrays["bridge.cost"][row]),
            bool(arrays["bridge.pinned"][row]),
        )
