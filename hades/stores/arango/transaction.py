"""Stream transactions, never left in doubt without saying so; and the lease of the one command that
builds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, TypeVar, cast

from arango.database import StandardDatabase, TransactionDatabase
from arango.exceptions import (
    TransactionAbortError,
    TransactionCommitError,
    TransactionStatusError,
)

from hades.errors import StoreUnavailable
from hades.stores.arango.client import ArangoSession
from hades.stores.arango.errors import Lost, NotSent, TimedOut, TransportError, may_repeat

Result = TypeVar("Result")
# the server gives a transaction up after 60 idle seconds, and may answer a later commit with
# success
IDLE_S = 55.0
_SETTLED_S = 0.25
_STATUS_REQUESTS = 20


class Unit(TransactionDatabase):
    """A running transaction that knows when the server last heard of it."""

    used: float = 0.0

    @classmethod
    def begin(cls, db: StandardDatabase, collections: Sequence[str]) -> Unit:
        """A transaction that may write these collections and read all."""
        unit = cls(
            db.conn,
            write=list(collections),
            allow_implicit=True,
        )
        execute = unit._executor.execute

        def noted(*arguments: Any, **options: Any) -> Any:
            result = execute(*arguments, **options)
            unit.used = time.monotonic()
            return result

        cast(Any, unit._executor).execute = noted
        unit.used = time.monotonic()
        return unit

    @property
    def idle_s(self) -> float:
        """How long the server has not heard of it."""
        return time.monotonic() - self.used


class Doubt(StoreUnavailable):
    """The server was lost while it committed: the change may have been kept or not."""


def in_unit(
    session: ArangoSession,
    action: str,
    collections: Sequence[str],
    work: Callable[[Unit], Result],
    *,
    patient: bool = False,
) -> Result:
    """Do some writing in a transaction of its own. Repeated whole when another writer or a restart
    was in the way.

    `work` must be as good twice as once, also after a commit nobody can vouch for; nothing of a
    failed round stays, so it meets the store as it found it.
    """
    session.require_write(action)

    def round_() -> Result:
        session.require_build()
        unit = Unit.begin(session.patient_db if patient else session.db, collections)
        try:
            result = work(unit)
            try:
                commit(unit, action)
            except Doubt as doubt:
                raise NotSent(str(doubt)) from doubt
        except BaseException:
            give_up(unit)
            raise

        return result

    return session.run(
        action,
        round_,
        again=True,
        writes=True,
        unit=True,
        patient=patient,
    )


def commit(unit: Unit, action: str) -> None:
    """Keep what was written. When the answer is lost, the server is asked what became of it."""
    if unit.idle_s > IDLE_S:
        raise NotSent(
            f"{action}: the transaction was idle for {unit.idle_s:.0f} s, and the server has given "
            "it up"
        )

    try:
        unit.commit_transaction()
    except (Lost, TimedOut) as error:
        if not _was_kept(unit, action):
            raise NotSent("the server gave the transaction up before it was committed") from error


def give_up(unit: Unit) -> None:
    """Undo what was written. A transaction that cannot be reached any more is undone by the server
    by itself.
    """
    with suppress(TransportError, TransactionAbortError):
        unit.abort_transaction()


def _was_kept(unit: Unit, action: str) -> bool:
    """Whether a commit without an answer was kept: the status that the server gives twice."""
    previous = ""
    last = None

    for _ in range(_STATUS_REQUESTS):
        try:
            status = unit.transaction_status()
            if status == "running":  # the first request did not arrive, or is still being worked on
                _commit_again(unit)
            if status == previous and status != "running":
                return status == "committed"

            previous = status
        except (TransportError, TransactionStatusError, TransactionCommitError) as error:
            last = error
            # A server that restarts is asked again, one that lost the transaction is not.
            if not may_repeat(error):
                break

        time.sleep(_SETTLED_S)

    raise Doubt(
        f"{action}: the server was lost while it committed, so it is not known whether the change "
        "was kept; read the rows again before repeating it"
    ) from last


def _commit_again(unit: Unit) -> None:
    try:
        unit.commit_transaction()
    except TransactionCommitError as error:
        if error.error_code != 28:  # the first commit is still at work
            raise
