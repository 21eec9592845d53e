"""The view of a home where nothing is published: no nodes, so that memory alone can answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hades.ports import graph as port
from hades.ports.graph import (
    EDGES,
    KINDS,
    Codes,
    Expansion,
    Flags,
    Hits,
    Kind,
    NameMatches,
    Numbers,
    ViewInfo,
    Weights,
)
from schemas.intervals import Mask

if TYPE_CHECKING:
    from hades.ports.store import Direction

NOTHING_PUBLISHED = "none"
_NO_NUMBERS = np.empty(0, np.int64)
_NO_CODES = np.empty(0, np.uint8)
_NO_WEIGHTS = np.empty(0, np.float32)
_NO_FLAGS = np.empty(0, np.bool_)


class EmptyView:
    """A `GraphView` of nothing. `models` are those that memory may hold vectors of, so that questions are embedded."""

    def __init__(self, models: Sequence[str]) -> None:
        self._info = ViewInfo(
            NOTHING_PUBLISHED, {kind.value: 0 for kind in KINDS}, dict.fromkeys(EDGES, 0),
            {Kind.CHUNK.value: tuple(models)}, True,
        )  # fmt: skip

    @property
    def info(self) -> ViewInfo:
        """See `GraphView.info`."""
        return self._info

    @property
    def type_names(self) -> tuple[str, ...]:
        """See `GraphView.type_names`."""
        return ()

    def number(self, ids: Sequence[str]) -> Numbers:
        """See `GraphView.number`."""
        return np.full(len(ids), -1, np.int64)

    def ids(self, numbers: Numbers) -> list[str]:
        """See `GraphView.ids`."""
        return []

    def kinds(self, numbers: Numbers) -> Codes:
        """See `GraphView.kinds`."""
        return _NO_CODES

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
        """See `GraphView.expand`."""
        return Expansion(_NO_NUMBERS, _NO_NUMBERS, _NO_NUMBERS, _NO_CODES, _NO_WEIGHTS, _NO_FLAGS, 0, False)

    def degree(self, numbers: Numbers, *, direction: Direction, types: Sequence[str] | None = None) -> Numbers:
        """See `GraphView.degree`."""
        return _NO_NUMBERS

    def adjacency(self) -> port.Adjacency | None:
        """See `GraphView.adjacency`."""
        return None

    def file_chunks(self) -> Numbers:
        """See `GraphView.file_chunks`."""
        return _NO_NUMBERS

    def commit_chunks(self) -> Numbers:
        """See `GraphView.commit_chunks`."""
        return _NO_NUMBERS

    def domains(self) -> tuple[str, ...]:
        """See `GraphView.domains`."""
        return ()

    def in_domain(self, numbers: Numbers, domain: str) -> Flags:
        """See `GraphView.in_domain`."""
        return _NO_FLAGS

    def nodes(self, numbers: Numbers) -> list[port.NodeFacts]:
        """See `GraphView.nodes`."""
        return []

    def edges(self, handles: Numbers) -> list[port.EdgeFacts]:
        """See `GraphView.edges`."""
        return []

    def passages(self, numbers: Numbers) -> list[port.Passage]:
        """See `GraphView.passages`."""
        return []

    def sources(self, document_ids: Sequence[str]) -> list[port.SourceFacts | None]:
        """See `GraphView.sources`."""
        return [None for _ in document_ids]

    def vectors(self, numbers: Numbers, *, model: str) -> tuple[NDArray[np.float32], Flags]:
        """See `GraphView.vectors`."""
        return np.zeros((0, 0), np.float32), _NO_FLAGS

    def cosines(self, vector: NDArray[np.float32], numbers: Numbers, *, model: str) -> Weights:
        """See `GraphView.cosines`."""
        return _NO_WEIGHTS

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
        """See `GraphView.nearest`."""
        return Hits(_NO_NUMBERS, _NO_WEIGHTS)

    def lexical(self, text: str, *, kind: Kind, limit: int) -> Hits:
        """See `GraphView.lexical`."""
        return Hits(_NO_NUMBERS, _NO_WEIGHTS)

    def clusters_of(self, numbers: Numbers) -> Numbers:
        """See `GraphView.clusters_of`."""
        return _NO_NUMBERS

    def bridges(
        self, clusters_from: Numbers, clusters_to: Numbers | None = None, *, limit: int
    ) -> list[port.BridgePath]:
        """See `GraphView.bridges`."""
        return []

    def fitted(self) -> port.RankerState | None:
        """See `GraphView.fitted`."""
        return None

    def match_names(self, text: str, *, limit: int | None = None) -> NameMatches:
        """See `GraphView.match_names`."""
        return NameMatches(_NO_NUMBERS, _NO_NUMBERS, _NO_NUMBERS)

    def close(self) -> None:
        """See `GraphView.close`."""
