"""Stream transactions: begun, committed or given up, and never left in doubt without saying so."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeVar

from arango.database import StandardDatabase, TransactionDatabase
from arango.exceptions import TransactionAbortError, TransactionStatusError

from hades.errors import StoreUnavailable
from hades.stores.arango.client import ArangoSession
from hades.stores.arango.transport import Lost, NotSent, TimedOut, TransportError

Result = TypeVar("Result")
Unit = TransactionDatabase


def in_unit(
    session: ArangoSession,
    action: str,
    collections: Sequence[str],
    work: Callable[[Unit], Result],
    *,
    patient: bool = False,
) -> Result:
    """Do some writing in a transaction of its own. Repeated whole when another writer was in the way.

    `work` must be as good twice as once; nothing of a failed round stays, so it meets the store as it found it.
    """
    session.require_write(action)

    def round_() -> Result:
        unit = begin(session.patient_db if patient else session.db, collections)
        try:
            result = work(unit)
            commit(unit, action)
        except BaseException:
            give_up(unit)
            raise
        return result

    return session.run(action, round_, again=True, writes=True)


def begin(db: StandardDatabase, collections: Sequence[str]) -> Unit:
    """A transaction that may write these collections and read all."""
    return db.begin_transaction(write=list(collections), allow_implicit=True)


def commit(unit: Unit, action: str) -> None:
    """Keep what was written. When the answer is lost, the server is asked what became of it."""
    try:
        unit.commit_transaction()
    except (Lost, TimedOut) as error:
        if not _was_kept(unit, action):
            raise NotSent("the server gave the transaction up before it was committed") from error


def give_up(unit: Unit) -> None:
    """Undo what was written. A transaction that cannot be reached any more is undone by the server by itself."""
    with suppress(TransportError, TransactionAbortError):
        unit.abort_transaction()


def _was_kept(unit: Unit, action: str) -> bool:
    try:
        status = unit.transaction_status()
        if status == "running":  # the first request did not arrive
            unit.commit_transaction()
    except (TransportError, TransactionStatusError) as error:
        raise StoreUnavailable(
            f"{action}: the server was lost while it committed, so it is not known whether the change was kept; "
            "read the rows again before repeating it"
        ) from error
    return status != "aborted"
