"""An OpenAI-compatible endpoint on the loopback whose reply a test decides."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import Message
from typing import Any

from tests.loopback import Answer, answering


@dataclass
class ChatEndpoint:
    """Streams `pieces` as chat completion events, waiting `pause` seconds before each; or sends
    `raw` as it is.
    """

    url: str = ""
    pieces: list[str] = field(default_factory=list)
    raw: bytes | None = None
    status: int = 200
    pause: float = 0.0
    content_type: str = "text/event-stream"
    seen: list[dict[str, Any]] = field(default_factory=list)


@contextmanager
def chat_endpoint() -> Iterator[ChatEndpoint]:
    told = ChatEndpoint()

    def answer(path: str, headers: Message, content: bytes) -> Answer:
        told.seen.append(json.loads(content))
        return (
            told.status,
            {"content-type": told.content_type},
            [told.raw] if told.raw is not None else events(),
        )

    def events() -> Iterator[bytes]:
        for piece in told.pieces:
            time.sleep(told.pause)
            event = {"choices": [{"delta": {"content": piece}}]}
            yield f"data: {json.dumps(event)}\n\n".encode()
        yield b"data: [DONE]\n\n"

    with answering(answer) as address:
        told.url = f"{address}/v1"
        yield told
