"""The graph over AQL, one query a hop."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aql import load
from hades.errors import BadQuery, QueryTimeout
from hades.ports import graph as port
from hades.ports.graph import (
    EDGES,
    KINDS,
    Adjacency,
    Codes,
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
from hades.ports.store import Direction, Term
from hades.ports.view import GraphView
from hades.snapshot.facts import outermost
from hades.snapshot.manifest import edge_types, parts_of
from hades.snapshot.vectors import unit_vector
from hades.stores.arango.provision import has_other_analyzer
from hades.stores.arango.read import find_named
from hades.stores.arango.rows import ArangoRows
from hades.stores.arango.store import ArangoStore
from schemas.catalogue import Collection, collection_named
from schemas.ids import Mask, iso, split_id

# Documents of the server as the records that `hades.ports.graph` names.


NODE_COLUMNS = (
    *("name", "title", "qualified_name", "path", "type", "kind", "level", "summary", "docstring", "document", "span"),
    *("cluster_id", "deg_out", "domain", "frequency"),
)
EDGE_COLUMNS = (
    *("_from", "_to", "type", "weight", "provenance", "label"),
    *("valid_from", "valid_until", "recorded_at", "retracted_at"),
)
PASSAGE_COLUMNS = (
    *("title", "qualified_name", "path", "kind", "document", "span", "headings", "token_count", "timestamp"),
    *("file_path", "symbol", "start_line", "end_line"),
)
SOURCE_COLUMNS = ("_key", "origin", "title", "text", "sha256")
_NAME = {Kind.CHUNK: "title", Kind.FUNC: "qualified_name", Kind.FILE: "path"}
_SUMMARY = {Kind.ENTITY: "summary", Kind.CLUSTER: "summary", Kind.FUNC: "docstring"}
Fields = dict[str, Any]


def node(identifier: str, fields: Fields) -> NodeFacts:
    """One node."""
    kind = Kind(identifier.partition("/")[0])
    return NodeFacts(
        id=identifier,
        kind=kind,
        name=fields.get(_NAME.get(kind, "name")) or "",
        type=_type(kind, fields),
        summary=fields.get(_SUMMARY.get(kind, "")) or "",
        document=_origin(fields, fields.get("document")),
        span=_span(fields.get("span")),
        cluster_id=fields.get("cluster_id"),
        deg_out=fields.get("deg_out") or 0,
        domain=fields.get("domain"),
        frequency=fields.get("frequency") or 0,
    )


def edge(identifier: str, fields: Fields) -> EdgeFacts:
    """One edge."""
    provenance = fields.get("provenance") or {}
    weight = fields.get("weight")
    moments = {name: _moment(fields.get(name)) for name in ("valid_from", "valid_until", "recorded_at", "retracted_at")}
    return EdgeFacts(
        id=identifier,
        source=fields["_from"],
        target=fields["_to"],
        type=fields["type"],
        weight=None if weight is None else float(weight),
        document=_origin(fields, provenance.get("doc")),
        document_id=provenance.get("doc") or "",
        span=_span(provenance.get("span")),
        snippet=fields["snippet"],
        label=fields.get("label") or "",
        **moments,
    )


def passage(identifier: str, fields: Fields) -> Passage:
    """The text of a chunk, a function or a file."""
    kind = Kind(identifier.partition("/")[0])
    text = fields["text"]
    return Passage(
        id=identifier,
        text=text,
        document=_origin(fields, fields.get("document")),
        document_id=fields["document"],
        span=_span(fields.get("span")) or (0, len(text)),
        title=fields.get(_NAME[kind]) or fields.get("source_title") or "",
        headings=tuple(fields.get("headings") or ()),
        kind=_type(kind, fields),
        token_count=fields.get("token_count") or 0,
        timestamp=_moment(fields.get("timestamp")),
        **(_place_in_file(fields) if kind is Kind.CHUNK else {}),
    )


def _place_in_file(fields: Fields) -> Fields:
    first = fields.get("start_line") or 0
    return {
        "path": fields.get("file_path") or "",
        "symbol": fields.get("symbol") or "",
        "lines": (first, fields.get("end_line") or first) if first else None,
    }


def source(fields: Fields) -> SourceFacts:
    """A whole document."""
    return SourceFacts(
        id=f"documents/{fields['_key']}",
        origin=fields.get("origin") or "",
        title=fields.get("title") or "",
        text=fields.get("text") or "",
        sha256=fields.get("sha256") or "",
    )


def _type(kind: Kind, fields: Fields) -> str:
    if kind is Kind.CLUSTER:
        return f"L{fields['level']}"
    if kind is Kind.FILE:
        return "file"
    return str(fields["type" if kind is Kind.ENTITY else "kind"])


def _origin(fields: Fields, document: str | None) -> str:
    """What a citation shows: the document's origin, or for one that is not stored the name it goes by."""
    if document is None:
        return ""
    return fields.get("origin") or document.partition("/")[2] or document


