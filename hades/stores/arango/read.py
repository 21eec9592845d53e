"""Rows by key and predicate, search, neighbours."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import pyarrow as pa
from arango.cursor import Cursor
from arango.database import Database, TransactionDatabase
from arango.exceptions import CursorCloseError, CursorNextError

from aql import load
from hades.ports.store import Mode
from hades.snapshot.facts import runs_of_words
from hades.stores.arango import encode
from hades.stores.arango.client import PATIENCE_S, ArangoSession, Binds
from hades.stores.arango.encode import Condition
from hades.stores.arango.errors import (
    CURSOR_GONE,
    DROPPED,
    TRANSACTION_GONE,
    CursorLost,
    TransportError,
)
from schemas.catalogue import Collection

SCAN_RUNTIME_S = 6 * 3600.0  # a scan lasts as long as the phase that consumes it
SCAN_IDLE_S = 600
KEEP_ALIVE_S = 10.0  # the server gives up a transaction that it has not heard of for 60
_VAIN_REPEATS = 5


def _batches(
    session: ArangoSession,
    text: str,
    binds: Binds,
    action: str,
    batch: int,
    inside: Database | None,
) -> Iterator[list[Any]]:
    live = inside is None
    patient = live and session.mode is not Mode.READ_ONLY
    db = session.patient_db if inside is None else inside
    options = {
        "stream": live,
        "ttl": SCAN_IDLE_S,
        "allow_retry": live,
    }
    cursor = session.run(
        action,
        lambda: session.execute(
            db,
            text,
            binds,
            SCAN_RUNTIME_S,
            batch,
            **options,
        ),
        again=live,
        patient=patient,
    )

    try:
        while True:
            rows = list(cursor.batch() or ())
            cast(Any, cursor.batch()).clear()
            if rows:
                yield rows
            if not cursor.has_more():
                return

            session.run(
                action,
                lambda: _fetch(cursor, action),
                again=live,
                patient=patient,
            )
            if inside is not None and getattr(inside, "idle_s", 0.0) > KEEP_ALIVE_S:
                session.query(
                    load("maintenance/keep_alive"),
                    {},
                    action=action,
                    inside=inside,
                )
    finally:
        # A cursor that cannot be closed now is dropped by the server when its idle time is over.
        with suppress(TransportError, CursorCloseError):
            cursor.close(ignore_missing=True)


def _fetch(cursor: Cursor, action: str) -> None:
    """Fetch the next batch. An answer that is gone is no reason to fetch again."""
    try:
        cursor.fetch()
    except CursorNextError as error:
        if error.error_code in CURSOR_GONE | TRANSACTION_GONE:
            raise CursorLost(f"{action}: {DROPPED}") from error
        raise


Item = TypeVar("Item")


@dataclass(frozen=True)
class Scope:
    """A session and, inside a transaction, the transaction.

    `bare` marks a transaction that is repeated as a whole, so failures inside stay what they are.
    """

    session: ArangoSession
    unit: TransactionDatabase | None = None
    bare: bool = False

    def query(
        self,
        text: str,
        binds: Binds,
        action: str,
        runtime_s: float | None = None,
    ) -> list[Any]:
        """All rows of a reading query; the server may work on it so long, by default as long as the
        session allows.
        """
        if self.unit is None:
            self.session.before_read()
        return self.session.query(
            text,
            binds,
            action=action,
            inside=self.unit,
            bare=self.bare,
            runtime_s=runtime_s,
        )

    def stream(
        self,
        text: str,
        binds: Binds,
        action: str,
        batch: int,
    ) -> Iterator[list[Any]]:
        """The rows of a scan in batches, in key order, from the snapshot the query began with.

        Outside a transaction the server computes rows as they are fetched. A lost batch is fetched
        again, and a build waits for a slow or restarting server as it does with writes. A server
        that restarted has dropped the answer: the rows after the last key (`after`, its bytes in
        hexadecimal) are asked for again, and are those of that moment. Inside a transaction the
        server computes all rows at once, and a fetch does not tell it that the transaction is in
        use: a query that does nothing tells it.
        """
        if self.unit is None:
            self.session.before_read()

        last = ""
        in_vain = 0
        while True:
            try:
                page_binds = {
                    **binds,
                    "after": last.encode().hex() or None,
                }
                for rows in _batches(
                    self.session,
                    text,
                    page_binds,
                    action,
                    batch,
                    self.unit,
                ):
                    last = rows[-1]["_key"]
                    in_vain = 0
                    yield rows

                return
            except CursorLost:
                in_vain += 1
                if self.unit is not None or in_vain > _VAIN_REPEATS:
                    raise


def chunks(items: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    """The items in runs of at most `size`, so that no request grows without bound."""
    for start in range(0, len(items), size):
        yield items[start : start + size]


KEYS_PER_QUERY = 5_000


def keys_where(
    scope: Scope,
    collection: Collection,
    narrowed: Condition,
) -> list[str]:
    """Keys of the rows that satisfy a predicate, in key order."""
    text, binds = scan_query(collection, narrowed, ["_key"])
    rows = scope.query(
        text,
        {**binds, "after": None},
        f"looking for rows of {collection.name}",
        PATIENCE_S,
    )
    return [row["_key"] for row in rows]


def missing_keys(
    scope: Scope,
    collection: str,
    keys: Sequence[str],
) -> set[str]:
    """Which of these keys name no row of the collection."""
    missing: set[str] = set()
    for batch in chunks(keys, KEYS_PER_QUERY):
        binds = {
            "@collection": collection,
            "keys": list(batch),
        }
        missing.update(
            scope.query(
                load("rows/list_missing"),
                binds,
                f"looking for rows of {collection}",
            )
        )

    return missing


def scan_batches(
    scope: Scope,
    collection: Collection,
    narrowed: Condition,
    names: list[str],
    batch_rows: int,
) -> Iterator[pa.RecordBatch]:
    """Batches of exactly `batch_rows`, made of smaller answers: as JSON a row is many times its
    size as Arrow.
    """
    tables: list[pa.Table] = []
    rows_held = 0
    wide = any(
        column.is_vector or column.name == "text"
        for column in collection.columns
        if column.name in names
    )
    answer_rows = min(batch_rows, scope.session.batch_rows if wide else scope.session.narrow_rows)
    query = scan_query(collection, narrowed, names)

    for documents in scope.stream(
        *query,
        f"scanning {collection.name}",
        answer_rows,
    ):
        tables.append(encode.to_table(collection, documents, names))
        rows_held += len(documents)
        if rows_held >= batch_rows:
            whole = pa.concat_tables(tables).combine_chunks()
            yield from whole.slice(0, batch_rows).to_batches()
            remainder = whole.slice(batch_rows)
            tables, rows_held = ([remainder], remainder.num_rows) if remainder.num_rows else ([], 0)

    if tables:
        yield from pa.concat_tables(tables).combine_chunks().to_batches()


def scan_query(
    collection: Collection,
    narrowed: Condition,
    names: list[str],
) -> tuple[str, Binds]:
    """The query for these columns of the rows that satisfy a predicate; it wants the key `after`
    which to begin.
    """
    text = load("rows/scan_among" if narrowed.kind == "among" else "rows/scan_where")
    return text, {
        "@collection": collection.name,
        "columns": names,
        "terms": [],
        **narrowed.binds,
    }


def names_in(text: str) -> list[str]:
    """Every name that the text may spell, as the server stores names."""
    names: set[str] = set()
    for start, end, form in runs_of_words(text):
        names.update((form, *_spellings(text, start, end)))

    return sorted(names)


def _spellings(text: str, start: int, end: int) -> Iterator[str]:
    """A run of words as a name would be stored: as written, and with the sign beside it on either
    side.
    """
    if start and not text[start - 1].isspace():
        first_start = start - 1
    else:
        first_start = start

    if end < len(text) and not text[end].isspace():
        last_end = end + 1
    else:
        last_end = end

    for first in {first_start, start}:
        for last in {end, last_end}:
            yield _analyse(text[first:last])


def _analyse(text: str) -> str:
    """What `NAME_ANALYZER` makes of a text: lower case, accents taken off, the rest composed as it
    was.
    """
    letters = unicodedata.normalize("NFD", text.lower())
    plain = "".join(letter for letter in letters if unicodedata.category(letter) != "Mn")
    return unicodedata.normalize("NFC", plain)
