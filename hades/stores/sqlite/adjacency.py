"""Edges by node: short pages for each node and direction, so that a traversal reads just its nodes.

A page holds what a traversal needs of at most `PAGE_EDGES` edges of one node, in order of edge key: texts joined by
line ends (no id or key holds one) and numbers as raw little-endian arrays. Pages are made and read for whole columns
at once; the Arrow pages of `pages.py` would hold many nodes' edges and cost ten times the decoding.
"""

from __future__ import annotations

import json
import sqlite3
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hades.stores.sqlite.pages import Tree
from hades.stores.sqlite.registry import VALIDITY
from schemas.catalogue import Collection, EdgeShape

PAGE_EDGES = 512
ENDS = (("_from", "_to"), ("_to", "_from"))
ABSENT = -(2**63)  # an absent time
_LINE = "\n"

_COLUMNS = "edges, ends, types, weights, costs, bounds"
_PAGES = (
    f"SELECT node, {_COLUMNS} FROM adjacency "
    "WHERE tree = ? AND node IN (SELECT value FROM json_each(?)) ORDER BY node, first"
)
_INSERT = f"INSERT INTO adjacency (tree, node, first, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
_TAKE = f"DELETE FROM adjacency WHERE tree = ? AND node = ? AND first = ? RETURNING {_COLUMNS}"

Page = tuple[str, str, str, bytes, bytes | None, bytes | None]


@dataclass(frozen=True)
class Edges:
    """Edges as columns of equal length; `bounds` is (n, 4) in microseconds or None when no edge has any."""

    edge: list[str]
    end: list[str]
    type: list[str]
    weight: NDArray[np.float64]
    cost: NDArray[np.float64] | None
    bounds: NDArray[np.int64] | None


def maintain(
    connection: sqlite3.Connection, tree: int, collection: Collection, old: pa.Table, new: pa.Table | None
) -> None:
    """Make both directions follow a change of edges from `old` to `new`."""
    shape = collection.edge
    assert shape is not None
    for direction, (near, far) in enumerate(ENDS):
        number = tree * 2 + direction
        unused = connection.execute("SELECT 1 FROM adjacency WHERE tree = ? LIMIT 1", (number,)).fetchone() is None
        if unused and new is not None:
            connection.executemany(_INSERT, _fresh_pages(number, shape, near, far, new))
            continue
        drop: dict[str, set[str]] = {}
        for node, key in zip(old.column(near).to_pylist(), old.column("_key").to_pylist(), strict=True):
            drop.setdefault(node, set()).add(key)
        put = dict(_by_node(shape, near, far, new)) if new is not None else {}
        for node in sorted(drop.keys() | put.keys()):
            _change(connection, number, node, drop.get(node, set()), put.get(node))


def edges_of(
    connection: sqlite3.Connection, tree: int, nodes: Sequence[str], outbound: bool
) -> tuple[list[str], list[int], Edges]:
    """The nodes that have edges in one direction, how many each, and the edges by node, then by edge key."""
    rows = connection.execute(_PAGES, (tree * 2 + (0 if outbound else 1), json.dumps(list(nodes)))).fetchall()
    edges = _decoded([row[1:] for row in rows])
    return [row[0] for row in rows], [len(row[4]) // 8 for row in rows], edges


def miscounted(connection: sqlite3.Connection, rows: Tree) -> Iterator[str]:
    """Sentences when a direction does not hold every edge of the collection."""
    expected = connection.execute("SELECT rows FROM tree WHERE id = ?", (rows.id,)).fetchone()[0]
    for direction, (near, _) in enumerate(ENDS):
        held = connection.execute(
            "SELECT coalesce(sum(length(weights)), 0) / 8 FROM adjacency WHERE tree = ?", (rows.id * 2 + direction,)
        ).fetchone()[0]
        if held != expected:
            yield f"{rows.name}: {held} edges by {near}, {expected} stored"


def _change(connection: sqlite3.Connection, number: int, node: str, drop: set[str], put: Edges | None) -> None:
    """Re-make the pages of one node that hold the edges dropped or put."""
    fences = [
        first
        for (first,) in connection.execute(
            "SELECT first FROM adjacency WHERE tree = ? AND node = ? ORDER BY first", (number, node)
        )
    ]
    touched: dict[int, list[int]] = {max(0, bisect_right(fences, key) - 1): [] for key in drop}
    for row, key in enumerate(put.edge if put else ()):
        touched.setdefault(max(0, bisect_right(fences, key) - 1), []).append(row)
    for position, rows in touched.items():
        parts = []
        if fences:
            held = _decoded([connection.execute(_TAKE, (number, node, fences[position])).fetchone()])
            replaced = drop | {put.edge[row] for row in rows} if put else drop
            parts.append(_picked(held, [row for row, key in enumerate(held.edge) if key not in replaced]))
        if put and rows:
            parts.append(_picked(put, rows))
        merged = _joined(parts)
        order = sorted(range(len(merged.edge)), key=merged.edge.__getitem__)
        # Half-full pages leave room, so that a growing hub does not split on every write.
        size = PAGE_EDGES if len(order) <= PAGE_EDGES else PAGE_EDGES // 2
        for start in range(0, len(order), size):
            part = _picked(merged, order[start : start + size])
            connection.execute(_INSERT, (number, node, part.edge[0], *_encoded(part)))


def _fresh_pages(
    number: int, shape: EdgeShape, near: str, far: str, rows: pa.Table
) -> Iterator[tuple[int | str | bytes | memoryview | None, ...]]:
    """Pages for a collection that has none yet, made column by column; rows are sorted by key."""
    order, starts, nodes = _grouped(rows.column(near).combine_chunks())
    pages = [
        (node, begin, min(begin + PAGE_EDGES, end))
        for node, start, end in zip(nodes, starts, [*starts[1:], len(order)], strict=True)
        for begin in range(start, end, PAGE_EDGES)
    ]
    offsets = pa.array([begin for _, begin, _ in pages] + [len(order)], pa.int32())
    take = pa.array(order)

    def texts(name: str) -> list[str]:
        listed = pa.ListArray.from_arrays(offsets, rows.column(name).combine_chunks().take(take))
        joined: list[str] = pc.binary_join(listed, _LINE).to_numpy(zero_copy_only=False).tolist()
        return joined

    keys = rows.column("_key").combine_chunks().take(take.take(offsets.slice(0, len(pages)))).to_pylist()
    times = _times(rows)
    weights = _bytes(_numbers(rows.column(shape.weight_field))[order])
    costs = _bytes(_numbers(rows.column(shape.cost_field))[order]) if shape.cost_field else None
    bounds = _bytes(times[order]) if times is not None else None
    columns = zip(pages, keys, texts("_key"), texts(far), texts(shape.type_field), strict=True)
    for (node, begin, end), first, edges, ends, types in columns:
        yield (
            number,
            node,
            first,
            edges,
            ends,
            types,
            weights[begin * 8 : end * 8],
            costs[begin * 8 : end * 8] if costs is not None else None,
            bounds[begin * 32 : end * 32] if bounds is not None else None,
        )


def _grouped(near: pa.Array) -> tuple[NDArray[np.int64], list[int], list[str]]:
    """Order of rows by near end (stable), where each node's run starts, and the nodes in order."""
    encoded = near.dictionary_encode()
    by_name = pc.sort_indices(encoded.dictionary).to_numpy()
    rank = np.empty(len(by_name), dtype=np.int32)
    rank[by_name] = np.arange(len(by_name), dtype=np.int32)
    ranks = rank[encoded.indices.to_numpy()]
    order = np.argsort(ranks, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(ranks, minlength=len(by_name)))[:-1]])
    return order, starts.tolist(), encoded.dictionary.take(pa.array(by_name)).to_pylist()


