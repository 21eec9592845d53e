"""The part of an IMAP server that reading a mailbox needs, on the loopback."""

from __future__ import annotations

import re
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

_COMMAND = re.compile(r"(\S+) (?:UID )?(\w+) ?(.*)")


@dataclass
class Mailbox:
    """Messages by UID; the test changes them."""

    messages: dict[int, bytes] = field(default_factory=dict)
    password: str = "open"
    validity: int = 1
    fetched: list[int] = field(default_factory=list)
    port: int = 0

    def answer(self, command: str, words: str) -> tuple[str, list[bytes]]:
        """What is said to a command: OK or NO, after some lines."""
        if command == "CAPABILITY":
            return "OK", [b"* CAPABILITY IMAP4rev1"]
        if command == "LOGIN":
            return ("OK" if self.password in words else "NO"), []
        if command == "EXAMINE":
            if words.strip('"') != "INBOX":
                return "NO", []
            count = str(len(self.messages)).encode()
            return "OK", [b"* %s EXISTS" % count, b"* OK [UIDVALIDITY %d] x" % self.validity]
        if command == "FETCH" and "RFC822.SIZE" in words:
            return "OK", [self._listed(number, uid) for number, uid in enumerate(self.messages, 1)]
        if command == "FETCH":
            return "OK", self._content(int(words.partition(" ")[0]))
        return "OK", []

    def _listed(self, number: int, uid: int) -> bytes:
        size = len(self.messages[uid])
        return (
            f"* {number} FETCH (UID {uid} RFC822.SIZE {size} "
            'INTERNALDATE "01-Mar-2026 10:00:00 +0000")'
        ).encode()

    def _content(self, uid: int) -> list[bytes]:
        self.fetched.append(uid)
        if uid not in self.messages:
            return []
        content = self.messages[uid]
        return [b"* 1 FETCH (UID %d BODY[]<0> {%d}\r\n%s)" % (uid, len(content), content)]


@contextmanager
def mailbox(messages: dict[int, bytes]) -> Iterator[Mailbox]:
    """A server with one mailbox, INBOX, whose user has the password `open`."""
    box = Mailbox(dict(messages))

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self.wfile.write(b"* OK ready\r\n")
            for line in self.rfile:
                match = _COMMAND.match(line.decode().strip())
                assert match is not None
                tag, command, words = match.groups()
                status, lines = box.answer(command.upper(), words)
                for answer_line in lines:
                    self.wfile.write(answer_line + b"\r\n")
                self.wfile.write(f"{tag} {status} said\r\n".encode())
                if command.upper() == "LOGOUT":
                    return

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        box.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield box
        finally:
            server.shutdown()
            thread.join()
