"""What one running query may see: its transaction, its limits, and the warnings and counts it leaves behind."""

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.arango_double.errors import ServerError, aql_error
from tests.arango_double.values import Value

if TYPE_CHECKING:
    from tests.arango_double.analyzers import Analyzer
    from tests.arango_double.documents import Database
    from tests.arango_double.language import Language
    from tests.arango_double.transactions import Transaction

_ROW_BYTES = 64


@dataclass(slots=True)
class Limits:
    """Query options that bound or change execution."""

    fail_on_warning: bool = False
    max_warning_count: int = 10
    max_runtime: float = 0.0
    memory_limit: int = 0


@dataclass(slots=True)
class Statistics:
    """Counts of `extra.stats`."""

    writes_executed: int = 0
    writes_ignored: int = 0
    scanned_full: int = 0
    scanned_index: int = 0
    filtered: int = 0
    peak_memory: int = 0

    def body(self, seconds: float) -> dict[str, Any]:
        body: dict[str, Any] = {
            "writesExecuted": self.writes_executed,
            "writesIgnored": self.writes_ignored,
            "documentLookups": 0,
            "seeks": 0,
            "scannedFull": self.scanned_full,
            "scannedIndex": self.scanned_index,
            "cursorsCreated": 0,
            "cursorsRearmed": 0,
            "cacheHits": 0,
            "cacheMisses": 0,
            "filtered": self.filtered,
            "httpRequests": 0,
            "executionTime": seconds,
            "peakMemoryUsage": self.peak_memory,
            "intermediateCommits": 0,
        }
        return body


@dataclass(slots=True)
class QueryContext:
    """Shared by every closure that a query was compiled to."""

    database: "Database"
    transaction: "Transaction"
    language: "Language"
    user: str | None = None
    binds: dict[str, Value] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    text: str = ""
    id: str = ""
    warnings: list[dict[str, Any]] = field(default_factory=list)
    stats: Statistics = field(default_factory=Statistics)
    started_ms: int = field(default_factory=lambda: int(time.time() * 1000))
    started: float = field(default_factory=time.monotonic)
    killed: bool = False
    memory: int = 0

    def warn(self, number: int, message: str) -> None:
        """Note a warning; with failOnWarning it ends the query."""
        if self.limits.fail_on_warning:
            aql_error(number, message, "executing")
        if len(self.warnings) < self.limits.max_warning_count:
            self.warnings.append({"code": number, "message": message})

    def check(self) -> None:
        """End the query when it was killed or ran too long; called inside every loop."""
        limit = self.limits.max_runtime
        if self.killed or (limit and time.monotonic() - self.started > limit):
            aql_error(1500, "query killed", "executing")

    def hold(self) -> None:
        """Account for a row that is kept in memory; roughly."""
        self.memory += _ROW_BYTES
        self.stats.peak_memory = max(self.stats.peak_memory, self.memory)
        if self.limits.memory_limit and self.memory > self.limits.memory_limit:
            raise ServerError(32, "AQL: query would use more memory than allowed (while executing)")

    def document(self, collection: str, key: str) -> Value:
        """DOCUMENT(): null, without a warning, when the collection or the key is missing."""
        if self.database.find_collection(collection) is None:
            return None
        self.transaction.allow_read(collection)
        found = self.transaction.get(collection, key)
        self.stats.scanned_index += found is not None
        return found

    def count(self, collection: str) -> int:
        self.transaction.allow_read(collection)
        return self.transaction.count(collection)

    def analyzer(self, name: str) -> "Analyzer":
        return self.database.analyzer(name)
