"""Rows of a scan batch by batch. A scan whose answer the server has dropped goes on after the last row it gave."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, cast

from arango.cursor import Cursor
from arango.database import Database
from arango.exceptions import CursorCloseError, CursorNextError

from aql import load
from hades.ports.store import Mode
from hades.stores.arango.client import ArangoSession, Binds
from hades.stores.arango.faults import CURSOR_GONE, TRANSACTION_GONE, CursorLost, TransportError, explain_lost_cursor

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
