"""Nodes, edges and passages as records; names, domains and bridges found."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cached_property, lru_cache
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hades.errors import BadQuery
from hades.ports.graph import (
    ALWAYS,
    EDGES,
    FOREVER,
    KINDS,
    BridgePath,
    Codes,
    DocumentFilter,
    EdgeFacts,
    Flags,
    Kind,
    NameMatches,
    NodeFacts,
    Numbers,
    Passage,
    SourceFacts,
)
from hades.snapshot.files import LABEL_SEPARATOR, NOWHERE, Columns, best, find, hash_texts, integers
from hades.snapshot.manifest import Manifest
from hades.snapshot.rights_file import Rights, RightsFile
from hades.text.words import fold, spans, words
from models.arrays import rows_of
from schemas.ids import Span, microseconds
from schemas.nodes import ChunkKind
from schemas.record import JsonObject

_FILTERS = 32  # masks that are remembered
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
BOUNDS = ("valid_from", "valid_until", "recorded_at", "retracted_at")


class Facts:
    """Reads records out of the columns of a snapshot; the base of `GraphView`."""

    def __init__(self, contents: Manifest, columns: Columns) -> None:
        self._contents, self._arrays, self._texts = contents, columns.arrays, columns.texts
        self._bases = np.cumsum([0, *contents.nodes.values()])
        self._edge_bases = np.cumsum([0, *contents.edges.values()])

    def number(self, ids: Sequence[str]) -> Numbers:
        """The number of each `_id`, -1 where there is no such node."""
        numbers = np.full(len(ids), -1)
        places, entries = find(self._arrays["node_id.hash"], hash_texts(ids))
        candidates = self._arrays["node_id.number"][entries].astype(np.int64)

        for row, node_id in enumerate(self.ids(candidates)):
            if node_id == ids[places[row]]:  # the hash alone could err
                numbers[places[row]] = candidates[row]

        return numbers

    def ids(self, numbers: Numbers) -> list[str]:
        """The `_id` of each number."""
        keys = self._read("node.key", self._check(numbers))
        return [f"{kind}/{key}" for kind, key in zip(self._kinds(numbers), keys, strict=True)]

    def kinds(self, numbers: Numbers) -> Codes:
        """What each node is, as a place in `KINDS`."""
        places = np.searchsorted(self._bases, self._check(numbers), "right") - 1
        return places.astype(np.uint8)

    def nodes(self, numbers: Numbers) -> list[NodeFacts]:
        """Attributes of nodes, one read each; each column is read once for all of them."""
        numbers = self._rows_of(numbers)
        documents, spans = self._cite("node", numbers)
        columns: dict[str, Sequence[Any]] = {
            "id": self.ids(numbers),
            "kind": self._kinds(numbers),
            "name": self._read("node.name", numbers),
            "type": self._types_of(numbers),
            "summary": self._read("node.summary", numbers),
            "document": self._document_texts("origin", documents),
            "span": spans,
        }
        is_entity = self.kinds(numbers) == KINDS.index(Kind.ENTITY)
        # Entities are the first kind, so a number is a row.
        entity_facts = iter(self._entity_facts(numbers[is_entity]))

        facts = []
        for row in _rows(columns):
            if row["kind"] is Kind.ENTITY:
                row |= next(entity_facts)
            facts.append(NodeFacts(**row))

        return facts

    def edges(self, handles: Numbers) -> list[EdgeFacts]:
        """Attributes of edges, one read each; each column is read once for all of them."""
        handles = _within(handles, int(self._edge_bases[-1]), "edge")
        collections = (np.searchsorted(self._edge_bases, handles, side="right") - 1).tolist()
        keys = self._read("edge.key", handles)
        documents, spans = self._cite("edge", handles)
        bodies = self._document_texts("body", documents)
        weights = self._read("edge.weight", handles)

        snippets = []
        for body, document, span in zip(bodies, documents, spans, strict=True):
            snippets.append("" if span is None else self._cut(body, document, *span))

        columns: dict[str, Sequence[Any]] = {
            "id": [f"{EDGES[code]}/{key}" for code, key in zip(collections, keys, strict=True)],
            "source": self.ids(self._arrays["edge.source"][handles]),
            "target": self.ids(self._arrays["edge.target"][handles]),
            "type": [self._contents.types[code] for code in self._read("edge.type", handles)],
            "weight": [None if math.isnan(weight) else weight for weight in weights],
            "label": self._read("edge.label", handles),
            "document": self._document_texts("origin", documents),
            "document_id": self._document_texts("id", documents),
            "span": spans,
            "snippet": snippets,
        }
        for name in BOUNDS if self._contents.has_validity else ():
            columns[name] = list(map(_moment, self._read(f"edge.{name}", handles)))

        return [EdgeFacts(**row) for row in _rows(columns)]

    def passages(self, numbers: Numbers) -> list[Passage]:
        """Text of chunks, functions and files with what a citation needs, one read each; others
        give `BadQuery`.
        """
        numbers = self._rows_of(numbers)
        ids, (documents, cited) = self.ids(numbers), self._cite("node", numbers)

        if NOWHERE in documents:
            raise BadQuery(
                f"{ids[documents.index(NOWHERE)]} has no text of its own; ask for its facts"
            )

        texts = self._document_texts("body", documents)
        spans = []
        for number, (document, span) in enumerate(zip(documents, cited, strict=True)):
            spans.append(span or (0, len(texts[number])))
            texts[number] = self._cut(texts[number], document, *spans[number])

        names = self._read("node.name", numbers)
        document_titles = self._document_texts("title", documents)
        titles = zip(names, document_titles, strict=True)
        columns: dict[str, Sequence[Any]] = {
            "id": ids,
            "text": texts,
            "document": self._document_texts("origin", documents),
            "document_id": self._document_texts("id", documents),
            "span": spans,
            "title": [name or title for name, title in titles],
            "kind": self._types_of(numbers),
        }
        place = KINDS.index(Kind.CHUNK)
        is_chunk = self.kinds(numbers) == place
        chunk_facts = iter(self._chunk_facts(numbers[is_chunk] - self._bases[place]))

        passages = []
        for row, has_more, document in zip(
            _rows(columns),
            is_chunk,
            documents,
            strict=True,
        ):
            if has_more:
                row |= next(chunk_facts)
            if row["kind"] == ChunkKind.PASSAGE:
                row["facts"] = self._read_stated(document, row["span"])
            passages.append(Passage(**row))

        return passages

    def sources(self, document_ids: Sequence[str]) -> list[SourceFacts | None]:
        """Whole documents by `_id` with their stored hash; None where there is none. One read
        each.
        """
        return [self._source(identifier) for identifier in document_ids]

    def _source(self, document_id: str) -> SourceFacts | None:
        """A stored document; they stand in key order."""
        ids = self._texts["document.id"]
        count = self._contents.documents
        place = bisect_left(
            range(count),
            document_id,
            key=lambda row: ids[row].as_py(),
        )

        if place == count or ids[place].as_py() != document_id:
            return None

        names = ("origin", "title", "body", "sha256")
        stored = (self._texts[f"document.{name}"][place].as_py() for name in names)
        return SourceFacts(document_id, *stored)

    def _of_level(self, level: int) -> Numbers:
        """Clusters of one level, as places among the clusters."""
        place = KINDS.index(Kind.CLUSTER)
        name = f"L{level}"

        if name not in self._contents.node_types:
            return np.empty(0, np.int64)

        codes = self._arrays["node.type"][self._bases[place] : self._bases[place + 1]]
        return np.flatnonzero(codes == self._contents.node_types.index(name))

    def _chunk_facts(self, rows: Numbers) -> list[JsonObject]:
        """What chunks have beside their text; path, symbol and lines where one was cut from a file
        of a workspace.
        """
        first_lines = self._read("chunk.start_line", rows)
        last_lines = self._read("chunk.end_line", rows)
        lines = zip(first_lines, last_lines, strict=True)
        columns: dict[str, Sequence[Any]] = {
            "headings": [tuple(headings or ()) for headings in self._read("chunk.headings", rows)],
            "token_count": self._read("chunk.tokens", rows),
            "timestamp": list(map(_moment, self._read("chunk.moment", rows))),
            "path": self._read("chunk.path", rows),
            "symbol": self._read("chunk.symbol", rows),
            "token_signs": self._read("chunk.token_signs", rows),
            "lines": [(first, last) if first else None for first, last in lines],
        }
        return list(_rows(columns))

    def _entity_facts(self, rows: Numbers) -> list[JsonObject]:
        if not len(rows):
            return []

        names = ("domain", "deg_out", "frequency")
        return list(_rows({name: self._read(f"entity.{name}", rows) for name in names}))

    def _read_stated(self, document: int, span: Span) -> tuple[str, ...]:
        """The triples that a document states in a span, in words; only passages are given labelled
        relations.
        """
        handles, owners = self._labelled
        first, last = np.searchsorted(owners, (document, document + 1))
        edges = handles[first:last]
        starts = self._arrays["edge.start"][edges]
        edges = edges[(span[0] <= starts) & (starts < span[1])]
        ends = (self._arrays[f"edge.{end}"][edges] for end in ("source", "target"))
        tails, heads = (self._read("node.name", numbers) for numbers in ends)
        return tuple(
            map(
                " ".join,
                zip(
                    tails,
                    self._read("edge.label", edges),
                    heads,
                    strict=True,
                ),
            )
        )

    @cached_property
    def _labelled(self) -> tuple[Numbers, Numbers]:
        """Relations that have words of their own, in order of their documents, and those
        documents.
        """
        labels = self._texts["edge.label"][: int(self._edge_bases[1])]
        handles = np.flatnonzero(np.asarray(pc.not_equal(labels, "")))
        owners = np.asarray(self._arrays["edge.document"][handles], np.int64)
        order = np.argsort(owners, kind="stable")
        return handles[order], owners[order]

    def _cut(
        self,
        body: str,
        document: int,
        start: int,
        end: int,
    ) -> str:
        """Characters [start, end) of a document, of which the text may begin later."""
        shift = int(self._arrays["document.shift"][document])
        return body[start - shift : end - shift]

    def _document_texts(self, name: str, documents: Sequence[int]) -> list[str]:
        """A text of each document, read once; empty where there is no document."""
        texts = self._texts[f"document.{name}"]

        known = {}
        for document in {*documents} - {NOWHERE}:
            known[document] = texts[document].as_py()

        return [known.get(document, "") for document in documents]

    def _cite(self, record: str, places: Numbers) -> tuple[list[int], list[Span | None]]:
        """The document and the span that each node or edge was read from; -1 and None where it was
        from none.
        """
        parts = ("document", "start", "end")
        documents, starts, ends = (self._read(f"{record}.{part}", places) for part in parts)

        cited: list[Span | None] = []
        for document, start, end in zip(documents, starts, ends, strict=True):
            cited.append(None if document < 0 or start < 0 else (start, end))

        return documents, cited

    def _types_of(self, numbers: Numbers) -> list[str]:
        return [self._contents.node_types[code] for code in self._read("node.type", numbers)]

    def _kinds(self, numbers: Numbers) -> list[Kind]:
        return [KINDS[code] for code in self.kinds(numbers).tolist()]

    def _check(self, numbers: Numbers) -> Numbers:
        return _within(numbers, int(self._bases[-1]), "node")

    def _rows_of(self, numbers: Numbers) -> Numbers:
        """The numbers, checked, of nodes whose columns are read next; a part of a graph notes those
        it lacks.
        """
        return self._check(numbers)

    def _read(self, name: str, places: Numbers) -> list[Any]:
        if name in self._arrays:
            numbers: list[Any] = self._arrays[name][places].tolist()
            return numbers

        texts: list[Any] = self._texts[name].take(pa.array(places, pa.int64())).to_pylist()
        return texts


def _rows(columns: Mapping[str, Sequence[Any]]) -> Iterator[JsonObject]:
    return (
        dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)
    )


def _within(numbers: Numbers, count: int, record: str) -> Numbers:
    checked = np.asarray(numbers, np.int64)
    if (
        checked.size and checked.view(np.uint64).max() >= count
    ):  # a negative number is a huge one without its sign
        wrong = int(checked[(checked < 0) | (checked >= count)][0])
        raise BadQuery(
            f"{wrong} is not a {record} of this view; numbers come from the view that is asked"
        )

    return checked


def check_positive(name: str, value: int) -> None:
    """Refuse a bound below 1."""
    if value < 1:
        raise BadQuery(f"{name} must be at least 1, not {value}")


def _moment(value: int) -> datetime | None:
    if value in (ALWAYS, FOREVER):
        return None
    return _EPOCH + timedelta(microseconds=value)


class Dates(Facts):
    """Says when texts were written: by their documents, and code by the commits that changed it."""

    def dates(self, numbers: Numbers) -> Numbers:
        """When each text was written, in microseconds since 1970; `ALWAYS` where it has no date,
        and for entities and topics. Cost: in memory.
        """
        return self._dates[self._rows_of(numbers)]

    def has_later(self, moment: datetime) -> bool:
        """Whether some text was written after a moment. Cost: in memory."""
        return bool((self._dates > microseconds(moment)).any())

    @cached_property
    def _dates(self) -> Numbers:
        """For every node the date of its document, or its own where that is later."""
        created = np.append(self._arrays["document.created"], ALWAYS)
        dates = created[self._arrays["node.document"]]
        chunks = self._all_of(Kind.CHUNK)
        dates[chunks] = np.maximum(dates[chunks], self._arrays["chunk.moment"])
        latest: Numbers = np.maximum(dates, self._change_dates())
        return latest

    def _change_dates(self) -> Numbers:
        """For every node that is code the last commit that may have changed it, else `ALWAYS`.

        A commit that names definitions of a file changed these, and perhaps what belongs to none.
        One that names none changed all of the file: it was renamed, or it holds no code. A name
        that a file has twice is named by no commit, so it counts as what belongs to none.
        """
        documents = self._arrays["node.document"]
        changed: Numbers = np.full(len(documents), ALWAYS)
        touched = self._edges_of_type("touched")

        if not len(touched) or not self._contents.has_validity:
            return changed

        commits, targets = (self._arrays[f"edge.{end}"][touched] for end in ("source", "target"))
        moments = self._arrays["edge.valid_from"][touched]
        owners = documents[targets]
        is_definition = self.kinds(targets) == KINDS.index(Kind.FUNC)
        touch = commits.astype(np.int64) * (documents.max() + 1) + owners
        is_whole = ~np.isin(touch, touch[is_definition])
        last_touch, last_whole = np.full((2, documents.max() + 2), ALWAYS)  # the last: no document
        np.maximum.at(last_touch, owners, moments)
        np.maximum.at(
            last_whole,
            owners[is_whole],
            moments[is_whole],
        )
        np.maximum.at(
            changed,
            targets[is_definition],
            moments[is_definition],
        )
        belongs = np.zeros(len(documents), np.bool_)  # to a definition that commits name
        belongs[self._all_of(Kind.FILE)] = True
        belongs[self._own_names()] = True
        changed = np.maximum(
            changed,
            np.where(
                belongs,
                last_whole[documents],
                last_touch[documents],
            ),
        )
        describing = self._edges_of_type("describes")
        chunks, definitions = (
            self._arrays[f"edge.{end}"][describing] for end in ("source", "target")
        )
        changed[chunks] = last_whole[documents[chunks]]
        np.maximum.at(changed, chunks, changed[definitions])
        return changed

    def _own_names(self) -> Numbers:
        """The definitions whose name no other of their file has."""
        definitions = np.arange(len(self._arrays["node.document"]))[self._all_of(Kind.FUNC)]

        names = []
        for name in self._read("node.name", definitions):
            names.append(name.rpartition(".")[2])

        places = list(zip(self._arrays["node.document"][definitions].tolist(), names, strict=True))
        counts = Counter(places)
        return definitions[[counts[place] == 1 for place in places]]

    def _all_of(self, kind: Kind) -> slice:
        """The numbers of all nodes of a kind."""
        first, end = self._bases[KINDS.index(kind) :][:2].tolist()
        return slice(first, end)

    def _edges_of_type(self, name: str) -> Numbers:
        """The edges of a type; none where the graph has no such type."""
        if name not in self._contents.types:
            return np.empty(0, np.int64)
        return np.flatnonzero(self._arrays["edge.type"] == self._contents.types.index(name))


class Domains(Dates):
    """Answers from dictionaries of label sets, and from the masks of the last filters."""

    def __init__(self, contents: Manifest, columns: Columns) -> None:
        super().__init__(contents, columns)
        self._codes = lru_cache(None)(self._read_codes)
        self.rights: RightsFile | None = None
        self._documents = lru_cache(_FILTERS)(self._select_documents)
        self._nodes = lru_cache(_FILTERS)(self._select_nodes)
        self._wholes = lru_cache(_FILTERS)(self._select_wholes)
        self._hidden_edges = lru_cache(_FILTERS)(self._select_hidden_edges)

    def domains(self) -> tuple[str, ...]:
        """The domains of the graph, sorted."""
        names: set[str] = set()
        for column in ("entity.domain", "entity.domains", "document.domains"):
            names.update(*self._codes(column)[0])

        return tuple(sorted(names))

    def selects(self, numbers: Numbers, only: DocumentFilter) -> Flags:
        """Whether each node belongs to what a question is limited to.

        A text belongs by its document, an entity by its mentions, topics to everything, and texts
        whose document has no domain to every domain. Cost: in memory.
        """
        rows = self._rows_of(numbers)
        kinds = self.kinds(numbers)
        inside = np.ones(len(rows), np.bool_)
        is_topic = kinds == KINDS.index(Kind.CLUSTER)

        if only.domain is not None:
            inside &= self._contains(only.domain, rows, kinds)
        if only.reads_documents:
            inside &= self._nodes(only, self._rights_for(only))[rows] | is_topic
        if only.within is not None:
            inside &= self.selects(rows, only.within) & ~is_topic

        return inside

    def selects_wholes(self, numbers: Numbers, only: DocumentFilter) -> Flags:
        """Whether each node belongs to a filter and nothing outside of it tells of the node. Cost:
        in memory.
        """
        wholes = self._wholes(only, self._rights_for(only))
        return self.selects(numbers, only) & wholes[self._check(numbers)]

    def selects_documents(self, ids: Sequence[str], only: DocumentFilter) -> list[bool]:
        """Whether documents, by `_id`, belong to what a question is limited to; one that is not
        stored does not.
        """
        places = pc.index_in(
            pa.array(ids, pa.large_string()),
            value_set=self._texts["document.id"],
        ).to_pylist()
        inside = self._whole_documents(only)
        return [place is not None and bool(inside[place]) for place in places]

    def count_outside(self, only: DocumentFilter) -> int:
        """How many documents a filter leaves out."""
        return int((~self._whole_documents(only)).sum())

    def _whole_documents(self, only: DocumentFilter) -> Flags:
        """For every document whether it fits, its domain too."""
        inside = self._documents(only, self._rights_for(only))[:-1].copy()
        if only.domain is not None:
            inside &= self._is_in(
                "document.domains",
                only.domain,
                np.arange(len(inside)),
                absent=True,
            )

        if only.within is not None:
            inside &= self._whole_documents(only.within)

        return inside

    def hidden_edges(self, only: DocumentFilter) -> Flags:
        """For every edge whether a text outside of a filter states it, or an end lies outside.
        Cost: in memory.
        """
        return self._hidden_edges(only, self._rights_for(only))

    def _rights_for(self, only: DocumentFilter) -> Rights | None:
        """The rights that hold now, where a filter asks for them: masks are kept by both."""
        if not only.readers:
            return None

        if self.rights is None and self._contents.documents:
            raise BadQuery(
                "this graph is read from its store, where no rights are kept; ask a published "
                "snapshot (HADES_VIEW=snapshot)"
            )

        return None if self.rights is None else self.rights.current()

    def _select_hidden_edges(self, only: DocumentFilter, rights: Rights | None) -> Flags:
        """For every edge whether it is hidden."""
        inside = self.selects(np.arange(int(self._bases[-1])), only)
        sources, targets, owners = (
            self._arrays[f"edge.{part}"] for part in ("source", "target", "document")
        )
        is_stated = (owners == NOWHERE) | self._documents(only, rights)[owners]
        hidden: Flags = ~(is_stated & inside[sources] & inside[targets])
        return hidden

    def _select_nodes(self, only: DocumentFilter, rights: Rights | None) -> Flags:
        """For every node: its document fits, or a text whose document fits mentions it."""
        documents = self._arrays["node.document"]
        inside: Flags = self._documents(only, rights)[documents]
        masked = self.number(only.without)
        inside[masked[masked >= 0]] = False

        if only.as_of is not None:
            inside &= self._dates <= microseconds(only.as_of)

        starts, target, edge = (
            self._arrays[f"out.{part}"] for part in ("starts", "target", "edge")
        )
        place = EDGES.index("mentions")
        tails = np.repeat(np.arange(len(inside)), np.diff(starts))
        is_mention = (edge >= self._edge_bases[place]) & (edge < self._edge_bases[place + 1])
        mentioned_by_any = target[is_mention]
        inside[mentioned_by_any[documents[mentioned_by_any] == NOWHERE]] = False
        mentioned = target[is_mention & inside[tails]]
        inside[mentioned] = True
        return inside

    def _select_wholes(self, only: DocumentFilter, rights: Rights | None) -> Flags:
        """For every node whether it fits; an entity only where every text and relation that tells
        of it does.
        """
        inside = self._nodes(only, rights).copy()
        sources, targets, owners = (
            self._arrays[f"edge.{part}"] for part in ("source", "target", "document")
        )
        relations, mentions = self._edge_bases[
            1:3
        ]  # in the order of EDGES; then topics, which tell nothing
        owners = np.concatenate(
            [owners[:relations], self._arrays["node.document"][sources[relations:mentions]]]
        )
        is_outside = np.flatnonzero(~self._documents(only, rights)[owners])
        told_outside = np.concatenate([sources[is_outside], targets[is_outside]])
        inside[told_outside[told_outside < self._bases[1]]] = False  # entities, the first kind
        return inside

    def _select_documents(self, only: DocumentFilter, rights: Rights | None) -> Flags:
        """For every document whether it fits all but the domain; the last flag is that of no
        document.
        """
        origins = self._texts["document.origin"]
        created = self._arrays["document.created"]
        inside = np.ones(len(created), np.bool_)

        for pattern in only.patterns:
            inside &= np.asarray(pc.match_substring_regex(origins, pattern), np.bool_)

        if only.sources:
            inside &= self._has_any("document.domains", only.sources)

        for kind, labels in (("tags", only.tags), ("authors", only.authors)):
            if labels:
                inside &= self._has_any("document.labels", [f"{kind}:{label}" for label in labels])

        left_out = [*only.without, *(rights.hidden_from(only.readers) if rights else ())]
        if left_out:
            inside &= ~np.asarray(
                pc.is_in(
                    self._texts["document.id"],
                    value_set=pa.array(left_out),
                ),
                np.bool_,
            )

        if only.since is not None:
            inside &= created >= microseconds(only.since)
        if only.until is not None:
            inside &= (created < microseconds(only.until)) & (created != ALWAYS)
        if only.as_of is not None:
            inside &= created <= microseconds(only.as_of)

        return np.append(inside, only.is_open)

    def _has_any(self, column: str, labels: Sequence[str]) -> Flags:
        rows = np.arange(len(self._arrays["document.created"]))
        has_any: Flags = np.any(
            [self._is_in(column, label, rows) for label in labels],
            axis=0,
        )
        return has_any

    def _contains(
        self,
        domain: str,
        numbers: Numbers,
        kinds: Codes,
    ) -> Flags:
        """Whether each node belongs to a domain, ignoring case; topics and texts without one belong
        to all.
        """
        entity = KINDS.index(Kind.ENTITY)
        cluster = KINDS.index(Kind.CLUSTER)
        inside: Flags = kinds == cluster
        entities = numbers[kinds == entity]  # the first kind, so a number is a row
        inside[kinds == entity] = self._is_in("entity.domain", domain, entities) | self._is_in(
            "entity.domains", domain, entities
        )
        texts = (kinds != entity) & (kinds != cluster)
        documents = self._arrays["node.document"][numbers[texts]]
        inside[texts] = self._is_in(
            "document.domains",
            domain,
            documents,
            absent=True,
        )
        return inside

    def _is_in(
        self,
        column: str,
        domain: str,
        rows: NDArray[np.integer[Any]],
        absent: bool = False,
    ) -> Flags:
        if not len(rows):
            return np.zeros(0, np.bool_)

        labels, codes = self._codes(column)
        folded = domain.casefold()
        flags = [folded in map(str.casefold, names) for names in labels]
        # The last code, and the last flag, are those of nothing.
        is_member: Flags = np.array([*flags, absent], np.bool_)[codes[rows]]
        return is_member

    def _read_codes(self, column: str) -> tuple[list[list[str]], Numbers]:
        coded = self._texts[column]
        labels = []
        for text in coded.dictionary.to_pylist():
            labels.append(text.split(LABEL_SEPARATOR))

        return labels, np.append(integers(coded.indices, NOWHERE), NOWHERE)


LONGEST_RUN = 16  # words; longer titles are entities, but nobody spells them out inside a question


def normalise(name: str) -> str:
    """A name as it is compared: its words in lower case without accents, one blank between them."""
    return " ".join(words(name))


def runs_of_words(text: str, longest: int = LONGEST_RUN) -> list[tuple[int, int, str]]:
    """Every run of at most `longest` words of a text: where it stands, and its normalised form."""
    places = spans(text)
    folded = [fold(text[start:end]) for start, end in places]

    runs = []
    for first, (start, _) in enumerate(places):
        for last, (_, end) in enumerate(places[first : first + longest], first + 1):
            runs.append((start, end, " ".join(folded[first:last])))

    return runs


def outermost(spelled: Iterable[tuple[int, int, int]]) -> NameMatches:
    """The matches (start, end, number) whose span lies inside no longer one, by start, then
    number.
    """
    matches: list[tuple[int, int, int]] = []
    last_start, last_end = -1, -1  # of the last span that is among them

    for start, end, number in sorted(spelled, key=lambda span: (span[0], -span[1], span[2])):
        if end > last_end or (start == last_start and end == last_end):
            matches.append((number, start, end))
            last_start = start
            last_end = end

    columns = np.array(matches, np.int64).reshape(-1, 3)
    return NameMatches(*np.ascontiguousarray(columns.T))


class Names(Facts):
    """Finds names in texts."""

    def match_names(self, text: str) -> NameMatches:
        """Entities whose name stands in the text, word for word, ignoring case; only spans no
        longer name covers.

        Cost: a look-up for each run of words.
        """
        return self.match_each([text])[0]

    def match_each(self, texts: Sequence[str]) -> list[NameMatches]:
        """What `match_names` finds in each text; a run of words that comes twice is looked up
        once.
        """
        longest = min(self._contents.longest_name, LONGEST_RUN)
        runs = [runs_of_words(text, longest) for text in texts]
        known = self._find_names({form for _, _, form in chain.from_iterable(runs)})

        matches = []
        for text_runs in runs:
            spelled: list[tuple[int, int, int]] = []
            for start, end, form in text_runs:
                spelled += [(start, end, number) for number in known.get(form, ())]

            matches.append(outermost(spelled))

        return matches

    def match_whole(self, texts: Sequence[str]) -> list[Numbers]:
        """For each text the entities whose name is the whole text, word for word."""
        longest = min(self._contents.longest_name, LONGEST_RUN)
        forms = [normalise(text) for text in texts]
        known = self._find_names({form for form in forms if form and form.count(" ") < longest})
        return [np.array(known.get(form, ()), np.int64) for form in forms]

    def _find_names(self, forms: set[str]) -> dict[str, list[int]]:
        """The entities of each form that is a name."""
        sorted_forms = sorted(forms)
        rows, entries = find(self._arrays["name.hash"], hash_texts(sorted_forms))

        known: dict[str, list[int]] = {}
        for row, number in zip(
            rows.tolist(), self._arrays["name.number"][entries].tolist(), strict=True
        ):
            known.setdefault(sorted_forms[row], []).append(number)

        return known


class Bridges(Facts):
    """Reads what `write_bridges` wrote."""

    def bridges(
        self,
        clusters_from: Numbers,
        clusters_to: Numbers | None = None,
        *,
        limit: int,
    ) -> list[BridgePath]:
        """Paths computed ahead from any of these topics to any of those, or to any at all; heaviest
        first, then by key.

        Each begins in a topic of `clusters_from`. Every edge of it stands with the weight it was
        computed from: what is stale is not there. Cost: the bridges of the topics asked.
        """
        check_positive("limit", limit)
        starts = self._check(clusters_from)

        if clusters_to is None:
            ends = None
        else:
            ends = self._check(clusters_to)

        tail = self._arrays["bridge.from"]
        head = self._arrays["bridge.to"]
        _, places = find(self._arrays["bridge.topic"], np.unique(starts))
        rows = np.unique(self._arrays["bridge.row"][places]).astype(np.int64)
        forward = np.isin(tail[rows], starts)
        backward = np.isin(head[rows], starts)

        if ends is not None:
            forward &= np.isin(head[rows], ends)
            backward &= np.isin(tail[rows], ends)

        rows = rows[forward | backward]
        forward = forward[forward | backward]
        heaviest = best(
            self._arrays["bridge.weight"][rows],
            rows,
            limit,
        )

        bridges: list[BridgePath] = []
        for row, is_forward in rows_of(rows[heaviest], forward[heaviest]):
            bridges.append(self._bridge(row) if is_forward else self._bridge(row).reversed())

        return bridges

    def _bridge(self, row: int) -> BridgePath:
        arrays = self._arrays
        start, end = arrays["bridge.starts"][row : row + 2].tolist()
        nodes = arrays["bridge.node"][start:end]
        edges = arrays["bridge.edge"][start - row : end - row - 1]
        outbound = arrays["edge.source"][edges] == nodes[:-1]
        return BridgePath(
            int(arrays["bridge.from"][row]),
            int(arrays["bridge.to"][row]),
            tuple(nodes.tolist()),
            tuple(edges.tolist()),
            tuple(outbound.tolist()),
            weight=float(arrays["bridge.weight"][row]),
            cost=float(arrays["bridge.cost"][row]),
            pinned=bool(arrays["bridge.pinned"][row]),
        )