def _span(span: list[int] | None) -> tuple[int, int] | None:
    return (span[0], span[1]) if span is not None and len(span) == 2 else None


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


# Ids as small integers.


class IdTable:
    """Two-way table of ids and numbers."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._numbers: dict[str, int] = {}
        self._names: list[str] = []

    def __contains__(self, name: str) -> bool:
        return name in self._numbers

    def add(self, names: Sequence[str]) -> Numbers:
        """The number of each id, a new one where it is met for the first time."""
        for name in names:
            if name not in self._numbers:
                self._numbers[name] = len(self._names)
                self._names.append(name)
        return self.find(names)

    def find(self, names: Sequence[str]) -> Numbers:
        """The number of each id, -1 where it has none."""
        return np.fromiter((self._numbers.get(name, -1) for name in names), np.int64, len(names))

    def names(self, numbers: Numbers) -> list[str]:
        """The id of each number; refuses one that was never given out."""
        asked = np.asarray(numbers, np.int64)
        wrong = asked[(asked < 0) | (asked >= len(self._names))]
        if wrong.size:
            raise BadQuery(
                f"{int(wrong[0])} is not a {self._what} of this view; numbers come from the view that is asked"
            )
        return [self._names[number] for number in asked.tolist()]


# The graph as retrieval reads it, over AQL: one query a hop, nothing kept but the ids that were met. For graphs
# that no machine maps into memory. It reads the store as it is now, so its answers change when rows do. A snapshot
# also finds names that are spelled with other signs than stored, for which the server has no index.


_UNBOUNDED = 2**31 - 1
_SLOW_S = 60.0  # how long a search by vector that took too long is left out
_SAMPLE = 5_000  # rows that tell which models made the vectors of a collection
SEARCH_S = 0.8  # for one search by vector, of a turn that has two seconds
logger = logging.getLogger(__name__)


class LiveGraph:
    """A `GraphView` on a store handle, which it does not close; `capped` also where `max_work` just sufficed.

    `open_whole` opens a view of one state for turns that meet a half-applied write, or gives None.
    """

    def __init__(self, store: ArangoStore, open_whole: Callable[[], GraphView | None] = lambda: None) -> None:
        self.store = store
        self.open_whole = open_whole
        self.node_ids, self.edge_ids = IdTable("node"), IdTable("edge")
        self.slow_until: dict[tuple[Kind, bool], float] = {}
        self._type_names = edge_types()
        self.codes = {name: code for code, name in enumerate(self._type_names)}

    @cached_property
    def info(self) -> ViewInfo:
        """See `GraphView.info`. Counted once; the snapshot is called live because it has no version."""
        models = {}
        for kind in KINDS:
            field = _collection(kind).vector_field
            if field is not None:
                binds = {"@collection": kind.value, "sample": _SAMPLE}
                models[kind.value] = tuple(sorted(self.ask(load("view/list_models"), binds, "listing models")))
        nodes = {kind.value: self.store.count(kind.value) for kind in KINDS}
        edges = {name: self.store.count(name) for name in EDGES}
        strange = has_other_analyzer(self.store.session)
        return ViewInfo("live", nodes, edges, models, False, parts=parts_of(self.store), has_other_analyzer=strange)

    @property
    def type_names(self) -> tuple[str, ...]:
        """See `GraphView.type_names`."""
        return self._type_names

    def number(self, ids: Sequence[str]) -> Numbers:
        """See `GraphView.number`."""
        strange = [one for one in dict.fromkeys(ids) if one not in self.node_ids and one.partition("/")[0] in KINDS]
        if strange:
            self.node_ids.add(self.ask(load("view/list_known"), {"ids": strange}, "looking for nodes"))
        return self.node_ids.find(ids)

    def ids(self, numbers: Numbers) -> list[str]:
        """See `GraphView.ids`."""
        return self.node_ids.names(numbers)

    def kinds(self, numbers: Numbers) -> Codes:
        """See `GraphView.kinds`."""
        return np.array([KINDS.index(Kind(split_id(one)[0])) for one in self.ids(numbers)], np.uint8)

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
        """See `GraphView.expand`."""
        if fanout is not None and fanout < 1:
            raise BadQuery(f"fanout must be at least 1, not {fanout}")
        limit = _UNBOUNDED if max_work is None else max_work
        binds = {
            "nodes": self.node_ids.names(numbers),
            "collections": EDGES,
            "types": self.check_types(types),
            "as_of": None if mask.as_of is None else iso(mask.as_of),
            "known_at": None if mask.known_at is None else iso(mask.known_at),
            "fanout": _UNBOUNDED if fanout is None else fanout,
            "limit": limit,
        }
        if direction == Direction.OUT:
            text = load("view/expand_outbound")
        elif direction == Direction.IN:
            text = load("view/expand_inbound")
        else:
            text = load("view/expand_any")
        found = self.ask(text, binds, "following edges") if binds["nodes"] and limit > 0 else []
        row, target, edge, kind, weight, outbound = zip(*found, strict=True) if found else ((),) * 6
        return Expansion(
            np.array(row, np.int64),
            self.node_ids.add(target),
            self.edge_ids.add(edge),
            np.array([self.codes[name] for name in kind], np.uint8),
            np.array([1.0 if one is None else one for one in weight], np.float32),
            np.array(outbound, np.bool_),
            len(found),
            bool(binds["nodes"]) and len(found) >= limit,
        )

    def degree(self, numbers: Numbers, *, direction: Direction, types: Sequence[str] | None = None) -> Numbers:
        """See `GraphView.degree`; two queries for ANY."""
        total = np.zeros(len(numbers), np.int64)
        binds = {"nodes": self.node_ids.names(numbers), "types": self.check_types(types)}
        if direction != Direction.IN:
            total += np.array(self.ask(load("view/count_outbound"), binds, "counting edges"), np.int64)
        if direction != Direction.OUT:
            total += np.array(self.ask(load("view/count_inbound"), binds, "counting edges"), np.int64)
        return total

    def adjacency(self) -> Adjacency | None:
        """See `GraphView.adjacency`: never in memory."""
        return None

    def file_chunks(self) -> Numbers:
        """See `GraphView.file_chunks`: never in memory."""
        return np.empty(0, np.int64)

    def commit_chunks(self) -> Numbers:
        """See `GraphView.commit_chunks`: never in memory."""
        return np.empty(0, np.int64)

    def domains(self) -> tuple[str, ...]:
        """See `GraphView.domains`: never in memory."""
        return ()

    def count_outside(self, only: port.DocumentFilter) -> int | None:
        """See `GraphView.count_outside`: never in memory."""
        return None

    def selects(self, numbers: Numbers, only: port.DocumentFilter) -> Flags:
        """See `GraphView.selects`."""
        return np.array(self.selects_documents(self.node_ids.names(numbers), only), np.bool_)

    def selects_documents(self, ids: Sequence[str], only: port.DocumentFilter) -> list[bool]:
        """See `GraphView.selects_documents`; ids of nodes are answered too."""
        binds = {
            "ids": list(ids),
            "domain": None if only.domain is None else only.domain.lower(),
            "reads_documents": only.reads_documents,
            "patterns": list(only.patterns),
            "sources": [one.lower() for one in only.sources],
            "tags": [one.lower() for one in only.tags],
            "authors": [one.lower() for one in only.authors],
            "since": None if only.since is None else iso(only.since),
            "until": None if only.until is None else iso(only.until),
            "without": list(only.without),
            "is_open": only.is_open,
        }
        found = self.ask(load("view/list_selected"), binds, "looking up filters") if ids else []
        return [bool(one) for one in found]

    def nodes(self, numbers: Numbers) -> list[port.NodeFacts]:
        """See `GraphView.nodes`."""
        ids = self.node_ids.names(numbers)
        binds = {"ids": ids, "columns": NODE_COLUMNS}
        found = self.ask(load("view/list_nodes"), binds, "reading nodes")
        return [node(one, document) for one, document in zip(ids, found, strict=True)]

    def edges(self, handles: Numbers) -> list[port.EdgeFacts]:
        """See `GraphView.edges`."""
        ids = self.edge_ids.names(handles)
        binds = {"ids": ids, "columns": EDGE_COLUMNS}
        found = self.ask(load("view/list_edges"), binds, "reading edges")
        return [edge(one, document) for one, document in zip(ids, found, strict=True)]

    def passages(self, numbers: Numbers) -> list[port.Passage]:
        """See `GraphView.passages`."""
        ids = self.node_ids.names(numbers)
        self.check_readable(ids)
        binds = {"ids": ids, "columns": PASSAGE_COLUMNS}
        found = self.ask(load("view/list_passages"), binds, "reading passages")
        return [passage(one, document) for one, document in zip(ids, found, strict=True)]

    def sources(self, document_ids: Sequence[str]) -> list[port.SourceFacts | None]:
        """See `GraphView.sources`."""
        keys = [key for name, _, key in (one.partition("/") for one in document_ids) if name == "documents"]
        rows = self.store.get("documents", keys, columns=SOURCE_COLUMNS).to_pylist()
        held = {f"documents/{row['_key']}": source(row) for row in rows}
        return [held.get(one) for one in document_ids]

    def vectors(self, numbers: Numbers, *, model: str) -> tuple[NDArray[np.float32], Flags]:
        """See `GraphView.vectors`; one query a kind."""
        held: dict[str, list[float]] = {}
        wanted: dict[str, list[str]] = {}
        ids = self.node_ids.names(numbers)
        for name, key in map(split_id, ids):
            wanted.setdefault(name, []).append(key)
        for name, keys in wanted.items():
            field = _collection(Kind(name)).vector_field
            if field is not None:
                rows = self.store.get(name, keys, columns=["_key", field, "embedding_model"]).to_pylist()
                held |= {f"{name}/{row['_key']}": row[field] for row in rows if row["embedding_model"] == model}
        there = np.array([held.get(one) is not None for one in ids], np.bool_)
        dimension = next((len(vector) for vector in held.values() if vector is not None), 0)
        values = np.zeros((len(ids), dimension), np.float32)
        for place in np.flatnonzero(there).tolist():
            values[place] = held[ids[place]]
        return values, there

    def cosines(self, vector: NDArray[np.float32], numbers: Numbers, *, model: str) -> Weights:
        """See `GraphView.cosines`; compared on the server, in one query."""
        unit = unit_vector(vector)
        ids = self.node_ids.names(numbers)
        if not ids:
            return np.zeros(0, np.float32)
        binds = {
            "ids": ids,
            "model": model,
            "vector": unit.astype(float).tolist(),
            "fields": {kind.value: field for kind in KINDS if (field := _collection(kind).vector_field)},
        }
        found = self.ask(load("view/list_cosines"), binds, "comparing vectors")
        wrong = next((held for held, _ in found if held not in (None, len(unit))), None)
        if wrong is not None:
            raise BadQuery(f"the vector has dimension {len(unit)}, the model makes {wrong}")
        return np.array([score or 0.0 for _, score in found], np.float32)

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
        """See `GraphView.nearest`; approximate where the store was opened for that, nothing where it takes too long."""
        where: list[Term] = []
        if within is not None:
            ours = [split_id(one) for one in self.node_ids.names(within)]
            where.append(Term("_key", "in", [key for name, key in ours if name == kind]))
        if level is not None:
            where.append(Term("level", "==", level))
        if time.monotonic() < self.slow_until.get((kind, within is None), 0.0):
            return Hits(np.empty(0, np.int64), np.empty(0, np.float32))
        rows = ArangoRows(replace(self.store.scope, runtime_s=SEARCH_S))
        try:
            return self._hits(
                kind, rows.nearest(kind.value, np.asarray(vector).tolist(), model=model, limit=limit, where=where)
            )
        except QueryTimeout:
            self.note_slow((kind, within is None))
            return Hits(np.empty(0, np.int64), np.empty(0, np.float32))

    def note_slow(self, search: tuple[Kind, bool]) -> None:
        """Leave this search by vector out for a while, so that turns meanwhile keep their time."""
        self.slow_until[search] = time.monotonic() + _SLOW_S
        logger.warning("comparing all vectors of %s takes too long; build a vector index (docs/arangodb.md)", search[0])

    def lexical(self, text: str, *, kind: Kind, limit: int) -> Hits:
        """See `GraphView.lexical`; the fields of a row are scored one by one."""
        if limit < 1:
            raise BadQuery(f"limit must be at least 1, not {limit}")
        if not text.strip() or not _collection(kind).text_fields:
            return Hits(np.empty(0, np.int64), np.empty(0, np.float32))
        return self._hits(kind, self.store.search(kind.value, text, limit=limit))

    def clusters_of(self, numbers: Numbers) -> Numbers:
        """See `GraphView.clusters_of`."""
        ids = self.node_ids.names(numbers)
        found = self.ask(load("view/list_topics"), {"ids": ids}, "looking for topics") if ids else []
        self.node_ids.add([one for one in found if one is not None])
        return self.node_ids.find([one or "" for one in found])

    def bridges(
        self, clusters_from: Numbers, clusters_to: Numbers | None = None, *, limit: int
    ) -> list[port.BridgePath]:
        """See `GraphView.bridges`; the edges are compared with what they were in the same query."""
        if limit < 1:
            raise BadQuery(f"limit must be at least 1, not {limit}")
        starts, ends = self._topic_keys(clusters_from), None if clusters_to is None else self._topic_keys(clusters_to)
        binds = {"starts": starts, "ends": ends, "limit": limit}
        return [
            self._bridge(row, set(starts), ends)
            for row in self.ask(load("bridges/find_bridges"), binds, "looking for bridges")
        ]

    def fitted(self) -> port.RankerState | None:
        """See `GraphView.fitted`. The ranker's states lie in snapshots; over AQL questions are judged by hand."""
        return None

    def match_names(self, text: str, *, limit: int | None = None) -> NameMatches:
        """See `GraphView.match_names`."""
        found = find_named(self.store.scope, text, limit)
        numbers = self.node_ids.add([one for _, _, one in found.places])
        starts, ends = [start for start, _, _ in found.places], [end for _, end, _ in found.places]
        places = outermost(starts, ends, range(len(found.places)))
        return NameMatches(numbers[places.numbers], places.starts, places.ends, fetched=found.fetched)

    def close(self) -> None:
        """See `GraphView.close`. The store belongs to the caller."""

    def _topic_keys(self, numbers: Numbers) -> list[str]:
        ours = (split_id(one) for one in self.node_ids.names(numbers))
        return [key for name, key in ours if name == Kind.CLUSTER]

    def _bridge(self, row: dict[str, Any], starts: set[str], ends: list[str] | None) -> port.BridgePath:
        """A bridge as it is kept, turned round where only its other end was asked for."""
        topics = self.node_ids.add([f"{Kind.CLUSTER}/{row['from_cluster']}", f"{Kind.CLUSTER}/{row['to_cluster']}"])
        path = port.BridgePath(
            int(topics[0]),
            int(topics[1]),
            tuple(self.node_ids.add(row["nodes"]).tolist()),
            tuple(self.edge_ids.add(row["edges"]).tolist()),
            tuple(tail == node for tail, node in zip(row["tails"], row["nodes"], strict=False)),
            row["weight"],
            row["cost"],
            row["pinned"],
        )
        as_kept = row["from_cluster"] in starts and (ends is None or row["to_cluster"] in ends)
        return path if as_kept else path.reversed()

    def _hits(self, kind: Kind, found: Any) -> Hits:
        numbers = self.node_ids.add([f"{kind}/{key}" for key in found.column("_key").to_pylist()])
        return Hits(numbers, found.column("score").to_numpy().astype(np.float32))

    def check_readable(self, ids: Sequence[str]) -> None:
        """Refuse nodes that have no text."""
        for one in ids:
            if one.partition("/")[0] in (Kind.ENTITY, Kind.CLUSTER):
                raise BadQuery(f"{one} has no text of its own; ask for its facts")

    def check_types(self, types: Sequence[str] | None) -> list[str] | None:
        """The types, or an error that names one that there is not."""
        for name in types or ():
            if name not in self.codes:
                raise BadQuery(f"{name!r} is not an edge type; there are {', '.join(self._type_names)}")
        return None if types is None else list(types)

    def ask(self, text: str, binds: dict[str, Any], action: str) -> list[Any]:
        """All rows of a query."""
        return self.store.session.query(text, binds, action=action)


def _collection(kind: Kind) -> Collection:
    collection = collection_named(kind.value)
    assert collection is not None
    return collection
