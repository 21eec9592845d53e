"""Text of a streamed chat completion: server-sent events, or one JSON object where the endpoint does not stream."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

MAX_LINE_BYTES = 1 << 20
MAX_EMPTY_EVENTS = 10_000


def read_pieces(chunks: Iterable[bytes], content_type: str) -> Iterator[str]:
    """The pieces of text in order; raises ValueError on what is no such answer."""
    if "json" in content_type:
        yield _whole(b"".join(_limit_bytes(chunks)))
        return
    empty = 0
    for line in _lines(chunks):
        name, _, data = line.partition(":")
        if name != "data":
            continue
        if data.strip() == "[DONE]":
            return
        piece = _piece(data)
        empty = 0 if piece else empty + 1
        if empty > MAX_EMPTY_EVENTS:
            raise ValueError(f"{MAX_EMPTY_EVENTS} events in a row without text")
        if piece:
            yield piece


def _lines(chunks: Iterable[bytes]) -> Iterator[str]:
    rest = b""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield line.decode("utf-8", "replace").strip()
        if len(rest) > MAX_LINE_BYTES:
            raise ValueError(f"a line of more than {MAX_LINE_BYTES} bytes")
    if rest.strip():
        yield rest.decode("utf-8", "replace").strip()


def _limit_bytes(chunks: Iterable[bytes]) -> Iterator[bytes]:
    size = 0
    for chunk in chunks:
        size += len(chunk)
        if size > MAX_LINE_BYTES:
            raise ValueError(f"an answer of more than {MAX_LINE_BYTES} bytes")
        yield chunk


def _piece(data: str) -> str:
    event = _object(data)
    choices = event.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else {}
    delta = first.get("delta") if isinstance(first, dict) else None
    text = delta.get("content") if isinstance(delta, dict) else None
    return text if isinstance(text, str) else ""


def _whole(data: bytes) -> str:
    try:
        text = _object(data.decode("utf-8", "replace"))["choices"][0]["message"]["content"]
    except (KeyError, TypeError, IndexError):
        text = None
    if not isinstance(text, str):
        raise ValueError("no text in the answer")
    return text


def _object(data: str) -> dict[str, Any]:
    try:
        event = json.loads(data)
    except (ValueError, RecursionError):
        raise ValueError(f"not JSON: {data[:80]!r}") from None
    if not isinstance(event, dict):
        raise ValueError(f"not a JSON object: {data[:80]!r}")
    return event
