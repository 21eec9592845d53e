"""Session, endpoints, HTTP, errors, retry."""

from __future__ import annotations

import logging
import re
import socket
import time
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from threading import Event, Thread
from typing import Any, Literal, TypeVar, cast

import numpy as np
import orjson
import pyarrow as pa
import requests
from arango.client import ArangoClient
from arango.cursor import Cursor
from arango.database import Database, StandardDatabase
from arango.exceptions import AQLQueryValidateError, ArangoServerError
from arango.http import HTTPClient
from arango.request import Request
from arango.response import Response
from pydantic import SecretStr
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection
from urllib3.connectionpool import HTTPConnectionPool
from urllib3.exceptions import MaxRetryError, NewConnectionError

from aql import load
from hades.errors import ReadOnly, SettingsError, StoreError, StoreUnavailable
from hades.ports.store import Mode
from hades.settings.tree import DATABASE
from hades.stores.arango.encode import json_bytes
from hades.stores.arango.errors import (
    CircuitBreaker,
    Lost,
    NotArango,
    NotSent,
    RetryPolicy,
    TimedOut,
    TransportError,
    in_our_words,
    may_repeat,
    may_repeat_unit,
    may_wait,
)
from models.arrays import Longs
from schemas.catalogue import Collection

# What a write costs of the server's transaction limit, and how much of the limit one unit of work
# may take. The server counts, for every key that a transaction writes, the lock (about 230 bytes),
# the document, and every index entry that is removed and written again. The figures here lie above
# those of a 3.12 server (a mention 1.8 KB, a relation 2.6 KB, an entity with its vector 5.1 KB),
# and a unit takes only a share of the limit: `journal` halves one that the server refuses all the
# same.
DEFAULT_LIMIT_BYTES = 128 * 1024 * 1024  # up to 3.12.3
LATER_LIMIT_BYTES, LATER_LIMIT_SINCE = 512 * 1024 * 1024, (3, 12, 4)
# The client holds one unit, and the journal keeps it as one document.
LARGEST_UNIT_BYTES = 32 * 1024 * 1024
DEFAULT_SHARE = 0.25
WHOLE_SHARE = 0.6  # of the limit, for a write of several units that is applied in one transaction
OPTION = "transaction.streaming-max-transaction-size"
_LOCK_BYTES = 230
_ENTRY_BYTES = 160
_DOCUMENT_BYTES = 200
_VECTOR_BYTES = 4_096  # of a stored vector that a patch of another column writes again
_TEXT_BYTES = 2_048  # of a stored text that a patch of another column writes again
Bytes = Longs


@dataclass(frozen=True)
class UnitSize:
    """How much one unit of work may cost: a share of the server's limit, and where the limit is
    known from.
    """

    limit_bytes: int = DEFAULT_LIMIT_BYTES
    share: float = DEFAULT_SHARE
    source: str = "assumed"

    @property
    def unit_bytes(self) -> int:
        """What the writes of one unit may cost together."""
        return max(1, min(int(self.limit_bytes * self.share), LARGEST_UNIT_BYTES))

    @property
    def whole_bytes(self) -> int:
        """What a write of several units may cost to be applied in one transaction, not piece by
        piece.
        """
        return int(self.limit_bytes * max(self.share, WHOLE_SHARE))


def write_costs(
    kind: Literal["put", "change", "remove"],
    collection: Collection,
    table: pa.Table,
) -> Bytes:
    """What writing, patching or removing each row costs; for a patch the server writes the whole
    document again.
    """
    entries = len(collection.indexes) + (2 if collection.edge else 0) + 1
    row_bytes = _LOCK_BYTES + _DOCUMENT_BYTES + 2 * _ENTRY_BYTES * entries

    if kind == "remove":
        return np.full(table.num_rows, row_bytes, dtype=np.int64)

    if kind == "change":
        row_bytes += _TEXT_BYTES if collection.text_fields else 512
        row_bytes += _VECTOR_BYTES if collection.vector_field else 0

    return json_bytes(table) + row_bytes


