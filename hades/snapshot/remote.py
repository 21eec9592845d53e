"""A graph over a network: what a question needs of it is fetched in parts, and each part is read as
a snapshot.

A part notes what was asked for and is not there. So a turn is run on what the searches found, what
it missed is fetched in one question to the server, and it is run again, until nothing is missing:
then it gives the answer of the whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np

from hades.ports.graph import (
    KINDS,
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
from models.arrays import Singles
from schemas.ids import Mask, key_of
from schemas.nodes import ChunkKind

HOPS = 5  # how far around a question everything is fetched, while there is room
QUESTIONS = 8  # times that one turn waits for the server, at most


@dataclass(frozen=True)
class Parts:
    """Parts of a graph: rows of nodes, rows with vectors, all edges of nodes, what passages state,
    documents (all by id); bridges between topics, by key; names that texts may spell, what shares
    words with texts, by text.
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
        return any(getattr(self, part.name) for part in fields(self))

    def add(self, parts: Parts) -> None:
        """Take in what another has."""
        for part in fields(self):
            getattr(self, part.name).update(getattr(parts, part.name))

    def remove(self, parts: Parts) -> None:
        """Leave out what another has."""
        for part in fields(self):
            getattr(self, part.name).difference_update(getattr(parts, part.name))


class PartView(GraphView):
    """What was fetched of a graph. A node may have no row yet, and some or none of its edges.

    `fetched` are these parts, and those sought in vain; `sums` has the weights of all edges of
    nodes by type; `words` are those of all passages, where they were counted.
    """

    def __init__(
        self,
        contents: Manifest,
        columns: Columns,
        info: ViewInfo,
        fetched: Parts,
        sums: Mapping[str, Mapping[str, float]],
        words: WordCounts | None,
    ) -> None:
        super().__init__(
            info.snapshot,
            contents,
            columns,
            info=info,
        )
        ids = self.ids(np.arange(self._bases[-1]))
        places = {name: place for place, name in enumerate(self.type_names)}
        numbers = {node_id: number for number, node_id in enumerate(ids)}
        weights = np.zeros((len(ids), len(places)))

        for node_id, type_weights in sums.items():
            for name, weight in type_weights.items():
                weights[numbers[node_id], places[name]] = weight

        self._fetched, self._missing, self._words = fetched, Parts(), words
        self._has_row = np.array([node_id in fetched.rows for node_id in ids], np.bool_)
        self._rows_wanted = np.zeros(len(ids), np.bool_)
        self._has_vectors = np.array([node_id in fetched.vectors for node_id in ids], np.bool_)
        self._vectors_wanted = np.zeros(len(ids), np.bool_)
        is_whole = np.array([node_id in fetched.edges for node_id in ids], np.bool_)
        self._edges_wanted = FetchedRows(
            is_whole,
            weights,
            np.zeros(len(ids), np.bool_),
        )
        self._adjacency = replace(self._adjacency, fetched=self._edges_wanted)

    def missing(self) -> Parts:
        """What was asked for and not fetched."""
        rows = set(self.ids(np.flatnonzero(self._rows_wanted)))
        edges = set(self.ids(np.flatnonzero(self._edges_wanted.are_wanted)))
        vectors = set(self.ids(np.flatnonzero(self._vectors_wanted)))
        missing = Parts(
            rows=rows - vectors,
            edges=edges,
            vectors=vectors,
        )
        missing.add(self._missing)
        return missing

    def passages(self, numbers: Numbers) -> list[Passage]:
        """See `GraphView.passages`; one whose row is missing has no text."""
        rows = self._vectors_of(numbers)
        has_row = self._has_row[rows]
        fetched_passages = iter(super().passages(rows[has_row]))

        passages = []
        for node_id, is_there in zip(self.ids(rows), has_row.tolist(), strict=True):
            passages.append(
                next(fetched_passages) if is_there else Passage(node_id, "", "", "", (0, 0))
            )

        stating = set()
        for passage in passages:
            if passage.kind == ChunkKind.PASSAGE:
                stating.add(passage.id)

        self._missing.stated.update(stating - self._fetched.stated)
        return passages

    def vectors(self, numbers: Numbers, *, model: str) -> tuple[Singles, Flags]:
        return super().vectors(self._vectors_of(numbers), model=model)

    def cosines(
        self,
        vector: Singles,
        numbers: Numbers,
        *,
        model: str,
    ) -> Weights:
        return super().cosines(
            vector,
            self._vectors_of(numbers),
            model=model,
        )

    def edges(self, handles: Numbers) -> list[EdgeFacts]:
        """See `GraphView.edges`; one whose document is missing has no snippet."""
        facts = super().edges(handles)
        self._missing.documents.update(
            {edge.document_id for edge in facts} - self._fetched.documents - {""}
        )
        return facts

    def sources(self, document_ids: Sequence[str]) -> list[SourceFacts | None]:
        self._missing.documents.update({*document_ids} - self._fetched.documents)
        return super().sources(document_ids)

    def match_each(self, texts: Sequence[str]) -> list[NameMatches]:
        self._missing.names.update({*texts} - self._fetched.names)
        return super().match_each(texts)

    def match_whole(self, texts: Sequence[str]) -> list[Numbers]:
        self._missing.names.update({*texts} - self._fetched.names)
        return super().match_whole(texts)

    def selects(self, numbers: Numbers, only: DocumentFilter) -> Flags:
        """See `GraphView.selects`; of a text whose row is missing no date is known."""
        inside = super().selects(numbers, only)
        if only.as_of is not None:
            inside &= self._has_row[numbers] | (self.kinds(numbers) == KINDS.index(Kind.ENTITY))

        return inside

    def selects_wholes(self, numbers: Numbers, only: DocumentFilter) -> Flags:
        """See `GraphView.selects_wholes`; what else tells of a node was not fetched."""
        return np.zeros(len(numbers), np.bool_)

    def lexical(self, text: str, *, kind: Kind, limit: int) -> Hits:
        self._missing.texts.update({text} - self._fetched.texts)
        return super().lexical(
            text,
            kind=kind,
            limit=limit,
        )

    def holds_word(self, word: str) -> bool:
        """Whether a passage of the whole graph holds a word; true where they were not counted."""
        return self._words is None or bool(len(find(self._words.hashes, hash_words(word))[1]))

    def bridges(
        self,
        clusters_from: Numbers,
        clusters_to: Numbers | None = None,
        *,
        limit: int,
    ) -> list[BridgePath]:
        if clusters_to is None:
            topics = clusters_from
        else:
            topics = np.concatenate([clusters_from, clusters_to])

        keys = {key_of(topic_id) for topic_id in self.ids(topics)}
        self._missing.topics.update(keys - self._fetched.topics)
        return super().bridges(
            clusters_from,
            clusters_to,
            limit=limit,
        )

    def _rows_of(self, numbers: Numbers) -> Numbers:
        rows = super()._rows_of(numbers)
        self._rows_wanted[rows] |= ~self._has_row[rows]
        return rows

    def _vectors_of(self, numbers: Numbers) -> Numbers:
        rows = self._rows_of(numbers)
        self._vectors_wanted[rows] |= ~self._has_vectors[rows]
        return rows


