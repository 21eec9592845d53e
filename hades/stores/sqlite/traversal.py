"""Neighbours of nodes: filters, order and fan-out over the edges that `adjacency` reads."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hades.ports.store import Direction
from hades.ports.store_tables import NEIGHBOUR_SCHEMA
from hades.stores.sqlite import adjacency
from hades.stores.sqlite.adjacency import ABSENT, Edges
from hades.stores.sqlite.trees import Tree
from schemas.intervals import Mask

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Question:
    """Which edges are wanted, whatever the nodes: the look-ups by both ends, direction, types and point in time."""

    by_tail: Tree
    by_head: Tree
    direction: Direction
    types: Sequence[str] | None
    mask: Mask


@dataclass(frozen=True)
class _FilteredEdges:
    """Edges of one direction, and the rows of them that pass the filters."""

    edges: Edges
    keep: NDArray[np.int64]
    outbound: bool


def neighbours(connection: sqlite3.Connection, question: Question, nodes: Sequence[str], fanout: int) -> pa.Table:
    """At most `fanout` edges of each node, heaviest first, then by edge key, grouped in the order of `nodes`."""
    wanted = list(dict.fromkeys(nodes))
    found = _find(connection, question, wanted)
    if len(found) == 2:
        return _both_ways(found, wanted, fanout)
    return _table([(found[0], _heaviest(found[0], fanout))], wanted)


def _find(connection: sqlite3.Connection, question: Question, wanted: Sequence[str]) -> list[_FilteredEdges]:
    ways = {Direction.OUT: (True,), Direction.IN: (False,), Direction.ANY: (True, False)}[question.direction]
    found = []
    for outbound in ways:
        edges = adjacency.edges_of(connection, question.by_tail if outbound else question.by_head, wanted)
        keep = np.ones(len(edges.node), dtype=bool)
        if question.types is not None:
            allowed = set(question.types)
            keep &= np.array([kind in allowed for kind in edges.type], dtype=bool)
        if not question.mask.is_open and edges.bounds is not None:
            keep &= _visible(edges.bounds, question.mask)
        if len(ways) == 2 and not outbound:  # a loop was seen on the way out
            loops = [end == wanted[at] for end, at in zip(edges.end, edges.node.tolist(), strict=True)]
            keep &= ~np.array(loops, dtype=bool)
        found.append(_FilteredEdges(edges, np.flatnonzero(keep), outbound))
    return found


def _heaviest(found: _FilteredEdges, fanout: int) -> NDArray[np.int64]:
    """Rows kept: by group, then weight; edges come by key within a node, and a stable sort keeps that among equals."""
    weight = np.nan_to_num(found.edges.weight[found.keep], nan=-np.inf)
    group = found.edges.node[found.keep]
    order = np.lexsort((-weight, group))
    group = group[order]
    rank = np.arange(len(group)) - np.searchsorted(group, group)
    return found.keep[order[rank < fanout]]


def _both_ways(found: Sequence[_FilteredEdges], wanted: Sequence[str], fanout: int) -> pa.Table:
    whole = _table([(one, one.keep) for one in found], wanted)
    group = np.concatenate([one.edges.node[one.keep] for one in found])
    weight = np.concatenate([np.nan_to_num(one.edges.weight[one.keep], nan=-np.inf) for one in found])
    keys = np.array(whole.column("edge").to_pylist(), dtype=np.str_)
    order = np.lexsort((keys, -weight, group))
    group = group[order]
    rank = np.arange(len(group)) - np.searchsorted(group, group)
    return whole.take(pa.array(order[rank < fanout]))


def _table(parts: Sequence[tuple[_FilteredEdges, NDArray[np.int64]]], wanted: Sequence[str]) -> pa.Table:
    names = pa.array(wanted, pa.string())
    tables = []
    for found, rows in parts:
        edges, picked = found.edges, rows.tolist()
        weight = edges.weight[rows]
        columns = [
            names.take(pa.array(edges.node[rows])),
            *(pa.array([texts[row] for row in picked], pa.string()) for texts in (edges.end, edges.edge, edges.type)),
            pa.array(weight, pa.float64(), mask=np.isnan(weight)),
            pa.repeat(found.outbound, len(picked)),
        ]
        tables.append(pa.Table.from_arrays(columns, schema=NEIGHBOUR_SCHEMA))
    return pa.concat_tables(tables) if len(tables) > 1 else tables[0]


def _visible(bounds: NDArray[np.int64], mask: Mask) -> NDArray[np.bool_]:
    """Which edges a reader at the mask sees: two half-open intervals, an absent bound is open."""
    keep = np.ones(len(bounds), dtype=bool)
    for moment, start, end in ((mask.as_of, 0, 1), (mask.known_at, 2, 3)):
        if moment is not None:
            at = (moment - _EPOCH) // timedelta(microseconds=1)
            # ABSENT is the smallest number, so an absent start is always in the past.
            keep &= (bounds[:, start] <= at) & ((bounds[:, end] == ABSENT) | (bounds[:, end] > at))
    return keep
