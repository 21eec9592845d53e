"""The published graph as retrieval reads it: arrays in memory; any number of processes share the
pages.

Nodes are numbers, and every question is about many of them at once. A snapshot and what is fetched
of a remote graph keep these promises; `tests/contract/test_views.py` holds both to it:

- A node is an integer of this view, an edge a handle of this view. They mean nothing to another
  view, and their order
  means nothing: where order matters it is stated, and ties fall to the key.
- Answers stand in the order of the question. A number that this view never gave raises `BadQuery`.
- Weights are float32. A missing weight counts 1.0, a weight of 0 stays 0.
- What is materialised (`nodes`, `edges`, `passages`, `sources`) is a read of one document each;
  the rest is work.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import replace
from functools import lru_cache

import numpy as np
import pyarrow.compute as pc

from hades.errors import BadQuery
from hades.ports import graph as port
from hades.ports.graph import (
    KINDS,
    Adjacency,
    DocumentFilter,
    Expansion,
    Flags,
    Hits,
    Kind,
    Numbers,
    Validity,
    ViewInfo,
    Weights,
)
from hades.ports.store import Direction
from hades.snapshot import adjacency
from hades.snapshot.adjacency import Filter, edges_true_at, follow, merge
from hades.snapshot.facts import BOUNDS, Bridges, Domains, Names, check_positive
from hades.snapshot.files import Arrays, Columns
from hades.snapshot.lexical import search_words
from hades.snapshot.manifest import Manifest
from hades.snapshot.rights_file import Rights
from hades.snapshot.vectors import VectorSpace, unit_vector
from models.arrays import Singles
from schemas.ids import Mask

RANKER = ("ranker.signature", "ranker.numbers", "ranker.states")
_COMMIT = "commit"
_LIMITS = 32  # filters of which the walked edges are remembered


class GraphView(Domains, Names, Bridges):
    """The only way retrieval reads; `open_snapshot` opens one. What is read of single things stands
    in `facts`.
    """

    def __init__(
        self,
        snapshot: str,
        contents: Manifest,
        columns: Columns,
        *,
        degraded_from: str | None = None,
        info: ViewInfo | None = None,
    ) -> None:
        super().__init__(contents, columns)
        arrays = columns.arrays
        self._info = info or ViewInfo(
            snapshot,
            contents.nodes,
            contents.edges,
            contents.models,
            degraded_from=degraded_from,
            parts=contents.parts,
            vectors=_share_with_vectors(contents, arrays),
        )

        if contents.has_validity:
            validity = Validity(*(arrays[f"edge.{bound}"] for bound in BOUNDS))
        else:
            validity = None

        self._adjacency = Adjacency(
            adjacency.read(arrays, "out"),
            adjacency.read(arrays, "into"),
            validity,
        )
        self._spaces: dict[tuple[str, int], VectorSpace] = {}
        self._visible = lru_cache(_LIMITS)(self._without_edges)
        self._fitted = (
            port.RankerState(*(arrays[name] for name in RANKER)) if RANKER[0] in arrays else None
        )

    @property
    def info(self) -> ViewInfo:
        """Which snapshot this is and what it holds."""
        return self._info

    @property
    def type_names(self) -> tuple[str, ...]:
        """Edge types by their code in `Expansion.type`; the same in every view."""
        return self._contents.types

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
        """Edges of each node, at most `fanout` a node; with ANY an edge from a node to itself comes
        once.

        Cost: the entries looked at, which without types and mask is what comes back, and else ends
        once the fanout is found. `max_work` bounds it: nodes are served in the order asked, then
        `capped` is true.
        """
        nodes = self._edges_of(numbers)
        if fanout is not None and fanout < 1:
            raise BadQuery(f"fanout must be at least 1, not {fanout}")

        is_type = None if types is None else self._wanted(types)

        def one_way(
            outbound: bool,
            work: int | None,
            *,
            no_loops: bool = False,
        ) -> Expansion:
            if outbound:
                rows = self._adjacency.out
            else:
                rows = self._adjacency.into

            return follow(
                rows,
                nodes,
                self._filter(rows, is_type, mask, no_loops),
                fanout,
                work,
                outbound=outbound,
            )

        if direction != Direction.ANY:
            return one_way(direction == Direction.OUT, max_work)

        out = one_way(True, max_work)
        work_left = None if max_work is None else max_work - out.work
        return merge(
            out,
            one_way(False, work_left, no_loops=True),
            fanout,
        )

    def degree(
        self,
        numbers: Numbers,
        *,
        direction: Direction,
        types: Sequence[str] | None = None,
    ) -> Numbers:
        """How many edge ends each node has. Cost: constant a node; with types, its edges."""
        nodes = self._edges_of(numbers)
        total = np.zeros(len(nodes), np.int64)

        for side, rows in (
            (Direction.OUT, self._adjacency.out),
            (Direction.IN, self._adjacency.into),
        ):
            if direction in (side, Direction.ANY) and types is None:
                total += rows.starts[nodes + 1] - rows.starts[nodes]
            elif direction in (side, Direction.ANY):
                total += np.bincount(
                    self.expand(
                        nodes,
                        direction=side,
                        types=types,
                    ).row,
                    minlength=len(nodes),
                )

        return total

    def adjacency(self) -> Adjacency:
        """The arrays behind `expand`."""
        return self._adjacency

    def adjacency_within(self, only: DocumentFilter) -> Adjacency:
        """The same without the edges that a filter hides. Cost: all edges, once a filter."""
        return self._visible(only, self._rights_for(only))

    def _without_edges(self, only: DocumentFilter, _rights: Rights | None) -> Adjacency:
        return replace(
            self._adjacency,
            hidden=self.hidden_edges(only),
            sums={},
        )

    def with_adjacency(self, changed_edges: Adjacency) -> GraphView:
        """The same snapshot with other edges between its nodes, for ablations."""
        changed = copy(self)
        changed._adjacency = changed_edges
        return changed

    def file_chunks(self) -> Numbers:
        """The chunks that were cut from files of a workspace."""
        first, end = self._range(Kind.CHUNK)
        if end == first:
            return np.empty(0, np.int64)

        is_cut = (self._arrays["chunk.start_line"] > 0) & np.asarray(
            pc.not_equal(self._texts["chunk.path"], "")
        )
        is_cut[self.commit_chunks() - first] = False
        return np.flatnonzero(is_cut) + first

    def commit_chunks(self) -> Numbers:
        """The chunks that hold messages of commits."""
        first, end = self._range(Kind.CHUNK)
        types = list(self._contents.node_types)
        code = types.index(_COMMIT) if _COMMIT in types else -1
        return np.flatnonzero(self._arrays["node.type"][first:end] == code) + first

    def vectors(self, numbers: Numbers, *, model: str) -> tuple[Singles, Flags]:
        """(n, dimension) float32 as stored, and which rows have a vector of this model; the others
        are zeros.
        """
        nodes = self._rows_of(numbers)
        spaces = (self._space(kind, model) for kind in KINDS)
        dimension = next((space.dimension for space in spaces if space is not None), 0)
        values = np.zeros((len(nodes), dimension), np.float32)
        has_vector = np.zeros(len(nodes), np.bool_)

        for space, ours, rows in self._by_space(nodes, model):
            values[ours], has_vector[ours] = space.take(rows)

        return values, has_vector

    def cosines(
        self,
        vector: Singles,
        numbers: Numbers,
        *,
        model: str,
    ) -> Weights:
        """Cosine of each node with a vector; 0 where it has no vector of this model. A wrong
        dimension: `BadQuery`.

        Cost: that of `nearest` for the kinds asked, once a vector: who asked `nearest` before asks
        this for nothing.
        """
        nodes = self._rows_of(numbers)
        unit = unit_vector(vector)
        cosines = np.zeros(len(nodes), np.float32)

        for space, ours, rows in self._by_space(nodes, model):
            cosines[ours] = space.cosines(unit, rows)

        return cosines

    def nearest(
        self,
        vector: Singles,
        *,
        kind: Kind,
        model: str,
        limit: int,
        level: int | None = None,
        within: Numbers | None = None,
    ) -> Hits:
        """Nodes of a kind by cosine, exact; only vectors of `model` are compared, so an unknown
        model finds nothing.

        `level` keeps clusters of one level, `within` only these nodes. A wrong dimension or a NaN
        gives `BadQuery`. Cost: one product with the vectors compared.
        """
        unit = unit_vector(vector)
        check_positive("limit", limit)

        if kind.value not in self._contents.models:
            raise BadQuery(f"{kind} have no vectors; search them by text")

        space = self._space(kind, model)
        if space is None:
            return Hits(np.empty(0, np.int64), np.empty(0, np.float32))

        first, last = self._range(kind)
        rows = None
        if within is not None:
            inside = np.unique(self._rows_of(within))
            rows = inside[(inside >= first) & (inside < last)] - first

        if level is not None:
            of_level = self._of_level(level)
            if rows is None:
                rows = of_level
            else:
                rows = np.intersect1d(rows, of_level)

        nearest, scores = space.nearest(unit, limit, rows)
        return Hits(
            nearest + first,
            scores,
            rows is None and space.is_approximate,
        )

    def lexical(self, text: str, *, kind: Kind, limit: int) -> Hits:
        """Nodes of a kind whose text shares a stemmed word with `text`, by BM25; no words or no
        text field: none.

        Scores are comparable within one answer. Cost: the postings of the words.
        """
        check_positive("limit", limit)
        first, last = self._range(kind)

        if f"lexical.{kind}.hash" not in self._arrays:
            return Hits(np.empty(0, np.int64), np.empty(0, np.float32))

        rows, scores = search_words(
            self._arrays,
            f"lexical.{kind}",
            last - first,
            text,
            limit,
        )
        return Hits(rows + first, scores)

    def clusters_of(self, numbers: Numbers) -> Numbers:
        """The L1 topic of each node, as a node; -1 where it has none."""
        nodes = self._rows_of(numbers)
        topics = np.full(len(nodes), -1)
        entities = np.flatnonzero(nodes < self._contents.nodes[Kind.ENTITY])  # the first kind
        topics[entities] = self._arrays["entity.cluster"][nodes[entities]]
        return topics

    def fitted(self) -> port.RankerState | None:
        """The learned ranker that was published with the graph; None where there is none or it was
        damaged.
        """
        return self._fitted

    def close(self) -> None:
        """Nothing to do: a mapping goes when the last array that looks into it does."""

    def _edges_of(self, numbers: Numbers) -> Numbers:
        """The numbers, checked, of nodes whose edges are read next; a part of a graph notes those
        it lacks.
        """
        nodes = self._check(numbers)
        if self._adjacency.fetched is not None:
            self._adjacency.fetched.want(nodes)

        return nodes

    def _wanted(self, types: Sequence[str]) -> Flags:
        """By code, whether an edge type is among these."""
        for name in types:
            if name not in self.type_names:
                raise BadQuery(
                    f"{name!r} is not an edge type; there are {', '.join(self.type_names)}"
                )

        return np.array([name in types for name in self.type_names], np.bool_)

    def _filter(
        self,
        rows: port.Csr,
        is_type: Flags | None,
        mask: Mask,
        no_loops: bool,
    ) -> Filter | None:
        """Which entries stay; None when all do, so that nothing is looked at in vain."""
        validity = None if mask.is_open else self._adjacency.validity
        if is_type is None and validity is None and not no_loops:
            return None

        def keep(entry: Numbers, near: Numbers) -> Flags:
            is_kept = np.ones(len(entry), np.bool_)
            if is_type is not None:
                is_kept &= is_type[rows.type[entry]]
            if no_loops:
                is_kept &= rows.target[entry] != near
            if validity is not None:
                is_kept &= edges_true_at(validity, rows.edge[entry], mask)

            return is_kept

        return keep

    def _by_space(
        self,
        nodes: Numbers,
        model: str,
    ) -> Iterator[tuple[VectorSpace, Flags, Numbers]]:
        """The spaces that nodes may have a vector in, which of the nodes those are, and their rows
        there.
        """
        for place, kind in enumerate(KINDS):
            space = self._space(kind, model)
            ours = (nodes >= self._bases[place]) & (nodes < self._bases[place + 1])
            if space is not None and ours.any():
                yield space, ours, nodes[ours] - self._bases[place]

    def _space(self, kind: Kind, model: str) -> VectorSpace | None:
        """The vectors of a kind; None where nothing has one of this model."""
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


def _share_with_vectors(contents: Manifest, arrays: Arrays) -> float:
    """Which share of the passages has a vector, of the model that made most."""
    chunks = contents.nodes[Kind.CHUNK]
    models = range(len(contents.models.get(Kind.CHUNK.value, ())))
    vector_counts = (len(arrays[f"vector.{Kind.CHUNK.value}.{number}.row"]) for number in models)

    if chunks:
        return max(vector_counts, default=0) / chunks

    return 1.0
