"""One connection: a request must arrive in time however slowly its bytes drip, and a Unix peer has a name."""

from __future__ import annotations

import asyncio
import socket
import struct
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol


def protocol_of(arrive_seconds: float) -> type[H11Protocol]:
    """The protocol class with this deadline; uvicorn itself waits for a slow request without limit."""

    class Connection(H11Protocol):
        """Closes a connection on which a request begins and does not end in time."""

        arriving: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self.client = self.client or _peer(transport)
            self._expect()

        def data_received(self, data: bytes) -> None:
            self._expect()
            super().data_received(data)
            if self.conn.their_state in (h11.DONE, h11.MUST_CLOSE, h11.CLOSED, h11.ERROR, h11.SWITCHED_PROTOCOL):
                self._note_arrival()

        def connection_lost(self, exc: Exception | None) -> None:
            self._note_arrival()
            super().connection_lost(exc)

        def _expect(self) -> None:
            if self.arriving is None:
                self.arriving = self.loop.call_later(arrive_seconds, self._give_up)

        def _note_arrival(self) -> None:
            if self.arriving is not None:
                self.arriving.cancel()
                self.arriving = None

        def _give_up(self) -> None:
            self.arriving = None
            self.transport.abort()

    return Connection


def _peer(transport: asyncio.BaseTransport) -> tuple[str, int] | None:
    """The user and the process at the other end of a Unix socket."""
    peer: Any = transport.get_extra_info("socket")
    if peer is None or peer.family != socket.AF_UNIX:
        return None
    pid, uid, _ = struct.unpack("3i", peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")))
    return f"uid:{uid}", pid
