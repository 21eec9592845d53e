"""Transactions: a snapshot of the committed state plus own writes, with conflicts as RocksDB finds
them.

Every request runs in one. A key changed by someone else after the snapshot, or held by another
running transaction, is a write-write conflict (1200).
"""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import orjson

from tests.arango_double.database import EDGE_COLLECTION, Collection, Database, Document
from tests.arango_double.errors import NotInDouble, ServerError
from tests.arango_double.values import Value, equal

if TYPE_CHECKING:
    from tests.arango_double.users import Access

# What a write takes of a transaction's size: the lock of the key, the document, the index entries
# out and in. The constants give what was seen on a 3.12 server: about 230 bytes for a lock, 1.8 KB
# for a mention, 2.6 KB for a relation and 5.1 KB for an entity with its vector.
_LOCK_BYTES = 230
_ENTRY_BYTES = 110
_NUMBER_BYTES = 9  # a number of a vector, in the server's binary form
_KEY = re.compile(r"[A-Za-z0-9_\-.@()+,=;$!*'%:]{1,254}")
_HANDLE = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]*/" + _KEY.pattern)


class Transaction:
    """Reads and writes of one request or, with `declared` collections to write, of a stream
    transaction.
    """

    def __init__(
        self, database: Database, access: "Access", declared: set[str] | None = None
    ) -> None:
        self.database, self.access, self.declared = database, access, declared
        self.status = "running"
        self.writes: dict[str, dict[str, Document | None]] = {}
        self.size, self.size_limit = 0, 0
        self.is_given_up: Callable[[], bool] = lambda: False
        self._take_snapshot()

    def _take_snapshot(self) -> None:
        self._held = {name: one.documents for name, one in self.database.collections.items()}

    # -- permission --------------------------------------------------------------------------------

    def allow_read(self, name: str) -> None:
        self.access.require_read(self.database.name, name)

    def allow_write(self, name: str) -> None:
        self.access.require_write(self.database.name, name)
        if self.declared is not None and name not in self.declared:
            raise ServerError(1652, f"unregistered collection used in transaction: {name} [write]")

    # -- reading -----------------------------------------------------------------------------------

    def get(self, name: str, key: str) -> Document | None:
        own = self.writes.get(name, {})
        return own[key] if key in own else self._snapshot(name).get(key)

    def scan(self, name: str) -> list[Document]:
        own = self.writes.get(name)
        if not own:
            return list(self._snapshot(name).values())
        return [one for one in ({**self._snapshot(name), **own}).values() if one is not None]

    def lookup_in(self, name: str, field: str) -> Callable[[Value], list[Document]]:
        """Finds the visible documents that have a value in an indexed field."""
        collection = self.database.collection(name)
        documents = self._snapshot(name)
        if self.writes.get(name) or documents is not collection.documents:
            return lambda value: [one for one in self.scan(name) if equal(one.get(field), value)]
        return lambda value: [documents[key] for key in collection.lookup(field, value)]

    def _snapshot(self, name: str) -> dict[str, Document]:
        self.database.collection(name)
        return self._held.get(name, {})

    # -- writing -----------------------------------------------------------------------------------

    def insert(self, name: str, body: Any, mode: str) -> tuple[Document | None, Document]:
        """Insert one document, or replace the one of its key; before and after."""
        collection = self.database.collection(name)
        if not isinstance(body, dict):
            raise ServerError(1227)
        key = _key_of(body)
        self._lock(name, key)
        old = self.get(name, key)
        if old is not None and mode != "replace":
            raise ServerError(
                1210,
                "unique constraint violated - in index primary over '_key'; conflicting key: "
                f"{key}",
            )
        return old, self._put(collection, key, body)

    def update(self, name: str, patch: Any, merges: bool) -> tuple[Document, Document]:
        """Set attributes of a document; before and after."""
        collection, key = self.database.collection(name), _key_of(patch)
        old = self._existing(name, key)
        if merges and any(isinstance(value, dict) for value in patch.values()):
            raise NotInDouble("merging objects")
        return old, self._put(collection, key, {**old, **patch})

    def remove(self, name: str, key: str) -> Document:
        """Remove a document; what it was."""
        old = self._existing(name, key)
        self._write(self.database.collection(name), key, None)
        return old

    def _existing(self, name: str, key: str) -> Document:
        self._lock(name, key)
        old = self.get(name, key)
        if old is None:
            raise ServerError(1202)
        return old

    def _put(self, collection: Collection, key: str, body: Document) -> Document:
        document = {
            **body,
            "_key": key,
            "_id": f"{collection.name}/{key}",
            "_rev": self.database.new_revision(),
        }
        if collection.type == EDGE_COLLECTION:
            for end in ("_from", "_to"):
                if not isinstance(body.get(end), str) or not _HANDLE.fullmatch(body[end]):
                    raise ServerError(1233)
        for index in collection.indexes.values():
            index.check_document(document)
        self._write(collection, key, document)
        return document

    def _write(self, collection: Collection, key: str, document: Document | None) -> None:
        own = self.writes.get(collection.name, {})
        if key not in own and collection.documents.get(key) is not self._snapshot(
            collection.name
        ).get(key):
            raise ServerError(1200, f"write-write conflict; key: {key}")
        if self.size_limit:
            self.size += _write_size(collection, self.get(collection.name, key), document)
            if self.size > self.size_limit:
                limit = self.size_limit
                self.end("aborted")
                raise ServerError(
                    32,
                    f"aborting transaction because maximal transaction size limit of {limit} bytes "
                    "is reached",
                )
        own = self.writes.setdefault(collection.name, {})
        own.pop(key, None)
        own[key] = document

    def _lock(self, name: str, key: str) -> None:
        """Wait for another writer of the key; a request that has written nothing yet then works on
        the newest state.
        """
        if self.status != "running":
            raise ServerError(1654)
        database, deadline = self.database, time.monotonic() + self.database.write_lock_seconds
        while (holder := database.locks.get((name, key), self)) is not self:
            if holder.is_given_up():
                holder.end("aborted")
                continue
            if (
                not database.condition.wait(deadline - time.monotonic())
                and time.monotonic() >= deadline
            ):
                raise ServerError(1200, "conflict: timeout waiting to lock key")
            if self.status != "running":  # it was ended while it waited
                raise ServerError(1654)
            if self.declared is None and not self.writes:
                self._take_snapshot()
        database.locks[name, key] = self

    def end(self, status: str) -> None:
        """Commit or abort; one that has ended stays as it is."""
        if self.status != "running":
            return
        self.status = status
        for name, changes in self.writes.items() if status == "committed" else ():
            if name in self.database.collections:
                self.database.collections[name].apply(changes)
        self.writes = {}
        for token in [token for token, owner in self.database.locks.items() if owner is self]:
            del self.database.locks[token]
        self.database.condition.notify_all()


