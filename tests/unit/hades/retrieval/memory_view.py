"""A graph in plain Python behind the port, and a wrapper that counts what is read from it.

For properties over thousands of graphs, which publishing each would take hours. Small and slow on
purpose: it is the reference against which meters are checked, `tests/contract/test_views.py` holds
the real views to the port.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hades.ports.graph import (
    KINDS,
    Adjacency,
    BridgePath,
    Codes,
    Csr,
    EdgeFacts,
    Expansion,
    Flags,
    Hits,
    Kind,
    NameMatches,
    NodeFacts,
    Numbers,
    Passage,
    SourceFacts,
    ViewInfo,
    Weights,
)
from hades.snapshot.manifest import edge_types
from hades.snapshot.vectors import cosines_with
from schemas.edges import ClusterEdgeType
from schemas.ids import Mask, sha256_text

TYPES = edge_types()
WORD = re.compile(r"\w+")


@dataclass
class Graph:
    """Nodes by number: kind, name, text, vector; edges by handle: source, target, type, weight."""

    kinds: list[Kind] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    levels: dict[int, int] = field(default_factory=dict)
    vectors: dict[int, NDArray[np.float32]] = field(default_factory=dict)
    edges: list[tuple[int, int, str, float]] = field(default_factory=list)
    bridges: list[BridgePath] = field(default_factory=list)
    model: str = "toy@1/3"

    def node(
        self, kind: Kind, name: str, vector: Sequence[float] | None = None, level: int = 1
    ) -> int:
        """Add a node."""
        self.kinds.append(kind)
        self.names.append(name)
        number = len(self.names) - 1
        if kind is Kind.CLUSTER:
            self.levels[number] = level
        if vector is not None:
            self.vectors[number] = np.asarray(vector, np.float32)
        return number

    def edge(self, source: int, target: int, kind: str = "refers_to", weight: float = 0.5) -> int:
        """Add an edge."""
        self.edges.append((source, target, kind, weight))
        return len(self.edges) - 1


class MemoryView:
    """A `GraphView` over a `Graph`."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._rows = {way: self._compressed(way) for way in ("outbound", "inbound")}
        count = {kind.value: graph.kinds.count(kind) for kind in KINDS}
        models = {
            kind.value: (graph.model,) if any(graph.kinds[n] is kind for n in graph.vectors) else ()
            for kind in (Kind.ENTITY, Kind.CHUNK, Kind.CLUSTER, Kind.FUNC)
        }
        self.info = ViewInfo("toy", count, {"relations": len(graph.edges)}, models)
        self.type_names = TYPES

    def number(self, ids: Sequence[str]) -> Numbers:
        known = {
            one: number for number, one in enumerate(self.ids(np.arange(len(self.graph.names))))
        }
        return np.array([known.get(one, -1) for one in ids], np.int64)

    def ids(self, numbers: Numbers) -> list[str]:
        return [
            f"{self.graph.kinds[n].value}/n{n:06d}" for n in np.asarray(numbers, np.int64).tolist()
        ]

    def kinds(self, numbers: Numbers) -> Codes:
        return np.array(
            [KINDS.index(self.graph.kinds[n]) for n in np.asarray(numbers).tolist()], np.uint8
        )

    def expand(
        self,
        numbers: Numbers,
        *,
        direction: Any,
        types: Sequence[str] | None = None,
        fanout: int | None = None,
        mask: Mask = Mask(),
        max_work: int | None = None,
    ) -> Expansion:
        found: list[tuple[int, int, int, int, float, bool]] = []
        work, capped = 0, False
        for row, node in enumerate(np.asarray(numbers).tolist()):
            own: list[tuple[int, int, int, int, float, bool]] = []
            for way in ("outbound", "inbound") if direction == "any" else (str(direction),):
                rows, taken = self._rows[way], 0
                for at in range(rows.starts[node], rows.starts[node + 1]):
                    if fanout is not None and taken == fanout:
                        break
                    if max_work is not None and work >= max_work:
                        capped = True
                        break
                    work += 1
                    kind = int(rows.type[at])
                    if types is not None and TYPES[kind] not in types:
                        continue
                    if direction == "any" and way == "inbound" and rows.target[at] == node:
                        continue
                    own.append(
                        (
                            row,
                            int(rows.target[at]),
                            int(rows.edge[at]),
                            kind,
                            float(rows.weight[at]),
                            way == "outbound",
                        )
                    )
                    taken += 1
            own.sort(key=lambda one: (-one[4], one[2]))
            found += own if fanout is None else own[:fanout]
        columns: Any = list(zip(*found, strict=True)) if found else [()] * 6
        kinds = (np.int64, np.int64, np.int64, np.uint8, np.float32, np.bool_)
        arrays = [np.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
        return Expansion(*arrays, work, capped)

    def degree(
        self, numbers: Numbers, *, direction: Any, types: Sequence[str] | None = None
    ) -> Numbers:
        found = self.expand(numbers, direction=direction, types=types)
        return np.bincount(found.row, minlength=len(numbers)).astype(np.int64)

    def adjacency(self) -> Adjacency:
        return Adjacency(self._rows["outbound"], self._rows["inbound"], None)

    def file_chunks(self) -> Numbers:
        return np.empty(0, np.int64)

    def commit_chunks(self) -> Numbers:
        return np.empty(0, np.int64)

    def nodes(self, numbers: Numbers) -> list[NodeFacts]:
        asked = np.asarray(numbers).tolist()
        return [
            NodeFacts(
                one,
                self.graph.kinds[n],
                self.graph.names[n],
                "concept",
                summary=self.graph.names[n],
            )
            for n, one in zip(asked, self.ids(numbers), strict=True)
        ]

    def edges(self, handles: Numbers) -> list[EdgeFacts]:
        facts = []
        for handle in np.asarray(handles).tolist():
            source, target, kind, weight = self.graph.edges[handle]
            ends = self.ids(np.array([source, target]))
            facts.append(
                EdgeFacts(f"relations/r{handle}", *ends, kind, weight, "doc", (0, 3), "why")
            )
        return facts

    def passages(self, numbers: Numbers) -> list[Passage]:
        asked = np.asarray(numbers).tolist()
        return [
            Passage(
                one,
                self.graph.names[n],
                f"origin {n}",
                f"documents/{n}",
                (0, len(self.graph.names[n])),
                f"T{n}",
            )
            for n, one in zip(asked, self.ids(numbers), strict=True)
        ]

    def sources(self, document_ids: Sequence[str]) -> list[SourceFacts | None]:
        texts = [self.graph.names[int(one.partition("/")[2])] for one in document_ids]
        return [
            SourceFacts(one, one, "", text, sha256_text(text))
            for one, text in zip(document_ids, texts, strict=True)
        ]

    def vectors(self, numbers: Numbers, *, model: str) -> tuple[NDArray[np.float32], Flags]:
        known = self.graph.vectors if model == self.graph.model else {}
        asked = np.asarray(numbers).tolist()
        there = np.array([n in known for n in asked], np.bool_)
        width = len(next(iter(known.values()))) if known else 0
        values = np.zeros((len(asked), width), np.float32)
        for place, n in enumerate(asked):
            if n in known:
                values[place] = known[n]
        return values, there

    def cosines(self, vector: NDArray[np.float32], numbers: Numbers, *, model: str) -> Weights:
        values, there = self.vectors(numbers, model=model)
        if not there.any():
            return np.zeros(len(there), np.float32)
        return cosines_with(values, np.linalg.norm(values, axis=1), vector)

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
        allowed = None if within is None else set(np.asarray(within).tolist())
        scored = [
            (-float(own @ vector / max(float(np.linalg.norm(own)), 1e-9)), n)
            for n, own in self.graph.vectors.items()
            if self.graph.kinds[n] is kind
            and model == self.graph.model
            and (level is None or self.graph.levels.get(n) == level)
            and (allowed is None or n in allowed)
        ]
        return _hits(scored, limit)

    def lexical(self, text: str, *, kind: Kind, limit: int) -> Hits:
        asked = set(WORD.findall(text.lower()))
        scored = []
        for n, name in enumerate(self.graph.names):
            shared = len(asked & set(WORD.findall(name.lower())))
            if shared and self.graph.kinds[n] is kind:
                scored.append((-float(shared), n))
        return _hits(scored, limit)

    def clusters_of(self, numbers: Numbers) -> Numbers:
        topics = {s: t for s, t, kind, _ in self.graph.edges if kind == ClusterEdgeType.PART_OF}
        return np.array([topics.get(n, -1) for n in np.asarray(numbers).tolist()], np.int64)

    def bridges(
        self, clusters_from: Numbers, clusters_to: Numbers | None = None, *, limit: int
    ) -> list[BridgePath]:
        starts = set(np.asarray(clusters_from).tolist())
        ends = None if clusters_to is None else set(np.asarray(clusters_to).tolist())
        return [
            one
            for one in self.graph.bridges
            if one.from_cluster in starts and (ends is None or one.to_cluster in ends)
        ][:limit]

    def match_names(self, text: str) -> NameMatches:
        found = [
            (text.lower().find(name.lower()), n)
            for n, name in enumerate(self.graph.names)
            if self.graph.kinds[n] is Kind.ENTITY and name and name.lower() in text.lower()
        ]
        starts = np.array([start for start, _ in found], np.int64)
        lengths = np.array([len(self.graph.names[n]) for _, n in found], np.int64)
        return NameMatches(np.array([n for _, n in found], np.int64), starts, starts + lengths)

    def match_each(self, texts: Sequence[str]) -> list[NameMatches]:
        return [self.match_names(text) for text in texts]

    def match_whole(self, texts: Sequence[str]) -> list[Numbers]:
        return [
            found.numbers[found.ends - found.starts == len(text)]
            for text, found in zip(texts, self.match_each(texts), strict=True)
        ]

    def close(self) -> None:
        """Nothing to give back."""

    def _compressed(self, way: str) -> Csr:
        ends: list[list[tuple[float, int, int, int]]] = [[] for _ in self.graph.names]
        for handle, (source, target, kind, weight) in enumerate(self.graph.edges):
            near, far = (source, target) if way == "outbound" else (target, source)
            ends[near].append((-weight, handle, far, TYPES.index(kind)))
        entries = [entry for own in ends for entry in sorted(own)]
        return Csr(
            np.cumsum([0, *(len(own) for own in ends)], dtype=np.int64),
            np.array([entry[2] for entry in entries], np.int32),
            np.array([entry[1] for entry in entries], np.int32),
            np.array([entry[3] for entry in entries], np.uint8),
            np.array([-entry[0] for entry in entries], np.float32),
        )


class CountingView:
    """Passes every question on and counts what came back, by itself: `reads` as the port defines
    them, and `work`.
    """

    def __init__(self, view: MemoryView) -> None:
        self._view = view
        self.info, self.type_names = view.info, view.type_names
        self.reads = 0
        self.work = 0
        self.passages_read: set[int] = set()

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._view, name)

        def counted(*args: Any, **options: Any) -> Any:
            answer = method(*args, **options)
            if name in ("nodes", "edges", "passages", "sources", "bridges"):
                self.reads += len(answer)
                if name == "passages":
                    self.passages_read.update(np.asarray(args[0]).tolist())
            elif name == "expand":
                self.work += answer.work
            return answer

        return counted


def _hits(scored: list[tuple[float, int]], limit: int) -> Hits:
    best = sorted(scored)[:limit]
    return Hits(
        np.array([n for _, n in best], np.int64),
        np.array([-score for score, _ in best], np.float32),
    )
