"""The probe tells a service that answers from one that does not, over a socket and over TCP."""

from __future__ import annotations

import socketserver
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from hades.surfaces.cli.probe import ask


class Health(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response({"/health": 200, "/ready": 503}.get(self.path, 404))
        self.end_headers()

    def address_string(self):
        return "local"

    def log_message(self, *_):
        """Tests print nothing."""


@pytest.fixture(params=["socket", "tcp"])
def service(request, tmp_path):
    """An address by which a service that lives and is not ready can be asked, up to the path."""
    if request.param == "socket":
        server, where = (
            socketserver.UnixStreamServer(str(tmp_path / "s"), Health),
            str(tmp_path / "s"),
        )
    else:
        server = HTTPServer(("127.0.0.1", 0), Health)
        where = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield where
    server.shutdown()
    server.server_close()


def test_a_service_that_lives_has_nothing_wrong(service):
    assert ask(service) == ""


def test_a_service_that_is_not_ready_says_so():
    server = HTTPServer(("127.0.0.1", 0), Health)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    where = f"http://127.0.0.1:{server.server_port}/ready"
    assert ask(where) == f"{where} answers 503 to /ready"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("where", ["/nowhere/at.sock", "http://127.0.0.1:9"])
def test_nobody_there_is_told(where):
    assert ask(where).startswith(f"{where} does not answer")
