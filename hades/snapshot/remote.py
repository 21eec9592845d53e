"""A graph over a network: what a question needs of it is fetched in parts, and each part is read as a snapshot.

A part notes what was asked for and is not there. So a turn is run on what the searches found, what it missed is fetched
in one question to the server, and it is run again, until nothing is missing: then it gives the answer of the whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from hades.ports.graph import (
    BridgePath,
    DocumentFilter,
    EdgeFacts,
    FetchedRows,
    Flags,
    Hits,
    Kind,
    NameMatches,
    Numbers,
    Passage,
    SourceFacts,
    ViewInfo,
    Weights,
)
from hades.snapshot.files import Columns, find
from hades.snapshot.lexical import WordCounts, hash_words
from hades.snapshot.manifest import Manifest
from hades.snapshot.view import GraphView
from schemas.ids import Mask
from schemas.nodes import ChunkKind

HOPS = 5  # how far around a question everything is fetched, while there is room
QUESTIONS = 8  # to the server, of one turn


@dataclass(frozen=True)
class Parts:
    """Parts of a graph: rows of nodes, rows with vectors, all edges of nodes, what passages state, documents (all by
    id); bridges between topics, by key; names that texts may spell, what shares words with texts, by text.
    """

    rows: set[str] = field(default_factory=set)
    vectors: set[str] = field(default_factory=set)
    edges: set[str] = field(default_factory=set)
    stated: set[str] = field(default_factory=set)
    documents: set[str] = field(default_factory=set)
    topics: set[str] = field(default_factory=set)
    names: set[str] = field(default_factory=set)
    texts: set[str] = field(default_factory=set)

    def __bool__(self) -> bool:
        return any(getattr(self, one.name) for one in fields(self))

    def add(self, other: Parts) -> None:
        """Take in what another has."""
        for one in fields(self):
            getattr(self, one.name).update(getattr(other, one.name))


class PartView(GraphView):
    """What was fetched of a graph. A node may have no row yet, and some or none of its edges.

    `held` is what was fetched, or sought in vain; `sums` has the weights of all edges of nodes by type; `words` are
    those of all passages, where they were counted.
    """

    def __init__(
        self,
        contents: Manifest,
        columns: Columns,
        info: ViewInfo,
        held: Parts,
        sums: Mapping[str, Mapping[str, float]],
        words: WordCounts | None,
    ) -> None:
        super().__init__(info.snapshot, contents, columns, info=info)
        ids = self.ids(np.arange(self._bases[-1]))
        places = {name: place for place, name in enumerate(self.type_names)}
        weights, numbers = np.zeros((len(ids), len(places))), dict(zip(ids, range(len(ids)), strict=True))
        for one, own in sums.items():
            for name, weight in own.items():
                weights[numbers[one], places[name]] = weight
        self._held, self._more, self._words = held, Parts(), words
        self._has_row = np.array([one in held.rows for one in ids], np.bool_)
        self._rows_wanted = np.zeros(len(ids), np.bool_)
        self._has_vectors = np.array([one in held.vectors for one in ids], np.bool_)
        self._vectors_wanted = np.zeros(len(ids), np.bool_)
        is_whole = np.array([one in held.edges for one in ids], np.bool_)
        self._edges_wanted = FetchedRows(is_whole, weights, np.zeros(len(ids), np.bool_))
        self._adjacency = replace(self._adjacency, fetched=self._edges_wanted)

    def missing(self) -> Parts:
        """What was asked for and not fetched."""
        rows, edges = np.flatnonzero(self._rows_wanted), np.flatnonzero(self._edges_wanted.are_wanted)
        vectors = set(self.ids(np.flatnonzero(self._vectors_wanted)))
        found = Parts(rows=set(self.ids(rows)) - vectors, edges=set(self.ids(edges)), vectors=vectors)
        found.add(self._more)
        return found

    def passages(self, numbers: Numbers) -> list[Passage]:
        """See `GraphView.passages`; one whose row is missing has no text."""
        asked = self._vectors_of(numbers)
        there = self._has_row[asked]
        read = iter(super().passages(asked[there]))
        found = [
            next(read) if is_there else Passage(one, "", "", "", (0, 0))
            for one, is_there in zip(self.ids(asked), there.tolist(), strict=True)
        ]
        given = {one.id for one in found if one.kind == ChunkKind.PASSAGE}
        self._more.stated.update(given - self._held.stated)
        return found

    def vectors(self, numbers: Numbers, *, model: str) -> tuple[NDArray[np.float32], Flags]:
        return super().vectors(self._vectors_of(numbers), model=model)

    def cosines(self, vector: NDArray[np.float32], numbers: Numbers, *, model: str) -> Weights:
        return super().cosines(vector, self._vectors_of(numbers), model=model)

    def edges(self, handles: Numbers) -> list[EdgeFacts]:
        """See `GraphView.edges`; one whose document is missing has no snippet."""
        found = super().edges(handles)
        self._more.documents.update({one.document_id for one in found} - self._held.documents - {""})
        return found

    def sources(self, document_ids: Sequence[str]) -> list[SourceFacts | None]:
        self._more.documents.update({*document_ids} - self._held.documents)
        return super().sources(document_ids)

    def match_each(self, texts: Sequence[str]) -> list[NameMatches]:
        self._more.names.update({*texts} - self._held.names)
        return super().match_each(texts)

    def match_whole(self, texts: Sequence[str]) -> list[Numbers]:
        self._more.names.update({*texts} - self._held.names)
        return super().match_whole(texts)

    def selects_wholes(self, numbers: Numbers, only: DocumentFilter) -> Flags:
        """See `GraphView.selects_wholes`; what else tells of a node was not fetched."""
        return np.zeros(len(numbers), np.bool_)

    def lexical(self, text: str, *, kind: Kind, limit: int) -> Hits:
        self._more.texts.update({text} - self._held.texts)
        return super().lexical(text, kind=kind, limit=limit)

    def holds_word(self, word: str) -> bool:
        """Whether a passage of the whole graph holds a word; true where they were not counted."""
        return self._words is None or bool(len(find(self._words.hashes, hash_words(word))[1]))

    def bridges(self, clusters_from: Numbers, clusters_to: Numbers | None = None, *, limit: int) -> list[BridgePath]:
        topics = clusters_from if clusters_to is None else np.concatenate([clusters_from, clusters_to])
        keys = {one.partition("/")[2] for one in self.ids(topics)}
        self._more.topics.update(keys - self._held.topics)
        return super().bridges(clusters_from, clusters_to, limit=limit)

    def _rows_of(self, numbers: Numbers) -> Numbers:
        asked = super()._rows_of(numbers)
        self._rows_wanted[asked] |= ~self._has_row[asked]
        return asked

    def _vectors_of(self, numbers: Numbers) -> Numbers:
        asked = self._rows_of(numbers)
        self._vectors_wanted[asked] |= ~self._has_vectors[asked]
        return asked


@dataclass(frozen=True)
class Neighbourhood:
    """A part of a graph in memory, and what it took to fetch it; `fetched` is for the view that made it.

    `is_cut`: a limit of what is fetched for one turn was reached. `is_late`: the time ended first, so that it holds
    nothing. `saw_write`: a write of several transactions was being applied, so that some rows may be of before it and
    some of after.
    """

    view: PartView
    round_trips: int
    is_cut: bool = False
    is_late: bool = False
    saw_write: bool = False
    fetched: Any = None


@runtime_checkable
class RemoteView(Protocol):
    """A graph that is fetched in parts."""

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
        mask: Mask = Mask(),
    ) -> Neighbourhood:
        """What lies around a question, given as texts and vectors, and around the ids it is asked from.

        With no hops it is what the searches find and the edges of the first of it: `further` fetches the rest. While a
        large write is being applied, `WriteUnderWay` offers a view of one state where there is one.
        """
        ...

    def further(self, found: Neighbourhood, seconds: float | None = None) -> Neighbourhood:
        """The same with all that was asked of its view in vain, in one question more."""
        ...


OpenView = GraphView | RemoteView


class WriteUnderWay(Exception):
    """Rows were read while a write of several transactions was being applied; `instead` is a view of one state."""

    def __init__(self, instead: GraphView) -> None:
        super().__init__(f"a large write is being applied; the snapshot {instead.info.snapshot} serves meanwhile")
        self.instead = instead
