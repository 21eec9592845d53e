"""A web site on the loopback whose pages and faults a test decides, and a home that syncs it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.message import Message
from pathlib import Path
from typing import Any

from hades.ingest.sources.remote.ledger import SyncState
from hades.ingest.sources.remote.remotes import RemoteSources
from hades.ingest.sources.remote.sync import SyncReport
from schemas.sources import RemoteSource
from tests.loopback import Answer, answering

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
Fault = Callable[[str, Message], Answer | None]


def page(title: str, sentence: str) -> bytes:
    return f"<html><title>{title}</title><h1>{title}</h1><p>{sentence}</p></html>".encode()


@dataclass
class Site:
    """Pages by path, each with an ETag; a fault answers instead where it gives an answer."""

    pages: dict[str, bytes] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    robots: str = ""
    fault: Fault = lambda path, headers: None
    requests: list[str] = field(default_factory=list)
    sent: list[str] = field(default_factory=list)
    url: str = ""

    def answer(self, path: str, headers: Message, _content: bytes) -> Answer:
        self.requests.append(path)
        faulty = self.fault(path, headers)
        if faulty is not None:
            return faulty
        if path == "/robots.txt":
            return (200 if self.robots else 404), {}, [self.robots.encode()]
        if path == "/sitemap.xml":
            return 200, {}, [self.sitemap()]
        content = self.pages.get(path)
        if content is None:
            return 404, {}, [b"not here"]
        etag = f'"{hash(content)}"'
        if headers.get("if-none-match") == etag:
            return 304, {}, []
        self.sent.append(path)
        named = {"content-type": "text/html; charset=utf-8", "etag": etag, **self.headers}
        return 200, named, [content]

    def sitemap(self) -> bytes:
        entries = "".join(f"<url><loc>{self.url}{path}</loc></url>" for path in self.pages)
        return (
            '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">' + entries + "</urlset>"
        ).encode()


@dataclass
class Syncing:
    """A home with one source, synced at a moment that the test moves."""

    remotes: RemoteSources
    waits: list[float]
    clock: list[datetime]
    name: str = "there"

    def sync(self, accept: bool = False) -> SyncReport:
        self.clock[0] += timedelta(hours=24)
        return self.remotes.sync(self.name, accept=accept)

    @property
    def state(self) -> SyncState:
        return self.remotes.ledger(self.name).state()

    @property
    def copies(self) -> dict[str, bytes]:
        root = self.remotes.mirror(self.name)
        files = [path for path in sorted(root.rglob("*")) if path.is_file()]
        return {path.relative_to(root).as_posix(): path.read_bytes() for path in files}


def syncing(home: Path, url: str, **options: Any) -> Syncing:
    waits: list[float] = []
    clock = [NOW]
    remotes = RemoteSources(home, trusts_all=True, now=lambda: clock[0], sleep=waits.append)
    remotes.add("there", RemoteSource(url=url, **options))
    return Syncing(remotes, waits, clock)


@contextmanager
def serving(pages: Mapping[str, bytes]) -> Iterator[Site]:
    site = Site(dict(pages))
    with answering(site.answer) as url:
        site.url = url
        yield site
