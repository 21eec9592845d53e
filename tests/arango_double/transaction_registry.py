"""Stream transactions by id: begin, lease for one request at a time, commit, abort, expire."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tests.arango_double.documents import Database
from tests.arango_double.errors import ServerError
from tests.arango_double.transactions import Transaction
from tests.arango_double.users import Access


@dataclass(slots=True)
class _Managed:
    transaction: Transaction
    used: float
    busy: bool = False


class TransactionRegistry:
    """Stream transactions of a server; ended ones are remembered, idle ones expire."""

    def __init__(self, idle_seconds: float, size_limit: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.idle_seconds = idle_seconds
        self.size_limit = size_limit
        self._clock = clock
        self._managed: dict[str, _Managed] = {}
        self._lock = threading.Lock()

    def begin(
        self,
        database: Database,
        access: Access,
        number: str,
        declared: dict[str, str],
        allow_implicit: bool,
        lock_seconds: float,
    ) -> Transaction:
        """Start a transaction on declared collections (name -> read, write or exclusive)."""
        for name in declared:
            database.collection(name)
        transaction = Transaction(database, access)
        transaction.declared, transaction.allow_implicit = declared, allow_implicit
        transaction.size_limit = self.size_limit
        try:
            for name, mode in declared.items():
                transaction.allow_read(name)
                if mode != "read":
                    access.require_write(database.name, name)
                    transaction.lock_collection(name, mode == "exclusive", lock_seconds)
        except ServerError:
            transaction.abort()
            raise
        with database.condition:
            transaction.snapshot = database.sequence
        with self._lock:
            self._managed[number] = _Managed(transaction, self._clock())
        return transaction

    @contextmanager
    def lease(self, database: Database, number: str) -> Iterator[Transaction]:
        """Use a running transaction for one request."""
        managed = self._find(database, number)
        if managed.transaction.status == "aborted":
            raise ServerError(1654, f"transaction '{number}' has already been aborted")
        if managed.transaction.status == "committed":
            raise ServerError(1653, f"transaction '{number}' has already been committed")
        with self._lock:
            if managed.busy:
                raise ServerError(28, f"transaction '{number}' is already in use")
            managed.busy = True
        try:
            yield managed.transaction
        finally:
            managed.busy = False
            managed.used = self._clock()

    def status(self, database: Database, number: str) -> str:
        return self._find(database, number).transaction.status

    def finish(self, database: Database, number: str, status: str) -> str:
        """Commit or abort; asking twice for the same is fine, for the other is an error."""
        managed = self._find(database, number)
        current = managed.transaction.status
        if current == "running":
            with self.lease(database, number) as transaction:
                transaction.commit() if status == "committed" else transaction.abort()
        elif current != status:
            raise ServerError(1653, f"transaction '{number}' has already been {current}")
        return status

    def expire(self) -> None:
        """Abort every running transaction now, as if each had been idle too long."""
        for managed in list(self._managed.values()):
            managed.transaction.abort()

    def _find(self, database: Database, number: str) -> _Managed:
        managed = self._managed.get(number)
        if managed is None or managed.transaction.database is not database:
            raise ServerError(1655, f"transaction '{number}' not found")
        if not managed.busy and self._clock() - managed.used > self.idle_seconds:
            managed.transaction.abort()
        return managed
