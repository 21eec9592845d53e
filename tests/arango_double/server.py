"""A loopback ArangoDB for tests: `with ArangoDouble() as double: ArangoClient(double.url) ...`.

HTTP/1.1 over TCP and UNIX sockets: one thread a connection, keep-alive, and connections that can be
dropped.
"""

import argparse
import contextlib
import itertools
import json
import logging
import os
import socket
import socketserver
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any, Self
from urllib.parse import parse_qsl, unquote, urlsplit

import orjson

from tests.arango_double.database import Database
from tests.arango_double.errors import ServerError, check_names
from tests.arango_double.faults import Faults, Sent
from tests.arango_double.parser import Language
from tests.arango_double.routes import Cursor, Request, Response, find_route
from tests.arango_double.transactions import TransactionRegistry
from tests.arango_double.users import Access, Users

_HEADERS = {"x-arango-driver", "x-arango-trx-id"}
logger = logging.getLogger(__name__)


@dataclass
class State:
    """Everything a server remembers, behind every connection."""

    language: Language
    users: Users
    write_lock_seconds: float
    transaction_size_limit: int
    tells_options: bool
    transactions: TransactionRegistry
    role: str = "SINGLE"
    databases: dict[str, Database] = field(default_factory=dict)
    cursors: dict[str, Cursor] = field(default_factory=dict)
    faults: Faults = field(default_factory=Faults)
    requests: list[Sent] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._numbers = itertools.count(1000)
        self.create_database("_system")

    def next_number(self) -> int:
        """A number no one else has; ids and revisions come from it."""
        return next(self._numbers)

    def create_database(self, name: str) -> Database:
        if name in self.databases:
            raise ServerError(1207, f"duplicate database name: {name}")
        self.databases[name] = Database(
            name, self.language, self.next_number, self.write_lock_seconds
        )
        return self.databases[name]

    def database(self, name: str) -> Database:
        if name not in self.databases:
            raise ServerError(1228, f"database not found: {name}")
        return self.databases[name]