_SOCKET_VARIABLE = {
    Mode.READ_ONLY: "ARANGO_RO_UDS",
    Mode.READ_WRITE: "ARANGO_RW_UDS",
    Mode.ADMIN: "ARANGO_ADMIN_UDS",
}


@dataclass(frozen=True)
class Endpoint:
    """One place to talk to: a base URL, and the socket to reach it by when it is not TCP."""

    url: str
    unix_socket: Path | None = None

    def __str__(self) -> str:
        if self.unix_socket:
            return f"unix:{self.unix_socket}"
        return self.url


@dataclass(frozen=True)
class Account:
    """A user that `hades provision` makes; `right` is what it may do with the database: `rw` or
    `ro`.
    """

    user: str
    password: str = field(repr=False)
    right: Literal["rw", "ro"]


@dataclass(frozen=True)
class ArangoEndpoints:
    """The server's addresses and the account; the password never shows in a text of it."""

    url: str | None = None
    database: str = DATABASE
    user: str | None = None
    password: SecretStr | str | None = field(default=None, repr=False)
    ro_socket: Path | str | None = None
    rw_socket: Path | str | None = None
    admin_socket: Path | str | None = None
    accounts: tuple[Account, ...] = ()

    def of(self, mode: Mode) -> Endpoint:
        """The endpoint of a mode: its socket when one is named, else the URL; `SettingsError` says
        what to set.
        """
        socket = {
            Mode.READ_ONLY: self.ro_socket,
            Mode.READ_WRITE: self.rw_socket,
            Mode.ADMIN: self.admin_socket,
        }[mode]
        if socket is not None:
            return Endpoint("http://localhost", Path(socket))
        if self.url is not None:
            return Endpoint(self.url.rstrip("/"))

        raise SettingsError(
            f"there is no ArangoDB endpoint for mode {mode.value!r}; set {_SOCKET_VARIABLE[mode]} "
            "to a socket, "
            "or HADES_ARANGO_URL to an address"
        )

    @property
    def account(self) -> tuple[str, str]:
        """User and password as the driver wants them."""
        password = self.password
        secret = password.get_secret_value() if isinstance(password, SecretStr) else password
        return self.user or "root", secret or ""


_CONNECTIONS = 10


