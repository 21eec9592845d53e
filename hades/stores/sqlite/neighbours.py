"""Edges by node and their traversal."""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hades.ports.store import NEIGHBOUR_SCHEMA, Direction
from hades.stores.sqlite import pages
from hades.stores.sqlite.pages import SEPARATOR
from hades.stores.sqlite.trees import Page, Tree
from schemas.ids import Mask

# Edges by node: look-ups whose pages a traversal can read without Arrow. Sorted by node and edge key; a page holds
# what a traversal needs of a few dozen edges: texts joined by line ends (no id or key holds one) and numbers as raw
# little-endian arrays. Arrow messages of that size would cost ten times the decoding.


VALUE = "_value"
VALIDITY = ("valid_from", "valid_until", "recorded_at", "retracted_at")
NUMBERS = ("weight", "cost")
ABSENT = -(2**63)  # an absent time
_LINE = b"\n"
_HEADER = struct.Struct("<8I")  # lengths: nodes, counts, edges, ends, types, weights, costs, bounds
_WEIGHTS = 5  # the part that has eight bytes for every row
Part = tuple[bytes, bytes, bytes, bytes, bytes, bytes, bytes, bytes]


def lookup_schema(far: str, type_field: str) -> pa.Schema:
    """Columns of an edge look-up: node, edge key, the other end, and what a traversal filters and ranks by."""
    texts = [pa.field(name, pa.string()) for name in (VALUE, "_key", far, type_field)]
    numbers = [pa.field(name, pa.float64()) for name in NUMBERS]
    return pa.schema([*texts, *numbers, *(pa.field(name, pa.int64()) for name in VALIDITY)])


@dataclass(frozen=True)
class Edges:
    """Edges as columns of equal length, by node, then by edge key; `node` counts in the nodes asked for."""

    node: NDArray[np.int64]
    edge: list[str]
    end: list[str]
    type: list[str]
    weight: NDArray[np.float64]
    cost: NDArray[np.float64]
    bounds: NDArray[np.int64] | None  # (n, 4) microseconds, or None when no edge has any


NO_EDGES = Edges(np.empty(0, np.int64), [], [], [], np.empty(0), np.empty(0), None)


def edges_of(connection: sqlite3.Connection, tree: Tree, nodes: Sequence[str]) -> Edges:
    """Every edge of these nodes in the look-up's direction."""
    raw = pages.raw_pages_of_prefixes(connection, tree, [node + SEPARATOR for node in nodes])
    position = {node.encode(): number for number, node in enumerate(nodes)}
    node: list[int] = []
    columns: tuple[list[bytes], ...] = ([], [], [])
    numbers: tuple[list[bytes], ...] = ([], [], [])
    for _, _, data in raw:
        names, counts, *texts, weights, costs, bounds = _parts(data)
        start = 0
        for name, count in zip(names.split(_LINE), memoryview(counts).cast("I"), strict=True):
            number = position.get(name)
            if number is not None:
                stop = start + count
                node += [number] * count
                for column, text in zip(columns, texts, strict=True):
                    column += text.split(_LINE)[start:stop]
                numbers[0].append(weights[start * 8 : stop * 8])
                numbers[1].append(costs[start * 8 : stop * 8])
                numbers[2].append(bounds[start * 32 : stop * 32])
            start += count
    if not node:
        return NO_EDGES
    edge, end, kind = (_LINE.join(column).decode().split("\n") for column in columns)
    weight, cost = (np.frombuffer(b"".join(parts)) for parts in numbers[:2])
    return Edges(np.array(node, dtype=np.int64), edge, end, kind, weight, cost, _join_bounds(numbers[2], numbers[0]))


def patch_weights(connection: sqlite3.Connection, tree: Tree, entries: pa.Table) -> NDArray[np.bool_]:
    """Set the weights and costs of edges, sorted as the look-up is; pages keep all other bytes. Which edges it held."""
    is_held = np.zeros(entries.num_rows, bool)
    if not entries.num_rows:
        return is_held
    keys = [key.encode() for key in entries.column("_key").to_pylist()]
    numbers = [_numbers(entries.column(name).combine_chunks()).astype("<f8").tobytes() for name in NUMBERS]
    changed = []
    for page, data, first, last in pages.pages_holding(connection, tree, pages.sort_keys(tree, entries).to_pylist()):
        sizes = _HEADER.unpack_from(data)
        body = bytearray(data)
        begin = _HEADER.size + sum(sizes[:2])
        places = {edge: place for place, edge in enumerate(data[begin : begin + sizes[2]].split(_LINE))}
        for number, column in enumerate(numbers):
            start = _HEADER.size + sum(sizes[: _WEIGHTS + number])
            for entry in range(first, last):
                place = places.get(keys[entry])
                if place is not None:
                    is_held[entry] = True
                    at = start + 8 * place
                    body[at : at + 8] = column[8 * entry : 8 * entry + 8]
        changed.append((page, bytes(body)))
    pages.replace_bytes(connection, changed)
    return is_held


