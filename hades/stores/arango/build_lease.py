"""The lease of a build: one builder at a time, taken over from one that died."""

from __future__ import annotations

import signal
import time
import uuid
from contextlib import suppress
from functools import partial
from threading import Event, Thread, current_thread, main_thread
from typing import Any, cast

from arango.exceptions import (
    ArangoServerError,
)

from hades.errors import NotProvisioned, StoreBusy, StoreError
from hades.stores.arango.client import BUILT_HERE, JOURNAL, ArangoSession
from hades.stores.arango.errors import TransportError
from hades.stores.arango.transaction import Unit, in_unit
from schemas.record import JsonObject

# The lease of a build is a document that its holder renews. A waiting process takes it over when it
# was not renewed for a while by the waiting process's own clock, so the clocks of two machines need
# not agree, and ends the transactions that the holder may have left open. A holder that was silent
# itself, by its own clock, asks before it writes or publishes again.

_LEASES, _BUILDER = JOURNAL, "builder"
_BESIDE_S = 1.0  # longer than a transaction of a logged turn or a remembered fact takes


class BuildLease:
    """The right to build in a database; a silent holder is replaced."""

    def __init__(
        self,
        session: ArangoSession,
        renewed_seconds: float = 3.0,
        expires_seconds: float = 12.0,
    ) -> None:
        self._session, self._renewed, self._expires = session, renewed_seconds, expires_seconds
        session.waits_in_builds = False  # a renewal that is late is made by the next one
        self._token, self._who = uuid.uuid4().hex, ""
        self._last_beat, self._checked_at, self._silent_seconds = "", 0.0, 0.0
        self._ended, self._is_lost, self._renewed_at = Event(), False, 0.0
        self._renewer: Thread | None = None
        self._former: Any = None  # what the signal that stops this thread did before

    def claim(self, who: str) -> str | None:
        """Take it: None, or who holds it."""
        try:
            read = partial(self._session.db.collection(_LEASES).get, _BUILDER)
            lease = cast(
                JsonObject | None,
                self._session.run(
                    "reading who builds",
                    read,
                    again=True,
                    patient=True,
                ),
            )
        except NotProvisioned:  # nobody builds there; a build reports it
            return None

        if lease is not None and not self._is_expired(lease["beat"]):
            return str(lease["who"])

        holder = self._write(who, replaces=lease["beat"] if lease else None)
        if holder is None:
            self._who, self._renewed_at = who, time.monotonic()
            if lease is not None:
                self._end_open_transactions()

            # SIGINT is ignored in what a shell starts in the background.
            if current_thread() is main_thread():
                self._former = signal.signal(signal.SIGUSR1, lambda *_: self._refuse_if_lost())

            self._renewer = Thread(target=self._renew, daemon=True)
            self._renewer.start()
            BUILT_HERE[self._session.database_name] = self.require

        return holder

    def require(self, *, surely: bool = False) -> None:
        """Raise `StoreBusy` where another process has taken it over; `surely`, also where the
        server does not say.
        """
        if not self._is_lost and time.monotonic() - self._renewed_at > self._expires / 2:
            try:
                self._beat(patient=surely)
            except StoreError:  # a write to a server that is away waits, and asks again
                if surely:
                    raise

        self._refuse_if_lost()

    def close(self) -> None:
        """Let go of it; raises `StoreBusy` where another process has taken it over meanwhile."""
        self._ended.set()
        if self._renewer is None:
            return

        BUILT_HERE.pop(self._session.database_name, None)
        try:
            self._renewer.join()
            self._refuse_if_lost()
        finally:
            if self._former is not None:
                signal.signal(signal.SIGUSR1, self._former)

        with suppress(StoreError):  # a lease that nobody renews ends by itself
            self._write("")

    def _refuse_if_lost(self) -> None:
        if self._is_lost:
            raise StoreBusy(
                f"this build was silent for more than {self._expires:g} s and another has begun; "
                "run it again"
            )

    def _is_expired(self, beat: str) -> bool:
        """Whether its holder was silent too long; a pause of this process does not count as
        silence.
        """
        now = time.monotonic()
        if beat == self._last_beat:
            self._silent_seconds += min(now - self._checked_at, 1.0)
        else:
            self._silent_seconds = 0.0

        self._last_beat, self._checked_at = beat, now
        return self._silent_seconds >= self._expires

    def _end_open_transactions(self) -> None:
        """Undo what the silent holder left open, whose locks last a minute. The server names the
        transactions of this account; those of a writer beside the build end while this waits.
        """
        database = self._session.db
        remaining = self._list_transactions()

        if remaining:
            time.sleep(_BESIDE_S)
            remaining &= self._list_transactions()

        for identifier in sorted(remaining):
            with suppress(TransportError, ArangoServerError):  # it has ended since
                database.fetch_transaction(identifier).abort_transaction()

    def _list_transactions(self) -> set[str]:
        list_all = self._session.db.list_transactions
        listed = self._session.run(
            "listing open transactions",
            list_all,
            again=True,
        )

        transactions = set()
        for transaction in cast(list[JsonObject], listed):
            transactions.add(transaction["id"])

        return transactions

    def _renew(self) -> None:
        while not self._ended.wait(self._renewed):
            with suppress(StoreError):  # a server that is away gives the lease to nobody
                self._beat()

            if self._is_lost:
                if self._former is not None:
                    signal.pthread_kill(cast(int, main_thread().ident), signal.SIGUSR1)
                return

    def _beat(self, *, patient: bool = False) -> None:
        began = time.monotonic()
        if self._write(self._who, patient=patient) is None:
            self._renewed_at = began
        else:
            self._is_lost = True

    def _write(
        self,
        who: str,
        replaces: str | None = "",
        patient: bool = False,
    ) -> str | None:
        """Renew a lease of ours, or end it without `who`. With `replaces`, take the one of this
        beat; None: a free one.

        None, or who holds it.
        """

        def work(unit: Unit) -> str | None:
            leases = unit.collection(_LEASES)
            stored = cast(JsonObject | None, leases.get(_BUILDER))
            lease = stored or {"who": "nobody"}

            if lease.get("beat") != replaces and lease.get("token") != self._token:
                return str(lease["who"])

            if who:
                renewed = {
                    "_key": _BUILDER,
                    "token": self._token,
                    "who": who,
                    "beat": uuid.uuid4().hex,
                }
                leases.insert(
                    renewed,
                    overwrite_mode="replace",
                    silent=True,
                )
            else:
                leases.delete(_BUILDER, silent=True)

            return None

        return in_unit(
            self._session,
            "saying who builds",
            [_LEASES],
            work,
            patient=patient,
        )
