"""Row operations of the port; bulk."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Protocol, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hades.errors import BadQuery, BadRows
from hades.ports.store import (
    BATCH_ROWS,
    Changes,
    Direction,
    MarkedRows,
    Mode,
    Predicate,
    Rows,
    RowStore,
    Term,
    WriteReport,
)
from hades.stores import row_checks as rules
from hades.stores.arango import client, read, write
from hades.stores.arango import write as writing
from hades.stores.arango.encode import condition
from hades.stores.arango.read import Scope
from hades.stores.arango.transaction import Unit, in_unit
from hades.stores.arango.write import Journal, Kind, Operation
from schemas.catalogue import Collection
from schemas.ids import Mask, split_id

# The row operations of the port, on the store or inside a transaction.


Result = TypeVar("Result")


class _Write(Protocol):
    """Writes one prepared batch inside a transaction."""

    def __call__(self, scope: Scope, table: pa.Table) -> None: ...


class ArangoRows:
    """A `RowStore`. Outside a transaction each batch of a write is a transaction of its own."""

    def __init__(self, scope: Scope, writable: frozenset[str] | None = None) -> None:
        self._scope = scope
        self._session = scope.session
        self._writable = writable

    @property
    def mode(self) -> Mode:
        """What this handle may do."""
        return self._session.mode

    def upsert(self, collection: str, rows: Rows, *, check_rev: bool = False) -> WriteReport:
        """See `RowStore.upsert`."""
        target = self._to_write(collection)

        def write(scope: Scope, table: pa.Table) -> None:
            writing.put(scope, target, table, check_rev=check_rev, repeats=self._scope.unit is None)

        return self._each_batch(
            target,
            rows,
            write,
            lambda table: rules.prepare(target, table, with_rev=check_rev),
            repeatable=not check_rev,
        )

    def patch(self, collection: str, rows: Rows) -> WriteReport:
        """See `RowStore.patch`."""
        target = self._to_write(collection)

        def write(scope: Scope, table: pa.Table) -> None:
            writing.change(scope, target, table)

        return self._each_batch(target, rows, write, lambda table: rules.prepare(target, table, partial=True))

    def delete(self, collection: str, *, keys: Iterable[str] = (), where: Predicate = ()) -> int:
        """See `RowStore.delete`."""
        wanted = sorted(set(keys))
        refuse_both(collection, wanted, where)
        target = self._to_write(collection)
        if where:
            narrowed = condition(target, where)
            return self._in_unit(target, lambda scope: writing.remove_where(scope, target, narrowed), patient=True)
        if wanted:
            return self._in_unit(target, lambda scope: writing.remove_keys(scope, target, wanted))
        return 0

    def get(
        self, collection: str, keys: Sequence[str], *, columns: Sequence[str] | None = None, with_rev: bool = False
    ) -> pa.Table:
        """See `RowStore.get`."""
        return read.get(self._scope, rules.require(collection), keys, columns, with_rev)

    def scan(
        self,
        collection: str,
        *,
        where: Predicate = (),
        columns: Sequence[str] | None = None,
        batch_rows: int = BATCH_ROWS,
    ) -> Iterator[pa.RecordBatch]:
        """See `RowStore.scan`."""
        return read.scan(self._scope, rules.require(collection), where, columns, batch_rows)

    def scan_marked(
        self, collection: str, *, columns: Sequence[str], known: AbstractSet[str] = frozenset()
    ) -> Iterator[MarkedRows]:
        """See `RowStore.scan_marked`: the server keeps no marks, so everything is read."""
        for batch in self.scan(collection, columns=columns or ["_key"]):
            yield MarkedRows("", batch.num_rows, batch if columns else None)

    def last(
        self,
        collection: str,
        *,
        same: Term,
        by: str,
        at_most: object,
        limit: int,
        columns: Sequence[str] | None = None,
    ) -> pa.Table:
        """See `RowStore.last`."""
        return read.last(self._scope, rules.require(collection), same, by, at_most, limit, columns)

    def changes(self, collection: str, since: int) -> Changes | None:
        """See `RowStore.changes`: the server's own search is used instead."""
        return None

    def marks(self, collections: Sequence[str]) -> dict[str, str]:
        """See `RowStore.marks`: a server's revisions differ between replicas, so nothing is promised."""
        return {}

    def count(self, collection: str, *, where: Predicate = ()) -> int:
        """See `RowStore.count`."""
        return read.count(self._scope, rules.require(collection), where)

    def search(self, collection: str, text: str, *, limit: int, where: Predicate = ()) -> pa.Table:
        """See `RowStore.search`."""
        return read.search(self._scope, rules.require(collection), text, limit, where)

    def nearest(
        self, collection: str, vector: Sequence[float], *, model: str, limit: int, where: Predicate = ()
    ) -> pa.Table:
        """See `RowStore.nearest`."""
        return read.nearest(self._scope, rules.require(collection), vector, model, limit, where)

    def neighbours(
        self,
        nodes: Sequence[str],
        *,
        edges: str = "relations",
        direction: Direction = Direction.OUT,
        types: Sequence[str] | None = None,
        fanout: int,
        mask: Mask = Mask(),
    ) -> pa.Table:
        """See `RowStore.neighbours`."""
        return read.neighbours(self._scope, nodes, edges, direction, types, fanout, mask)

    def _to_write(self, name: str) -> Collection:
        self._session.require_write(f"writing {name}")
        collection = rules.require(name)
        if self._writable is not None and name not in self._writable:
            raise BadQuery(
                f"this transaction was opened for {', '.join(sorted(self._writable))}, not for {name}; name it too"
            )
        return collection

    def _each_batch(
        self,
        collection: Collection,
        rows: Rows,
        write: _Write,
        prepare: Callable[[pa.Table], pa.Table],
        *,
        repeatable: bool = True,
    ) -> WriteReport:
        written = batches = 0
        for given in rules.as_tables(rows):
            table = prepare(given)
            if table.num_rows:
                self._in_unit(collection, partial(write, table=table), repeatable=repeatable)
            written, batches = written + table.num_rows, batches + 1
        return WriteReport(written, batches)

    def _in_unit(
        self,
        collection: Collection,
        work: Callable[[Scope], Result],
        *,
        patient: bool = False,
        repeatable: bool = True,
    ) -> Result:
        """Do it in the transaction we are in, or in one of its own."""
        action = f"writing {collection.name}"
        if self._scope.unit is not None:
            return self._session.run(action, lambda: work(self._scope), again=False, writes=True)

        def alone(unit: Unit) -> Result:
            return work(Scope(self._session, unit, bare=True))

        return in_unit(self._session, action, [collection.name], alone, patient=patient, repeatable=repeatable)


