"""Rows, bulk writes, journal of large ones."""

from __future__ import annotations

import base64
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import pyarrow as pa
from arango.exceptions import (
    ArangoServerError,
    DocumentDeleteError,
    DocumentInsertError,
    DocumentUpdateError,
)

from aql import load
from hades.errors import NotProvisioned
from hades.stores import row_checks as rules
from hades.stores.arango import encode
from hades.stores.arango.client import JOURNAL, ArangoSession
from hades.stores.arango.errors import TooLarge
from hades.stores.arango.read import KEYS_PER_QUERY, Scope, chunks, missing_keys
from hades.stores.arango.transaction import Unit, in_unit
from schemas.catalogue import Collection

REQUEST_BYTES = 12 * 1024 * 1024
_GONE = 1202


def put(
    scope: Scope,
    collection: Collection,
    table: pa.Table,
    *,
    checked: bool = False,
) -> None:
    """Insert or replace prepared rows; the ends of edges are looked for in the same transaction, or
    were `checked`.
    """
    if collection.edge and not checked:
        rules.check_stored_ends(
            collection,
            table,
            partial(missing_keys, scope),
        )

    for piece in encode.pieces(table, REQUEST_BYTES):
        documents = encode.to_documents(collection, piece)
        answers = _documents(scope, collection).insert_many(
            documents,
            overwrite_mode="replace",
        )

        # The driver returns errors as values.
        failed = []
        for answer in answers:
            if isinstance(answer, ArangoServerError):
                failed.append(answer)

        if failed:
            raise failed[0]


def update(
    scope: Scope,
    collection: Collection,
    table: pa.Table,
    passed_over: Sequence[int] = (_GONE,),
) -> None:
    """Set the given columns of rows that were checked; rows that fail with these codes are passed
    over.
    """
    for piece in encode.pieces(table, REQUEST_BYTES):
        documents = encode.to_documents(
            collection,
            piece,
            keep_nulls=True,
        )
        answers = _documents(scope, collection).update_many(
            documents,
            check_rev=False,
            merge=False,
            keep_none=True,
        )

        failed = []
        for answer in answers:
            if isinstance(answer, ArangoServerError) and answer.error_code not in passed_over:
                failed.append(answer)

        if failed:
            raise failed[0]


def change(
    scope: Scope,
    collection: Collection,
    table: pa.Table,
) -> None:
    """Set the given columns of rows that exist, whole columns at a time."""
    missing = missing_keys(
        scope,
        collection.name,
        table.column("_key").to_pylist(),
    )
    rules.refuse_unknown(collection, table, missing)
    update(scope, collection, table, passed_over=())


def remove_keys(
    scope: Scope,
    collection: Collection,
    keys: Sequence[str],
) -> int:
    """Remove the rows of these keys; how many there were."""
    assert scope.unit is not None
    return sum(
        scope.session.change(
            load("rows/delete_keys"),
            {
                "@collection": collection.name,
                "keys": list(batch),
            },
            inside=scope.unit,
        )
        for batch in chunks(keys, KEYS_PER_QUERY)
    )


def _documents(scope: Scope, collection: Collection) -> Any:
    assert scope.unit is not None
    return scope.unit.collection(collection.name)


# A write larger than one unit: first kept in the database as pieces, then applied. Nothing of it is
# visible before the last piece and the head that counts them are stored. From then on it happens
# whatever is killed. All pieces are applied in one transaction where the server's limit has room
# for them, so that readers see the state before or the state after. A larger write is applied piece
# by piece: each piece goes, in the transaction that applies it, and whoever writes or builds next
# applies the rest first. Several processes may apply the same pieces at once: a piece that is gone
# was applied.
COLLECTION = JOURNAL
INDEXES: tuple[tuple[tuple[str, ...], bool], ...] = (
    (("pieces",), True),
    (("write",), True),
    (("written",), True),
)
Kind = Literal["put", "change", "remove"]
_ABANDONED_S = 24 * 3600.0
_MISSING, _TAKEN = 1202, 1210


@dataclass(frozen=True)
class Operation:
    """Rows of one collection to put or change, or to remove by the column `_key`; checked
    before.
    """

    kind: Kind
    collection: str
    rows: pa.Table


class PieceGone(Exception):
    """A piece that somebody else has applied."""