def _key_of(body: Document) -> str:
    key = body.get("_key")
    if not isinstance(key, str) or not _KEY.fullmatch(key):
        raise ServerError(1221)
    return key


def _write_size(collection: Collection, old: Document | None, new: Document | None) -> int:
    """Bytes that replacing `old` by `new` adds to the transaction; None is no document."""
    entries = len(collection.indexes) + (collection.type == EDGE_COLLECTION)
    size = _LOCK_BYTES + _ENTRY_BYTES + (entries * _ENTRY_BYTES if old is not None else 0)
    if new is None:
        return size
    vectors = {
        name: value for name, value in new.items() if isinstance(value, list) and len(value) > 32
    }
    rest = {name: value for name, value in new.items() if name not in vectors} if vectors else new
    numbers = sum(len(value) * _NUMBER_BYTES for value in vectors.values())
    return size + entries * _ENTRY_BYTES * 2 + len(orjson.dumps(rest)) + numbers


class TransactionRegistry:
    """Stream transactions of a server by number; ended ones are remembered, idle ones expire."""

    def __init__(self, idle_seconds: float, size_limit: int, clock: Callable[[], float]) -> None:
        self._idle_seconds, self._size_limit, self._clock = idle_seconds, size_limit, clock
        self._used: dict[str, float] = {}
        self._transactions: dict[str, Transaction] = {}
        self._busy: set[str] = set()

    def begin(self, number: str, transaction: Transaction) -> None:
        for name in transaction.declared or ():
            transaction.database.collection(name)
            transaction.allow_write(name)
        transaction.size_limit = self._size_limit
        transaction.is_given_up = lambda: self._is_idle(number)
        self._transactions[number], self._used[number] = transaction, self._clock()

    @contextmanager
    def lease(self, database: Database, number: str) -> Iterator[Transaction]:
        """Use a running transaction for one request."""
        found = self._find(database, number)
        if found.status != "running":
            raise ServerError(
                1654 if found.status == "aborted" else 1653,
                f"transaction '{number}' was {found.status}",
            )
        if number in self._busy:
            raise ServerError(28, f"transaction '{number}' is already in use")
        self._busy.add(number)
        try:
            yield found
        finally:
            self._busy.discard(number)
            self._used[number] = self._clock()

    def running(self, database: Database) -> list[str]:
        """Numbers of those of a database that have not ended."""
        return [
            number
            for number, transaction in list(self._transactions.items())
            if transaction.database is database and transaction.status == "running"
        ]

    def status(self, database: Database, number: str) -> str:
        return self._find(database, number).status

    def finish(self, database: Database, number: str, status: str) -> str:
        """Commit or abort; asking twice for the same is fine, for the other is an error."""
        found = self._find(database, number)
        if found.status == "running":
            with self.lease(database, number) as transaction:
                transaction.end(status)
        elif found.status != status:
            raise ServerError(1653, f"transaction '{number}' has already been {found.status}")
        return status

    def expire(self) -> None:
        """Abort every running transaction now, as if each had been idle too long."""
        for transaction in list(self._transactions.values()):
            with transaction.database.condition:
                transaction.end("aborted")

    def _find(self, database: Database, number: str) -> Transaction:
        found = self._transactions.get(number)
        if found is None or found.database is not database:
            raise ServerError(1655, f"transaction '{number}' not found")
        if self._is_idle(number):
            found.end("aborted")
        return found

    def _is_idle(self, number: str) -> bool:
        return number not in self._busy and self._clock() - self._used[number] > self._idle_seconds
