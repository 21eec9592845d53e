"""HTTP/1.1 over TCP and UNIX sockets: one thread a connection, keep-alive, and connections that can be dropped."""

import contextlib
import json
import logging
import socket
import socketserver
import threading
import time
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qsl, unquote, urlsplit

from tests.arango_double import (
    routes_admin,
    routes_collections,
    routes_documents,
    routes_graphs,
    routes_queries,
    routes_search,
)
from tests.arango_double.errors import ServerError
from tests.arango_double.faults import Sent
from tests.arango_double.routing import ROUTER, Request, Response
from tests.arango_double.state import State
from tests.arango_double.users import Access

_ROUTES = (routes_admin, routes_collections, routes_documents, routes_graphs, routes_queries, routes_search)
_HEADERS = {
    "x-arango-driver", "x-arango-trx-id", "x-arango-async", "x-arango-allow-dirty-read",
    "x-arango-queue-time-seconds",
}  # fmt: skip
logger = logging.getLogger(__name__)


class Handler(BaseHTTPRequestHandler):
    """Reads a request, lets faults happen, answers."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = False
    server: "Listener"

    def setup(self) -> None:
        super().setup()
        if self.request.family in (socket.AF_INET, socket.AF_INET6):
            self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, True)
        self.server.connections.add(self.request)

    def finish(self) -> None:
        self.server.connections.discard(self.request)
        super().finish()

    def handle(self) -> None:
        try:
            super().handle()
        except (ConnectionError, OSError, ValueError):
            self.close_connection = True

    def _serve(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        state = self.server.state
        parts = urlsplit(self.path)
        database, path = _split_database(unquote(parts.path))
        sent = Sent(self.command, path, database)
        if path == "/_api/cursor":
            sent.query = _query_text(raw)
        state.requests.append(sent)
        hits = state.faults.take(sent)
        time.sleep(sum(hit.seconds for hit in hits))
        kinds = {hit.kind: hit for hit in hits}
        if "drop_before" in kinds:
            self._drop()
            return
        if "error" in kinds:
            hit = kinds["error"]
            response = Response(hit.status, ServerError(hit.number, hit.message, hit.status).body())
        else:
            response = self._answer(state, sent, dict(parse_qsl(parts.query, keep_blank_values=True)), raw)
        if "drop_after" in kinds:
            self._drop()
            return
        sent.status = response.status
        self._send(response)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = _serve

    def _answer(self, state: State, sent: Sent, params: dict[str, str], raw: bytes) -> Response:
        headers = {name.lower(): value for name, value in self.headers.items()}
        try:
            raw = _decoded(raw, headers.get("content-encoding"))
            request = _request(state, sent, params, headers, raw)
            return _run(request)
        except ServerError as error:
            return Response(error.status, error.body())
        except Exception:
            logger.exception("the double failed on %s %s", sent.method, sent.path)
            broken = ServerError(4, "internal error of the test double; see its log")
            return Response(500, broken.body())

    def _send(self, response: Response) -> None:
        payload = b""
        if response.body is not None:
            payload = json.dumps(response.body, ensure_ascii=False, allow_nan=False).encode()
        lines = [f"HTTP/1.1 {response.status} {self.responses.get(response.status, ('',))[0]}"]
        lines += ["Server: ArangoDB", "Connection: Keep-Alive", "Content-Type: application/json; charset=utf-8"]
        lines += [f"Content-Length: {len(payload)}", *(f"{name}: {value}" for name, value in response.headers.items())]
        head = ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
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


def _run(request: Request) -> Response:
    handler, captured = ROUTER.find(request.method, request.path)
    return handler(request, **captured)


def _request(state: State, sent: Sent, params: dict[str, str], headers: dict[str, str], raw: bytes) -> Request:
    unknown = {name for name in headers if name.startswith("x-arango-")} - _HEADERS
    if unknown:
        raise ServerError(10, f"the test double knows no header {', '.join(sorted(unknown))}")
    sent.user = state.users.authenticate(headers.get("authorization"))
    access = Access(state.users, sent.user)
    database = state.database(sent.database)
    if sent.path not in ("/_api/version", "/_api/database/user"):
        access.require_database(sent.database)
    return Request(state, sent.method, sent.path, params, headers, raw, database, access)


def _split_database(path: str) -> tuple[str, str]:
    if path.startswith("/_db/"):
        _, _, database, rest = path.split("/", 3) if path.count("/") > 2 else ("", "", path[5:], "")
        return database, "/" + rest
    return "_system", path


def _query_text(raw: bytes) -> str:
    try:
        return str(json.loads(raw).get("query", ""))
    except (ValueError, AttributeError):
        return ""


def _decoded(raw: bytes, encoding: str | None) -> bytes:
    if encoding in (None, "identity"):
        return raw
    raise ServerError(10, f"unsupported content-encoding {encoding}", 415)
