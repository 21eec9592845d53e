"""Transactions: a snapshot of the committed state plus own writes, with conflicts as RocksDB finds them.

Every request runs in one. A key changed by someone else after the snapshot, or held by another running transaction,
is a write-write conflict (1200); an entry of a unique index that is visibly taken is 1210.
"""

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from tests.arango_double.documents import Collection, Database
from tests.arango_double.errors import ServerError
from tests.arango_double.indexes import Buckets, Condition, Document
from tests.arango_double.sizes import write_size

if TYPE_CHECKING:
    from tests.arango_double.users import Access

_MISSING: Any = object()
_HISTORY = 256


class _Overlay:
    """Own writes on one collection: new documents, None for removed ones."""

    def __init__(self) -> None:
        self.writes: dict[str, Document | None] = {}
        self._buckets: dict[int, Buckets] = {}

    def put(self, key: str, document: Document | None) -> None:
        old = self.writes.pop(key, None)
        for buckets in self._buckets.values():
            if old is not None:
                buckets.remove(old)
        self.writes[key] = document

    def buckets_like(self, model: Buckets) -> Buckets:
        """Own documents indexed the way `model` indexes committed ones; built on first use."""
        found = self._buckets.get(id(model))
        if found is None:
            found = self._buckets[id(model)] = Buckets(model.fields, model.sparse)
            for document in self.writes.values():
                if document is not None:
                    found.add(document)
        return found


