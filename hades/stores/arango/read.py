"""Rows by key and predicate, search, neighbours."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast

import pyarrow as pa
import pyarrow.compute as pc
from arango.cursor import Cursor
from arango.database import Database, TransactionDatabase
from arango.exceptions import CursorCloseError, CursorNextError

from aql import load
from hades.errors import BadQuery
from hades.ports.store import HIT_SCHEMA, NEIGHBOUR_SCHEMA, Direction, Mode, Predicate, Term
from hades.snapshot.facts import normalise, runs_of_words
from hades.stores import row_checks
from hades.stores.arango import encode
from hades.stores.arango.client import PATIENCE_S, ArangoSession, Binds
from hades.stores.arango.encode import Condition, Kind, bound_value, condition, whole_predicate
from hades.stores.arango.errors import CURSOR_GONE, TRANSACTION_GONE, CursorLost, TransportError, explain_lost_cursor
from hades.stores.arango.vector_index import is_indexed
from hades.text.words import with_identifiers
from schemas.catalogue import ANALYZER, NAME_ANALYZER, NAMES, Collection, EdgeShape
from schemas.ids import Mask, iso

# Rows of a scan batch by batch. A scan whose answer the server has dropped goes on after the last row it gave.


SCAN_RUNTIME_S = 6 * 3600.0  # a scan lasts as long as the phase that consumes it
SCAN_IDLE_S = 600
KEEP_ALIVE_S = 10.0  # the server gives up a transaction that it has not heard of for 60
_VAIN_REPEATS = 5
Ask = Callable[[str | None], tuple[str, Binds]]


def stream_rows(
    session: ArangoSession, ask: Ask, *, action: str, batch: int, inside: Database | None
) -> Iterator[list[Any]]:
    """The rows of a scan in batches, in key order, from the snapshot the query began with.

    `ask` gives the query for the rows after a key. Outside a transaction the server computes rows as they are fetched.
    A lost batch is fetched again, and a build waits for a slow or restarting server as it does with writes. A server
    that restarted has dropped the answer: the rows after the last key are asked for again, and are those of that
    moment. Inside a transaction the server computes all rows at once, and a fetch does not tell it that the transaction
    is in use: a query that does nothing tells it.
    """
    place = _Place()
    while True:
        try:
            for rows in _batches(session, *ask(place.after), action, batch, inside):
                place.move(rows)
                yield rows
            return
        except CursorLost:
            if inside is not None or not place.may_resume():
                raise


class _Place:
    """How far a scan has come."""

    def __init__(self) -> None:
        self._last = ""
        self._is_ordered = True
        self._in_vain = 0

    @property
    def after(self) -> str | None:
        """The last key in the form that queries compare: its bytes in hexadecimal; None at the beginning."""
        return self._last.encode().hex() or None

    def move(self, rows: Sequence[Any]) -> None:
        """Take note of the rows that the scan has given."""
        for row in rows:
            self._is_ordered = self._is_ordered and self._last < row["_key"]
            self._last = row["_key"]
        self._in_vain = 0

    def may_resume(self) -> bool:
        """Whether the rest of the rows are those after the last key, and a repeat was not in vain too often."""
        self._in_vain += 1
        return self._is_ordered and self._in_vain <= _VAIN_REPEATS


def _batches(
    session: ArangoSession, text: str, binds: Binds, action: str, batch: int, inside: Database | None
) -> Iterator[list[Any]]:
    live = inside is None
    patient = live and session.mode is not Mode.READ_ONLY
    db = session.patient_db if inside is None else inside
    options = {"stream": live, "ttl": SCAN_IDLE_S, "allow_retry": live}
    cursor = session.run(
        action, lambda: session.execute(db, text, binds, SCAN_RUNTIME_S, batch, **options), again=live, patient=patient
    )
    try:
        while True:
            rows = list(cursor.batch() or ())
            cast(Any, cursor.batch()).clear()
            if rows:
                yield rows
            if not cursor.has_more():
                return
            session.run(action, lambda: _fetch(cursor, action), again=live, patient=patient)
            if inside is not None and getattr(inside, "idle_s", 0.0) > KEEP_ALIVE_S:
                session.query(load("maintenance/keep_alive"), {}, action=action, inside=inside)
    finally:
        # A cursor that cannot be closed now is dropped by the server when its idle time is over.
        with suppress(TransportError, CursorCloseError):
            cursor.close(ignore_missing=True)


def _fetch(cursor: Cursor, action: str) -> None:
    """Fetch the next batch. An answer that is gone is no reason to fetch again."""
    try:
        cursor.fetch()
    except CursorNextError as error:
        if error.error_code == CURSOR_GONE or error.error_code in TRANSACTION_GONE:
            raise explain_lost_cursor(action) from error
        raise


# Where a row operation happens: on the store as it is, or inside a transaction.


Item = TypeVar("Item")


@dataclass(frozen=True)
class Scope:
    """A session and, inside a transaction, the transaction; how much a search may wait or guess.

    `bare` marks a transaction that is repeated as a whole, so failures inside stay what they are. `runtime_s` is how
    long the server may work on one query; None: as long as the session allows.
    """

    session: ArangoSession
    unit: TransactionDatabase | None = None
    wait_for_view: bool = False
    approximate: bool = False
    bare: bool = False
    runtime_s: float | None = None

    def query(self, text: str, binds: Binds, action: str) -> list[Any]:
        """All rows of a reading query."""
        if self.unit is None:
            self.session.before_read()
        return self.session.query(
            text, binds, action=action, inside=self.unit, bare=self.bare, runtime_s=self.runtime_s
        )

    def stream(self, ask: Ask, action: str, batch: int) -> Iterator[list[Any]]:
        """The rows of a scan, batch by batch; `ask` gives the query for the rows after a key."""
        if self.unit is None:
            self.session.before_read()
        yield from stream_rows(self.session, ask, action=action, batch=batch, inside=self.unit)


def chunks(items: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    """The items in runs of at most `size`, so that no request grows without bound."""
    for start in range(0, len(items), size):
        yield items[start : start + size]


# Rows by key, by predicate, and how many: what crosses the wire is only the columns asked for.


KEYS_PER_QUERY = 5_000


def get(
    scope: Scope, collection: Collection, keys: Sequence[str], columns: Sequence[str] | None, with_rev: bool
) -> pa.Table:
    """See `RowStore.get`."""
    names = [*row_checks.check_columns(collection, columns), *([row_checks.REV] if with_rev else [])]
    tables = [encode.schema_of(collection, names).empty_table()]
    for some in chunks(sorted(set(keys)), KEYS_PER_QUERY):
        documents = scope.query(
            load("rows/get_rows"),
            {"@collection": collection.name, "keys": list(some), "columns": names},
            f"reading {collection.name} by key",
        )
        tables.append(encode.to_table(collection, documents, names))
    table = pa.concat_tables(tables).combine_chunks()
    return table.take(pc.sort_indices(table.column("_key")))


def scan(
    scope: Scope, collection: Collection, where: Predicate, columns: Sequence[str] | None, batch_rows: int
) -> Iterator[pa.RecordBatch]:
    """See `RowStore.scan`; a bad question is refused here, before the first batch is asked for."""
    narrowed = condition(collection, where)
    names = row_checks.check_columns(collection, columns)
    row_checks.check_limit("batch_rows", batch_rows)
    binds = {"@collection": collection.name, "columns": names, **narrowed.binds}

    def ask(after: str | None) -> tuple[str, Binds]:
        if narrowed.kind != "all":
            return _scan_text(narrowed.kind), {**binds, "after": after}
        if after is None:
            return _scan_text("all"), binds
        return _scan_text("where"), {**binds, "terms": [], "after": after}

    return _scan(scope, collection, ask, names, batch_rows)


def last(
    scope: Scope,
    collection: Collection,
    same: Term,
    by: str,
    at_most: object,
    limit: int,
    columns: Sequence[str] | None,
) -> pa.Table:
    """See `RowStore.last`."""
    equality, bound = row_checks.check_last(collection, same, by, at_most)
    row_checks.check_limit("limit", limit)
    names = row_checks.check_columns(collection, columns)
    binds = {
        "@collection": collection.name,
        "column": equality.column,
        "value": bound_value(collection, equality),
        "by": by,
        "high": bound_value(collection, bound),
        "limit": limit,
        "columns": names,
    }
    documents = scope.query(load("rows/list_last"), binds, f"reading the last rows of {collection.name}")
    return encode.to_table(collection, documents, names)


def count(scope: Scope, collection: Collection, where: Predicate) -> int:
    """See `RowStore.count`."""
    narrowed = condition(collection, where)
    binds = {"@collection": collection.name, **narrowed.binds}
    return int(scope.query(_count_text(narrowed.kind), binds, f"counting {collection.name}")[0])


def count_collections(scope: Scope) -> dict[str, int]:
    """How many rows each collection of the catalogue has, in one query; see `GraphStore.counts`."""
    counts = scope.query(load("rows/count_collections"), {}, "counting rows")[0]
    return {name: int(counts[name]) for name in NAMES}


def keys_where(scope: Scope, collection: Collection, narrowed: Condition) -> list[str]:
    """Keys of the rows that satisfy a predicate, in key order."""
    binds = {"@collection": collection.name, "columns": ["_key"], **narrowed.binds}
    if narrowed.kind != "all":
        binds["after"] = None
    patient = replace(scope, runtime_s=PATIENCE_S)
    found = patient.query(_scan_text(narrowed.kind), binds, f"looking for rows of {collection.name}")
    return [row["_key"] for row in found]


def missing_keys(scope: Scope, collection: str, keys: Sequence[str]) -> set[str]:
    """Which of these keys name no row of the collection."""
    missing: set[str] = set()
    for some in chunks(keys, KEYS_PER_QUERY):
        binds = {"@collection": collection, "keys": list(some)}
        missing.update(scope.query(load("rows/list_missing"), binds, f"looking for rows of {collection}"))
    return missing


def revisions(scope: Scope, collection: Collection, keys: Sequence[str]) -> dict[str, str]:
    """The revision of each row that exists among these keys."""
    found: dict[str, str] = {}
    for some in chunks(keys, KEYS_PER_QUERY):
        binds = {"@collection": collection.name, "keys": list(some)}
        found.update(scope.query(load("rows/list_revisions"), binds, f"reading revisions of {collection.name}"))
    return found


def _scan(
    scope: Scope, collection: Collection, ask: Ask, names: list[str], batch_rows: int
) -> Iterator[pa.RecordBatch]:
    """Batches of exactly `batch_rows`, made of smaller answers: as JSON a row is many times its size as Arrow."""
    held: list[pa.Table] = []
    rows_held = 0
    wide = any(column.is_vector or column.name == "text" for column in collection.columns if column.name in names)
    answer_rows = min(batch_rows, scope.session.batch_rows if wide else scope.session.narrow_rows)
    for documents in scope.stream(ask, f"scanning {collection.name}", answer_rows):
        held.append(encode.to_table(collection, documents, names))
        rows_held += len(documents)
        if rows_held >= batch_rows:
            whole = pa.concat_tables(held).combine_chunks()
            yield from whole.slice(0, batch_rows).to_batches()
            rest = whole.slice(batch_rows)
            held, rows_held = ([rest], rest.num_rows) if rest.num_rows else ([], 0)
    if held:
        yield from pa.concat_tables(held).combine_chunks().to_batches()


def _scan_text(kind: Kind) -> str:
    if kind == "all":
        return load("rows/scan_all")
    if kind == "among":
        return load("rows/scan_among")
    return load("rows/scan_within") if kind == "within" else load("rows/scan_where")


def _count_text(kind: Kind) -> str:
    if kind == "all":
        return load("rows/count_all")
    if kind == "among":
        return load("rows/count_among")
    return load("rows/count_within") if kind == "within" else load("rows/count_where")


# Searches: rows by words, rows by vector, entities by the names that stand in a text.


_PROBES = 20  # lists of the vector index looked into; the server's default of 1 misses too much
_UNBOUNDED = 2**31 - 1
_QUERIES = {1: "search/match_one_field", 2: "search/match_two_fields", 4: "search/match_four_fields"}


@dataclass(frozen=True)
class NamePlaces:
    """Which entities are named and where, as (start, end, `_id`) in the order of ids; `fetched` rows came for it."""

    places: list[tuple[int, int, str]]
    fetched: int


def search(scope: Scope, collection: Collection, text: str, limit: int, where: Predicate) -> pa.Table:
    """See `RowStore.search`. The view lags behind the rows by about a second, and does not see a transaction's own."""
    row_checks.check_limit("limit", limit)
    terms = whole_predicate(collection, where)
    if collection.view is None:
        raise BadQuery(f"{collection.name} has no text fields to search; declare them in schemas/catalogue.py")
    if not text.strip():
        raise BadQuery("the text to search for is empty")
    fields = collection.text_fields
    binds: dict[str, Any] = {
        "@view": collection.view,
        "text": with_identifiers(text),
        "analyzer": ANALYZER,
        **dict(zip(("first", "second", "third", "fourth"), fields, strict=False)),
        "wait": scope.wait_for_view and scope.unit is None,
        "terms": terms,
        "limit": limit,
    }
    if len(fields) not in _QUERIES:
        raise BadQuery(f"{collection.name} declares {len(fields)} text fields; there are queries for one, two and four")
    query = load(_QUERIES[len(fields)])
    return _hits(scope.query(query, binds, f"searching {collection.name} by text"))


