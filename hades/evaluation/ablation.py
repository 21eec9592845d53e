"""A graph with a part of it hidden, for ablations and withheld edges; the snapshot is not touched."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any, cast

import numpy as np

from hades.ports.graph import KINDS, Adjacency, BridgePath, Csr, Flags, Kind, Numbers, ViewInfo
from hades.ports.store import Direction
from hades.snapshot.view import GraphView

Hides = Callable[[Numbers, Csr], Flags]  # (near ends, rows) -> which entries are hidden
SYNONYMS = ("similar_to", "coref")


def no_hierarchy(view: GraphView) -> GraphView:
    """Without topics."""
    return cast(GraphView, _NoHierarchy(view))


def no_ranker(view: GraphView) -> GraphView:
    """Without the learned ranker: everything is judged by hand."""
    return cast(GraphView, _NoRanker(view))


def no_bridges(view: GraphView) -> GraphView:
    """Without paths computed ahead; a question searches for all of them."""
    return cast(GraphView, _NoBridges(view))


def no_synonyms(view: GraphView) -> GraphView:
    """Without the edges that say that two names are alike."""
    codes = np.array([view.type_names.index(name) for name in SYNONYMS], np.uint8)
    return cast(GraphView, FewerEdges(view, lambda near, rows: np.isin(rows.type, codes)))


def passages_as_ends(view: GraphView) -> GraphView:
    """Passages take what the names in them have, and pass nothing on: a walk goes from name to name only."""
    chunk = KINDS.index(Kind.CHUNK)
    return cast(GraphView, FewerEdges(view, lambda near, rows: view.kinds(near) == chunk))


def no_edges_between(view: GraphView, one: int, other: int) -> GraphView:
    """Without any edge that joins these two nodes, whatever its type and direction."""
    found = view.expand(np.array([one], np.int64), direction=Direction.ANY)
    hidden = np.unique(found.edge[found.target == other])
    return cast(GraphView, FewerEdges(view, lambda near, rows: np.isin(rows.edge, hidden)))


class _Hidden:
    """Another view, as far as nothing is hidden."""

    def __init__(self, view: GraphView) -> None:
        self._view = view

    def __getattr__(self, name: str) -> Any:
        return getattr(self._view, name)


class FewerEdges(_Hidden):
    """Some edges taken out of the adjacency, so that no walk, no search and no bridge can use them."""

    def __init__(self, view: GraphView, hides: Hides) -> None:
        whole = view.adjacency()
        fewer = Adjacency(_fewer(whole.out, hides), _fewer(whole.into, hides), whole.validity)
        super().__init__(view.with_adjacency(fewer))

    @cached_property
    def _shown(self) -> frozenset[int]:
        return frozenset(self._view.adjacency().out.edge.tolist())

    def bridges(self, clusters_from: Numbers, clusters_to: Numbers | None = None, *, limit: int) -> list[BridgePath]:
        found = self._view.bridges(clusters_from, clusters_to, limit=limit)
        return [bridge for bridge in found if self._shown.issuperset(bridge.edges)]


def _fewer(rows: Csr, hides: Hides) -> Csr:
    near = np.repeat(np.arange(len(rows.starts) - 1), np.diff(rows.starts))
    kept = ~hides(near, rows)
    starts = np.concatenate([[0], np.cumsum(kept)])[rows.starts].astype(np.int64)
    return Csr(starts, rows.target[kept], rows.edge[kept], rows.type[kept], rows.weight[kept])


class _NoRanker(_Hidden):
    @cached_property
    def info(self) -> ViewInfo:
        return replace(self._view.info, parts={**self._view.info.parts, "ranker": ""})

    def fitted(self) -> None:
        return None


class _NoBridges(_Hidden):
    def bridges(self, clusters_from: Numbers, clusters_to: Numbers | None = None, *, limit: int) -> list[BridgePath]:
        return []


class _NoHierarchy(_NoBridges):
    """As before the hierarchy was built: no topic, no node in one, and so no bridge between two."""

    @cached_property
    def info(self) -> ViewInfo:
        info = self._view.info
        parts = {**info.parts, "hierarchy": "", "bridges": ""}
        nodes, models = {**info.nodes, Kind.CLUSTER: 0}, {**info.models, Kind.CLUSTER: ()}
        return replace(info, nodes=nodes, models=models, parts=parts)

    def clusters_of(self, numbers: Numbers) -> Numbers:
        return np.full(len(numbers), -1, np.int64)
