"""Writes of any size: queued, checked against what is stored and queued, and done in units the server accepts.

No transaction is open while the caller computes or reads, so none can expire. What was queued is written before a
read of the same collection and at the end: in one transaction where it fits, through the journal where it does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hades.errors import BadQuery, BadRows
from hades.ports.store import BATCH_ROWS, Direction, Predicate, Rows, RowStore, Term, WriteReport
from hades.stores import rows as rules
from hades.stores.arango import costs, journal, reading
from hades.stores.arango.journal import Journal, Kind, Operation
from hades.stores.arango.row_store import ArangoRows
from hades.stores.arango.scope import Scope
from schemas.catalogue import Collection
from schemas.ids import split_id
from schemas.intervals import Mask

Unfinished = Callable[[RowStore], object]
_COSTS = {"put": costs.put_costs, "change": costs.change_costs, "remove": costs.remove_costs}


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
        return missing | (reading.missing_keys(self._scope, collection, unknown) if unknown else set())

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
            journal.remove_abandoned(self._session)
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
            journal.write_unit(self._session, self._queue)
        self._queue, self._queued_bytes = [], 0
        self._waiting.clear()
        self._written.clear()
        self._removed.clear()


def _keys(batch: pa.RecordBatch) -> list[str]:
    keys: list[str] = batch.column("_key").to_pylist()
    return keys