@dataclass(frozen=True)
class Head:
    """A write that is complete in the journal: its id, how many pieces, what they cost together,
    where they write.
    """

    write: str
    pieces: int
    cost: int
    collections: tuple[str, ...]


class Journal:
    """The pieces of one write, until it is complete."""

    def __init__(self, session: ArangoSession) -> None:
        self._session = session
        self._write = uuid.uuid4().hex
        self._pieces = 0
        self._cost = 0
        self._collections: set[str] = set()
        self._is_complete = False

    @property
    def is_empty(self) -> bool:
        """Whether nothing was kept yet."""
        return not self._pieces

    def add(self, operations: Sequence[Operation], cost: int) -> None:
        """Keep a piece: what one transaction will apply, and what it costs of the server's
        limit.
        """
        document = {
            "_key": _piece_key(self._write, self._pieces),
            "write": self._write,
            "written": time.time(),
            "operations": [
                [operation.kind, operation.collection, _pack(operation.rows)]
                for operation in operations
            ],
        }
        _insert_document(self._session, document)
        self._pieces += 1
        self._cost += cost
        self._collections.update(operation.collection for operation in operations)

    def complete(self) -> None:
        """From here on the write happens; apply it."""
        self._is_complete = True
        head = Head(
            self._write,
            self._pieces,
            self._cost,
            tuple(sorted(self._collections)),
        )
        document = {
            "pieces": head.pieces,
            "cost": head.cost,
            "collections": head.collections,
        }
        _insert_document(self._session, {"_key": head.write, **document})
        apply(self._session, head)

    def discard(self) -> None:
        """Give the pieces up, unless the write is complete: then the next writer applies them."""
        if self._pieces and not self._is_complete:
            binds = {"write": self._write}
            in_unit(
                self._session,
                "giving up a write",
                [COLLECTION],
                lambda unit: self._session.change(
                    load("journal/delete_pieces"),
                    binds,
                    inside=unit,
                ),
            )


def apply(session: ArangoSession, head: Head) -> None:
    """Apply the pieces that are left, in order, and take the head away with the last."""
    if head.cost <= session.unit_size.whole_bytes and _apply_at_once(session, head):
        return

    for number in range(head.pieces):
        operations = _read_piece(session, head.write, number)
        if operations is not None:
            key = _piece_key(head.write, number)
            if number == head.pieces - 1:
                gone = [key, head.write]
            else:
                gone = [key]

            write_unit(session, operations, gone)


def write_unit(
    session: ArangoSession,
    operations: Sequence[Operation],
    gone: Sequence[str] = (),
    *,
    part: str | None = None,
) -> None:
    """Do the operations in one transaction, in halves where the server finds it too large; then
    `gone` goes with it.

    `part` is the piece that these operations are the first half of. A piece that is not there any
    more was applied by somebody else: nothing is done.
    """
    names = sorted(
        {operation.collection for operation in operations}
        | ({COLLECTION} if gone or part else set())
    )

    def work(unit: Unit) -> None:
        for key in gone:
            _claim_piece(
                partial(
                    unit.collection(COLLECTION).delete,
                    key,
                    silent=True,
                )
            )

        if part is not None:  # held until the commit, so that nobody applies later pieces meanwhile
            _claim_piece(
                partial(
                    unit.collection(COLLECTION).update,
                    {"_key": part, "halved": True},
                    silent=True,
                )
            )

        scope = Scope(session, unit, bare=True)
        for operation in operations:
            _apply_operation(scope, operation)

    try:
        in_unit(
            session,
            f"writing {', '.join(names)}",
            names,
            work,
            patient=True,
        )
    except PieceGone:
        return
    except TooLarge:
        first, second = _halves(operations)
        if not first:
            raise

        write_unit(
            session,
            first,
            part=gone[0] if gone else part,
        )
        write_unit(
            session,
            second,
            gone,
            part=None if gone else part,
        )


def finish(session: ArangoSession, *, again: bool = False) -> int:
    """Apply what others left complete and unapplied; how many writes.

    A session that may write asks before its first read or write, and `again` before each large one.
    """
    if session.journal_settled and not again:
        return 0

    heads = complete_writes(session)
    for head in heads or ():
        apply(session, head)

    session.journal_settled = True
    return len(heads or ())


