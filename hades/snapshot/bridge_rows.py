"""Bridges: paths between topics as numbers and handles, found by either of their topics."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from hades.errors import SnapshotError
from hades.ports.graph import FOREVER, Kind
from hades.ports.store import RowStore
from hades.snapshot.arrays import Folder
from hades.snapshot.columns import NOWHERE
from hades.snapshot.node_rows import NodeSpace

_COLUMNS = ("from_cluster", "to_cluster", "nodes", "edges", "weight", "cost", "provenance", "generation", "pinned")


@dataclass(frozen=True)
class Bridges:
    """How many bridges a snapshot has, and how many stayed out because they are of edges that are no more."""

    written: int
    left_out: int


@dataclass(frozen=True)
class _Path:
    key: str
    clusters: tuple[int, int]
    nodes: tuple[int, ...]
    edges: tuple[int, ...]
    weight: float
    cost: float
    pinned: bool


class BridgeRows:
    """Writes the bridges that stand. Row order is key order.

    `bridge.node` holds the nodes of row i at `bridge.starts[i]:bridge.starts[i + 1]`; its edges, one fewer a row,
    stand in `bridge.edge` from `bridge.starts[i] - i`. `bridge.topic`, sorted, with `bridge.row` finds rows by topic.
    """

    def __init__(self, folder: Folder, nodes: NodeSpace, n_relations: int, *, has_validity: bool) -> None:
        """After all edges were written."""
        self._folder, self._nodes = folder, nodes
        self._relations = _keys(folder, n_relations)
        self._source, self._target, self._weight = (folder[f"edge.{name}"] for name in ("source", "target", "weight"))
        self._has_ended = np.zeros(n_relations, dtype=np.bool_)
        for name in ("valid_until", "retracted_at") if has_validity else ():
            self._has_ended |= folder[f"edge.{name}"][:n_relations] != FOREVER

    def write(self, store: RowStore, generation: str) -> Bridges:
        """Bridges of exactly this generation whose edges are all there as they were; the others stay out."""
        rows = [row for batch in store.scan("bridge_cache", columns=["_key", *_COLUMNS]) for row in batch.to_pylist()]
        current = [row for row in rows if generation and row["generation"] == generation]
        paths = self._standing(current)
        starts = np.cumsum([0, *(len(path.nodes) for path in paths)], dtype=np.int64)
        ends = np.array([path.clusters for path in paths], np.int32).reshape(-1, 2)
        row = np.repeat(np.arange(len(paths), dtype=np.int32), 2)
        order = np.argsort(ends.ravel(), kind="stable")
        for name, values in (
            ("starts", starts),
            ("node", np.array([node for path in paths for node in path.nodes], np.int32)),
            ("edge", np.array([edge for path in paths for edge in path.edges], np.int32)),
            ("from", ends[:, 0]),
            ("to", ends[:, 1]),
            ("weight", np.array([path.weight for path in paths], np.float64)),
            ("cost", np.array([path.cost for path in paths], np.float64)),
            ("pinned", np.array([path.pinned for path in paths], np.uint8)),
            ("topic", ends.ravel()[order]),
            ("row", row[order]),
        ):
            self._folder.whole(f"bridge.{name}", values)
        return Bridges(len(paths), len(rows) - len(paths))

    def _standing(self, rows: list[dict[str, Any]]) -> list[_Path]:
        node = _places((one for row in rows for one in row["nodes"]), self._nodes.ids)
        topics = (f"{Kind.CLUSTER}/{row[end]}" for row in rows for end in ("from_cluster", "to_cluster"))
        cluster = _places(topics, self._nodes.ids)
        edge = _places((one.partition("/")[2] for row in rows for one in row["edges"]), self._relations)
        paths = []
        for row in rows:
            clusters = tuple(cluster[f"{Kind.CLUSTER}/{row[end]}"] for end in ("from_cluster", "to_cluster"))
            walk = tuple(node[one] for one in row["nodes"])
            edges = tuple(edge[one.partition("/")[2]] for one in row["edges"])
            if min((*clusters, *walk, *edges)) < 0 or not self._as_it_was(row, edges):
                continue
            self._check(row["_key"], walk, edges)
            ends = (clusters[0], clusters[1])
            paths.append(_Path(row["_key"], ends, walk, edges, row["weight"], row["cost"], row["pinned"]))
        return paths

    def _as_it_was(self, row: dict[str, Any], edges: tuple[int, ...]) -> bool:
        """Whether each edge still has the weight the bridge was computed from and no end in time."""
        known = {step["id"]: step["weight"] for step in orjson.loads(row["provenance"]).get("edges", ())}
        same = all(known.get(name) == self._weight[edge] for name, edge in zip(row["edges"], edges, strict=True))
        return same and not any(self._has_ended[edge] for edge in edges)

    def _check(self, key: str, walk: tuple[int, ...], edges: tuple[int, ...]) -> None:
        """Refuse a bridge that is no path: it was written wrong, and waiting does not fix it."""
        steps = list(pairwise(walk))
        joined = ({int(self._source[edge]), int(self._target[edge])} for edge in edges)
        if (
            not edges
            or len(steps) != len(edges)
            or any(set(step) != ends for step, ends in zip(steps, joined, strict=True))
        ):
            raise SnapshotError(
                f"bridge_cache/{key}: its edges do not join its nodes one after the other; delete the row or run "
                "`hades run build_bridges`, nothing was published"
            )


def _keys(folder: Folder, count: int) -> pa.Array:
    """Keys of the relations, whose handles are the first, without copying them."""
    ends, text = folder["edge.key.ends"][: count + 1], folder["edge.key.text"]
    return pa.LargeStringArray.from_buffers(count, pa.py_buffer(ends), pa.py_buffer(text))


def _places(names: Iterable[str], among: pa.Array) -> dict[str, int]:
    distinct = list(dict.fromkeys(names))
    found = pc.index_in(pa.array(distinct, pa.large_string()), value_set=among)
    return dict(zip(distinct, pc.fill_null(found, NOWHERE).to_pylist(), strict=True))
