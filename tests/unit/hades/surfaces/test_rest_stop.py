"""A service that is told to stop before it answers."""

from __future__ import annotations

import signal
import socket
from types import SimpleNamespace
from typing import Any

import pytest

from hades.surfaces.rest import app as serve


@pytest.mark.parametrize("told", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_that_comes_before_the_server_listens_to_it_stops_the_service(
    monkeypatch: pytest.MonkeyPatch, told: signal.Signals
) -> None:
    made: Any = SimpleNamespace(should_exit=False, run=lambda sockets: signal.raise_signal(told))
    monkeypatch.setattr(serve, "server", lambda *given: made)
    handlers = {one: signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGINT)}
    given: Any = None
    try:
        with socket.socket() as listening:
            serve.serve_with_workers(given, given, listening)
    finally:
        for one, handler in handlers.items():
            signal.signal(one, handler)
    assert made.should_exit is True
