"""The live graph over AQL: what lies around a question is fetched and read as a snapshot of it."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import replace
from functools import cached_property, partial
from itertools import chain
from threading import Lock
from typing import Any, NamedTuple, cast

import pyarrow as pa
import pyarrow.compute as pc

from aql import load
from hades.budget import budget_seconds
from hades.errors import QueryTimeout
from hades.ports.graph import EDGES, KINDS, Kind, ViewInfo
from hades.ports.store import RowStore
from hades.snapshot.files import Columns, MemoryFolder
from hades.snapshot.lexical import PartWords, WordCounts
from hades.snapshot.manifest import Manifest, parts_of
from hades.snapshot.publish import WORDS, build
from hades.snapshot.remote import HOPS, QUESTIONS, Neighbourhood, Parts, PartView, WriteUnderWay
from hades.snapshot.view import GraphView
from hades.snapshot.write_graph import NODE_COLUMNS
from hades.stage_ledger import last_completion
from hades.stores.arango import encode
from hades.stores.arango.provision import has_other_analyzer, is_indexed
from hades.stores.arango.read import names_in
from hades.stores.arango.store import ArangoStore
from hades.stores.row_checks import require
from hades.text.words import with_search_words, words
from models.arrays import Singles
from schemas.catalogue import ANALYZER, NAME_ANALYZER
from schemas.ids import Mask, iso
from schemas.record import JsonObject

_HITS = 256  # of one search, as many as a turn over a snapshot looks at
_TEXT_HITS = 512  # passages by words, which the server scores a little otherwise
_SEARCH_S = 0.8  # for one search by vector, of a turn that has two seconds
_SLOW_S = 60.0  # how long a search by vector that took too long is left out
_PROBES = 20  # lists of the vector index looked into; the server's default of 1 misses too much
_LEAST_S = 0.05  # that a question to the server gets, however late it is
_EDGES = 40_000  # of one turn
_FEW_EDGES = 30  # edges of neighbours of a node come too where both have fewer ...
# ... and than this, shared among the nodes asked for: a question to the server is worth more than
# they
_BEYOND = 6_000
_STARTS, _PASSAGES = (
    10,
    50,
)  # nodes of a kind, and passages, whose edges are fetched with their rows
# nodes of a kind by vector, and passages by words whose vectors are fetched with their rows
_CLOSE = 100
# What turns leave in memory for the next: no more rows than these, and half of a turn's edges.
_KEPT_ROWS = 20_000
_READ = (*(kind.value for kind in KINDS), *EDGES, "documents", "bridge_cache", "build_stages")
_SAMPLE = 5_000  # rows that tell which models made the vectors of a collection
_EDGE_COLUMNS = (
    *("_id", "_key", "_from", "_to", "type", "weight", "provenance", "label"),
    *("valid_from", "valid_until", "recorded_at", "retracted_at"),
)
_COLUMNS = ("_id", "_key", *dict.fromkeys(chain.from_iterable(NODE_COLUMNS.values())))
_LIGHT = tuple(
    column for column in _COLUMNS if column not in ("embedding", "token_signs")
)  # a tenth of a row
_BEYOND_SHARE = 0.5  # of the time that is left: an answer without what lies there is worth more
_EDGES_QUERY, _BEYOND_QUERY = "view/read_edges", "view/read_beyond"
_JOINED = re.compile(r"\w+(?:[.,:;'’·]\w+)+")
logger = logging.getLogger(__name__)


class ArangoView:
    """A `RemoteView` on a store handle, which it does not close. It reads the store as it is now.

    `open_whole` opens a view of one state for turns that meet a half-applied write, or gives None.
    What a turn fetched serves later turns until a collection changes.
    """

    def __init__(
        self,
        store: ArangoStore,
        open_whole: Callable[[], GraphView | None] = lambda: None,
    ) -> None:
        self.store = store
        self.open_whole = open_whole
        self._slow_until = 0.0
        self._slow_searches = 0  # in a row
        self._kept: _Fetched | None = None
        self._assembling = Lock()  # words of texts are counted once, for all turns

    @cached_property
    def info(self) -> ViewInfo:
        """See `RemoteView.info`. Counted once; the snapshot is called live because it has no
        version.
        """
        models = {}
        for kind in KINDS:
            if require(kind.value).vector_field is not None:
                binds = {
                    "@collection": kind.value,
                    "sample": _SAMPLE,
                }
                models[kind.value] = tuple(
                    sorted(
                        self._ask_until(
                            None,
                            load("view/list_models"),
                            binds,
                            "listing models",
                        )
                    )
                )

        nodes = {kind.value: self.store.count(kind.value) for kind in KINDS}
        edges = {}
        for name in EDGES:
            edges[name] = self.store.count(name)

        strange = has_other_analyzer(self.store.session)
        return ViewInfo(
            "live",
            nodes,
            edges,
            models,
            parts=parts_of(self.store),
            has_other_analyzer=strange,
        )

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
        """See `RemoteView.around`: searches, then rows and edges; with hops, edges hop by hop and
        then the rows.
        """
        if seconds is None:
            until = None
        else:
            until = budget_seconds() + seconds

        fetched = _Fetched(mask, adds_up=not hops)
        try:
            started = self._search(texts, vectors, model, near, until)
            if not hops and mask.is_open:
                fetched = self._go_on(started.revisions)

            fetched.saw_write = started.saw_write
            fetched.lacks_nearest = started.lacks_nearest
            fetched.held.names.update(texts)
            fetched.held.texts.update(texts)
            trips = 1
            by_words = started.by_words
            by_vector = started.by_vector
            seeds = dict.fromkeys([*by_words, *by_vector])
            starts = _first_of_each_kind(by_words) | _first_of_each_kind(by_vector)
            promising = _first_of_each_kind(by_words, _CLOSE)

            best = set()
            for node in promising:
                if node.startswith(f"{Kind.CHUNK}/"):
                    best.add(node)

            best.update(by_vector)
            if not hops:
                missing = Parts(
                    rows={*seeds},
                    edges=starts,
                    vectors=best,
                )
                missing.remove(fetched.held)
                self._refuse_half(fetched)

                if missing:
                    trips += self._read(fetched, missing, until)

                return self._assemble(fetched, trips)

            frontier = {*seeds}
            for _ in range(min(hops, QUESTIONS - trips - 1)):
                if not frontier or fetched.room <= 0:
                    break

                self._read(fetched, Parts(edges=frontier), until)
                trips += 1
                frontier = fetched.nodes - fetched.held.edges

            rows = {*seeds} | fetched.nodes
            topics = set()
            for node in rows:
                if node.startswith(f"{Kind.CLUSTER}/"):
                    topics.add(node.partition("/")[2])

            self._read(
                fetched,
                Parts(
                    rows=rows,
                    vectors=rows,
                    documents=fetched.cited,
                    topics=topics,
                ),
                until,
            )
            return self._assemble(fetched, trips + 1)
        except QueryTimeout:
            return replace(self._assemble(_Fetched(mask), 0), is_late=True)

    def further(
        self,
        neighbourhood: Neighbourhood,
        seconds: float | None = None,
    ) -> Neighbourhood:
        if seconds is None:
            until = None
        else:
            until = budget_seconds() + seconds

        missing = neighbourhood.view.missing()
        trips = neighbourhood.round_trips
        fetched = cast(_Fetched, neighbourhood.fetched).copy()

        try:
            if (missing.texts or missing.names) and trips + 1 < QUESTIONS:
                texts = sorted(missing.texts)
                searched = self._find_seeds(
                    texts,
                    {*texts, *missing.names},
                    (),
                    until,
                )
                missing.rows.update(searched["seeds"])
                missing.edges.update(searched["named"])
                fetched.held.texts.update(missing.texts)
                trips += 1

            trips += self._read(fetched, missing, until)
        except QueryTimeout:
            return replace(neighbourhood, is_late=True)

        return self._assemble(fetched, trips)

    def _go_on(self, revisions: Sequence[str]) -> _Fetched:
        """What earlier turns fetched, where no row was written since; else nothing yet."""
        kept = self._kept
        if kept is not None and kept.revisions == revisions:
            return kept.copy()

        fetched = _Fetched(Mask(), adds_up=True)
        fetched.revisions = revisions
        return fetched

    def _keep(self, fetched: _Fetched) -> None:
        is_small = len(fetched.held.rows) <= _KEPT_ROWS and fetched.room >= _EDGES // 2
        is_whole = is_small and not fetched.saw_write
        self._kept = fetched if is_whole else None

    def _read_revisions(self) -> list[str]:
        """A text of each collection that a turn reads, which changes with every row."""
        session = self.store.session

        def ask() -> list[str]:
            return [str(session.db.collection(name).revision()) for name in _READ]

        return session.run(
            "asking what was written",
            ask,
            again=True,
        )

    def _ask_until(
        self,
        until: float | None,
        text: str,
        binds: JsonObject,
        action: str,
    ) -> list[Any]:
        """All rows of a query that ends at the moment `until`; None: as late as the session
        allows.
        """
        if until is None:
            seconds_left = None
        else:
            seconds_left = max(_LEAST_S, until - budget_seconds())

        return self.store.session.query(
            text,
            binds,
            action=action,
            runtime_s=seconds_left,
        )

    @cached_property
    def words(self) -> dict[Kind, WordCounts]:
        """How rare words are in the graph, as its last build counted them; nothing before the
        first.
        """
        counted = last_completion(self.store, WORDS)
        if counted is None:
            return {}

        return {Kind(kind): WordCounts.from_json(counts) for kind, counts in counted.report.items()}

    def _search(
        self,
        texts: Sequence[str],
        vectors: Sequence[Singles],
        model: str,
        near: Sequence[str],
        until: float | None,
    ) -> _Searched:
        """What a turn starts from, by words and by vector at the same time."""
        known_kinds = []
        for node in near:
            if node.partition("/")[0] in (*KINDS, "documents"):
                known_kinds.append(node)

        with ThreadPoolExecutor(2) as pool:
            nearest = pool.submit(self._find_near, vectors, model)
            revisions = pool.submit(self._read_revisions)
            by_words = self._find_seeds(texts, texts, known_kinds, until)
            by_vector = nearest.result()

        return _Searched(
            by_words["seeds"],
            by_vector or [],
            by_words["writing"],
            by_vector is None,
            revisions.result(),
        )

    def _find_seeds(
        self,
        texts: Iterable[str],
        naming: Iterable[str],
        near: Sequence[str],
        until: float | None,
    ) -> JsonObject:
        """Nodes that share words with the texts, and entities that the texts of `naming` name."""
        binds = {
            "names": sorted({name for text in naming for name in names_in(text)}),
            "name_analyzer": NAME_ANALYZER,
            "texts": [f"{with_search_words(text)} {' '.join(_parted(text))}" for text in texts],
            "analyzer": ANALYZER,
            "near": list(near),
            "wait": self.store.wait_for_view,
            "texts_limit": _TEXT_HITS,
            "limit": _HITS,
        }
        rows = self._ask_until(
            until,
            load("view/find_seeds"),
            binds,
            "searching names and words",
        )
        return cast(JsonObject, rows[0])

    def _find_near(self, vectors: Sequence[Singles], model: str) -> list[str] | None:
        """Ids, nearest first; None where the server takes too long, and for a while after it did so
        twice in a row.
        """
        if not vectors:
            return []
        if budget_seconds() < self._slow_until:
            return None

        plain_vectors = []
        for vector in vectors:
            plain_vectors.append(vector.astype(float).tolist())

        binds: JsonObject = {"model": model, "limit": _CLOSE}
        query = partial(self.store.session.query, runtime_s=_SEARCH_S)
        try:
            known = [
                kind
                for kind in (Kind.CHUNK, Kind.ENTITY, Kind.CLUSTER)
                if self.info.models.get(kind.value)
            ]
            kinds = [require(kind.value) for kind in known]
            nearest: list[str] = []

            if not self.store.approximate or not all(
                is_indexed(self.store.session, kind) for kind in kinds
            ):
                kinds = []
                nearest = query(
                    load("view/find_near"),
                    {**binds, "vectors": plain_vectors},
                    action="comparing vectors",
                )

            for kind in kinds:
                index_binds = {
                    "@collection": kind.name,
                    "field": kind.vector_field,
                    "vector": plain_vectors[0],
                    "probes": _PROBES,
                }
                nearest += query(
                    load("view/find_near_by_index"),
                    {**binds, **index_binds},
                    action="searching by vector",
                )
        except QueryTimeout:
            self._slow_searches += 1
            if self._slow_searches > 1:
                self._slow_until = budget_seconds() + _SLOW_S
                logger.warning(
                    "comparing all vectors takes too long; build a vector index (docs/arangodb.md)"
                )

            return None

        self._slow_searches = 0
        return nearest

    def _read(
        self,
        fetched: _Fetched,
        parts: Parts,
        until: float | None,
    ) -> int:
        """Fetch parts of the graph, all at the same time; topics, which are few, always with their
        vectors. How often the server was waited for.

        What lies behind the edges is asked for afterwards, or not at all, where most of it may be
        there: the server takes longest for that.
        """
        parts.vectors.update(node for node in parts.rows if node.startswith(f"{Kind.CLUSTER}/"))
        questions = _questions(fetched, parts)

        if fetched.sums:
            beyond = questions.pop(_BEYOND_QUERY, None)
        else:
            beyond = None

        answers = self._ask_at_once(questions, until)
        fetched.take(parts, answers)
        fetched.lacks_beyond |= not questions.keys() <= answers.keys()
        trips = 1

        if beyond is not None and (nodes := fetched.reaching_new(answers.get(_EDGES_QUERY, ()))):
            answers = self._ask_at_once({_BEYOND_QUERY: {**beyond, "nodes": nodes}}, until)
            fetched.take(Parts(), answers)
            fetched.lacks_beyond |= not answers
            trips = 2

        self._refuse_half(fetched)
        return trips

    def _refuse_half(self, fetched: _Fetched) -> None:
        if fetched.saw_write and (whole := self.open_whole()) is not None:
            raise WriteUnderWay(whole)

    def _ask_at_once(
        self,
        questions: Mapping[str, JsonObject],
        until: float | None,
    ) -> dict[str, list[Any]]:
        """The rows of each query by its name; the wait is that of the slowest. What lies behind
        edges is left out where the server needs more than its share of the time for it.
        """
        beyond_until = None
        if until is not None:
            now = budget_seconds()
            beyond_until = now + (until - now) * _BEYOND_SHARE

        with ThreadPoolExecutor(max(1, len(questions))) as pool:
            pending = {
                name: pool.submit(
                    self._ask_until,
                    beyond_until if name == _BEYOND_QUERY else until,
                    load(name),
                    binds,
                    "reading a part of the graph",
                )
                for name, binds in questions.items()
            }
            answers: dict[str, list[Any]] = {}
            for name, rows in pending.items():
                try:
                    answers[name] = rows.result()
                except QueryTimeout:
                    if name != _BEYOND_QUERY:
                        raise

            return answers

    def _assemble(self, fetched: _Fetched, trips: int) -> Neighbourhood:
        if fetched.built is None:
            with self._assembling:
                folder = MemoryFolder()
                for kind, counts in self.words.items():
                    fetched.words.setdefault(kind, PartWords(counts))

                contents, _ = build(
                    cast(RowStore, fetched),
                    folder,
                    self.info.parts,
                    fetched.words,
                )

            fetched.built = contents, folder.columns()
            if fetched.revisions:
                self._keep(fetched)

        info = replace(self.info, is_part=True)
        counted = self.words.get(Kind.CHUNK)
        view = PartView(
            *fetched.built,
            info,
            fetched.held,
            fetched.sums,
            counted,
        )
        is_cut = bool(fetched.cut) or fetched.lacks_nearest or fetched.lacks_beyond
        return Neighbourhood(
            view,
            trips,
            is_cut,
            saw_write=fetched.saw_write,
            fetched=fetched,
        )


class _Searched(NamedTuple):
    """Ids that words and vectors found, best first of each kind; whether a large write is being
    applied, whether the search by vector was left out, and the state of what is read.
    """

    by_words: list[str]
    by_vector: list[str]
    saw_write: bool
    lacks_nearest: bool
    revisions: list[str]


def _questions(fetched: _Fetched, parts: Parts) -> dict[str, JsonObject]:
    """The queries that fetch these parts, each with its binds; what is not wanted is not asked."""
    questions: dict[str, JsonObject] = {}
    fetched_parts = fetched.held
    mask = fetched.mask

    if parts.edges:
        nodes = sorted(parts.edges)
        questions[_EDGES_QUERY] = {
            "nodes": nodes,
            "known": sorted(fetched_parts.edges - fetched.cut),
            "limit": max(0, fetched.room),
            "columns": _EDGE_COLUMNS,
        }

    if parts.edges and fetched.adds_up:
        questions[_BEYOND_QUERY] = {
            "nodes": nodes,
            "summed": sorted({*fetched.sums} | fetched_parts.edges),
            "deeper": min(_FEW_EDGES, _BEYOND // len(nodes)),
            "as_of": None if mask.as_of is None else iso(mask.as_of),
            "known_at": None if mask.known_at is None else iso(mask.known_at),
            "columns": _EDGE_COLUMNS,
        }

    if parts.rows or parts.vectors or parts.documents:
        questions["view/read_rows"] = {
            "keys": _keys_by_kind(parts.rows | parts.vectors),
            "columns": _COLUMNS,
            "light": _LIGHT,
            "full": dict.fromkeys(sorted(parts.vectors), True),
            "documents": sorted(parts.documents),
        }

    if parts.topics or parts.stated:
        questions["view/read_bridges"] = {
            "topics": sorted(parts.topics | fetched_parts.topics if parts.topics else ()),
            "stated": sorted(parts.stated),
            "columns": _EDGE_COLUMNS,
        }

    return questions


def _keys_by_kind(ids: Iterable[str]) -> dict[str, list[str]]:
    """Keys of nodes by their collection, each in order."""
    keys: dict[str, list[str]] = {kind.value: [] for kind in KINDS}
    for identifier in sorted(ids):
        kind, _, key = identifier.partition("/")
        if kind in keys:  # a document that a question is asked from is no node
            keys[kind].append(key)

    return keys


def _parted(text: str) -> list[str]:
    """The words of what the server takes for one, such as a number with a comma."""
    return [word for joined in _JOINED.findall(text) for word in words(joined)]


def _first_of_each_kind(seeds: Iterable[str], passages: int = _PASSAGES) -> set[str]:
    """The best nodes that were found of each kind: a walk starts from some of them."""
    ranked: dict[str, list[str]] = {}
    for node in seeds:
        ranked.setdefault(node.partition("/")[0], []).append(node)

    return {
        node
        for kind, nodes in ranked.items()
        for node in nodes[: passages if kind == Kind.CHUNK else _STARTS]
    }


class _Fetched:
    """All that was fetched for a question, as publishing scans it. A node without its row is there
    with its key alone.

    `adds_up`: sums of edges are fetched for nodes whose edges are not. `cut` are nodes whose edges
    did not all fit. `lacks_nearest`: the search by vector was left out, `lacks_beyond`: what lies
    behind edges was. `revisions` name the state
    that was read, where it serves later turns; `built` is what was assembled of it.
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
        self.saw_write = self.lacks_nearest = self.lacks_beyond = False
        self._named: dict[str, set[str]] = {}  # keys of the nodes, by collection
        self._keys: dict[str, set[str]] = {}
        self._new: dict[str, dict[str, JsonObject]] = {}  # rows by key
        self._tables: dict[str, pa.Table] = {}
        self.revisions: Sequence[str] = ()
        self.built: tuple[Manifest, Columns] | None = None

    def copy(self) -> _Fetched:
        """The same, to be added to for one turn; words of texts are counted for all."""
        copied = copy(self)
        copied.held = Parts()
        copied.held.add(self.held)

        for name in ("nodes", "cut", "cited", "_tables", "words"):
            setattr(copied, name, copy(getattr(self, name)))

        for name in ("sums", "_named", "_keys", "_new"):
            grouped = getattr(self, name)
            setattr(
                copied,
                name,
                {key: copy(group) for key, group in grouped.items()},
            )

        copied.lacks_nearest = copied.lacks_beyond = False
        return copied

    def count(self, name: str) -> int:
        """How many rows of a collection are there."""
        return len(self._keys.get(name, ()))

    def take(self, requested: Parts, answers: Mapping[str, list[Any]]) -> None:
        """Add the answers of the server, by the name of the query."""
        self.built = None
        edges = answers.get(_EDGES_QUERY, [])
        is_full = len(edges) >= self.room
        self.held.add(requested)

        for beyond in answers.get(_BEYOND_QUERY, ()):
            self.held.edges.update(beyond["whole"])
            self._take_sums(beyond["sums"])
            edges = [*edges, *beyond["edges"]]

        for bridged in answers.get("view/read_bridges", ()):
            edges = [*edges, *bridged["edges"]]
            self._add("bridge_cache", bridged["bridges"])

        if is_full:
            self.cut.update(requested.edges)

        edges_before = sum(map(self.count, EDGES))
        for edge in edges:
            self._name(edge["_from"])
            self._name(edge["_to"])
            self._add(edge["_id"].partition("/")[0], [edge])
            self.cited.update(filter(None, [(edge.get("provenance") or {}).get("doc")]))

        self.room -= sum(map(self.count, EDGES)) - edges_before
        for rows in answers.get("view/read_rows", ()):
            self._take_rows(rows, requested.vectors)

    def reaching_new(self, edges: Sequence[JsonObject]) -> list[str]:
        """Ends of these edges behind which is something of which nothing is there yet."""
        reaching: set[str] = set()
        for edge in edges:
            ends = {edge["_from"], edge["_to"]}
            new = set()
            for end in ends:
                if end not in self.sums and end not in self.held.edges:
                    new.add(end)

            reaching.update(ends - new if new else ())

        return sorted(reaching)

    def _take_sums(self, sums: Sequence[Sequence[Any]]) -> None:
        for node, edge_type, weight, _number in sums:
            of_node = self.sums.setdefault(node, {})
            of_node[edge_type] = of_node.get(edge_type, 0.0) + weight

    def _take_rows(self, answer: JsonObject, with_vectors: Set[str]) -> None:
        self.saw_write |= answer["writing"]
        self._add("documents", answer["sources"])
        self.held.documents.update(row["_id"] for row in answer["sources"])
        self.held.rows.update(row["_id"] for row in answer["nodes"])

        for topic in answer["themes"]:
            self._name(topic)

        for row in answer["nodes"]:
            self._name(row["_id"])
            kind = row["_id"].partition("/")[0]
            self._add(
                kind,
                [row],
                again=row["_id"] in with_vectors,
            )

    def _name(self, node: str) -> None:
        """A node is there, with its key alone until its row comes."""
        if node not in self.nodes:
            self.nodes.add(node)
            kind, _, key = node.partition("/")
            self._named.setdefault(kind, set()).add(key)

    def _add(
        self,
        name: str,
        rows: Sequence[JsonObject],
        again: bool = False,
    ) -> None:
        """New rows; of those that are there, with `again`, what came now."""
        known = self._keys.setdefault(name, set())
        new = self._new.setdefault(name, {})

        for row in rows:
            if again or row["_key"] not in known:
                known.add(row["_key"])
                new[row["_key"]] = row

    def scan(self, name: str, *, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows in key order; what came since the last scan is converted."""
        collection = require(name)
        known = self._keys.get(name, set())
        new = self._new.pop(name, {})
        parts = [
            encode.to_table(
                collection,
                [*new.values()],
                columns,
            )
        ]

        if (old := self._tables.get(name)) is not None:
            stays = pc.invert(pc.is_in(old["_key"], parts[0]["_key"].combine_chunks()))
            parts.append(old if pc.all(stays).as_py() is not False else old.filter(stays))

        self._tables[name] = pa.concat_tables(parts)
        bare = sorted(self._named.get(name, set()) - known)
        schema = self._tables[name].schema
        nothing = {field.name: pa.nulls(len(bare), field.type) for field in schema}
        stubs = pa.table(
            {
                **nothing,
                "_key": pa.array(bare, schema.field("_key").type),
            },
            schema,
        )
        return iter(pa.concat_tables([self._tables[name], stubs]).sort_by("_key").to_batches())
