"""Every request goes out once, over AF_UNIX and TCP alike, and failures say whether it may have
been done.
"""

import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from socketserver import ThreadingMixIn
from typing import Any

import pytest

from hades.errors import StoreUnavailable
from hades.ports.store import Mode
from hades.stores.arango.client import ArangoEndpoints, ArangoSession, Endpoint, SingleShotClient
from hades.stores.arango.errors import (
    CircuitBreaker,
    Lost,
    NotArango,
    NotSent,
    RetryPolicy,
    TimedOut,
    TransportError,
)
from tests.patience import HANG_SECONDS

RETRY = RetryPolicy(attempts=3, sleep=lambda _: None)


class Handler(BaseHTTPRequestHandler):
    """Answers by path: /drop closes, /slow sleeps, /down is 503, /html is another program, the rest
    is JSON.
    """

    protocol_version = "HTTP/1.1"

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        self.server.seen.append((self.command, self.path, body))  # type: ignore[attr-defined]
        if "/drop" in self.path:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return None
        if "/slow" in self.path:
            self.server.wake.wait(HANG_SECONDS)  # type: ignore[attr-defined]
        if "/html" in self.path:
            return self.send(200, b"<html>", "text/html")
        if "/down" in self.path:
            return self.send(503, json.dumps({"errorNum": 503, "error": True}).encode())
        self.send(200, json.dumps({"version": "3.12.8", "echo": body.decode()}).encode())
        return None

    def send(self, status: int, body: bytes, kind: str = "application/json; charset=utf-8") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_PUT = do_DELETE = answer

    def log_message(self, *_: object) -> None:
        pass

    def address_string(self) -> str:
        return "local"


class Server(ThreadingMixIn, HTTPServer):
    daemon_threads = True

    def __init__(self, address: Any, family: int) -> None:
        self.address_family = family
        self.seen: list[tuple[str, str, bytes]] = []
        self.wake = threading.Event()
        super().__init__(address, Handler)

    def server_bind(self) -> None:
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = "local", 0


@pytest.fixture(params=["unix", "tcp"])
def served(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Server, Endpoint]]:
    if request.param == "unix":
        path = tmp_path / "a.sock"
        server = Server(str(path), socket.AF_UNIX)
        endpoint = Endpoint("http://localhost", path)
    else:
        server = Server(("127.0.0.1", 0), socket.AF_INET)
        endpoint = Endpoint(f"http://127.0.0.1:{server.socket.getsockname()[1]}")
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
    )
    thread.start()
    yield server, endpoint
    server.wake.set()
    server.shutdown()
    server.server_close()


def send(endpoint: Endpoint, path: str, method: str = "post", timeout_s: float = 5.0) -> Any:
    client = SingleShotClient(endpoint, timeout_s, CircuitBreaker())
    session = client.create_session(endpoint.url)
    try:
        return client.send_request(session, method, endpoint.url + path, data='{"text":"Grüße €"}')
    finally:
        session.close()


def test_text_of_any_alphabet_goes_and_comes(served: tuple[Server, Endpoint]) -> None:
    answer = send(served[1], "/x")
    assert (answer.status_code, json.loads(answer.raw_body)["echo"]) == (200, '{"text":"Grüße €"}')


@pytest.mark.parametrize("method", ["post", "get", "delete"])
@pytest.mark.parametrize(
    ("path", "kind"), [("/drop", Lost), ("/down", NotSent), ("/html", NotArango)]
)
def test_a_request_without_an_answer_was_sent_exactly_once(
    served: tuple[Server, Endpoint], method: str, path: str, kind: type[TransportError]
) -> None:
    server, endpoint = served
    with pytest.raises(kind):
        send(endpoint, path, method)
    assert len(server.seen) == 1


def test_a_late_answer_is_a_timeout(served: tuple[Server, Endpoint]) -> None:
    with pytest.raises(TimedOut, match=r"within 0\.2 s"):
        send(served[1], "/slow", timeout_s=0.2)


def test_nobody_listening_is_known_to_have_done_nothing(tmp_path: Path) -> None:
    with pytest.raises(NotSent, match="nothing listens at unix:"):
        send(Endpoint("http://localhost", tmp_path / "none.sock"), "/x")
    with pytest.raises(NotSent, match="nothing listens at http:"):
        send(Endpoint("http://127.0.0.1:9"), "/x")


def session_at(endpoint: Endpoint, breaker: CircuitBreaker | None = None) -> ArangoSession:
    endpoints = (
        ArangoEndpoints(ro_socket=endpoint.unix_socket)
        if endpoint.unix_socket
        else ArangoEndpoints(url=endpoint.url)
    )
    return ArangoSession(endpoints, Mode.READ_ONLY, retry=RETRY, breaker=breaker)


def test_the_driver_speaks_through_it_with_the_account(served: tuple[Server, Endpoint]) -> None:
    server, endpoint = served
    session = session_at(endpoint)
    assert session.version == "3.12.8"
    assert [(method, path) for method, path, _ in server.seen] == [
        ("GET", "/_db/arxiv_repository/_api/version?details=0")
    ]
    session.close()


def test_work_that_is_not_as_good_twice_is_never_sent_twice(
    served: tuple[Server, Endpoint],
) -> None:
    server, endpoint = served
    session = session_at(endpoint)

    def lost_insert() -> object:
        return session.db.collection("drop").insert({"a": 1})

    with pytest.raises(StoreUnavailable):
        session.run("inserting", lost_insert, again=False)
    assert len(server.seen) == 1
    with pytest.raises(StoreUnavailable):
        session.run("inserting", lost_insert, again=True)
    assert len(server.seen) == 1 + RETRY.attempts
    session.close()


def test_the_breaker_stops_asking_a_server_that_does_not_answer(
    served: tuple[Server, Endpoint],
) -> None:
    server, endpoint = served
    session = session_at(endpoint, CircuitBreaker(failures=4, cool_down_s=60))
    for _ in range(3):
        with pytest.raises(StoreUnavailable):
            session.run("asking", lambda: session.db.collection("down").insert({}), again=True)
    assert len(server.seen) == 4
    with pytest.raises(StoreUnavailable, match="4 times in a row; next try in"):
        assert session.version
    session.close()