def _by_node(shape: EdgeShape, near: str, far: str, rows: pa.Table) -> Iterator[tuple[str, Edges]]:
    order, starts, nodes = _grouped(rows.column(near).combine_chunks())
    rows = rows.take(pa.array(order))
    times = _times(rows)
    everything = Edges(
        rows.column("_key").to_pylist(),
        rows.column(far).to_pylist(),
        rows.column(shape.type_field).to_pylist(),
        _numbers(rows.column(shape.weight_field)),
        _numbers(rows.column(shape.cost_field)) if shape.cost_field else None,
        times,
    )
    for node, start, end in zip(nodes, starts, [*starts[1:], len(order)], strict=True):
        yield node, _picked(everything, range(start, end))


def _numbers(column: pa.ChunkedArray) -> NDArray[np.float64]:
    numbers: NDArray[np.float64] = pc.fill_null(column, np.nan).to_numpy()
    return numbers


def _bytes(array: NDArray[Any]) -> memoryview:
    return memoryview(np.ascontiguousarray(array).data).cast("B")


def _times(rows: pa.Table) -> NDArray[np.int64] | None:
    columns = [rows.column(name) for name in VALIDITY]
    if all(column.null_count == len(column) for column in columns):
        return None
    return np.column_stack([pc.fill_null(column.cast(pa.int64()), ABSENT).to_numpy() for column in columns])


def _encoded(edges: Edges) -> Page:
    return (
        _LINE.join(edges.edge),
        _LINE.join(edges.end),
        _LINE.join(edges.type),
        edges.weight.tobytes(),
        edges.cost.tobytes() if edges.cost is not None else None,
        edges.bounds.tobytes() if edges.bounds is not None else None,
    )


def _decoded(pages: Sequence[Page]) -> Edges:
    if not pages:
        return Edges([], [], [], np.empty(0), None, None)
    edges, ends, types, weights, costs, bounds = zip(*pages, strict=True)
    return Edges(
        _LINE.join(edges).split(_LINE),
        _LINE.join(ends).split(_LINE),
        _LINE.join(types).split(_LINE),
        np.frombuffer(b"".join(weights)),
        np.frombuffer(b"".join(costs)) if costs[0] is not None else None,
        _joined_bounds(bounds, [len(weight) // 8 for weight in weights]),
    )


def _joined_bounds(bounds: Sequence[bytes | None], counts: Sequence[int]) -> NDArray[np.int64] | None:
    if all(bound is None for bound in bounds):
        return None
    absent = ABSENT.to_bytes(8, "little", signed=True) * len(VALIDITY)
    filled = [bound if bound is not None else absent * count for bound, count in zip(bounds, counts, strict=True)]
    return np.frombuffer(b"".join(filled), dtype="<i8").reshape(-1, len(VALIDITY))


def _joined(parts: Sequence[Edges]) -> Edges:
    return _decoded([_encoded(part) for part in parts if part.edge])


def _picked(edges: Edges, rows: Sequence[int]) -> Edges:
    index = np.asarray(rows, dtype=np.int64)
    return Edges(
        [edges.edge[row] for row in rows],
        [edges.end[row] for row in rows],
        [edges.type[row] for row in rows],
        edges.weight[index],
        edges.cost[index] if edges.cost is not None else None,
        edges.bounds[index] if edges.bounds is not None else None,
    )
