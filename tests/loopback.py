"""A web server on the loopback whose answers a test decides."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Answer = tuple[
    int, Mapping[str, str], Iterable[bytes]
]  # status, headers, and the pieces of the content


@contextmanager
def answering(answer: Callable[[str, Message, bytes], Answer]) -> Iterator[str]:
    """The address of a server that answers each path, headers and content; gone at the end."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers.get("content-length") or 0))
            status, headers, pieces = answer(self.path, self.headers, content)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            try:
                for piece in pieces:
                    self.wfile.write(piece)
                    self.wfile.flush()
            except (BrokenPipeError, ConnectionResetError):
                return  # whoever asked has gone

        do_GET = do_POST

        def log_message(self, format: str, *args: object) -> None:
            """Tests print nothing."""

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads = True
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{http.server_port}"
    finally:
        http.shutdown()
        thread.join()
        http.server_close()