class SingleShotClient(HTTPClient):
    """Sends each request exactly once, through the circuit breaker; what to repeat is decided
    above, by meaning.

    The driver's own client repeats GETs, and its host resolver repeats every method, so a lost
    insert runs twice.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        request_timeout_s: float,
        breaker: CircuitBreaker,
    ) -> None:
        self._endpoint = endpoint
        self._breaker = breaker
        self.request_timeout = request_timeout_s

    def create_session(self, host: str) -> requests.Session:
        """A session for one host whose adapter never retries."""
        session = requests.Session()
        # Proxies and .netrc of the environment must not see database traffic; TLS may need its
        # certificate bundle.
        session.trust_env = host.startswith("https://")
        path = self._endpoint.unix_socket
        adapter = (
            _UnixAdapter(path) if path else HTTPAdapter(pool_maxsize=_CONNECTIONS, max_retries=0)
        )
        session.mount("https://", adapter)
        session.mount("http://", adapter)
        return session

    def send_request(
        self,
        session: requests.Session,
        method: str,
        url: str,
        headers: MutableMapping[str, str] | None = None,
        params: MutableMapping[str, str] | None = None,
        data: Any = None,
        auth: tuple[str, str] | None = None,
    ) -> Response:
        """One request, one answer, or a `TransportError`."""
        self._breaker.before_request()
        body = data.encode() if isinstance(data, str) else data

        try:
            answer = session.request(
                method,
                url,
                params=params,
                data=body,
                headers=headers,
                auth=auth,
                timeout=self.request_timeout,
            )
        except requests.RequestException as error:
            self._breaker.failed()
            raise _failure(
                error,
                self._endpoint,
                self.request_timeout,
            ) from error

        problem = _not_an_answer(answer, self._endpoint)
        if problem is not None:
            self._breaker.failed()
            raise problem

        self._breaker.succeeded()
        answer.encoding = "utf-8"  # guessing it reads the whole body once more
        return Response(
            method=method,
            url=answer.url,
            headers=answer.headers,
            status_code=answer.status_code,
            status_text=answer.reason,
            raw_body=answer.text,
        )


def _failure(
    error: requests.RequestException,
    endpoint: Endpoint,
    timeout_s: float,
) -> TransportError:
    reason = error.args[0] if error.args else None
    if isinstance(reason, MaxRetryError):
        reason = reason.reason
    if isinstance(error, requests.ConnectTimeout) or isinstance(reason, NewConnectionError):
        return NotSent(f"nothing listens at {endpoint}")
    if isinstance(error, requests.Timeout):
        return TimedOut(f"{endpoint} did not answer within {timeout_s:g} s")

    return Lost(f"the connection to {endpoint} broke before the answer came")


def _not_an_answer(
    answer: requests.Response,
    endpoint: Endpoint,
) -> TransportError | None:
    """What an HTTP answer that is not the database's own means, or None when it is."""
    is_json = not answer.content or "json" in answer.headers.get("content-type", "")
    if answer.status_code == 503 and (not is_json or answer.json().get("errorNum", 503) == 503):
        # The driver would resend on this one: the server starts, stops or is in maintenance.
        return NotSent(f"{endpoint} says that it does not serve at the moment (503)")

    if is_json:
        return None
    if answer.status_code in (502, 504):
        return Lost(f"the proxy at {endpoint} got no answer from the server ({answer.status_code})")

    return NotArango(f"{endpoint} answers, but not as ArangoDB does; check the address")