@dataclass(frozen=True)
class Neighbourhood:
    """A part of a graph in memory, and what it took to fetch it; `fetched` is for the view that
    made it.

    `is_cut`: a limit of what is fetched for one turn was reached. `is_late`: the time ended first,
    so that it holds nothing. `saw_write`: a write of several transactions was being applied, so
    that some rows may be of before it and some of after.
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
        vectors: Sequence[Singles],
        model: str,
        near: Sequence[str],
        seconds: float | None = None,
        hops: int = HOPS,
        mask: Mask = Mask(),
    ) -> Neighbourhood:
        """What lies around a question, given as texts and vectors, and around the ids it is asked
        from.

        With no hops it is what the searches find and the edges of the first of it: `further`
        fetches the rest. While a large write is being applied, `WriteUnderWay` offers a view of one
        state where there is one.
        """
        ...

    def further(
        self,
        neighbourhood: Neighbourhood,
        seconds: float | None = None,
    ) -> Neighbourhood:
        """The same with all that its view lacked, in one more question."""
        ...


OpenView = GraphView | RemoteView


class WriteUnderWay(Exception):
    """Rows were read while a write of several transactions was being applied; `instead` is a view
    of one state.
    """

    def __init__(self, instead: GraphView) -> None:
        super().__init__(
            f"a large write is being applied; the snapshot {instead.info.snapshot} serves meanwhile"
        )
        self.instead = instead
