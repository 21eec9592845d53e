"""The live graph over AQL: what lies around a question is fetched and read as a snapshot of it."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import chain
from typing import Any, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from aql import load
from hades.errors import QueryTimeout
from hades.ports.graph import EDGES, KINDS, Kind, ViewInfo
from hades.ports.store import RowStore
from hades.snapshot.files import MemoryFolder
from hades.snapshot.lexical import WordCounts
from hades.snapshot.manifest import parts_of
from hades.snapshot.publish import build
from hades.snapshot.view import HOPS, GraphView, Neighbourhood, WriteUnderWay
from hades.snapshot.write_graph import NODE_COLUMNS
from hades.stores.arango import encode
from hades.stores.arango.provision import has_other_analyzer, is_indexed
from hades.stores.arango.read import names_in
from hades.stores.arango.store import ArangoStore
from hades.stores.row_checks import require
from hades.text.words import with_search_words
from schemas.catalogue import ANALYZER, NAME_ANALYZER

_HITS = 256  # of one search, as many as a turn over a snapshot looks at
_SEARCH_S = 0.8  # for one search by vector, of a turn that has two seconds
_SLOW_S = 60.0  # how long a search by vector that took too long is left out
_PROBES = 20  # lists of the vector index looked into; the server's default of 1 misses too much
_LEAST_S = 0.05  # that a question to the server gets, however late it is
_ROW_EDGES = 1_000  # the heaviest edges of a node where more than one hop is fetched; few nodes have more
_EDGES = 24_000  # of one turn
_QUESTIONS = 8  # to the server, of one turn; the last reads rows
_SAMPLE = 5_000  # rows that tell which models made the vectors of a collection
_COUNTED = 50_000  # passages that tell how long one is
_EDGE_COLUMNS = (
    *("_id", "_key", "_from", "_to", "type", "weight", "provenance", "label"),
    *("valid_from", "valid_until", "recorded_at", "retracted_at"),
)
_COLUMNS = ("_id", "_key", *dict.fromkeys(chain.from_iterable(NODE_COLUMNS.values())))
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
    ) -> Neighbourhood:
        """See `RemoteView.around`: searches, hops over edges, then the rows, in at most eight questions."""
        until = None if seconds is None else time.monotonic() + seconds
        try:
            known_kinds = [one for one in near if one.partition("/")[0] in (*KINDS, "documents")]
            found, trips = self._find_seeds(texts, known_kinds, until), 1
            seeds = dict.fromkeys(found["seeds"])
            if vectors:
                close, asked = self._find_near(vectors, model)
                seeds.update(dict.fromkeys(close))
                trips += asked
            edges: dict[str, dict[str, Any]] = {}
            known, frontier, is_cut = set[str](), list(seeds), False
            ends = Counter[str]()
            fanout = _ROW_EDGES if hops > 1 else _EDGES
            for _ in range(min(hops, _QUESTIONS - trips - 1)):
                if not frontier or len(edges) >= _EDGES:
                    break
                limit = _EDGES - len(edges)
                nodes = {"nodes": frontier, "known": [one for one in known if ends[one] < fanout]}
                binds = {**nodes, "columns": _EDGE_COLUMNS, "fanout": fanout, "limit": limit}
                step = self._ask_until(until, load("view/read_edges"), binds, "following edges")
                known.update(frontier)
                edges.update({one["_id"]: one for one in step})
                trips += 1
                ends = Counter(one[end] for one in edges.values() for end in ("_from", "_to"))
                is_cut |= len(step) >= limit or max(ends.values(), default=0) >= fanout
                frontier = [one for one in ends if one not in known]
            rows = self._read_rows(sorted(known.union(frontier)), edges, until)
            saw_write = bool(found["writing"] or rows.pop("writing"))
            if saw_write and (whole := self.open_whole()) is not None:
                raise WriteUnderWay(whole)
            view = self._assemble(rows, edges, dict(found["counts"]))
            return Neighbourhood(view, trips + 1, is_cut=is_cut or bool(frontier), saw_write=saw_write)
        except QueryTimeout:
            return Neighbourhood(self._assemble({"nodes": [], "sources": [], "bridges": []}, {}, {}), 0, is_late=True)

    def close(self) -> None:
        """See `RemoteView.close`. The store belongs to the caller."""

    def _ask_until(self, until: float | None, text: str, binds: dict[str, Any], action: str) -> list[Any]:
        """All rows of a query that ends at the moment `until`; None: as late as the session allows."""
        left = None if until is None else max(_LEAST_S, until - time.monotonic())
        return self.store.session.query(text, binds, action=action, runtime_s=left)

    @cached_property
    def words_of_a_passage(self) -> float:
        """How many words a passage has on average, by the first of them."""
        lengths = self._ask_until(None, load("view/count_words"), {"sample": _COUNTED}, "counting words")
        return sum(lengths) / len(lengths) if lengths else 1.0

    def _find_seeds(self, texts: Sequence[str], near: Sequence[str], until: float | None) -> dict[str, Any]:
        binds = {
            "names": sorted({name for text in texts for name in names_in(text)}),
            "name_analyzer": NAME_ANALYZER,
            "texts": [with_search_words(text) for text in texts],
            "words": " ".join(with_search_words(text) for text in texts),
            "analyzer": ANALYZER,
            "near": list(near),
            "wait": self.store.wait_for_view,
            "limit": _HITS,
        }
        found = self._ask_until(until, load("view/find_seeds"), binds, "searching names and words")
        return cast(dict[str, Any], found[0])

    def _find_near(self, vectors: Sequence[NDArray[np.float32]], model: str) -> tuple[list[str], int]:
        """Ids, and how many questions it took; none for a while where the server takes too long for one."""
        if time.monotonic() < self._slow_until:
            return [], 0
        asked = [one.astype(float).tolist() for one in vectors]
        binds: dict[str, Any] = {"model": model, "limit": _HITS}
        query = partial(self.store.session.query, runtime_s=_SEARCH_S)
        try:
            kinds = [require(kind.value) for kind in (Kind.CHUNK, Kind.ENTITY)]
            if not self.store.approximate or not all(is_indexed(self.store.session, kind) for kind in kinds):
                return query(load("view/find_near"), {**binds, "vectors": asked}, action="comparing vectors"), 1
            found: list[str] = []
            for kind in kinds:
                own = {"@collection": kind.name, "field": kind.vector_field, "vector": asked[0], "probes": _PROBES}
                found += query(load("view/find_near_by_index"), {**binds, **own}, action="searching by vector")
            return found, len(kinds)
        except QueryTimeout:
            self._slow_until = time.monotonic() + _SLOW_S
            logger.warning("comparing all vectors takes too long; build a vector index (docs/arangodb.md)")
            return [], 1

    def _read_rows(self, ids: list[str], edges: dict[str, dict[str, Any]], until: float | None) -> dict[str, Any]:
        cited = {(one.get("provenance") or {}).get("doc") for one in edges.values()}
        topics = [one.partition("/")[2] for one in ids if one.startswith(f"{Kind.CLUSTER}/")]
        binds = {"ids": ids, "columns": _COLUMNS, "documents": sorted(filter(None, cited)), "topics": topics}
        return cast(dict[str, Any], self._ask_until(until, load("view/read_nodes"), binds, "reading rows")[0])

    def _assemble(self, rows: dict[str, Any], edges: dict[str, dict[str, Any]], counts: dict[str, int]) -> GraphView:
        held = {one["_id"] for one in rows["nodes"]}
        whole = [one for one in edges.values() if one["_from"] in held and one["_to"] in held]
        by_name: dict[str, list[dict[str, Any]]] = {"documents": rows["sources"], "bridge_cache": rows["bridges"]}
        for one in [*rows["nodes"], *whole]:
            by_name.setdefault(one["_id"].partition("/")[0], []).append(one)
        passages = self.info.nodes[Kind.CHUNK]
        words = None
        if len(by_name.get(Kind.CHUNK, ())) < passages:  # else the rows themselves tell how rare a word is
            words = WordCounts(passages, self.words_of_a_passage, counts)
        folder = MemoryFolder()
        store = cast(RowStore, _FetchedRows(by_name))
        contents, _ = build(store, folder, self.info.parts, words)
        info = replace(self.info, is_part=True)
        return GraphView(info.snapshot, contents, folder.columns(), info=info)


class _FetchedRows:
    """The rows of a neighbourhood as publishing scans them."""

    def __init__(self, documents: dict[str, list[dict[str, Any]]]) -> None:
        self._documents = documents

    def scan(self, name: str, *, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """The rows in key order."""
        held = sorted(self._documents.get(name, ()), key=lambda one: str(one["_key"]))
        return iter(encode.to_table(require(name), held, columns).to_batches())