class Transaction:
    """Reads and writes of one request or one stream transaction."""

    def __init__(self, database: Database, access: "Access", refreshes: bool = False) -> None:
        self.database = database
        self.access = access
        self.refreshes = refreshes
        self.status = "running"
        self.declared: dict[str, str] | None = None
        self.allow_implicit = True
        self.overlays: dict[str, _Overlay] = {}
        self.size = 0
        self.size_limit: int | None = None
        self._tokens: list[Any] = []
        with database.condition:
            self.snapshot = database.sequence
            database.active.add(self)

    # -- permission -----------------------------------------------------------------------------------------------

    def allow_read(self, name: str) -> None:
        self.access.require_read(self.database.name, name)
        if self.declared is not None and name not in self.declared and not self.allow_implicit:
            raise ServerError(1652, f"unregistered collection used in transaction: {name} [read]")

    def allow_write(self, name: str, exclusive: bool = False) -> None:
        """Check rights and take the collection's lock (shared among writers unless exclusive)."""
        self.access.require_write(self.database.name, name)
        if self.declared is not None and self.declared.get(name) not in ("write", "exclusive"):
            raise ServerError(1652, f"unregistered collection used in transaction: {name} [write]")
        self.lock_collection(name, exclusive, self.database.lock_seconds)

    def lock_collection(self, name: str, exclusive: bool, seconds: float) -> None:
        database = self.database
        deadline = time.monotonic() + seconds
        with database.condition:
            while True:
                owner = database.exclusive.get(name)
                others = database.writers.get(name, set()) - {self}
                if owner in (None, self) and not (exclusive and others):
                    break
                if not database.condition.wait(deadline - time.monotonic()) and time.monotonic() >= deadline:
                    raise ServerError(18, f"timeout waiting for a lock on collection '{name}'")
            database.writers.setdefault(name, set()).add(self)
            if self.refreshes and not self.overlays:
                self.snapshot = database.sequence

    def renew(self) -> None:
        """Take the snapshot anew: a query reads the state after its collection locks were granted."""
        with self.database.condition:
            if self.declared is None and not self.overlays:
                self.snapshot = self.database.sequence

    # -- reading --------------------------------------------------------------------------------------------------

    def get(self, name: str, key: str) -> Document | None:
        with self.database.condition:
            return self._visible(self.database.collection(name), key)

    def scan(self, name: str) -> list[Document]:
        with self.database.condition:
            collection = self.database.collection(name)
            overlay = self.overlays.get(name)
            if overlay is None and not collection.history:
                return list(collection.documents.values())
            return [found for key in self._keys(collection) if (found := self._visible(collection, key)) is not None]

    def count(self, name: str) -> int:
        collection = self.database.collection(name)
        if name not in self.overlays and not collection.history:
            return len(collection.documents)
        return len(self.scan(name))

    def lookup(self, name: str, buckets: Buckets, conditions: list[Condition]) -> list[Document]:
        """Visible documents that an index finds; the caller still applies its own condition."""
        with self.database.condition:
            collection = self.database.collection(name)
            overlay = self.overlays.get(name)
            if overlay is None and not collection.history:
                documents = collection.documents
                return [documents[key] for key in buckets.find(conditions)]
            keys = dict.fromkeys(buckets.find(conditions))
            keys.update(dict.fromkeys(collection.history))
            if overlay is not None:
                keys.update(dict.fromkeys(overlay.buckets_like(buckets).find(conditions)))
            found = Buckets(buckets.fields, buckets.sparse)
            documents = {}
            for key in keys:
                document = self._visible(collection, key)
                if document is not None:
                    documents[key] = document
                    found.add(document)
            return [documents[key] for key in found.find(conditions)]

    def _keys(self, collection: Collection) -> Iterable[str]:
        keys = dict.fromkeys(collection.documents)
        keys.update(dict.fromkeys(collection.history))
        overlay = self.overlays.get(collection.name)
        if overlay is not None:
            for key in overlay.writes:
                keys.pop(key, None)
            keys.update(dict.fromkeys(overlay.writes))
        return keys

    def _visible(self, collection: Collection, key: str) -> Document | None:
        overlay = self.overlays.get(collection.name)
        if overlay is not None:
            own = overlay.writes.get(key, _MISSING)
            if own is not _MISSING:
                return own  # type: ignore[no-any-return]
        for sequence, before in collection.history.get(key, ()):
            if sequence > self.snapshot:
                return before
        return collection.documents.get(key)

    # -- writing --------------------------------------------------------------------------------------------------

    def put(self, name: str, key: str, document: Document | None) -> None:
        """Write or remove (None) one document, after locks and unique indexes were checked."""
        with self.database.condition:
            collection = self.database.collection(name)
            self._lock((collection.id, key))
            if not self._touched(name, key) and collection.changed.get(key, 0) > self.snapshot:
                raise ServerError(1200, f"write-write conflict; key: {key}")
            if document is not None:
                for index in collection.indexes.values():
                    index.check_document(document)
            if self.size_limit is not None:
                self._charge(collection, key, document)
            self.overlays.setdefault(name, _Overlay()).put(key, document)

    def _charge(self, collection: Collection, key: str, document: Document | None) -> None:
        """Count what the write takes of the transaction's size; over the limit the whole transaction is given up."""
        self.size += write_size(collection, self._visible(collection, key), document)
        assert self.size_limit is not None
        if self.size > self.size_limit:
            limit = self.size_limit
            self.abort()
            raise ServerError(
                32, f"aborting transaction because maximal transaction size limit of {limit} bytes is reached"
            )

    def reserve(self, name: str, key: str) -> None:
        """Wait for other writers of a key before reading it, so that single operations work on the newest state."""
        with self.database.condition:
            self._lock((self.database.collection(name).id, key))

    def _touched(self, name: str, key: str) -> bool:
        return name in self.overlays and key in self.overlays[name].writes

    def _lock(self, token: Any) -> None:
        database = self.database
        if self.status != "running":
            raise ServerError(1654)
        deadline = time.monotonic() + database.write_lock_seconds
        while True:
            owner = database.locks.get(token)
            if owner is self:
                return
            if owner is None:
                database.locks[token] = self
                self._tokens.append(token)
                if self.refreshes and not self.overlays:
                    self.snapshot = database.sequence
                return
            if not database.condition.wait(deadline - time.monotonic()) and time.monotonic() >= deadline:
                raise ServerError(1200, "conflict: timeout waiting to lock key")

    # -- ending ---------------------------------------------------------------------------------------------------

    def commit(self) -> None:
        database = self.database
        with database.condition:
            if self.overlays:
                database.sequence += 1
                watched = len(database.active) > 1
                for name, overlay in self.overlays.items():
                    collection = database.find_collection(name)
                    if collection is not None:
                        self._apply(collection, overlay, watched)
            self._end("committed")

    def _apply(self, collection: Collection, overlay: _Overlay, watched: bool) -> None:
        for key, document in overlay.writes.items():
            if watched:
                before = collection.documents.get(key)
                collection.history.setdefault(key, []).append((self.database.sequence, before))
                collection.changed[key] = self.database.sequence
            collection.apply(key, document)

    def abort(self) -> None:
        with self.database.condition:
            self._end("aborted")

    def _end(self, status: str) -> None:
        database = self.database
        if self.status != "running":
            return
        self.status = status
        self.overlays = {}
        for token in self._tokens:
            if database.locks.get(token) is self:
                del database.locks[token]
        for name in list(database.writers):
            database.writers[name].discard(self)
        database.active.discard(self)
        _forget_history(database)
        database.condition.notify_all()


def _forget_history(database: Database) -> None:
    """Drop old versions that no running transaction can see any more."""
    oldest = min((running.snapshot for running in database.active), default=None)
    for collection in database.collections.values():
        if oldest is None:
            collection.history.clear()
            collection.changed.clear()
