"""The published graph through the port: arrays in memory, no copy, no lock; any number of processes share the pages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from typing import Any

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from hades.errors import BadQuery
from hades.ports import graph as port
from hades.ports.graph import (
    KINDS,
    Adjacency,
    Codes,
    Expansion,
    Flags,
    Hits,
    Kind,
    NameMatches,
    Numbers,
    Validity,
    ViewInfo,
    Weights,
)
from hades.ports.store import Direction
from hades.snapshot import adjacency
from hades.snapshot.adjacency import ExpandedEntries, Filter, follow, gather, merge, visible
from hades.snapshot.facts import BOUNDS, BridgeIndex, DomainIndex, Facts, NameIndex
from hades.snapshot.files import Columns, find, hash_texts
from hades.snapshot.lexical import LexicalIndex
from hades.snapshot.manifest import Manifest
from hades.snapshot.vectors import VectorSpace, unit_vector
from schemas.ids import Mask

RANKER = ("ranker.signature", "ranker.numbers", "ranker.states")
_COMMIT = "commit"


class SnapshotView:
    """A `GraphView` over a snapshot folder, which says what each method does; see `open_snapshot`."""

    def __init__(
        self,
        snapshot: str,
        contents: Manifest,
        columns: Columns,
        *,
        degraded_from: str | None = None,
        info: ViewInfo | None = None,
    ) -> None:
        arrays = columns.arrays
        self._contents, self._arrays, self._texts = contents, arrays, columns.texts
        self._info = info or ViewInfo(
            snapshot, contents.nodes, contents.edges, contents.models, degraded_from, contents.parts,
            vectors=_share_with_vectors(contents, arrays),
        )  # fmt: skip
        self._bases = np.cumsum([0, *contents.nodes.values()])
        self._n_nodes, self._n_edges = int(self._bases[-1]), sum(contents.edges.values())
        validity = Validity(*(arrays[f"edge.{bound}"] for bound in BOUNDS)) if contents.has_validity else None
        self._adjacency = Adjacency(adjacency.read(arrays, "out"), adjacency.read(arrays, "into"), validity)
        self._codes = {name: code for code, name in enumerate(contents.types)}
        self._flags: dict[tuple[str, ...], Flags] = {}
        self._facts = Facts(contents, columns)
        self._names = NameIndex(arrays, contents.longest_name)
        self._bridges = BridgeIndex(arrays)
        self._domains = DomainIndex(contents, columns, self._adjacency.out, self.number)
        self._spaces: dict[tuple[str, int], VectorSpace] = {}
        self._lexical: dict[Kind, LexicalIndex] = {}
        self._fitted = port.RankerState(*(arrays[name] for name in RANKER)) if RANKER[0] in arrays else None

    @property
    def info(self) -> ViewInfo:
        return self._info

    @property
    def type_names(self) -> tuple[str, ...]:
        return self._contents.types

    def number(self, ids: Sequence[str]) -> Numbers:
        numbers = np.full(len(ids), -1, np.int64)
        asked, entries = find(self._arrays["node_id.hash"], hash_texts(ids))
        candidates = self._arrays["node_id.number"][entries].astype(np.int64)
        for place, number, found in zip(asked.tolist(), candidates.tolist(), self._facts.ids(candidates), strict=True):
            if found == ids[place]:  # the hash alone could err
                numbers[place] = number
        return numbers

    def ids(self, numbers: Numbers) -> list[str]:
        return self._facts.ids(self._check(numbers))

    def kinds(self, numbers: Numbers) -> Codes:
        return (np.searchsorted(self._bases, self._check(numbers), side="right") - 1).astype(np.uint8)

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
        asked = self._check(numbers)
        if fanout is not None and fanout < 1:
            raise BadQuery(f"fanout must be at least 1, not {fanout}")
        if direction == "any":
            out = self._one_way(asked, True, types, fanout, mask, max_work)
            left = None if max_work is None else max_work - out.work
            into = self._one_way(asked, False, types, fanout, mask, left, no_loops=True)
            return merge(gather(self._adjacency.out, out, True), gather(self._adjacency.into, into, False), fanout)
        outbound = direction == "outbound"
        found = self._one_way(asked, outbound, types, fanout, mask, max_work)
        return gather(self._adjacency.out if outbound else self._adjacency.into, found, outbound)

    def degree(self, numbers: Numbers, *, direction: Direction, types: Sequence[str] | None = None) -> Numbers:
        asked = self._check(numbers)
        total = np.zeros(len(asked), np.int64)
        for way, outbound in (("outbound", True), ("inbound", False)):
            if direction in (way, "any"):
                rows = self._adjacency.out if outbound else self._adjacency.into
                if types is None:
                    total += rows.starts[asked + 1] - rows.starts[asked]
                else:
                    found = self._one_way(asked, outbound, types, None, Mask(), None)
                    total += np.bincount(found.row, minlength=len(asked))
        return total

    def adjacency(self) -> Adjacency:
        return self._adjacency

    def with_adjacency(self, other: Adjacency) -> SnapshotView:
        """The same snapshot with other edges between its nodes, for ablations."""
        changed = copy(self)
        changed._adjacency = other
        return changed

    def file_chunks(self) -> Numbers:
        first, end = self._range(Kind.CHUNK)
        if end == first:
            return np.empty(0, np.int64)
        is_cut = (self._arrays["chunk.start_line"] > 0) & np.asarray(pc.not_equal(self._texts["chunk.path"], ""))
        is_cut[self.commit_chunks() - first] = False
        return np.flatnonzero(is_cut) + first

    def commit_chunks(self) -> Numbers:
        first, end = self._range(Kind.CHUNK)
        types = list(self._contents.node_types)
        code = types.index(_COMMIT) if _COMMIT in types else -1
        return np.flatnonzero(self._arrays["node.type"][first:end] == code) + first

    def domains(self) -> tuple[str, ...]:
        return self._domains.names()

    def selects(self, numbers: Numbers, only: port.DocumentFilter) -> Flags:
        return self._domains.selects(only, self._check(numbers), self.kinds(numbers))

    def selects_documents(self, ids: Sequence[str], only: port.DocumentFilter) -> list[bool]:
        return self._domains.selects_documents(only, ids)

    def count_outside(self, only: port.DocumentFilter) -> int:
        return self._domains.count_outside(only)

    def nodes(self, numbers: Numbers) -> list[port.NodeFacts]:
        return self._facts.nodes(self._check(numbers))

    def edges(self, handles: Numbers) -> list[port.EdgeFacts]:
        return self._facts.edges(_within(handles, self._n_edges, "edge"))

    def passages(self, numbers: Numbers) -> list[port.Passage]:
        return self._facts.passages(self._check(numbers))

    def sources(self, document_ids: Sequence[str]) -> list[port.SourceFacts | None]:
        return [self._facts.source(identifier) for identifier in document_ids]

    def vectors(self, numbers: Numbers, *, model: str) -> tuple[NDArray[np.float32], Flags]:
        asked = self._check(numbers)
        dimension = next((space.dimension for kind in KINDS if (space := self._space(kind, model)) is not None), 0)
        values, there = np.zeros((len(asked), dimension), np.float32), np.zeros(len(asked), np.bool_)
        for space, ours, rows in self._by_space(asked, model):
            values[ours], there[ours] = space.take(rows)
        return values, there

    def cosines(self, vector: NDArray[np.float32], numbers: Numbers, *, model: str) -> Weights:
        asked, unit = self._check(numbers), unit_vector(vector)
        found = np.zeros(len(asked), np.float32)
        for space, ours, rows in self._by_space(asked, model):
            found[ours] = space.cosines(unit, rows)
        return found

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
        if within is None and level is None:
            return self.nearest_each([vector], kind=kind, model=model, limit=limit)[0]
        unit, space = unit_vector(vector), self._check_search(kind, model, limit)
        if space is None:
            return Hits(np.empty(0, np.int64), np.empty(0, np.float32))
        first, last = self._range(kind)
        rows = None
        if within is not None:
            asked = np.unique(self._check(within))
            rows = asked[(asked >= first) & (asked < last)] - first
        if level is not None:
            of_level = self._facts.of_level(level)
            rows = of_level if rows is None else np.intersect1d(rows, of_level)
        found, scores = space.nearest(unit, limit, rows)
        return Hits(found + first, scores)

    def nearest_each(self, vectors: Sequence[NDArray[np.float32]], *, kind: Kind, model: str, limit: int) -> list[Hits]:
        units, space = [unit_vector(vector) for vector in vectors], self._check_search(kind, model, limit)
        if space is None:
            return [Hits(np.empty(0, np.int64), np.empty(0, np.float32)) for _ in units]
        first, _ = self._range(kind)
        found = [space.nearest(unit, limit) for unit in units]
        return [Hits(rows + first, scores, space.is_approximate) for rows, scores in found]

    def lexical(self, text: str, *, kind: Kind, limit: int) -> Hits:
        _positive("limit", limit)
        first, last = self._range(kind)
        if f"lexical.{kind}.hash" not in self._arrays:
            return Hits(np.empty(0, np.int64), np.empty(0, np.float32))
        if kind not in self._lexical:
            self._lexical[kind] = LexicalIndex(self._arrays, f"lexical.{kind}", last - first)
        rows, scores = self._lexical[kind].search(text, limit)
        return Hits(rows + first, scores)

    def clusters_of(self, numbers: Numbers) -> Numbers:
        asked = self._check(numbers)
        topics = np.full(len(asked), -1, np.int64)
        entities = np.flatnonzero(asked < self._contents.nodes[Kind.ENTITY])  # the first kind
        topics[entities] = self._arrays["entity.cluster"][asked[entities]]
        return topics

    def bridges(
        self, clusters_from: Numbers, clusters_to: Numbers | None = None, *, limit: int
    ) -> list[port.BridgePath]:
        _positive("limit", limit)
        ends = None if clusters_to is None else self._check(clusters_to)
        return self._bridges.find(self._check(clusters_from), ends, limit)

    def fitted(self) -> port.RankerState | None:
        return self._fitted

    def match_names(self, text: str) -> NameMatches:
        return self._names.match_each([text])[0]

    def match_each(self, texts: Sequence[str]) -> list[NameMatches]:
        return self._names.match_each(texts)

    def match_whole(self, texts: Sequence[str]) -> list[Numbers]:
        return self._names.match_whole(texts)

    def close(self) -> None:
        """See `GraphView.close`. Nothing to do: a mapping goes when the last array that looks into it does."""

    def _one_way(
        self,
        asked: Numbers,
        outbound: bool,
        types: Sequence[str] | None,
        fanout: int | None,
        mask: Mask,
        max_work: int | None,
        *,
        no_loops: bool = False,
    ) -> ExpandedEntries:
        rows = self._adjacency.out if outbound else self._adjacency.into
        wanted = None if types is None else self._wanted(tuple(types))
        return follow(rows, asked, self._filter(rows, wanted, mask, no_loops), fanout, max_work)

    def _wanted(self, types: tuple[str, ...]) -> Flags:
        """By code, whether an edge type is among these."""
        flags = self._flags.get(types)
        if flags is None:
            flags = np.zeros(len(self._codes), np.bool_)
            flags[[self._code(name) for name in types]] = True
            self._flags[types] = flags
        return flags

    def _filter(self, rows: port.Csr, wanted: Flags | None, mask: Mask, no_loops: bool) -> Filter | None:
        """Which entries stay; None when all do, so that nothing is looked at in vain."""
        validity = None if mask.is_open else self._adjacency.validity
        if wanted is None and validity is None and not no_loops:
            return None

        def keep(entry: Numbers, near: Numbers) -> Flags:
            kept = np.ones(len(entry), np.bool_)
            if wanted is not None:
                kept &= wanted[rows.type[entry]]
            if no_loops:
                kept &= rows.target[entry] != near
            if validity is not None:
                kept &= visible(validity, rows.edge[entry], mask)
            return kept

        return keep

    def _code(self, name: str) -> int:
        if name not in self._codes:
            raise BadQuery(f"{name!r} is not an edge type; there are {', '.join(self._contents.types)}")
        return self._codes[name]

    def _by_space(self, asked: Numbers, model: str) -> Iterator[tuple[VectorSpace, Flags, Numbers]]:
        """The spaces that nodes may have a vector in, which of the nodes those are, and their rows there."""
        for place, kind in enumerate(KINDS):
            space = self._space(kind, model)
            ours = (asked >= self._bases[place]) & (asked < self._bases[place + 1])
            if space is not None and ours.any():
                yield space, ours, asked[ours] - self._bases[place]

    def _check_search(self, kind: Kind, model: str, limit: int) -> VectorSpace | None:
        """The space that is searched; None where nothing has a vector of this model."""
        _positive("limit", limit)
        if kind.value not in self._contents.models:
            raise BadQuery(f"{kind} have no vectors; search them by text")
        return self._space(kind, model)

    def _space(self, kind: Kind, model: str) -> VectorSpace | None:
        tags = self._contents.models.get(kind.value, ())
        if model not in tags:
            return None
        key = (kind.value, tags.index(model))
        if key not in self._spaces:
            self._spaces[key] = VectorSpace(self._arrays, *key)
        return self._spaces[key]

    def _range(self, kind: Kind) -> tuple[int, int]:
        place = KINDS.index(kind)
        return int(self._bases[place]), int(self._bases[place + 1])

    def _check(self, numbers: Numbers) -> Numbers:
        return _within(numbers, self._n_nodes, "node")


def _within(numbers: Numbers, count: int, what: str) -> Numbers:
    asked = np.asarray(numbers, np.int64)
    if asked.size and asked.view(np.uint64).max() >= count:  # a negative number is a huge one without its sign
        wrong = int(asked[(asked < 0) | (asked >= count)][0])
        raise BadQuery(f"{wrong} is not a {what} of this view; numbers come from the view that is asked")
    return asked


def _positive(name: str, value: int) -> None:
    if value < 1:
        raise BadQuery(f"{name} must be at least 1, not {value}")


def _share_with_vectors(contents: Manifest, arrays: Mapping[str, NDArray[Any]]) -> float:
    """Which share of the passages has a vector, of the model that made most."""
    chunks, models = contents.nodes[Kind.CHUNK], range(len(contents.models.get(Kind.CHUNK.value, ())))
    made = (len(arrays[f"vector.{Kind.CHUNK.value}.{number}.row"]) for number in models)
    return max(made, default=0) / chunks if chunks else 1.0
