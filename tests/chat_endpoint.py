"""An OpenAI-compatible endpoint on the loopback whose reply a test decides."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class ChatEndpoint:
    """Streams `pieces` as chat completion events, waiting `pause` seconds before each; or sends `raw` as it is."""

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

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            told.seen.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(told.status)
            self.send_header("content-type", told.content_type)
            self.end_headers()
            try:
                if told.raw is not None:
                    self.wfile.write(told.raw)
                    return
                for piece in told.pieces:
                    time.sleep(told.pause)
                    event = {"choices": [{"delta": {"content": piece}}]}
                    self.wfile.write(f"data: {json.dumps(event)}\n\n".encode())
                    self.wfile.flush()
                self.wfile.write(b"data: [DONE]\n\n")
            except (BrokenPipeError, ConnectionResetError):
                pass

        def log_message(self, format: str, *args: object) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads = True
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    told.url = f"http://127.0.0.1:{http.server_port}/v1"
    try:
        yield told
    finally:
        http.shutdown()
        thread.join()
        http.server_close()
