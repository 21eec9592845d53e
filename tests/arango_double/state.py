"""Everything a server remembers: databases, users, cursors, running queries, jobs, and what was asked of it."""

import itertools
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.arango_double.context import QueryContext
from tests.arango_double.documents import Database
from tests.arango_double.errors import ServerError
from tests.arango_double.faults import Faults, Sent
from tests.arango_double.language import Language
from tests.arango_double.routing import Response
from tests.arango_double.transaction_registry import TransactionRegistry
from tests.arango_double.users import Users
from tests.arango_double.values import Value


@dataclass(slots=True)
class Cursor:
    """A result that did not fit into one batch."""

    id: str
    database: str
    rest: list[Value]
    batch_size: int
    count: int | None
    extra: dict[str, Any]
    expires: float
    ttl: float
    allow_retry: bool = False
    batch: int = 1
    last: tuple[str, dict[str, Any]] | None = None


@dataclass(slots=True)
class Job:
    """A request that runs in the background."""

    id: str
    response: Response | None = None


@dataclass
class State:
    """The shared state behind every connection."""

    language: Language
    users: Users
    write_lock_seconds: float = 1.0
    lock_seconds: float = 2.0
    view_commit_seconds: float = 0.0
    transaction_idle_seconds: float = 60.0
    transaction_size_limit: int = 128 * 1024 * 1024
    clock: Callable[[], float] = time.monotonic
    tells_options: bool = False
    role: str = "SINGLE"
    databases: dict[str, Database] = field(default_factory=dict)
    cursors: dict[str, Cursor] = field(default_factory=dict)
    queries: dict[str, QueryContext] = field(default_factory=dict)
    jobs: dict[str, Job] = field(default_factory=dict)
    faults: Faults = field(default_factory=Faults)
    requests: list[Sent] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._numbers = itertools.count(1000)
        self.transactions = TransactionRegistry(self.transaction_idle_seconds, self.transaction_size_limit, self.clock)
        self.create_database("_system")

    def next_number(self) -> int:
        """A number no one else has; ids, keys and revisions come from it."""
        return next(self._numbers)

    def create_database(self, name: str) -> Database:
        with self.lock:
            if name in self.databases:
                raise ServerError(1207, f"duplicate database name: {name}")
            made = Database(
                name,
                str(self.next_number()),
                self.language,
                self.next_number,
                self.write_lock_seconds,
                self.lock_seconds,
            )
            self.databases[name] = made
            return made

    def database(self, name: str) -> Database:
        found = self.databases.get(name)
        if found is None:
            raise ServerError(1228, f"database not found: {name}")
        return found

    def cursor(self, database: str, cursor_id: str) -> Cursor:
        """An open cursor; unknown and outlived ones are error 1600."""
        found = self.cursors.get(cursor_id)
        if found is None or found.database != database or found.expires < time.monotonic():
            self.cursors.pop(cursor_id, None)
            raise ServerError(1600)
        found.expires = time.monotonic() + found.ttl
        return found
