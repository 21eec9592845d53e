"""What is known of one remote source: its description, its documents with their versions, and when
it was last in step. One small SQLite file, so that a sync is written whole or not at all.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from hades.files import make_private_folder
from schemas.ids import content_key, iso
from schemas.sources import RemoteSource, SourceKind

GRACE = 1.5  # an interval may take this much longer before a source is overdue
_EARLY = 0.9  # a sync counts as due a little before its interval is over
_TABLES = """
CREATE TABLE IF NOT EXISTS documents (
    id TEXT PRIMARY KEY, path TEXT NOT NULL UNIQUE, version TEXT NOT NULL, sha256 TEXT NOT NULL,
    address TEXT NOT NULL, modified TEXT
);
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);
"""


class Copy(NamedTuple):
    """A document as it was last read; its content is a file of the mirror."""

    id: str
    path: str
    version: str
    sha256: str
    address: str
    modified: str | None


@dataclass(frozen=True)
class SyncState:
    """When a source was synced, and how that went."""

    name: str
    url: str = ""
    every_hours: float = 24.0
    corpus: str = ""  # what its documents are known by in the graph
    documents: int = 0
    last_sync: datetime | None = None
    last_success: datetime | None = None
    failures: int = 0  # since the last success
    problem: str = ""
    seconds: float = 0.0
    bytes: int = 0  # read by the last successful sync
    columns: tuple[str, ...] = ()
    is_read: bool = False  # whether the graph has read what the last sync changed

    def is_due(self, now: datetime) -> bool:
        """Whether its interval is over."""
        return self.last_success is None or self._age(now, self.last_success) >= _EARLY

    def is_overdue(self, now: datetime) -> bool:
        """Whether it has not been seen for longer than its interval allows."""
        return self.last_success is None or self._age(now, self.last_success) > GRACE

    def _age(self, now: datetime, then: datetime) -> float:
        """The time since, in intervals; a moment after now is of a clock that was wrong."""
        age = now - then
        if age < timedelta(0):
            return GRACE + 1

        return age / timedelta(hours=self.every_hours)

    def document_id(self, origin: str) -> str:
        """The id in the graph of a document by its path in the mirror."""
        key = content_key(
            "d",
            str(SourceKind.DOCUMENTS),
            self.corpus,
            origin,
        )
        return f"documents/{key}"

    def as_dict(self, now: datetime) -> dict[str, Any]:
        """The state as JSON."""
        document: dict[str, Any] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            document[field.name] = iso(value) if isinstance(value, datetime) else value

        del document["columns"], document["is_read"]
        return {
            **document,
            "overdue": self.is_overdue(now),
        }


class Ledger:
    """The file of one source."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @cached_property
    def name(self) -> str:
        """Whose it is."""
        return self.path.stem

    def exists(self) -> bool:
        """Whether the source was added or synced once."""
        return self.path.is_file()

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """A transaction; only what is written makes the file."""
        make_private_folder(self.path.parent)
        with closing(sqlite3.connect(self.path, timeout=30.0)) as connection:
            connection.executescript(_TABLES)
            with connection:
                yield connection

    def facts(self) -> dict[str, Any]:
        """What is kept of the source itself; empty where nothing is."""
        if not self.exists():
            return {}

        with self._open() as connection:
            rows = connection.execute("SELECT name, value FROM facts").fetchall()

        return {name: json.loads(value) for name, value in rows}

    def state(self) -> SyncState:
        """When the source was synced, and how that went."""
        facts = self.facts().get("state", {})
        last_sync, last_success = map(_moment, (facts.get("last_sync"), facts.get("last_success")))
        times = {
            "last_sync": last_sync,
            "last_success": last_success,
        }
        columns = tuple(facts.get("columns", ()))
        return SyncState(
            **{
                **facts,
                "name": self.name,
                "columns": columns,
                **times,
            }
        )

    def copies(self) -> dict[str, Copy]:
        """Every document by id."""
        if not self.exists():
            return {}

        with self._open() as connection:
            rows = connection.execute("SELECT * FROM documents ORDER BY id").fetchall()

        return {row[0]: Copy(*row) for row in rows}

    def rights(self) -> dict[str, tuple[str, ...]]:
        """The readers of each copy that is not public, by its path in the mirror."""
        return {path: tuple(names) for path, names in self.facts().get("rights", {}).items()}

    def copy_at(self, path: str) -> Copy | None:
        """The document of a file of the mirror."""
        with self._open() as connection:
            row = connection.execute("SELECT * FROM documents WHERE path = ?", [path]).fetchone()

        return Copy(*row) if row else None

    def record_corpus(self, corpus: str) -> None:
        """Note that the graph has read the mirror, and what its documents are known by."""
        self.record(
            state=state_facts(
                replace(
                    self.state(),
                    corpus=corpus,
                    is_read=True,
                )
            )
        )

    def record(self, **facts: Any) -> None:
        """Keep facts."""
        with self._open() as connection:
            _write_facts(connection, facts)

    def write(
        self,
        state: SyncState,
        changed: Iterable[Copy],
        gone: Iterable[str],
        rights: Mapping[str, Sequence[str]],
    ) -> None:
        """Keep what a sync found, in one transaction."""
        with self._open() as connection:
            gone_rows = [(identifier,) for identifier in gone]
            connection.executemany("DELETE FROM documents WHERE id = ?", gone_rows)
            connection.executemany(
                "INSERT OR REPLACE INTO documents VALUES (?, ?, ?, ?, ?, ?)",
                changed,
            )
            _write_facts(
                connection,
                {
                    "state": state_facts(state),
                    "rights": rights,
                },
            )


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def state_facts(state: SyncState) -> dict[str, Any]:
    """A state as it is kept."""
    return {
        name: iso(value) if isinstance(value, datetime) else value
        for name, value in vars(state).items()
    }


def _write_facts(connection: sqlite3.Connection, facts: Mapping[str, Any]) -> None:
    rows = []
    for name, value in facts.items():
        rows.append((name, json.dumps(value)))

    connection.executemany("INSERT OR REPLACE INTO facts VALUES (?, ?)", rows)


LEDGERS, MIRRORS, STAGED = "ledgers", "mirrors", "staged"


def ledgers(home: Path) -> list[Ledger]:
    """The ledgers of a home, by name."""
    folder = home / "sources" / LEDGERS
    return [Ledger(path) for path in sorted(folder.glob("*.db"))]


def sync_states(home: Path, configured: Mapping[str, RemoteSource]) -> list[SyncState]:
    """When each source was synced, and how that went, by name; `configured` are those of
    hades.yaml, which may never have been synced.
    """
    names = {*configured, *(ledger.name for ledger in ledgers(home))}

    states = []
    for name in sorted(names):
        state = Ledger(home / "sources" / LEDGERS / f"{name}.db").state()
        source = configured.get(name)
        if source is not None:
            state = replace(
                state,
                url=source.url,
                every_hours=source.every_hours,
            )

        states.append(state)

    return states


def ledger_of_mirror(root: Path) -> Ledger | None:
    """The ledger beside a mirror; None for any other folder."""
    path = root.parent.parent / LEDGERS / f"{root.name}.db"
    if root.parent.name == MIRRORS and path.is_file():
        return Ledger(path)

    return None