def complete_writes(session: ArangoSession) -> list[Head] | None:
    """Writes that are complete and not applied; None where the database has no journal yet."""
    try:
        rows = session.query(
            load("journal/list_complete"),
            {},
            action="opening the database",
        )
    except NotProvisioned:
        return None

    return [
        Head(write, pieces, cost, tuple(collections)) for write, pieces, cost, collections in rows
    ]


def remove_abandoned(session: ArangoSession) -> None:
    """Take away pieces of writes that were given up a day ago or more: nobody completes those."""
    binds = {"before": time.time() - _ABANDONED_S}
    in_unit(
        session,
        "clearing the write journal",
        [COLLECTION],
        lambda unit: session.change(
            load("journal/delete_abandoned"),
            binds,
            inside=unit,
        ),
        patient=True,
    )


def _apply_at_once(session: ArangoSession, head: Head) -> bool:
    """Apply all pieces in one transaction; False where the server finds that too large or a piece
    is gone.
    """

    def work(unit: Unit) -> None:
        scope = Scope(session, unit, bare=True)
        for number in range(head.pieces):
            operations = _read_piece(session, head.write, number)
            if operations is None:
                raise PieceGone

            _claim_piece(
                partial(
                    unit.collection(COLLECTION).delete,
                    _piece_key(head.write, number),
                    silent=True,
                )
            )
            for operation in operations:
                _apply_operation(scope, operation)

        _claim_piece(
            partial(
                unit.collection(COLLECTION).delete,
                head.write,
                silent=True,
            )
        )

    names = [*head.collections, COLLECTION]
    try:
        in_unit(
            session,
            f"writing {', '.join(head.collections)}",
            names,
            work,
            patient=True,
        )
    except (PieceGone, TooLarge):
        return False

    return True


def _read_piece(
    session: ArangoSession,
    write: str,
    number: int,
) -> list[Operation] | None:
    """What a piece holds; None where somebody has applied it."""
    read = partial(
        session.patient_db.collection(COLLECTION).get,
        _piece_key(write, number),
    )
    document: Any = session.run(
        "reading the write journal",
        read,
        again=True,
    )

    if document is None:
        return None

    return [
        Operation(
            kind,
            name,
            pa.ipc.open_stream(base64.b64decode(packed)).read_all(),
        )
        for kind, name, packed in document["operations"]
    ]


def _piece_key(write: str, number: int) -> str:
    return f"{write}-{number:06d}"


def _insert_document(session: ArangoSession, document: dict[str, Any]) -> None:
    def insert() -> None:
        try:
            session.patient_db.collection(COLLECTION).insert(
                document,
                silent=True,
            )
        except DocumentInsertError as error:
            if error.error_code != _TAKEN:  # the first answer was lost: it is there
                raise

    session.run(
        "keeping a large write in the journal",
        insert,
        again=True,
        writes=True,
        patient=True,
    )


def _claim_piece(touch: Callable[[], object]) -> None:
    """Change a piece inside the transaction, or say that it is gone."""
    try:
        touch()
    except (DocumentDeleteError, DocumentUpdateError) as error:
        if error.error_code == _MISSING:
            raise PieceGone from error
        raise


def _apply_operation(scope: Scope, operation: Operation) -> None:
    collection = rules.require(operation.collection)
    if operation.kind == "put":
        put(scope, collection, operation.rows, checked=True)
    elif operation.kind == "change":
        update(scope, collection, operation.rows)
    else:
        remove_keys(
            scope,
            collection,
            operation.rows.column("_key").to_pylist(),
        )


def _halves(operations: Sequence[Operation]) -> tuple[Sequence[Operation], Sequence[Operation]]:
    """The same in two parts, in order: of several operations half each, of one half of its rows."""
    if middle := len(operations) // 2:
        return operations[:middle], operations[middle:]

    (operation,) = operations
    half = operation.rows.num_rows // 2
    if half:
        first = [replace(operation, rows=operation.rows.slice(0, half))]
    else:
        first = []

    return first, [replace(operation, rows=operation.rows.slice(half))]


def _pack(table: pa.Table) -> str:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(
        sink,
        table.schema,
        options=pa.ipc.IpcWriteOptions(compression="zstd"),
    ) as writer:
        writer.write_table(table.combine_chunks())

    return base64.b64encode(sink.getvalue()).decode()
