"""A write larger than one transaction may be: first kept in the database as pieces, then applied piece by piece.

Nothing of it is visible before the last piece and the head that counts them are stored. From then on it happens
whatever is killed: each piece goes, in the transaction that applies it, and whoever writes next applies the rest
first. Several processes may apply the same pieces at once: a piece that is gone was applied.
"""

from __future__ import annotations

import base64
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import pyarrow as pa
from arango.exceptions import DocumentDeleteError, DocumentInsertError, DocumentUpdateError

from aql import load
from hades.errors import NotProvisioned
from hades.stores import rows as rules
from hades.stores.arango import writing
from hades.stores.arango.client import ArangoSession
from hades.stores.arango.faults import TooLarge
from hades.stores.arango.scope import Scope
from hades.stores.arango.transaction import Unit, in_unit

COLLECTION = "write_journal"
INDEXES: tuple[tuple[tuple[str, ...], bool], ...] = ((("pieces",), True), (("write",), True), (("written",), True))
Kind = Literal["put", "change", "remove"]

_ABANDONED_S = 24 * 3600.0
_MISSING, _TAKEN = 1202, 1210


@dataclass(frozen=True)
class Operation:
    """Rows of one collection to put or change, or to remove by the column `_key`; checked before."""

    kind: Kind
    collection: str
    rows: pa.Table


class PieceGone(Exception):
    """A piece that somebody else has applied."""


class Journal:
    """The pieces of one write, until it is complete."""

    def __init__(self, session: ArangoSession) -> None:
        self._session = session
        self._write = uuid.uuid4().hex
        self._pieces = 0
        self._is_complete = False

    @property
    def is_empty(self) -> bool:
        """Whether nothing was kept yet."""
        return not self._pieces

    def add(self, operations: Sequence[Operation]) -> None:
        """Keep a piece: what one transaction will apply."""
        document = {
            "_key": _piece(self._write, self._pieces),
            "write": self._write,
            "written": time.time(),
            "operations": [[one.kind, one.collection, _pack(one.rows)] for one in operations],
        }
        _insert(self._session, document)
        self._pieces += 1

    def complete(self) -> None:
        """From here on the write happens; apply it."""
        self._is_complete = True
        _insert(self._session, {"_key": self._write, "pieces": self._pieces})
        apply(self._session, self._write, self._pieces)

    def discard(self) -> None:
        """Give the pieces up, unless the write is complete: then the next writer applies them."""
        if self._pieces and not self._is_complete:
            binds = {"write": self._write}
            in_unit(
                self._session,
                "giving up a write",
                [COLLECTION],
                lambda unit: self._session.change(load("journal/delete_pieces"), binds, inside=unit),
            )


def apply(session: ArangoSession, write: str, pieces: int) -> None:
    """Apply the pieces that are left, in order, and take the head away with the last."""
    for number in range(pieces):
        key = _piece(write, number)
        read = partial(session.patient_db.collection(COLLECTION).get, key)
        document: Any = session.run("reading the write journal", read, again=True)
        if document is not None:
            operations = [Operation(kind, name, _unpack(data)) for kind, name, data in document["operations"]]
            gone = [key, write] if number == pieces - 1 else [key]
            write_unit(session, operations, gone)


def write_unit(
    session: ArangoSession, operations: Sequence[Operation], gone: Sequence[str] = (), *, part: str | None = None
) -> None:
    """Do the operations in one transaction, in halves where the server finds it too large; then `gone` goes with it.

    `part` is the piece that these operations are the first half of. A piece that is not there any more was applied by
    somebody else: nothing is done.
    """
    names = sorted({one.collection for one in operations} | ({COLLECTION} if gone or part else set()))

    def work(unit: Unit) -> None:
        for key in gone:
            _hold(partial(unit.collection(COLLECTION).delete, key, silent=True))
        if part is not None:  # held until the commit, so that nobody applies later pieces meanwhile
            _hold(partial(unit.collection(COLLECTION).update, {"_key": part, "halved": True}, silent=True))
        scope = Scope(session, unit, bare=True)
        for one in operations:
            _do(scope, one)

    try:
        in_unit(session, f"writing {', '.join(names)}", names, work, patient=True)
    except PieceGone:
        return
    except TooLarge:
        first, second = _halves(operations)
        if not first or not second:
            raise
        write_unit(session, first, part=gone[0] if gone else part)
        write_unit(session, second, gone, part=None if gone else part)


def finish(session: ArangoSession) -> int:
    """Apply what others left complete and unapplied; how many writes. Asked once a session, before its first write."""
    if session.journal_settled:
        return 0
    found = complete_writes(session)
    for write, pieces in found or ():
        apply(session, write, pieces)
    session.journal_settled = True
    return len(found or ())


def complete_writes(session: ArangoSession) -> list[Any] | None:
    """Writes that are complete and not applied, as [id, pieces]; None where the database has no journal yet."""
    try:
        return session.query(load("journal/list_complete"), {}, action="reading the write journal")
    except NotProvisioned:
        return None


def remove_abandoned(session: ArangoSession) -> None:
    """Take away pieces of writes that were given up a day ago or more: nobody completes those."""
    binds = {"before": time.time() - _ABANDONED_S}
    in_unit(
        session,
        "clearing the write journal",
        [COLLECTION],
        lambda unit: session.change(load("journal/delete_abandoned"), binds, inside=unit),
        patient=True,
    )


def _piece(write: str, number: int) -> str:
    return f"{write}-{number:06d}"


def _insert(session: ArangoSession, document: dict[str, Any]) -> None:
    def insert() -> None:
        try:
            session.patient_db.collection(COLLECTION).insert(document, silent=True)
        except DocumentInsertError as error:
            if error.error_code != _TAKEN:  # the first answer was lost: it is there
                raise

    session.run("keeping a large write in the journal", insert, again=True, writes=True, patient=True)


def _hold(touch: Callable[[], object]) -> None:
    """Change a piece inside the transaction, or say that it is gone."""
    try:
        touch()
    except (DocumentDeleteError, DocumentUpdateError) as error:
        if error.error_code == _MISSING:
            raise PieceGone from error
        raise


def _do(scope: Scope, operation: Operation) -> None:
    collection = rules.require(operation.collection)
    if operation.kind == "put":
        writing.insert(scope, collection, operation.rows)
    elif operation.kind == "change":
        writing.update(scope, collection, operation.rows)
    else:
        writing.remove_keys(scope, collection, operation.rows.column("_key").to_pylist())


def _halves(operations: Sequence[Operation]) -> tuple[list[Operation], list[Operation]]:
    """The same in two parts of about as many rows, in order."""
    total = sum(one.rows.num_rows for one in operations)
    first: list[Operation] = []
    second: list[Operation] = []
    left = total // 2
    for one in operations:
        taken = min(left, one.rows.num_rows)
        left -= taken
        if taken:
            first.append(Operation(one.kind, one.collection, one.rows.slice(0, taken)))
        if taken < one.rows.num_rows:
            second.append(Operation(one.kind, one.collection, one.rows.slice(taken)))
    return first, second


def _pack(table: pa.Table) -> str:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(table.combine_chunks())
    return base64.b64encode(sink.getvalue()).decode()


def _unpack(text: str) -> pa.Table:
    with pa.ipc.open_stream(base64.b64decode(text)) as reader:
        return reader.read_all()