def nearest(
    scope: Scope, collection: Collection, vector: Sequence[float], model: str, limit: int, where: Predicate
) -> pa.Table:
    """See `RowStore.nearest`. Through the vector index, so not exact, only where the store was opened for that."""
    asked = row_checks.check_vector(collection, vector)
    row_checks.check_limit("limit", limit)
    narrowed = condition(collection, where)
    declared = row_checks.declare_dimension(model)
    if declared not in (None, asked.size):
        raise BadQuery(f"the vector has dimension {asked.size}, {model} makes {declared}")
    binds: dict[str, Any] = {
        "@collection": collection.name,
        "field": collection.vector_field,
        "model": model,
        "vector": asked.astype(float).tolist(),
        "limit": limit,
    }
    action = f"searching {collection.name} by vector"
    if scope.approximate and narrowed.kind == "all" and is_indexed(scope.session, collection):
        found = scope.query(load("search/nearest_approximate"), {**binds, "probes": _PROBES}, action)
        return _hits(sorted(found, key=lambda hit: (-hit[1], hit[0])))
    binds["dimension"] = asked.size
    if narrowed.kind == "among":
        return _hits(scope.query(load("search/nearest_among"), {**binds, **narrowed.binds}, action))
    binds["terms"] = narrowed.binds.get("terms", [])
    return _hits(scope.query(load("search/nearest_exact"), binds, action))


