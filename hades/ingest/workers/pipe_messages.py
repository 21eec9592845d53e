"""Messages between a process and its child over pipes: the length, then a pickled value."""

from __future__ import annotations

import os
import pickle
import select
import struct
from typing import IO, Any

_HEADER = struct.Struct("<Q")
_PART_BYTES = 1 << 20


def send_message(stream: IO[bytes], value: object) -> None:
    """Write a whole message; raises `BrokenPipeError` when nobody reads it any more."""
    body = pickle.dumps(value, protocol=5)
    for data in (_HEADER.pack(len(body)), body):
        rest = memoryview(data)
        while rest:
            rest = rest[stream.write(rest) :]
    stream.flush()


def receive_message(stream: IO[bytes], wait_seconds: float | None = None) -> Any:
    """Read a whole message; raises `EOFError` when the other side ends, or is silent for `wait_seconds`."""
    size = _HEADER.unpack(receive_bytes(stream, _HEADER.size, wait_seconds))[0]
    return pickle.loads(receive_bytes(stream, size, wait_seconds))


def receive_bytes(stream: IO[bytes], size: int, wait_seconds: float | None = None) -> bytes:
    """Exactly `size` bytes of an unbuffered stream."""
    parts: list[bytes] = []
    while size:
        if not select.select([stream], [], [], wait_seconds)[0]:
            raise EOFError
        part = os.read(stream.fileno(), min(size, _PART_BYTES))
        if not part:
            raise EOFError
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
