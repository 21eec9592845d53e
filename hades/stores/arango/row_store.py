"""The row operations of the port, on the store or inside a transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Protocol, TypeVar

import pyarrow as pa

from hades.errors import BadQuery
from hades.ports.store import BATCH_ROWS, Changes, Direction, MarkedRows, Mode, Predicate, Rows, Term, WriteReport
from hades.stores import rows as rules
from hades.stores.arango import reading, searching, walking, writing
from hades.stores.arango.scope import Scope
from hades.stores.arango.terms import condition
from hades.stores.arango.transaction import Unit, in_unit
from schemas.catalogue import Collection
from schemas.intervals import Mask

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
        return reading.get(self._scope, rules.require(collection), keys, columns, with_rev)

    def scan(
        self,
        collection: str,
        *,
        where: Predicate = (),
        columns: Sequence[str] | None = None,
        batch_rows: int = BATCH_ROWS,
    ) -> Iterator[pa.RecordBatch]:
        """See `RowStore.scan`."""
        return reading.scan(self._scope, rules.require(collection), where, columns, batch_rows)

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
        return reading.last(self._scope, rules.require(collection), same, by, at_most, limit, columns)

    def changes(self, collection: str, since: int) -> Changes | None:
        """See `RowStore.changes`: the server's own search is used instead."""
        return None

    def marks(self, collections: Sequence[str]) -> dict[str, str]:
        """See `RowStore.marks`: a server's revisions differ between replicas, so nothing is promised."""
        return {}

    def count(self, collection: str, *, where: Predicate = ()) -> int:
        """See `RowStore.count`."""
        return reading.count(self._scope, rules.require(collection), where)

    def search(self, collection: str, text: str, *, limit: int, where: Predicate = ()) -> pa.Table:
        """See `RowStore.search`."""
        return searching.search(self._scope, rules.require(collection), text, limit, where)

    def nearest(
        self, collection: str, vector: Sequence[float], *, model: str, limit: int, where: Predicate = ()
    ) -> pa.Table:
        """See `RowStore.nearest`."""
        return searching.nearest(self._scope, rules.require(collection), vector, model, limit, where)

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
        return walking.neighbours(self._scope, nodes, edges, direction, types, fanout, mask)

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