def find_named(scope: Scope, text: str, limit: int | None) -> NamePlaces:
    """Every entity with a name that stands in the text, in one query; case and accents do not count, aliases do.

    The server finds names by their letters, so one is found only with the signs it is stored with or with blanks for
    them; whether it is the same name, and where, is then judged here word by word, as a snapshot does.
    """
    names = names_in(text)
    binds = {
        "names": names,
        "analyzer": NAME_ANALYZER,
        "wait": scope.wait_for_view,
        "limit": _UNBOUNDED if limit is None else limit,
    }
    found = scope.query(load("view/list_named"), binds, "looking for names") if names else []
    return NamePlaces(place_names(text, found), len(found))


def names_in(text: str) -> list[str]:
    """Every name that the text may spell, as the server stores names."""
    runs = runs_of_words(text)
    return sorted({one for start, end, form in runs for one in (form, *_spellings(text, start, end))})


def place_names(text: str, found: Iterable[tuple[str, Sequence[str]]]) -> list[tuple[int, int, str]]:
    """Where the text spells the entities, given as id and names; in the order of ids."""
    spans: dict[str, list[tuple[int, int]]] = {}
    for start, end, form in runs_of_words(text):
        spans.setdefault(form, []).append((start, end))
    places = {
        (start, end, identifier)
        for identifier, spelled in found
        for form in map(normalise, spelled)
        for start, end in spans.get(form, ())
    }
    return sorted(places, key=lambda place: place[::-1])


