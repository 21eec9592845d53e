"""The live graph over AQL: what lies around a question is fetched and read as a snapshot of it."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import chain
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from aql import load
from hades.build_state import complete
from hades.errors import QueryTimeout
from hades.ports.graph import EDGES, KINDS, Kind, ViewInfo
from hades.ports.store import RowStore
from hades.snapshot.files import MemoryFolder
from hades.snapshot.lexical import PartWords, WordCounts
from hades.snapshot.manifest import parts_of
from hades.snapshot.publish import WORDS, build
from hades.snapshot.remote import HOPS, QUESTIONS, Neighbourhood, Parts, PartView, WriteUnderWay
from hades.snapshot.view import GraphView
from hades.snapshot.write_graph import NODE_COLUMNS
from hades.stores.arango import encode
from hades.stores.arango.provision import has_other_analyzer, is_indexed
from hades.stores.arango.read import names_in
from hades.stores.arango.store import ArangoStore
from hades.stores.row_checks import require
from hades.telemetry.turn import budget_seconds
from hades.text.words import with_search_words, words
from schemas.catalogue import ANALYZER, NAME_ANALYZER
from schemas.ids import Mask, iso

_HITS = 256  # of one search, as many as a turn over a snapshot looks at
_TEXT_HITS = 512  # passages by words, which the server scores a little otherwise
_SEARCH_S = 0.8  # for one search by vector, of a turn that has two seconds
_SLOW_S = 60.0  # how long a search by vector that took too long is left out
_PROBES = 20  # lists of the vector index looked into; the server's default of 1 misses too much
_LEAST_S = 0.05  # that a question to the server gets, however late it is
_ROW_EDGES = 1_000  # the heaviest edges of a node where hops are fetched; few nodes have more
_EDGES = 40_000  # of one turn
_FEW_EDGES = 30  # edges of neighbours of a node come too where both have fewer ...
_BEYOND = 6_000  # ... and than this, shared among the nodes asked for: a question to the server is worth more than they
_STARTS, _PASSAGES = 10, 50  # nodes of a kind, and passages, whose edges are fetched with their rows
_CLOSE = 100  # nodes of a kind by vector, and passages by words whose vectors are fetched with their rows
_SAMPLE = 5_000  # rows that tell which models made the vectors of a collection
_EDGE_COLUMNS = (
    *("_id", "_key", "_from", "_to", "type", "weight", "provenance", "label"),
    *("valid_from", "valid_until", "recorded_at", "retracted_at"),
)
_COLUMNS = ("_id", "_key", *dict.fromkeys(chain.from_iterable(NODE_COLUMNS.values())))
_LIGHT = tuple(one for one in _COLUMNS if one not in ("embedding", "token_signs"))  # a tenth of a row
_JOINED = re.compile(r"\w+(?:[.,:;'’·]\w+)+")
logger = logging.getLogger(__name__)


class ArangoView:
    """A `RemoteView` on a store handle, which it does not close. It reads the store as it is now.

    `open_whole` opens a view of one state for turns that meet a half-applied write, or gives None.
    """

    def __init__(self, store: ArangoStore, open_whole: Callable[[], GraphView | None] = lambda: None) -> None:
        self.store = store
        self.open_whole = open_whole
        self._slow_until = 0.0

    @cached_property
    def info(self) -> ViewInfo:
        """See `RemoteView.info`. Counted once; the snapshot is called live because it has no version."""
        models = {}
        for kind in KINDS:
            if require(kind.value).vector_field is not None:
                binds = {"@collection": kind.value, "sample": _SAMPLE}
                models[kind.value] = tuple(
                    sorted(self._ask_until(None, load("view/list_models"), binds, "listing models"))
                )
        nodes = {kind.value: self.store.count(kind.value) for kind in KINDS}
        edges = {name: self.store.count(name) for name in EDGES}
        strange = has_other_analyzer(self.store.session)
        return ViewInfo("live", nodes, edges, models, parts=parts_of(self.store), has_other_analyzer=strange)

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
        """See `RemoteView.around`: searches, hops over edges, then the rows, in at most eight questions."""
        until = None if seconds is None else budget_seconds() + seconds
        fetched = _Fetched(mask, adds_up=not hops)
        try:
            known_kinds = [one for one in near if one.partition("/")[0] in (*KINDS, "documents")]
            found, trips = self._find_seeds(texts, known_kinds, until), 1
            fetched.saw_write = found["writing"]
            fetched.held.names.update(texts)
            fetched.held.texts.update(texts)
            seeds, starts = dict.fromkeys(found["seeds"]), _first_of_each_kind(found["seeds"])
            best = {one for one in _first_of_each_kind(found["seeds"], _CLOSE) if one.startswith(f"{Kind.CHUNK}/")}
            if vectors:
                close, asked = self._find_near(vectors, model)
                fetched.lacks_nearest = budget_seconds() < self._slow_until
                seeds.update(dict.fromkeys(close))
                starts |= _first_of_each_kind(close)
                best.update(close)
                trips += asked
            if not hops:
                self._read(fetched, Parts(rows={*seeds}, edges=starts, vectors=best), until)
                return self._assemble(fetched, trips + 1)
            frontier = {*seeds}
            for _ in range(min(hops, QUESTIONS - trips - 1)):
                if not frontier or fetched.room <= 0:
                    break
                self._read(fetched, Parts(edges=frontier), until)
                trips += 1
                frontier = fetched.nodes - fetched.held.edges
            rows = {*seeds} | fetched.nodes
            topics = {one.partition("/")[2] for one in rows if one.startswith(f"{Kind.CLUSTER}/")}
            self._read(fetched, Parts(rows=rows, vectors=rows, documents=fetched.cited, topics=topics), until)
            return self._assemble(fetched, trips + 1)
        except QueryTimeout:
            return replace(self._assemble(_Fetched(mask), 0), is_late=True)

    def further(self, found: Neighbourhood, seconds: float | None = None) -> Neighbourhood:
        until = None if seconds is None else budget_seconds() + seconds
        missing, trips = found.view.missing(), found.round_trips + 1
        try:
            if missing.texts and trips < QUESTIONS:
                missing.rows.update(self._find_seeds(sorted(missing.texts), [], until)["seeds"])
                found.fetched.held.texts.update(missing.texts)
                trips += 1
            self._read(found.fetched, missing, until)
        except QueryTimeout:
            return replace(found, is_late=True)
        return self._assemble(found.fetched, trips)

    def _ask_until(self, until: float | None, text: str, binds: dict[str, Any], action: str) -> list[Any]:
        """All rows of a query that ends at the moment `until`; None: as late as the session allows."""
        left = None if until is None else max(_LEAST_S, until - budget_seconds())
        return self.store.session.query(text, binds, action=action, runtime_s=left)

    @cached_property
    def words(self) -> dict[Kind, WordCounts]:
        """How rare words are in the graph, as its last build counted them; nothing before the first."""
        counted = complete(self.store, WORDS)
        return {} if counted is None else {Kind(one): WordCounts.from_json(own) for one, own in counted.report.items()}

    def _find_seeds(self, texts: Sequence[str], near: Sequence[str], until: float | None) -> dict[str, Any]:
        binds = {
            "names": sorted({name for text in texts for name in names_in(text)}),
            "name_analyzer": NAME_ANALYZER,
            "texts": [f"{with_search_words(text)} {' '.join(_parted(text))}" for text in texts],
            "analyzer": ANALYZER,
            "near": list(near),
            "wait": self.store.wait_for_view,
            "texts_limit": _TEXT_HITS,
            "limit": _HITS,
        }
        found = self._ask_until(until, load("view/find_seeds"), binds, "searching names and words")
        return cast(dict[str, Any], found[0])

    def _find_near(self, vectors: Sequence[NDArray[np.float32]], model: str) -> tuple[list[str], int]:
        """Ids, and how many questions it took; none for a while where the server takes too long for one."""
        if budget_seconds() < self._slow_until:
            return [], 0
        asked = [one.astype(float).tolist() for one in vectors]
        binds: dict[str, Any] = {"model": model, "limit": _CLOSE}
        query = partial(self.store.session.query, runtime_s=_SEARCH_S)
        try:
            known = [kind for kind in (Kind.CHUNK, Kind.ENTITY, Kind.CLUSTER) if self.info.models.get(kind.value)]
            kinds = [require(kind.value) for kind in known]
            if not self.store.approximate or not all(is_indexed(self.store.session, kind) for kind in kinds):
                return query(load("view/find_near"), {**binds, "vectors": asked}, action="comparing vectors"), 1
            found: list[str] = []
            for kind in kinds:
                own = {"@collection": kind.name, "field": kind.vector_field, "vector": asked[0], "probes": _PROBES}
                found += query(load("view/find_near_by_index"), {**binds, **own}, action="searching by vector")
            return found, len(kinds)
        except QueryTimeout:
            self._slow_until = budget_seconds() + _SLOW_S
            logger.warning("comparing all vectors takes too long; build a vector index (docs/arangodb.md)")
            return [], 1

    def _read(self, fetched: _Fetched, parts: Parts, until: float | None) -> None:
        """Fetch parts of the graph in one question; topics, which are few, always with their vectors."""
        held, mask = fetched.held, fetched.mask
        parts.vectors.update(one for one in parts.rows if one.startswith(f"{Kind.CLUSTER}/"))
        moments = {name: None if (one := getattr(mask, name)) is None else iso(one) for name in ("as_of", "known_at")}
        binds = {
            "nodes": sorted(parts.edges),
            "known": sorted(held.edges - fetched.cut),
            "deeper": min(_FEW_EDGES, _BEYOND // max(1, len(parts.edges))) if fetched.adds_up else 0,
            "summed": sorted({*fetched.sums} | held.edges),
            "adds_up": fetched.adds_up,
            **moments,
            "fanout": _EDGES if fetched.adds_up else _ROW_EDGES,
            "limit": max(0, fetched.room),
            "edge_columns": _EDGE_COLUMNS,
            "ids": sorted(parts.rows | parts.vectors),
            "columns": _COLUMNS,
            "light": _LIGHT,
            "full": sorted(parts.vectors),
            "names": sorted({name for text in parts.names for name in names_in(text)}),
            "name_analyzer": NAME_ANALYZER,
            "wait": self.store.wait_for_view,
            "most_named": _HITS,
            "stated": sorted(parts.stated),
            "documents": sorted(parts.documents),
            "topics": sorted(parts.topics | held.topics if parts.topics else ()),
        }
        fetched.take(parts, self._ask_until(until, load("view/read_part"), binds, "reading a part of the graph")[0])
        if fetched.saw_write and (whole := self.open_whole()) is not None:
            raise WriteUnderWay(whole)

    def _assemble(self, fetched: _Fetched, trips: int) -> Neighbourhood:
        folder = MemoryFolder()
        for kind, counts in self.words.items():
            fetched.words.setdefault(kind, PartWords(counts))
        contents, _ = build(cast(RowStore, fetched), folder, self.info.parts, fetched.words)
        info = replace(self.info, is_part=True)
        counted = self.words.get(Kind.CHUNK)
        view = PartView(contents, folder.columns(), info, fetched.held, fetched.sums, counted)
        is_cut = bool(fetched.cut) or fetched.lacks_nearest
        return Neighbourhood(view, trips, is_cut, saw_write=fetched.saw_write, fetched=fetched)


def _parted(text: str) -> list[str]:
    """The words of what the server takes for one, such as a number with a comma."""
    return [word for joined in _JOINED.findall(text) for word in words(joined)]


def _first_of_each_kind(seeds: Iterable[str], passages: int = _PASSAGES) -> set[str]:
    """The best nodes that were found of each kind: a walk starts from some of them."""
    ranked: dict[str, list[str]] = {}
    for one in seeds:
        ranked.setdefault(one.partition("/")[0], []).append(one)
    return {one for kind, own in ranked.items() for one in own[: passages if kind == Kind.CHUNK else _STARTS]}


class _Fetched:
    """All that was fetched for a question, as publishing scans it. A node without its row is there with its key alone.

    `adds_up`: sums of edges are fetched for nodes whose edges are not. `cut` are nodes whose edges did not all fit.
    `lacks_nearest`: the search by vector was left out.
    """

    def __init__(self, mask: Mask, *, adds_up: bool = False) -> None:
        self.mask, self.adds_up = mask, adds_up
        self.held = Parts()
        self.nodes: set[str] = set()
        self.cut: set[str] = set()
        self.cited: set[str] = set()
        self.sums: dict[str, dict[str, float]] = {}
        self.words: dict[Kind, PartWords] = {}
        self.room = _EDGES
        self.saw_write = self.lacks_nearest = False
        self._named: dict[str, set[str]] = {}  # keys of the nodes, by collection
        self._keys: dict[str, set[str]] = {}
        self._new: dict[str, dict[str, dict[str, Any]]] = {}  # rows by key
        self._tables: dict[str, pa.Table] = {}

    def count(self, name: str) -> int:
        """How many rows of a collection are there."""
        return len(self._keys.get(name, ()))

    def take(self, asked: Parts, found: dict[str, Any]) -> None:
        """Add an answer of the server."""
        self.held.add(asked)
        self.held.edges.update(found["whole"])
        self.held.rows.update(one["_id"] for one in found["nodes"])
        self.held.documents.update(one["_id"] for one in found["sources"])
        self.saw_write |= found["writing"]
        for node, sums in found["sums"]:
            own = self.sums[node] = {}
            for kind, weight in sums:
                own[kind] = own.get(kind, 0.0) + weight
        ends = Counter(one[end] for one in found["edges"] for end in ("_from", "_to"))
        fanout = _EDGES if self.adds_up else _ROW_EDGES
        whole = {*asked.edges, *found["whole"]}
        self.cut.update(whole if len(found["edges"]) >= self.room else ())
        self.cut.update(one for one in whole if ends[one] >= fanout)
        for one in {*ends, *found["themes"], *(row["_id"] for row in found["nodes"])} - self.nodes:
            self.nodes.add(one)
            kind, _, key = one.partition("/")
            self._named.setdefault(kind, set()).add(key)
        self.cited.update(doc for one in found["edges"] if (doc := (one.get("provenance") or {}).get("doc")))
        before = sum(map(self.count, EDGES))
        for name, rows in (("documents", found["sources"]), ("bridge_cache", found["bridges"])):
            self._add(name, rows)
        for one in found["nodes"]:
            self._add(one["_id"].partition("/")[0], [one], again=one["_id"] in asked.vectors)
        for one in found["edges"]:
            self._add(one["_id"].partition("/")[0], [one])
        self.room -= sum(map(self.count, EDGES)) - before

    def _add(self, name: str, rows: Sequence[dict[str, Any]], again: bool = False) -> None:
        """New rows; of those that are there, with `again`, what came now."""
        known, new = self._keys.setdefault(name, set()), self._new.setdefault(name, {})
        for one in rows:
            if again or one["_key"] not in known:
                known.add(one["_key"])
                new[one["_key"]] = one

    def scan(self, name: str, *, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows in key order; what came since the last scan is converted."""
        collection, known = require(name), self._keys.get(name, set())
        new = self._new.pop(name, {})
        parts = [encode.to_table(collection, [*new.values()], columns)]
        if (old := self._tables.get(name)) is not None:
            stays = pc.invert(pc.is_in(old["_key"], parts[0]["_key"].combine_chunks()))
            parts.append(old if pc.all(stays).as_py() is not False else old.filter(stays))
        self._tables[name] = pa.concat_tables(parts)
        bare = sorted(self._named.get(name, set()) - known)
        schema = self._tables[name].schema
        nothing = {field.name: pa.nulls(len(bare), field.type) for field in schema}
        stubs = pa.table({**nothing, "_key": pa.array(bare, schema.field("_key").type)}, schema)
        return iter(pa.concat_tables([self._tables[name], stubs]).sort_by("_key").to_batches())