def refuse_both(collection: str, keys: Sequence[str], where: Predicate) -> None:
    """Refuse a deletion by keys and by a predicate at once; asks no server."""
    if keys and where:
        raise BadQuery(f"delete from {collection} by keys or by a predicate, not by both")


# Writes of any size: queued, checked against what is stored and queued, and done in units the server accepts. No
# transaction is open while the caller computes or reads, so none can expire. What was queued is written before a
# read of the same collection and at the end: in one transaction where it fits, through the journal where it does
# not.


Unfinished = Callable[[RowStore], object]
_COSTS = {"put": client.put_costs, "change": client.change_costs, "remove": client.remove_costs}


class BulkRows(ArangoRows):
    """A `RowStore` that queues its writes; see `GraphStore.bulk`."""

    def __init__(self, scope: Scope, writable: frozenset[str], unfinished: Unfinished | None) -> None:
        super().__init__(scope, writable)
        self._unfinished = unfinished
        self._unit_bytes = self._session.unit_size.unit_bytes
        self._journal = Journal(self._session)
        self._queue: list[Operation] = []
        self._queued_bytes = 0
        self._waiting: set[str] = set()
        self._written: dict[str, set[str]] = {}
        self._removed: dict[str, set[str]] = {}

    def finish(self) -> None:
        """Write what is queued, as the last part of the whole."""
        self._flush()

    def give_up(self) -> None:
        """Drop what is queued; what was written before a read stays."""
        self._queue = []
        self._journal.discard()

    def upsert(self, collection: str, rows: Rows, *, check_rev: bool = False) -> WriteReport:
        """See `RowStore.upsert`."""
        target = self._to_write(collection)
        if check_rev:
            self._settle(collection)
            return ArangoRows(self._scope, self._writable).upsert(collection, rows, check_rev=True)
        return self._enqueue_all(target, rows, "put")

    def patch(self, collection: str, rows: Rows) -> WriteReport:
        """See `RowStore.patch`."""
        return self._enqueue_all(self._to_write(collection), rows, "change")

    def delete(self, collection: str, *, keys: Iterable[str] = (), where: Predicate = ()) -> int:
        """See `RowStore.delete`."""
        target = self._to_write(collection)
        wanted = sorted(set(keys))
        if wanted and where:
            raise BadQuery(f"delete from {collection} by keys or by a predicate, not by both")
        if where:
            wanted = [key for batch in self.scan(collection, where=where, columns=["_key"]) for key in _keys(batch)]
        elif wanted:
            missing = self._missing(collection, wanted)
            wanted = [key for key in wanted if key not in missing]
        if wanted:
            self._enqueue(target, pa.table({"_key": pa.array(wanted, pa.string())}), "remove")
        return len(wanted)

    def get(
        self, collection: str, keys: Sequence[str], *, columns: Sequence[str] | None = None, with_rev: bool = False
    ) -> pa.Table:
        """See `RowStore.get`."""
        self._settle(collection)
        return super().get(collection, keys, columns=columns, with_rev=with_rev)

    def scan(
        self,
        collection: str,
        *,
        where: Predicate = (),
        columns: Sequence[str] | None = None,
        batch_rows: int = BATCH_ROWS,
    ) -> Iterator[pa.RecordBatch]:
        """See `RowStore.scan`."""
        self._settle(collection)
        return super().scan(collection, where=where, columns=columns, batch_rows=batch_rows)

    def last(
        self,
        collection: str,
        *,
        same: Term,
        by: str,
        at_most: object,
        limit: int,
        columns: Sequence[str] | None = None,
    ) -> pa.Table:
        """See `RowStore.last`."""
        self._settle(collection)
        return super().last(collection, same=same, by=by, at_most=at_most, limit=limit, columns=columns)

    def count(self, collection: str, *, where: Predicate = ()) -> int:
        """See `RowStore.count`."""
        self._settle(collection)
        return super().count(collection, where=where)

    def search(self, collection: str, text: str, *, limit: int, where: Predicate = ()) -> pa.Table:
        """See `RowStore.search`."""
        self._settle(collection)
        return super().search(collection, text, limit=limit, where=where)

    def nearest(
        self, collection: str, vector: Sequence[float], *, model: str, limit: int, where: Predicate = ()
    ) -> pa.Table:
        """See `RowStore.nearest`."""
        self._settle(collection)
        return super().nearest(collection, vector, model=model, limit=limit, where=where)

    def neighbours(
        self,
        nodes: Sequence[str],
        *,
        edges: str = "relations",
        direction: Direction = Direction.OUT,
        types: Sequence[str] | None = None,
        fanout: int,
        mask: Mask = Mask(),
    ) -> pa.Table:
        """See `RowStore.neighbours`."""
        self._settle(edges)
        return super().neighbours(nodes, edges=edges, direction=direction, types=types, fanout=fanout, mask=mask)

    def _enqueue_all(self, collection: Collection, rows: Rows, kind: Kind) -> WriteReport:
        written = batches = 0
        for given in rules.as_tables(rows):
            table = rules.prepare(collection, given, partial=kind == "change")
            if table.num_rows:
                self._check(collection, table, kind)
                self._enqueue(collection, table, kind)
            written, batches = written + table.num_rows, batches + 1
        return WriteReport(written, batches)

    def _check(self, collection: Collection, table: pa.Table, kind: Kind) -> None:
        """Refuse rows now that could not be written later, when part of the whole is done."""
        if kind == "change":
            keys = table.column("_key").to_pylist()
            missing = self._missing(collection.name, keys)
            if missing:
                row = next(row for row, key in enumerate(keys) if key in missing)
                raise BadRows(collection.name, row, "there is no row to patch; upsert it first", keys[row])
        elif collection.edge:
            for end in ("_from", "_to"):
                self._check_ends(collection, table, end)

    def _check_ends(self, collection: Collection, table: pa.Table, end: str) -> None:
        column = table.column(end)
        by_collection: dict[str, list[str]] = {}
        for identifier in pc.unique(column).to_pylist():
            name, key = split_id(identifier)
            by_collection.setdefault(name, []).append(key)
        missing = {f"{name}/{key}" for name, keys in by_collection.items() for key in self._missing(name, keys)}
        if missing:
            row = pc.index(pc.is_in(column, value_set=pa.array(sorted(missing))), True).as_py()
            raise BadRows(
                collection.name,
                row,
                f"{end} points at {column[row].as_py()}, which is not stored; write the node first",
                table.column("_key")[row].as_py(),
            )

    def _missing(self, collection: str, keys: Sequence[str]) -> set[str]:
        """Which keys name no row, stored or queued."""
        queued, removed = self._written.get(collection, set()), self._removed.get(collection, set())
        unknown = [key for key in keys if key not in queued and key not in removed]
        missing = {key for key in keys if key in removed}
        return missing | (read.missing_keys(self._scope, collection, unknown) if unknown else set())

    def _enqueue(self, collection: Collection, table: pa.Table, kind: Kind) -> None:
        keys = table.column("_key").to_pylist()
        queued = self._written.setdefault(collection.name, set())
        removed = self._removed.setdefault(collection.name, set())
        if kind == "remove":
            queued.difference_update(keys)
            removed.update(keys)
        elif kind == "put":
            queued.update(keys)
            removed.difference_update(keys)
        self._waiting.add(collection.name)
        ends = np.cumsum(_COSTS[kind](collection, table))
        start, spent = 0, 0
        while start < table.num_rows:
            room = self._unit_bytes - self._queued_bytes
            stop = int(np.searchsorted(ends, spent + room, side="right"))
            if stop <= start:
                if self._queue:
                    self._seal()
                    continue
                stop = start + 1  # a row that is larger than a unit goes alone
            self._queue.append(Operation(kind, collection.name, table.slice(start, stop - start)))
            self._queued_bytes += int(ends[stop - 1]) - spent
            start, spent = stop, int(ends[stop - 1])

    def _seal(self) -> None:
        """Keep what is queued as a piece of the journal, so that no more than one unit is held here."""
        if self._journal.is_empty:
            write.remove_abandoned(self._session)
        self._journal.add(self._queue, self._queued_bytes)
        self._queue, self._queued_bytes = [], 0

    def _settle(self, collection: str) -> None:
        """Write what is queued when it touches a collection that is about to be read."""
        if collection not in self._waiting:
            return
        if self._unfinished is not None:
            unfinished, self._unfinished = self._unfinished, None
            unfinished(ArangoRows(self._scope, self._writable))
        self._flush()

    def _flush(self) -> None:
        if not self._journal.is_empty:
            if self._queue:
                self._seal()
            self._journal.complete()
            self._journal = Journal(self._session)
        elif self._queue:
            write.write_unit(self._session, self._queue)
        self._queue, self._queued_bytes = [], 0
        self._waiting.clear()
        self._written.clear()
        self._removed.clear()


def _keys(batch: pa.RecordBatch) -> list[str]:
    keys: list[str] = batch.column("_key").to_pylist()
    return keys