def _hits(found: list[Any]) -> pa.Table:
    keys, scores = [hit[0] for hit in found], [float(hit[1]) for hit in found]
    return pa.table([pa.array(keys, pa.string()), pa.array(scores, pa.float64())], schema=HIT_SCHEMA)


def _spellings(text: str, start: int, end: int) -> Iterator[str]:
    """A run of words as a name would be stored: as written, and with the sign beside it on either side."""
    before = start - 1 if start and not text[start - 1].isspace() else start
    after = end + 1 if end < len(text) and not text[end].isspace() else end
    for first in {before, start}:
        for last in {end, after}:
            yield _analyse(text[first:last])


def _analyse(text: str) -> str:
    """What `NAME_ANALYZER` makes of a text: lower case, accents taken off, the rest composed as it was."""
    letters = unicodedata.normalize("NFD", text.lower())
    return unicodedata.normalize("NFC", "".join(one for one in letters if unicodedata.category(one) != "Mn"))


# Neighbours: one query for all nodes of a step.


NODES_PER_QUERY = 5_000


def neighbours(
    scope: Scope,
    nodes: Sequence[str],
    edges: str,
    direction: Direction,
    types: Sequence[str] | None,
    fanout: int,
    mask: Mask,
) -> pa.Table:
    """See `RowStore.neighbours`."""
    collection, shape = _edges(edges)
    row_checks.check_limit("fanout", fanout)
    binds = {**_filters(collection, shape, types, mask), "weight": shape.weight_field, "fanout": fanout}
    if direction is Direction.OUT:
        text = load("graph/expand_outbound")
    elif direction is Direction.IN:
        text = load("graph/expand_inbound")
    else:
        text = load("graph/expand_any")
    found = [
        edge
        for some in chunks(list(dict.fromkeys(nodes)), NODES_PER_QUERY)
        for edge in scope.query(text, {**binds, "nodes": list(some)}, f"following {edges}")
    ]
    columns = [list(column) for column in zip(*found, strict=True)] or [[] for _ in NEIGHBOUR_SCHEMA]
    weights = NEIGHBOUR_SCHEMA.get_field_index("weight")
    columns[weights] = [None if weight is None else float(weight) for weight in columns[weights]]
    return pa.table(columns, schema=NEIGHBOUR_SCHEMA)


def _edges(name: str) -> tuple[Collection, EdgeShape]:
    collection = row_checks.require(name)
    if collection.edge is None:
        raise BadQuery(f"{name} holds no edges; name an edge collection")
    return collection, collection.edge


def _filters(collection: Collection, shape: EdgeShape, types: Sequence[str] | None, mask: Mask) -> dict[str, Any]:
    return {
        "@edges": collection.name,
        "type": shape.type_field,
        "types": None if types is None else list(types),
        "as_of": None if mask.as_of is None else iso(mask.as_of),
        "known_at": None if mask.known_at is None else iso(mask.known_at),
    }
