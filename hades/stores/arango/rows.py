"""Row operations of the port; bulk."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from aql import load
from hades.errors import BadQuery
from hades.ports.store import BATCH_ROWS, Predicate, Rows, RowStore, Term, scan_values
from hades.stores import row_checks as rules
from hades.stores.arango import encode, read, write
from hades.stores.arango.client import write_costs
from hades.stores.arango.encode import bound_value, condition
from hades.stores.arango.read import Scope
from hades.stores.arango.transaction import Unit, in_unit
from hades.stores.arango.write import Journal, Kind, Operation
from schemas.catalogue import Collection, columns_schema

Result = TypeVar("Result")
_COUNTS = {
    "all": "rows/count_all",
    "where": "rows/count_where",
    "among": "rows/count_among",
}


class ArangoRows(RowStore):
    """A `RowStore`. Outside a transaction each batch of a write is a transaction of its own."""

    def __init__(self, scope: Scope, writable: frozenset[str] | None = None) -> None:
        self._scope = scope
        self.session = scope.session
        self._writable = writable

    def upsert(self, collection: str, rows: Rows) -> int:
        return self._each_batch(collection, rows, "put")

    def patch(self, collection: str, rows: Rows) -> int:
        return self._each_batch(collection, rows, "change")

    def delete(
        self,
        collection: str,
        *,
        keys: Iterable[str] = (),
        where: Predicate = (),
    ) -> int:
        sorted_keys = sorted(set(keys))
        rules.refuse_both(collection, sorted_keys, where)
        target = self._to_write(collection)

        if where:
            narrowed = condition(target, where)
            return self._in_unit(
                target,
                lambda scope: write.remove_keys(
                    scope,
                    target,
                    read.keys_where(scope, target, narrowed),
                ),
                patient=True,
            )

        if sorted_keys:
            return self._in_unit(
                target,
                lambda scope: write.remove_keys(scope, target, sorted_keys),
            )

        return 0

    def get(
        self,
        collection: str,
        keys: Sequence[str],
        *,
        columns: Sequence[str] | None = None,
    ) -> pa.Table:
        target = self._to_read(collection)
        names = rules.check_columns(target, columns)
        tables = [columns_schema(collection, names).empty_table()]

        for batch in read.chunks(sorted(set(keys)), read.KEYS_PER_QUERY):
            documents = self._scope.query(
                load("rows/get_rows"),
                {
                    "@collection": target.name,
                    "keys": list(batch),
                    "columns": names,
                },
                f"reading {target.name} by key",
            )
            tables.append(encode.to_table(target, documents, names))

        table = pa.concat_tables(tables).combine_chunks()
        return table.take(pc.sort_indices(table.column("_key")))

    def scan(
        self,
        collection: str,
        *,
        where: Predicate = (),
        columns: Sequence[str] | None = None,
        batch_rows: int = BATCH_ROWS,
    ) -> Iterator[pa.RecordBatch]:
        target = self._to_read(collection)
        narrowed = condition(target, where)
        names = rules.check_columns(target, columns)
        rules.check_limit("batch_rows", batch_rows)
        return read.scan_batches(
            self._scope,
            target,
            narrowed,
            names,
            batch_rows,
        )

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
        target = self._to_read(collection)
        equality, bound = rules.check_last(target, same, by, at_most)
        rules.check_limit("limit", limit)
        names = rules.check_columns(target, columns)
        binds = {
            "@collection": target.name,
            "column": equality.column,
            "value": bound_value(equality.value),
            "by": by,
            "high": bound_value(bound.value),
            "limit": limit,
            "columns": names,
        }
        documents = self._scope.query(
            load("rows/list_last"),
            binds,
            f"reading the last rows of {target.name}",
        )
        return encode.to_table(target, documents, names)

    def marks(self, collections: Sequence[str]) -> dict[str, str]:
        """See `RowStore.marks`: a server's revisions differ between replicas, so nothing is
        promised.
        """
        return {}

    def count(self, collection: str, *, where: Predicate = ()) -> int:
        target = self._to_read(collection)
        narrowed = condition(target, where)
        binds = {
            "@collection": target.name,
            **narrowed.binds,
        }
        return int(
            self._scope.query(
                load(_COUNTS[narrowed.kind]),
                binds,
                f"counting {target.name}",
            )[0]
        )

    def _to_read(self, name: str) -> Collection:
        self.session.require_answer(f"reading {name}")
        return rules.require(name)

    def _to_write(self, name: str) -> Collection:
        self.session.require_write(f"writing {name}")
        collection = rules.require(name)
        if self._writable is not None and name not in self._writable:
            raise BadQuery(
                f"this transaction was opened for {', '.join(sorted(self._writable))}, not for "
                f"{name}; name it too"
            )

        return collection

    def _each_batch(self, name: str, rows: Rows, kind: Kind) -> int:
        collection = self._to_write(name)
        written = 0
        for batch in rules.as_tables(rows):
            table = rules.prepare(
                collection,
                batch,
                partial=kind == "change",
            )
            if table.num_rows:
                self.write_batch(collection, table, kind)
            written += table.num_rows

        return written

    def write_batch(
        self,
        collection: Collection,
        table: pa.Table,
        kind: Kind,
    ) -> None:
        """Put or change rows that were prepared."""
        act = write.put if kind == "put" else write.change
        self._in_unit(collection, lambda scope: act(scope, collection, table))

    def _in_unit(
        self,
        collection: Collection,
        work: Callable[[Scope], Result],
        *,
        patient: bool = False,
    ) -> Result:
        """Do it in the transaction we are in, or in one of its own."""
        action = f"writing {collection.name}"
        if self._scope.unit is not None:
            return self.session.run(
                action,
                lambda: work(self._scope),
                again=False,
                writes=True,
            )

        def alone(unit: Unit) -> Result:
            return work(Scope(self.session, unit, bare=True))

        return in_unit(
            self.session,
            action,
            [collection.name],
            alone,
            patient=patient,
        )


# Writes of any size: queued, checked against what is stored and queued, and done in units the
# server accepts. No transaction is open while the caller computes or reads, so none can expire.
# What was queued is written before a read of the same collection and at the end: in one transaction
# where it fits, through the journal where it does not.


class BulkRows(ArangoRows):
    """A `RowStore` that queues its writes; see `GraphStore.bulk`."""

    def __init__(
        self,
        scope: Scope,
        writable: frozenset[str],
        unfinished: Callable[[RowStore], object] | None,
    ) -> None:
        super().__init__(scope, writable)
        self._unfinished = unfinished
        self._unit_bytes = self.session.unit_size.unit_bytes
        self._journal = Journal(self.session)
        self._queue: list[Operation] = []
        self._queued_bytes = 0
        self._waiting: set[str] = set()
        self._written: dict[str, set[str]] = {}
        self._removed: dict[str, set[str]] = {}

    def give_up(self) -> None:
        """Drop what is queued; what was written before a read stays."""
        self._queue = []
        self._journal.discard()

    def delete(
        self,
        collection: str,
        *,
        keys: Iterable[str] = (),
        where: Predicate = (),
    ) -> int:
        target = self._to_write(collection)
        stored_keys = sorted(set(keys))
        rules.refuse_both(collection, stored_keys, where)

        if where:
            stored_keys = list(scan_values(self, collection, "_key", where=where))
        elif stored_keys:
            missing = self._missing(collection, stored_keys)
            stored_keys = [key for key in stored_keys if key not in missing]

        if stored_keys:
            self._enqueue(
                target,
                pa.table({"_key": pa.array(stored_keys, pa.string())}),
                "remove",
            )

        return len(stored_keys)

    def _to_read(self, name: str) -> Collection:
        """See `ArangoRows`; what is queued is written when it touches the collection."""
        if name in self._waiting:
            if self._unfinished is not None:
                unfinished, self._unfinished = self._unfinished, None
                unfinished(ArangoRows(self._scope, self._writable))

            self.flush()

        return super()._to_read(name)

    def write_batch(
        self,
        collection: Collection,
        table: pa.Table,
        kind: Kind,
    ) -> None:
        """Queue rows; those that could not be written later, when part of the whole is done, are
        refused now.
        """
        if kind == "change":
            rules.refuse_unknown(
                collection,
                table,
                self._missing(collection.name, table.column("_key").to_pylist()),
            )
        elif collection.edge:
            rules.check_stored_ends(
                collection,
                table,
                self._missing,
            )

        self._enqueue(collection, table, kind)

    def _missing(self, collection: str, keys: Sequence[str]) -> set[str]:
        """Which keys name no row, stored or queued."""
        queued = self._written.get(collection, set())
        removed = self._removed.get(collection, set())

        unknown = []
        for key in keys:
            if key not in queued and key not in removed:
                unknown.append(key)

        missing = {key for key in keys if key in removed}
        return missing | (read.missing_keys(self._scope, collection, unknown) if unknown else set())

    def _enqueue(
        self,
        collection: Collection,
        table: pa.Table,
        kind: Kind,
    ) -> None:
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
        ends = np.cumsum(write_costs(kind, collection, table))
        start = 0
        spent = 0

        while start < table.num_rows:
            room = self._unit_bytes - self._queued_bytes
            stop = int(np.searchsorted(ends, spent + room, side="right"))
            if stop <= start:
                if self._queue:
                    self._seal()
                    continue

                stop = start + 1  # a row that is larger than a unit goes alone

            self._queue.append(
                Operation(
                    kind,
                    collection.name,
                    table.slice(start, stop - start),
                )
            )
            self._queued_bytes += int(ends[stop - 1]) - spent
            start = stop
            spent = int(ends[stop - 1])

    def _seal(self) -> None:
        """Keep what is queued as a piece of the journal, so that no more than one unit is held
        here.
        """
        if self._journal.is_empty:
            write.remove_abandoned(self.session)

        self._journal.add(self._queue, self._queued_bytes)
        self._queue, self._queued_bytes = [], 0

    def flush(self) -> None:
        """Write what is queued."""
        if not self._journal.is_empty:
            if self._queue:
                self._seal()

            self._journal.complete()
            self._journal = Journal(self.session)
        elif self._queue:
            write.write_unit(self.session, self._queue)

        self._queue, self._queued_bytes = [], 0
        self._waiting.clear()
        self._written.clear()
        self._removed.clear()