class _UnixConnection(HTTPConnection):
    def __init__(self, *arguments: Any, unix_socket: str, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._unix_socket = unix_socket

    def connect(self) -> None:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(self.timeout if isinstance(self.timeout, (int, float)) else None)
        try:
            connection.connect(self._unix_socket)
        except OSError as error:
            connection.close()
            raise NewConnectionError(
                self, f"cannot connect to {self._unix_socket}: {error}"
            ) from error

        self.sock = connection


class _UnixPool(HTTPConnectionPool):
    ConnectionCls = _UnixConnection


class _UnixAdapter(HTTPAdapter):
    """Hands every request to one pool of connections to a socket file."""

    def __init__(self, path: Path) -> None:
        self._pool = _UnixPool(
            "localhost",
            maxsize=_CONNECTIONS,
            unix_socket=str(path),
        )
        super().__init__(max_retries=0)

    def get_connection_with_tls_context(
        self,
        request: Any,
        verify: Any,
        proxies: Any = None,
        cert: Any = None,
    ) -> HTTPConnectionPool:
        return self._pool

    def close(self) -> None:
        self._pool.close()
        super().close()


Result = TypeVar("Result")
Binds = Mapping[str, object]
MAX_RUNTIME_S, PATIENCE_S = 20.0, 600.0
TELL_SECONDS = 10
ANSWER_S = 5.0  # what a reader waits for the first answer of a server before it asks for rows
_HEARD_S = 10.0  # how long an answer says that the server is there
_UNKNOWN_FUNCTION = 1540
_MANY_ROWS = 1_000
_SPARSE_VECTOR_INDEX_SINCE = (3, 12, 6)
_WRITES = re.compile(r"^\s*(INSERT|UPDATE|REPLACE|REMOVE|UPSERT)\b", re.MULTILINE)
logger = logging.getLogger(__name__)


JOURNAL = "write_journal"  # the collection of unfinished writes, and of the lease of a build
# Databases that this process builds; calling it raises where another process has taken that over.
BUILT_HERE: dict[str, Callable[[], object]] = {}


@contextmanager
def _tell_while_waiting(action: str) -> Iterator[None]:
    """Log every ten seconds what the server is waited for."""
    answered = Event()

    def tell() -> None:
        waited = TELL_SECONDS
        while not answered.wait(TELL_SECONDS):
            logger.warning(
                "waiting for the server at %s (%s s)",
                action,
                waited,
            )
            waited += TELL_SECONDS

    Thread(target=tell, daemon=True).start()
    try:
        yield
    finally:
        answered.set()


class ArangoSession:
    """A database handle in one mode. Reads are repeated when the connection fails; writes only as
    whole units.

    One transaction writes at most `transaction_share` of the server's limit, which is asked of the
    server unless it is given.
    """

    def __init__(
        self,
        endpoints: ArangoEndpoints,
        mode: Mode,
        *,
        request_timeout_s: float = 30.0,
        batch_rows: int = 1_000,
        fail_on_warning: bool = False,
        retry: RetryPolicy = RetryPolicy(),
        breaker: CircuitBreaker | None = None,
        transaction_share: float = DEFAULT_SHARE,
        transaction_limit_bytes: int | None = None,
    ) -> None:
        self.mode = mode
        self.journal_settled = False
        self.waits_in_builds = True
        self.before_read: Callable[[], object] = lambda: None
        self._transaction_share = transaction_share
        self._transaction_limit = transaction_limit_bytes
        self.endpoint = endpoints.of(mode)
        self.database_name = endpoints.database
        self.batch_rows = batch_rows
        self.narrow_rows = batch_rows * 8 if batch_rows >= _MANY_ROWS else batch_rows
        self.vector_indexed: set[str] = set()
        self._closed = False
        self.user, self._password = endpoints.account
        self.accounts = endpoints.accounts
        self._fail_on_warning = fail_on_warning
        self._retry = retry
        breaker = breaker or CircuitBreaker()
        self._client = self._connect(request_timeout_s, breaker)
        self._patient_client = self._connect(max(request_timeout_s, PATIENCE_S), breaker)
        self._first_client = self._connect(min(request_timeout_s, ANSWER_S), breaker)
        self._checks_answer = mode is Mode.READ_ONLY and request_timeout_s > ANSWER_S
        self._heard_at = -_HEARD_S
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
        if inside is not None:
            db = inside
        elif patient:
            db = self.patient_db
        else:
            db = self.db

        runtime_s = runtime_s or (PATIENCE_S if patient else MAX_RUNTIME_S)
        if bare:
            return self._all(db, text, binds, runtime_s)

        return self.run(
            action,
            lambda: self._all(db, text, binds, runtime_s),
            again=inside is None,
        )

    def change(
        self,
        text: str,
        binds: Binds,
        *,
        inside: Database,
    ) -> int:
        """Run a modifying query inside a transaction; how many rows it touched. The caller runs the
        unit.
        """
        self.require_write("writing rows")
        cursor = self.execute(
            inside,
            text,
            binds,
            MAX_RUNTIME_S,
            self.batch_rows,
        )
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

        `unit` marks a whole transaction, which is begun again when the server lost it; `patient`
        waits for a server that restarts, as everything does that a build of this process asks.
        """
        if self._closed:
            raise StoreUnavailable(f"{action}: this handle was closed; open the store again")

        with in_our_words(action, writes=writes):
            if not again:
                return work()

            if patient or self._is_of_a_build():
                with _tell_while_waiting(f"{self.endpoint}: {action}"):
                    return self._retry.patient().run(work, may_wait)

            return self._retry.run(work, may_repeat_unit if unit else may_repeat)

    def require_answer(self, action: str) -> None:
        """Ask a server that was silent for a while for a number first: a reader waits up to ten
        minutes for a large answer, and for a server that hangs it should not.
        """
        now = time.monotonic()
        if not self._checks_answer or now - self._heard_at < _HEARD_S:
            return

        database = self._database(self._first_client, self.database_name)
        # An error is an answer, too: what the server cannot do, the request itself reports.
        request = Request(
            method="get",
            endpoint=f"/_api/collection/{JOURNAL}/count",
        )
        self.run(
            action,
            lambda: database.conn.send_request(request),
            again=True,
        )
        self._heard_at = now

    def _is_of_a_build(self) -> bool:
        writes = self.mode is not Mode.READ_ONLY
        return writes and self.waits_in_builds and self.database_name in BUILT_HERE

    def require_build(self) -> None:
        """Refuse a write of a build that another process has taken over."""
        if self._is_of_a_build():
            BUILT_HERE[self.database_name]()

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

    @cached_property
    def version(self) -> str:
        """What the server says it is, such as 3.12.8."""
        return self.run(
            "asking the server's version",
            lambda: cast(str, self.db.version()),
            again=True,
        )

    @property
    def version_numbers(self) -> tuple[int, ...]:
        """The version to compare, such as (3, 12, 8)."""
        return tuple(int(part) for part in re.findall(r"\d+", self.version)[:3])

    @cached_property
    def unit_size(self) -> UnitSize:
        """How much one transaction may write: by the settings, else by what the server tells, else
        by assumption.
        """
        if self._transaction_limit is not None:
            return UnitSize(
                self._transaction_limit,
                self._transaction_share,
                "settings",
            )

        limit = self._options().get(OPTION)
        if isinstance(limit, int) and limit > 0:
            return UnitSize(limit, self._transaction_share, "server")

        try:
            is_later = self.version_numbers >= LATER_LIMIT_SINCE
        except StoreError:  # other calls report that the server is away
            is_later = False

        return UnitSize(
            LATER_LIMIT_BYTES if is_later else DEFAULT_LIMIT_BYTES,
            self._transaction_share,
        )

    def _options(self) -> dict[str, Any]:
        """The server's options; nothing where this account may not read them
        (`--server.options-api`).
        """
        request = Request(method="get", endpoint="/_admin/options")
        try:
            answer = self._retry.run(lambda: self.db.conn.send_request(request))
        except (TransportError, ArangoServerError):
            return {}

        body = answer.body if answer.is_success else None
        return body if isinstance(body, dict) else {}

    @cached_property
    def has_vector_index(self) -> bool:
        """Whether the server can make a vector index that passes over rows without a vector
        (3.12.6, flag set).
        """
        if self.version_numbers < _SPARSE_VECTOR_INDEX_SINCE:
            return False

        def parses() -> bool:
            try:
                self.db.aql.validate(load("maintenance/probe_vectors"))
            except AQLQueryValidateError as error:
                if error.error_code == _UNKNOWN_FUNCTION:
                    return False
                raise

            return True

        return self.run(
            "asking for the vector index",
            parses,
            again=True,
        )

    def close(self) -> None:
        """Give the connections back."""
        self._closed = True
        for client in (self._client, self._patient_client, self._first_client):
            client.close()

    def _all(
        self,
        db: Database,
        text: str,
        binds: Binds,
        runtime_s: float,
    ) -> list[Any]:
        return list(
            self.execute(
                db,
                text,
                binds,
                runtime_s,
                self.batch_rows,
            )
        )

    def execute(
        self, db: Database, text: str, binds: Binds, runtime_s: float, batch: int, **options: Any
    ) -> Cursor:
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
            logger.warning(
                "%s: warning %s: %s",
                title_of(text),
                warning.get("code"),
                warning.get("message"),
            )

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
        return client.db(
            name,
            username=self.user,
            password=self._password,
        )


@cache
def is_modifying(text: str) -> bool:
    """Whether a query of `aql/` writes: one of its lines begins with a modifying keyword."""
    return _WRITES.search(text) is not None


def title_of(text: str) -> str:
    """What a query of `aql/` does: its first comment."""
    return text.partition("\n")[0].removeprefix("// ")