class EdgePages:
    """The codec of edge look-ups."""

    def encode(self, tree: Tree, rows: pa.RecordBatch, per_page: int) -> Iterator[tuple[int, int, bytes]]:
        """All pages at once, column by column; rows are sorted by node."""
        total = rows.num_rows
        if not total:
            yield 0, 0, _HEADER.pack(*[0] * 8)
            return
        starts = np.arange(0, total, per_page)
        node, edge, end, kind = (rows.column(number) for number in range(4))
        names, counts, run_starts = _runs(node, starts)
        ends_of_runs = np.searchsorted(run_starts, [*starts[1:], total])
        columns = zip(
            starts.tolist(),
            [0, *ends_of_runs[:-1].tolist()],
            ends_of_runs.tolist(),
            _join(names, np.searchsorted(run_starts, starts)),
            _join(edge, starts),
            _join(end, starts),
            _join(kind, starts),
            strict=True,
        )
        weights, costs = (_numbers(rows.column(number)).tobytes() for number in (4, 5))
        times = np.column_stack([pc.fill_null(rows.column(6 + number), ABSENT).to_numpy() for number in range(4)])
        has_times = any(rows.column(6 + number).null_count < total for number in range(4))
        bounds = np.ascontiguousarray(times).tobytes() if has_times else b""
        sizes = counts.astype("<u4").tobytes()
        for start, run, next_run, *texts in columns:
            stop = min(start + per_page, total)
            parts = (
                texts[0],
                sizes[run * 4 : next_run * 4],
                *texts[1:],
                weights[start * 8 : stop * 8],
                costs[start * 8 : stop * 8],
                bounds[start * 32 : stop * 32],
            )
            yield stop - start, 0, b"".join((_HEADER.pack(*map(len, parts)), *parts))

    def decode(
        self, tree: Tree, layout: int, absent: int, data: bytes, names: tuple[str, ...] | None = None
    ) -> pa.RecordBatch:
        """The page as Arrow, for merging."""
        batch = self._decode(tree, [data])
        return batch if names is None else batch.select(list(names))

    def decode_run(self, tree: Tree, pages: Iterable[Page]) -> pa.Table:
        """Thousands of small pages cost what one large page of the same rows would."""
        return pa.Table.from_batches([self._decode(tree, [data for _, _, data in pages])])

    def _decode(self, tree: Tree, datas: Iterable[bytes]) -> pa.RecordBatch:
        parts = [part for part in map(_parts, datas) if part[_WEIGHTS]]
        if not parts:
            return pa.RecordBatch.from_pylist([], schema=tree.schema)
        names, counts, edges, ends, types, weights, costs, bounds = zip(*parts, strict=True)
        sizes = np.frombuffer(b"".join(counts), dtype="<u4")
        times = _join_bounds(bounds, weights)
        rows = sum(map(len, weights)) // 8
        moments = np.full((rows, len(VALIDITY)), ABSENT) if times is None else times
        columns: list[pa.Array] = [
            _split(names).take(pa.array(np.repeat(np.arange(len(sizes)), sizes))),
            *map(_split, (edges, ends, types)),
            *(_nullable(np.frombuffer(b"".join(numbers))) for numbers in (weights, costs)),
            *(pa.array(moment := moments[:, number], mask=moment == ABSENT) for number in range(len(VALIDITY))),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=tree.schema)


def _parts(data: bytes) -> Part:
    a, b, c, d, e, f, g, h = _HEADER.unpack_from(data)
    at = _HEADER.size
    b += at + a
    c += b
    d += c
    e += d
    f += e
    g += f
    return data[at : at + a], data[at + a : b], data[b:c], data[c:d], data[d:e], data[e:f], data[f:g], data[g : g + h]


def _runs(node: pa.Array, starts: NDArray[np.int64]) -> tuple[pa.Array, NDArray[np.int64], NDArray[np.int64]]:
    """Runs of equal nodes, broken at page starts: the node of each, its length, where it starts."""
    changes = pc.not_equal(node.slice(1), node.slice(0, len(node) - 1)).to_numpy(zero_copy_only=False)
    run_starts = np.union1d(np.flatnonzero(changes) + 1, starts)
    counts = np.diff([*run_starts, len(node)])
    return node.take(pa.array(run_starts)), counts, run_starts


def _join(texts: pa.Array, starts: NDArray[np.int64]) -> list[bytes]:
    """The texts of each page, joined by line ends."""
    offsets = pa.array(np.append(starts, len(texts)).astype(np.int32))
    lists = pa.ListArray.from_arrays(offsets, texts.cast(pa.binary()))
    joined: list[bytes] = pc.binary_join(lists, _LINE).to_numpy(zero_copy_only=False).tolist()
    return joined


def _split(joined: Sequence[bytes]) -> pa.Array:
    """Texts that were joined by line ends, page after page, as one column."""
    body = np.frombuffer(_LINE.join(joined) + _LINE, np.uint8)
    is_end = body == _LINE[0]
    ends = np.flatnonzero(is_end)
    bounds = np.zeros(len(ends) + 1, np.int32)
    bounds[1:] = ends - np.arange(len(ends))
    return pa.StringArray.from_buffers(len(ends), pa.py_buffer(bounds), pa.py_buffer(body[~is_end]))


def _join_bounds(bounds: Sequence[bytes], weights: Sequence[bytes]) -> NDArray[np.int64] | None:
    if not any(bounds):
        return None
    absent = ABSENT.to_bytes(8, "little", signed=True) * len(VALIDITY)
    filled = [bound or absent * (len(weight) // 8) for bound, weight in zip(bounds, weights, strict=True)]
    return np.frombuffer(b"".join(filled), dtype="<i8").reshape(-1, len(VALIDITY))


def _numbers(column: pa.Array) -> NDArray[np.float64]:
    numbers: NDArray[np.float64] = pc.fill_null(column, np.nan).to_numpy(zero_copy_only=False)
    return numbers


def _nullable(numbers: NDArray[Any]) -> pa.Array:
    return pa.array(numbers, pa.float64(), mask=np.isnan(numbers))


# Neighbours of nodes: filters, order and fan-out over the edges that `adjacency` reads.


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
        edges = edges_of(connection, question.by_tail if outbound else question.by_head, wanted)
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