class ArangoDouble:
    """A server in this process; closed by `close()` or at the end of a `with` block.

    write_lock_seconds: how long a write waits for a key that another transaction holds before it
    conflicts. transaction_size_limit: bytes that one stream transaction may write; by default 128
    MiB up to 3.12.3, 512 MiB later. clock: what idle time of stream transactions is measured by.
    tells_options: whether GET /_admin/options answers; by default a server tells only whoever holds
    its JWT secret.
    """

    def __init__(
        self,
        version: str = "3.12.8",
        vector_index: bool = False,
        root_password: str = "",
        port: int = 0,
        write_lock_seconds: float = 1.0,
        transaction_size_limit: int | None = None,
        clock: Callable[[], float] = time.monotonic,
        tells_options: bool = False,
    ) -> None:
        language = Language(version, vector_index)
        limit = (
            transaction_size_limit or (512 if language.at_least(3, 12, 4) else 128) * 1024 * 1024
        )
        registry = TransactionRegistry(60.0, limit, clock)
        self.state = State(
            language, Users(root_password), write_lock_seconds, limit, tells_options, registry
        )
        listener = TCPListener(("127.0.0.1", port), Handler)
        listener.prepare(self.state)
        self.port = int(listener.server_address[1])
        self._listeners: list[Listener] = [listener]
        self._paths: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def databases(self) -> dict[str, Database]:
        """Databases by name, for looking straight at documents."""
        return self.state.databases

    @property
    def faults(self) -> Faults:
        return self.state.faults

    @property
    def requests(self) -> list[Sent]:
        """Every request that arrived, in order; clear it to count anew."""
        return self.state.requests

    def unix_socket(self, path: str | os.PathLike[str]) -> str:
        """Listen on a socket file as well; returns its path."""
        name = os.fspath(path)
        listener = UnixListener(name, Handler)
        os.chmod(name, 0o600)
        listener.prepare(self.state)
        self._listeners.append(listener)
        self._paths.append(name)
        return name

    def expire_transactions(self) -> None:
        """Abort every running stream transaction, as the server does with idle ones."""
        self.state.transactions.expire()

    def restart(self) -> None:
        """Lose what a restart loses: running stream transactions and open cursors."""
        self.expire_transactions()
        self.state.cursors.clear()

    def close(self) -> None:
        for listener in self._listeners:
            listener.stop()
        for path in self._paths:
            if os.path.exists(path):
                os.unlink(path)
        self._listeners, self._paths = [], []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class Handler(BaseHTTPRequestHandler):
    """Reads a request, lets faults happen, answers."""

    protocol_version = "HTTP/1.1"
    server: "Listener"

    def setup(self) -> None:
        super().setup()
        if self.request.family == socket.AF_INET:
            self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, True)
        self.server.connections.add(self.request)

    def finish(self) -> None:
        self.server.connections.discard(self.request)
        super().finish()

    def handle(self) -> None:
        try:
            super().handle()
        except (OSError, ValueError):
            self.close_connection = True

    def _serve(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        state, parts = self.server.state, urlsplit(self.path)
        database, path = _split_database(unquote(parts.path))
        sent = Sent(self.command, path, database)
        if path == "/_api/cursor":
            sent.query = str(json.loads(raw).get("query", ""))
        state.requests.append(sent)
        hits = state.faults.take(sent)
        time.sleep(sum(hit.seconds for hit in hits))
        kinds = {hit.kind: hit for hit in hits}
        if "drop_before" in kinds:
            return self._drop()
        if "error" in kinds:
            hit = kinds["error"]
            response = Response(hit.status, ServerError(hit.number, hit.message, hit.status).body())
        else:
            response = self._answer(
                state, sent, dict(parse_qsl(parts.query, keep_blank_values=True)), raw
            )
        if "drop_after" in kinds:
            return self._drop()
        return self._send(response)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = _serve

    def _answer(self, state: State, sent: Sent, params: dict[str, str], raw: bytes) -> Response:
        headers = {name.lower(): value for name, value in self.headers.items()}
        try:
            check_names(
                "header", {name for name in headers if name.startswith("x-arango-")}, _HEADERS
            )
            access = Access(state.users.authenticate(headers.get("authorization")))
            database = state.database(sent.database)
            access.require_database(sent.database)
            handler, captured, params_known = find_route(sent.method, sent.path)
            check_names("query parameter", params, params_known)
            with database.condition:
                return handler(
                    Request(state, sent.method, params, headers, raw, database, access), **captured
                )
        except ServerError as error:
            return Response(error.status, error.body())
        except Exception:
            logger.exception("the double failed on %s %s", sent.method, sent.path)
            return Response(
                500, ServerError(4, "internal error of the test double; see its log").body()
            )

    def _send(self, response: Response) -> None:
        payload = orjson.dumps(response.body)
        lines = [f"HTTP/1.1 {response.status} {self.responses.get(response.status, ('',))[0]}"]
        lines += [
            "Server: ArangoDB",
            "Connection: Keep-Alive",
            "Content-Type: application/json; charset=utf-8",
        ]
        head = ("\r\n".join([*lines, f"Content-Length: {len(payload)}"]) + "\r\n\r\n").encode(
            "latin-1"
        )
        self.wfile.write(head if self.command == "HEAD" else head + payload)
        self.wfile.flush()

    def _drop(self) -> None:
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)


class Listener(socketserver.ThreadingMixIn, socketserver.BaseServer):
    """What TCP and UNIX listeners share."""

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 64
    block_on_close = False

    def prepare(self, state: State) -> None:
        self.state = state
        self.connections: set[socket.socket] = set()
        self._thread = threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop listening and close every open connection."""
        self.shutdown()
        self.server_close()
        for connection in list(self.connections):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self._thread.join(timeout=5)


class TCPListener(Listener, socketserver.TCPServer):
    """Listens on a loopback port."""


class UnixListener(Listener, socketserver.UnixStreamServer):
    """Listens on a socket file."""


def _split_database(path: str) -> tuple[str, str]:
    if not path.startswith("/_db/"):
        return "_system", path
    database, _, rest = path.removeprefix("/_db/").partition("/")
    return database, f"/{rest}"


def main() -> None:
    """Serve by hand until interrupted."""
    parser = argparse.ArgumentParser(description="loopback ArangoDB test double")
    parser.add_argument("--port", type=int, default=8529)
    parser.add_argument("--version", default="3.12.8")
    parser.add_argument("--vector-index", action="store_true")
    parser.add_argument("--root-password", default="")
    options: Any = parser.parse_args()
    with ArangoDouble(
        options.version, options.vector_index, options.root_password, options.port
    ) as double:
        sys.stdout.write(f"{double.url}\n")
        sys.stdout.flush()
        threading.Event().wait()


if __name__ == "__main__":
    main()
