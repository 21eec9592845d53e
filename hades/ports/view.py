"""The published graph as retrieval reads it: nodes are numbers, every question is about many of them at once.

A snapshot and what is fetched of a remote graph keep these promises; `tests/contract/test_views.py` holds both to it:

- A node is an integer of this view, an edge a handle of this view. They mean nothing to another view, and their order
  means nothing: where order matters it is stated, and ties fall to the key.
- Answers stand in the order of the question. A number that this view never gave raises `BadQuery`.
- Weights are float32. A missing weight counts 1.0, a weight of 0 stays 0.
- What is materialised (`nodes`, `edges`, `passages`, `sources`) is a read of one document each; the rest is work.

This module needs numpy only: a process that asks a question must not load more than that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from hades.ports.graph import (
    Adjacency,
    BridgePath,
    Codes,
    DocumentFilter,
    EdgeFacts,
    Expansion,
    Flags,
    Hits,
    Kind,
    NameMatches,
    NodeFacts,
    Numbers,
    Passage,
    RankerState,
    SourceFacts,
    ViewInfo,
    Weights,
)
from schemas.ids import Mask

if TYPE_CHECKING:
    from hades.ports.store import Direction


HOPS = 3  # how far around a question is fetched


class GraphView(Protocol):
    """The only way retrieval reads."""

    @property
    def info(self) -> ViewInfo:
        """Which snapshot this is and what it holds."""
        ...

    @property
    def type_names(self) -> tuple[str, ...]:
        """Edge types by their code in `Expansion.type`; the same in every view."""
        ...

    def number(self, ids: Sequence[str]) -> Numbers:
        """The number of each `_id`, -1 where there is no such node. Cost: a look-up each."""
        ...

    def ids(self, numbers: Numbers) -> list[str]:
        """The `_id` of each number. Cost: in memory."""
        ...

    def kinds(self, numbers: Numbers) -> Codes:
        """What each node is, as a place in `KINDS`. Cost: in memory."""
        ...

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
        """Edges of each node, at most `fanout` a node; with ANY an edge from a node to itself comes once.

        Cost: the entries looked at, which without types and mask is what comes back, and else ends once the fanout is
        found. `max_work` bounds it: nodes are served in the order asked, then `capped` is true.
        """
        ...

    def degree(self, numbers: Numbers, *, direction: Direction, types: Sequence[str] | None = None) -> Numbers:
        """How many edge ends each node has. Cost: constant a node; with types, its edges."""
        ...

    def adjacency(self) -> Adjacency:
        """The arrays behind `expand`."""
        ...

    def file_chunks(self) -> Numbers:
        """The chunks that were cut from files of a workspace."""
        ...

    def commit_chunks(self) -> Numbers:
        """The chunks that hold messages of commits."""
        ...

    def domains(self) -> tuple[str, ...]:
        """The domains of the graph, sorted."""
        ...

    def selects(self, numbers: Numbers, only: DocumentFilter) -> Flags:
        """Whether each node belongs to what a question is limited to.

        A text belongs by its document, an entity by its mentions, topics to everything, and texts whose document has
        no domain to every domain. Cost: in memory.
        """
        ...

    def selects_documents(self, ids: Sequence[str], only: DocumentFilter) -> list[bool]:
        """Whether documents, by `_id`, belong to what a question is limited to; one that is not stored does not."""
        ...

    def count_outside(self, only: DocumentFilter) -> int:
        """How many documents a filter leaves out."""
        ...

    def nodes(self, numbers: Numbers) -> list[NodeFacts]:
        """Attributes of nodes, one read each."""
        ...

    def edges(self, handles: Numbers) -> list[EdgeFacts]:
        """Attributes of edges, one read each."""
        ...

    def passages(self, numbers: Numbers) -> list[Passage]:
        """Text of chunks, functions and files with what a citation needs, one read each; others give `BadQuery`."""
        ...

    def sources(self, document_ids: Sequence[str]) -> list[SourceFacts | None]:
        """Whole documents by `_id` with their stored hash; None where there is none. One read each."""
        ...

    def vectors(self, numbers: Numbers, *, model: str) -> tuple[NDArray[np.float32], Flags]:
        """(n, dimension) float32 as stored, and which rows have a vector of this model; the others are zeros."""
        ...

    def cosines(self, vector: NDArray[np.float32], numbers: Numbers, *, model: str) -> Weights:
        """Cosine of each node with a vector; 0 where it has no vector of this model. A wrong dimension: `BadQuery`.

        Cost: that of `nearest` for the kinds asked, once a vector: who asked `nearest` before asks this for nothing.
        """
        ...

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
        """Nodes of a kind by cosine, exact; only vectors of `model` are compared, so an unknown model finds nothing.

        `level` keeps clusters of one level, `within` only these nodes. A wrong dimension or a NaN gives `BadQuery`.
        Cost: one product with the vectors compared.
        """
        ...

    def nearest_each(self, vectors: Sequence[NDArray[np.float32]], *, kind: Kind, model: str, limit: int) -> list[Hits]:
        """What `nearest` finds for each vector. Cost: little more than one `nearest`."""
        ...

    def lexical(self, text: str, *, kind: Kind, limit: int) -> Hits:
        """Nodes of a kind whose text shares a stemmed word with `text`, by BM25; no words or no text field: none.

        Scores are comparable within one answer. Cost: the postings of the words.
        """
        ...

    def clusters_of(self, numbers: Numbers) -> Numbers:
        """The L1 topic of each node, as a node; -1 where it has none. Cost: in memory."""
        ...

    def bridges(self, clusters_from: Numbers, clusters_to: Numbers | None = None, *, limit: int) -> list[BridgePath]:
        """Paths computed ahead from any of these topics to any of those, or to any at all; heaviest first, then by key.

        Each begins in a topic of `clusters_from`. Every edge of it stands with the weight it was computed from: what is
        stale is not there. Cost: the bridges of the topics asked.
        """
        ...

    def fitted(self) -> RankerState | None:
        """The learned ranker that was published with the graph; None where there is none or it was damaged."""
        ...

    def match_names(self, text: str) -> NameMatches:
        """Entities whose name stands in the text, word for word, ignoring case; only spans no longer name covers.

        Cost: a look-up for each run of words.
        """
        ...

    def match_each(self, texts: Sequence[str]) -> list[NameMatches]:
        """What `match_names` finds in each text. Cost: a look-up for each distinct run of words."""
        ...

    def match_whole(self, texts: Sequence[str]) -> list[Numbers]:
        """For each text the entities whose name is the whole text, word for word. Cost: a look-up each."""
        ...

    def close(self) -> None:
        """Give back files and connections; arrays that were handed out stay readable."""
        ...


@dataclass(frozen=True)
class Neighbourhood:
    """A part of a graph in memory, and what it took to fetch it.

    `is_cut`: it has nodes whose edges were not fetched. `is_late`: the time ended first, so that it holds nothing.
    `saw_write`: a write of several transactions was being applied, so that some rows may be of before it and some of
    after.
    """

    view: GraphView
    round_trips: int
    is_cut: bool = False
    is_late: bool = False
    saw_write: bool = False


@runtime_checkable
class RemoteView(Protocol):
    """A graph over a network: what a question needs of it is fetched first and then read in memory."""

    @property
    def info(self) -> ViewInfo:
        """Which graph this is and what it holds."""
        ...

    def around(
        self,
        texts: Sequence[str],
        vectors: Sequence[NDArray[np.float32]],
        model: str,
        near: Sequence[str],
        seconds: float | None = None,
        hops: int = HOPS,
    ) -> Neighbourhood:
        """What lies around a question, given as texts and vectors, and around the ids it is asked from.

        While a large write is being applied, `WriteUnderWay` offers a view of one state where there is one.
        """
        ...

    def close(self) -> None:
        """Give back connections."""
        ...


OpenView = GraphView | RemoteView


class WriteUnderWay(Exception):
    """Rows were read while a write of several transactions was being applied; `instead` is a view of one state."""

    def __init__(self, instead: GraphView) -> None:
        super().__init__(f"a large write is being applied; the snapshot {instead.info.snapshot} serves meanwhile")
        self.instead = instead
