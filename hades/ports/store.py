"""The system of record."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, get_args

import pyarrow as pa

# The system of record, as builds and memory see it: Arrow in, Arrow out, in bulk. Both stores keep
# these promises and one suite (`tests/contract/`) holds them to it: - Rows are Arrow tables in the
# schema the catalogue declares. Absent nullable columns are null, absent columns with a default
# take it; other absent or unknown columns are an error. - A bad row raises `BadRows` with its
# number and the rule, and nothing of that call is written. - Reads come in a stated order, so equal
# contents give equal tables on every store. - A write through a read-only handle raises `ReadOnly`
# before anything is sent.
Operator = Literal["==", "!=", "<", "<=", ">", ">=", "in", "is_null", "not_null", "starts_with"]
OPERATORS: tuple[Operator, ...] = get_args(Operator)
BATCH_ROWS = 65_536
MAX_ROW_BYTES = 8 * 1024 * 1024
Row = dict[str, Any]  # of a collection, by column
Rows: TypeAlias = "pa.Table | pa.RecordBatch | Iterable[pa.RecordBatch]"


class Mode(StrEnum):
    """What a handle may do: read; read and write rows; also create collections, indexes and
    views.
    """

    READ_ONLY = "ro"
    READ_WRITE = "rw"
    ADMIN = "admin"


class Direction(StrEnum):
    """Which way edges are followed from a node."""

    OUT = "outbound"
    IN = "inbound"
    ANY = "any"


@dataclass(frozen=True)
class Term:
    """One condition on a top-level column. Null satisfies `is_null` and nothing else."""

    column: str
    op: Operator
    value: object = None


Predicate: TypeAlias = Sequence[Term]  # all must hold


@dataclass(frozen=True)
class ProvisionReport:
    """What provisioning made; all empty the second time."""

    created: tuple[str, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Check:
    """One line of an examination: what was looked at, how it stands, what was found, and what to do
    about it.
    """

    name: str
    status: Literal["ok", "warn", "fail"]
    found: str
    next: str = ""


class RowStore(Protocol):
    """Reading and writing rows; what a transaction offers too."""

    def upsert(self, collection: str, rows: Rows) -> int:
        """Insert rows or replace those with the same `_key`, whole. Returns how many rows were
        given.

        is one batch; an iterable of batches is written batch by batch. Each batch is all there or
        not at all (inside a transaction: all batches). Edges: both ends must exist, in a collection
        the edge definition allows. Cost: sorting and one pass over the pages or documents touched.
        """

    def patch(self, collection: str, rows: Rows) -> int:
        """Change some columns of rows that exist: `_key` and the columns to set. A missing row
        raises `BadRows`.

        The ends of an edge cannot be patched. Cost as `upsert`.
        """

    def delete(
        self,
        collection: str,
        *,
        keys: Iterable[str] = (),
        where: Predicate = (),
    ) -> int:
        """Remove rows by key or by predicate (exactly one of the two); unknown keys are ignored.
        Returns how many went.

        Edges that point at a removed node are not followed: delete them first (`dangling` finds
        what was forgotten).
        """

    def get(
        self,
        collection: str,
        keys: Sequence[str],
        *,
        columns: Sequence[str] | None = None,
    ) -> pa.Table:
        """The rows that exist among these keys, in key order, each once. Cost: one look-up a
        key.
        """

    def scan(
        self,
        collection: str,
        *,
        where: Predicate = (),
        columns: Sequence[str] | None = None,
        batch_rows: int = BATCH_ROWS,
    ) -> Iterator[pa.RecordBatch]:
        """All rows that satisfy the predicate, in key order, as they were when the scan began.

        Streams: memory holds a few batches, however large the collection. The predicate runs in the
        store; an equality or `in` on an indexed column reads only what it selects.
        """

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
        """The `limit` rows with the greatest `by` not above `at_most` among those that `same` (an
        equality) selects.

        Greatest first, then greatest key. The catalogue must declare an index on (`same.column`,
        `by`): the cost is one look-up and the rows returned, however many there are.
        """

    def marks(self, collections: Sequence[str]) -> dict[str, str]:
        """A text for each collection that changes whenever one of its rows does; equal marks mean
        equal rows.

        Cheap: no row is read. A store that cannot tell leaves the collection out, and the caller
        does the work.
        """

    def count(self, collection: str, *, where: Predicate = ()) -> int:
        """How many rows satisfy the predicate; constant time without one."""


class GraphStore(RowStore, Protocol):
    """The store itself: rows, transactions, provisioning, health."""

    def provision(
        self,
        only: str | None = None,
        *,
        replicas: int | None = None,
    ) -> ProvisionReport:
        """Create what the catalogue declares and is not there. Admin only; safe to repeat.

        `only` names a part (`schemas.catalogue`): a smaller database for one purpose. Without it a
        database stays what it was made for, and a new one gets everything. `replicas` says on how
        many servers of a cluster each row of a new database is.
        """

    def transaction(self, collections: Sequence[str]) -> AbstractContextManager[RowStore]:
        """All or nothing across these collections: commits at the end, rolls back on any exception.

        Reads inside see the transaction's own writes; other readers see none of them before the
        commit. A row that another writer changed since the transaction began cannot be written in
        it: `StoreBusy`, begin again.
        """

    def bulk(
        self,
        collections: Sequence[str],
        *,
        unfinished: Callable[[RowStore], object] | None = None,
    ) -> AbstractContextManager[RowStore]:
        """Like `transaction`, for writes of any size; the caller must be able to do the whole
        again.

        A store that takes everything in one transaction does so. One that cannot writes in bounded
        units, so that a failure leaves all or nothing of the writes between two reads of what was
        written, and a kill is made good by the next writer. `unfinished` is called before the first
        part is visible while others are still to come: it opens ledger records, so that nobody
        takes the half for the whole. Write the ledger record last.
        """

    def reading(self) -> AbstractContextManager[RowStore]:
        """Read several collections as of one moment, while others write.

        SQLite reads one state of its file. ArangoDB has no such view over collections of any size:
        there each collection is read as it is, and whoever needs all of them as of one moment lets
        no other write.
        """

    def counts(self) -> dict[str, int]:
        """Rows per collection, in catalogue order; 0 for one that a smaller database does not
        have.
        """

    def dangling(self) -> dict[str, list[str]]:
        """Keys of edges whose end is missing, per edge collection that has any; the whole store is
        read.
        """

    def compact(self) -> bool:
        """Rewrite what the store keeps without what was deleted from it.

        True when no deleted row can be read from the store's own files any more; False while
        another process holds them open, and for a server, which rewrites its files in its own time.
        """

    def check(self) -> list[str]:
        """What is wrong with the store, in sentences; empty when it is sound. Reads everything."""

    def describe(self) -> dict[str, str]:
        """Where and what the store is, for `hades doctor`: no credential in it."""

    def close(self) -> None:
        """Give back files and connections; the handle is unusable afterwards."""


class RowChange(NamedTuple):
    """A row that two states of a store do not share; of a changed one, the columns that differ."""

    collection: str
    key: str
    change: Literal["added", "changed", "removed"]
    columns: tuple[str, ...] = ()


class StateFile(Protocol):
    """A store that is one file: its state can be copied, built further aside, and what came of it
    taken over.
    """

    def copy(self, target: Path) -> int:
        """Copy it as of one moment to a new file; the number of its last write."""

    def write_changes(
        self,
        after: Path,
        since: int,
        target: Path,
    ) -> None:
        """Keep in a new file what a copy of that write came to hold and this store does not."""

    def read_changes(self, changes: Path) -> list[RowChange]:
        """What such a file says, by collection and key."""

    def replay(self, changes: Path, marks: Mapping[str, str]) -> None:
        """Take the changes over in one transaction; `PlanOutdated` and nothing is done where a
        collection has another mark and the changes are not here already.
        """


def scan_rows(
    store: RowStore,
    collection: str,
    *,
    where: Predicate = (),
    columns: Sequence[str] | None = None,
) -> Iterator[dict[str, Any]]:
    """The rows that satisfy a predicate as dictionaries, in key order."""
    for batch in store.scan(
        collection,
        where=where,
        columns=columns,
    ):
        yield from batch.to_pylist()


def scan_values(
    store: RowStore,
    collection: str,
    column: str,
    *,
    where: Predicate = (),
) -> Iterator[Any]:
    """One column of the rows that satisfy a predicate, in key order."""
    for batch in store.scan(
        collection,
        where=where,
        columns=[column],
    ):
        yield from batch.column(column).to_pylist()
