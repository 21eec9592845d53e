"""One session with the server: where every query gets its limits, its retries and its errors in our words."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from functools import cache, cached_property
from typing import Any, TypeVar, cast

import orjson
from arango.client import ArangoClient
from arango.cursor import Cursor
from arango.database import Database, StandardDatabase
from arango.exceptions import AQLQueryValidateError, ArangoServerError
from arango.request import Request

from aql import load
from hades.errors import ReadOnly, StoreError, StoreUnavailable
from hades.ports.store import Mode
from hades.stores.arango.costs import DEFAULT_LIMIT_BYTES, DEFAULT_SHARE, UnitSize, default_limit, limit_of
from hades.stores.arango.endpoints import ArangoEndpoints
from hades.stores.arango.faults import TransportError, in_our_words
from hades.stores.arango.retry import CircuitBreaker, RetryPolicy, may_repeat, may_repeat_unit, may_wait
from hades.stores.arango.unix_http import SingleShotClient

__all__ = ["ArangoEndpoints", "ArangoSession"]

Result = TypeVar("Result")
Binds = Mapping[str, object]

PATIENCE_S = 600.0
_UNKNOWN_FUNCTION = 1540
_MANY_ROWS = 1_000
_SPARSE_VECTOR_INDEX_SINCE = (3, 12, 6)
_WRITES = re.compile(r"^\s*(INSERT|UPDATE|REPLACE|REMOVE|UPSERT)\b", re.MULTILINE)

logger = logging.getLogger(__name__)


class ArangoSession:
    """A database handle in one mode. Reads are repeated when the connection fails; writes only as whole units."""

    def __init__(
        self,
        endpoints: ArangoEndpoints,
        mode: Mode,
        *,
        request_timeout_s: float = 30.0,
        max_runtime_s: float = 20.0,
        batch_rows: int = 1_000,
        fail_on_warning: bool = False,
        retry: RetryPolicy = RetryPolicy(),
        breaker: CircuitBreaker | None = None,
        transaction_share: float = DEFAULT_SHARE,
        transaction_limit_bytes: int | None = None,
    ) -> None:
        self.mode = mode
        self.journal_settled = False
        self.before_read: Callable[[], object] = lambda: None
        self._transaction_share = transaction_share
        self._transaction_limit = transaction_limit_bytes
        self.endpoint = endpoints.of(mode)
        self.database_name = endpoints.database
        self.batch_rows = batch_rows
        self.narrow_rows = batch_rows * 8 if batch_rows >= _MANY_ROWS else batch_rows
        self.vector_indexed: set[str] = set()
        self._closed = False
        self._account = endpoints.account
        self.accounts = endpoints.accounts
        self._max_runtime_s = max_runtime_s
        self._fail_on_warning = fail_on_warning
        self._retry = retry
        breaker = breaker or CircuitBreaker()
        self._client = self._connect(request_timeout_s, breaker)
        self._patient_client = self._connect(max(request_timeout_s, PATIENCE_S), breaker)
        self.db = self._database(self._client, endpoints.database)
        self.patient_db = self._database(self._patient_client, endpoints.database)

    def query(
        self,
        text: str,
        binds: Binds,
        *,
        action: str,
        inside: Database | None = None,
        bare: bool = False,
        patient: bool = False,
        runtime_s: float | None = None,
    ) -> list[Any]:
        """All rows of a reading query. `inside` is a transaction; there a failure is not repeated.

        `bare` leaves failures as they are, for a unit that is repeated as a whole.
        """
        db = inside if inside is not None else self.patient_db if patient else self.db
        runtime_s = runtime_s or (PATIENCE_S if patient else self._max_runtime_s)
        if bare:
            return self._all(db, text, binds, runtime_s)
        return self.run(action, lambda: self._all(db, text, binds, runtime_s), again=inside is None)

    def change(self, text: str, binds: Binds, *, inside: Database, patient: bool = False) -> int:
        """Run a modifying query inside a transaction; how many rows it touched. The caller runs the unit."""
        self.require_write("writing rows")
        cursor = self.execute(inside, text, binds, PATIENCE_S if patient else self._max_runtime_s, self.batch_rows)
        return int((cursor.statistics() or {}).get("modified", 0))

    def run(
        self,
        action: str,
        work: Callable[[], Result],
        *,
        again: bool,
        writes: bool = False,
        unit: bool = False,
        patient: bool = False,
    ) -> Result:
        """Do something on the server; `again` says that doing it twice is as good as doing it once.

        `unit` marks a whole transaction, which is begun again when the server lost it; `patient` waits for a server
        that restarts.
        """
        if self._closed:
            raise StoreUnavailable(f"{action}: this handle was closed; open the store again")
        with in_our_words(action, writes=writes):
            if not again:
                return work()
            if patient:
                return self._retry.patient().run(work, may_wait)
            return self._retry.run(work, may_repeat_unit if unit else may_repeat)

    def require_write(self, action: str) -> None:
        """Refuse a write through a read-only handle before anything is sent."""
        if self.mode is Mode.READ_ONLY:
            raise ReadOnly(action)

    def require_admin(self, action: str) -> None:
        """Refuse to create or drop things through a handle that is not for it."""
        if self.mode is not Mode.ADMIN:
            raise ReadOnly(action, needed="admin")

    def system_database(self) -> StandardDatabase:
        """The database that databases are created from."""
        return self._database(self._patient_client, "_system")

    @property
    def user(self) -> str:
        """Whose account this is."""
        return self._account[0]

    @cached_property
    def version(self) -> str:
        """What the server says it is, such as 3.12.8."""
        return self.run("asking the server's version", lambda: cast(str, self.db.version()), again=True)

    @property
    def version_numbers(self) -> tuple[int, ...]:
        """The version to compare, such as (3, 12, 8)."""
        return tuple(int(part) for part in re.findall(r"\d+", self.version)[:3])

    @cached_property
    def unit_size(self) -> UnitSize:
        """How much one transaction may write: by the settings, else by what the server tells, else by assumption."""
        if self._transaction_limit is not None:
            return UnitSize(self._transaction_limit, self._transaction_share, "settings")
        told = limit_of(self._options())
        if told is not None:
            return UnitSize(told, self._transaction_share, "server")
        try:
            assumed = default_limit(self.version_numbers)
        except StoreError:  # whoever asks for more than the size is told that the server is away
            assumed = DEFAULT_LIMIT_BYTES
        return UnitSize(assumed, self._transaction_share)

    def _options(self) -> dict[str, Any]:
        """The server's options; nothing where this account may not read them (`--server.options-api`)."""
        request = Request(method="get", endpoint="/_admin/options")
        try:
            answer = self._retry.run(lambda: self.db.conn.send_request(request))
        except (TransportError, ArangoServerError):
            return {}
        body = answer.body if answer.is_success else None
        return body if isinstance(body, dict) else {}

    @cached_property
    def has_vector_index(self) -> bool:
        """Whether the server can make a vector index that passes over rows without a vector (3.12.6, flag set)."""
        return self.version_numbers >= _SPARSE_VECTOR_INDEX_SINCE and self.run(
            "asking for the vector index", self._parses_vector_query, again=True
        )

    def close(self) -> None:
        """Give the connections back."""
        self._closed = True
        self._client.close()
        self._patient_client.close()

    def _parses_vector_query(self) -> bool:
        try:
            self.db.aql.validate(load("maintenance/probe_vectors"))
        except AQLQueryValidateError as error:
            if error.error_code == _UNKNOWN_FUNCTION:
                return False
            raise
        return True

    def _all(self, db: Database, text: str, binds: Binds, runtime_s: float) -> list[Any]:
        return list(self.execute(db, text, binds, runtime_s, self.batch_rows))

    def execute(self, db: Database, text: str, binds: Binds, runtime_s: float, batch: int, **options: Any) -> Cursor:
        """Send a query once; failures are the driver's."""
        if is_modifying(text):
            self.require_write("a modifying query")
        cursor = cast(
            Cursor,
            db.aql.execute(
                text,
                bind_vars=cast(Any, dict(binds)),
                batch_size=batch,
                max_runtime=cast(Any, runtime_s),
                fail_on_warning=self._fail_on_warning,
                **options,
            ),
        )
        for warning in cursor.warnings() or ():
            logger.warning("%s: warning %s: %s", title_of(text), warning.get("code"), warning.get("message"))
        return cursor

    def _connect(self, timeout_s: float, breaker: CircuitBreaker) -> ArangoClient:
        return ArangoClient(
            hosts=self.endpoint.url,
            http_client=SingleShotClient(self.endpoint, timeout_s, breaker),
            resolver_max_tries=1,
            serializer=lambda value: orjson.dumps(value).decode(),
            deserializer=orjson.loads,
        )

    def _database(self, client: ArangoClient, name: str) -> StandardDatabase:
        user, password = self._account
        return client.db(name, username=user, password=password)


@cache
def is_modifying(text: str) -> bool:
    """Whether a query of `aql/` writes: one of its lines begins with a modifying keyword."""
    return _WRITES.search(text) is not None


def title_of(text: str) -> str:
    """What a query of `aql/` does: its first comment."""
    return text.partition("\n")[0].removeprefix("// ")
