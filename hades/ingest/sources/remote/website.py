"""The pages of a web site by its sitemap: robots.txt is followed, requests keep their distance, and
a page that did not change is not sent again.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import PurePosixPath
from typing import NamedTuple
from urllib.parse import urljoin, urlsplit, urlunsplit
from urllib.robotparser import RobotFileParser

import httpx
from lxml import etree

from hades.ingest.sources.documents import why_not_read
from hades.ingest.sources.files import Unusable
from hades.ingest.sources.material import RejectReason
from hades.ingest.sources.remote.connector import (
    Kind,
    Place,
    Reading,
    RemoteDocument,
    SyncError,
    moment_of,
    size_limit,
    too_large,
)

AGENT = "hades-sources"
_TRIES = 4
_LONGEST_WAIT_SECONDS = 120.0
_TIMEOUT_SECONDS = 30.0
_REDIRECTS = 5
_MAX_SITEMAPS = 200
_MAX_PAGES = 50_000
_MAX_SITEMAP_BYTES = 50 << 20
_GZIP = 31  # the window of zlib that expects the header of gzip
_TOO_MANY = 429
_GONE = (404, 410)
_SUFFIXES = {
    "text/html": ".html",
    "application/xhtml+xml": ".html",
    "application/pdf": ".pdf",
    "text/plain": ".txt",
    "text/markdown": ".md",
}


class Response(NamedTuple):
    """An answer that was read to its end, or to the limit."""

    url: str
    status: int
    headers: httpx.Headers
    content: bytes

    @property
    def media_type(self) -> str:
        """What it says it is."""
        stated: str = self.headers.get("content-type", "")
        return stated.partition(";")[0].strip().lower()


@dataclass
class PoliteClient:
    """Requests to one host, one at a time, with a distance between them; retried where that may
    help.
    """

    place: Place
    delay_seconds: float
    last_request: datetime | None = None

    def __post_init__(self) -> None:
        parts = self.place.parts
        if parts.username:
            login = (parts.username or "", parts.password or "")
        else:
            login = None

        self._http = httpx.Client(
            timeout=_TIMEOUT_SECONDS,
            headers={"user-agent": AGENT},
            auth=login,
        )
        self.scheme, self.host = parts.scheme, parts.netloc.rpartition("@")[2]

    def is_here(self, url: str) -> bool:
        """Whether an address is of the site, so that what logs in may be sent there."""
        parts = urlsplit(url)
        return parts.netloc == self.host and parts.scheme in ("https", self.scheme)

    def get(
        self,
        url: str,
        limit: int,
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        """An answer with a status below 500; raises where there is none or access is refused."""
        problem = ""
        for attempt in range(_TRIES):
            self._keep_distance()
            wait_seconds = 2.0**attempt
            try:
                response = self._follow(url, limit, headers or {})
            except httpx.TransportError as error:
                problem = f"the connection failed ({type(error).__name__})"
            else:
                status = response.status
                if status in (401, 403):
                    raise SyncError(
                        f"{url} answered {status}: access is refused, and a token may have "
                        "expired; renew what the placeholders of the address stand for"
                    )

                if status != _TOO_MANY and status < 500:
                    return response

                problem = f"it answered {status}"
                wait_seconds = self._wait_asked(url, response) or wait_seconds

            if attempt + 1 < _TRIES:
                self.place.sleep(wait_seconds)

        raise SyncError(f"{url} could not be read: {problem}, {_TRIES} times; try again later")

    def _wait_asked(self, url: str, response: Response) -> float:
        """The seconds that the server asks to wait; too many are an error."""
        retry_after = response.headers.get("retry-after", "")
        if retry_after.isdecimal():
            seconds = float(retry_after)
        else:
            seconds = 0.0

        if retry_after.isdecimal():
            until = None
        else:
            until = moment_of(retry_after)

        if until is not None:
            seconds = max(0.0, (until - self.place.now()).total_seconds())

        if seconds > _LONGEST_WAIT_SECONDS:
            raise SyncError(
                f"{url} answered {response.status} and asks to wait {seconds:,.0f} s; sync again "
                "after that"
            )

        return seconds

    def _keep_distance(self) -> None:
        now = self.place.now()
        if self.last_request is not None:
            passed = (now - self.last_request).total_seconds()
            if 0 <= passed < self.delay_seconds:
                self.place.sleep(self.delay_seconds - passed)

        self.last_request = self.place.now()

    def _follow(
        self,
        url: str,
        limit: int,
        headers: Mapping[str, str],
    ) -> Response:
        """The answer behind redirects, as long as they stay on the host."""
        for _ in range(_REDIRECTS):
            response = self._read(url, limit, headers)
            if response.status not in (301, 302, 303, 307, 308):
                return response

            url = urljoin(url, response.headers.get("location", ""))
            if not self.is_here(url):
                return response

        return response

    def _read(
        self,
        url: str,
        limit: int,
        headers: Mapping[str, str],
    ) -> Response:
        content = bytearray()
        with self._http.stream("GET", url, headers=dict(headers)) as answer:
            for piece in answer.iter_bytes():
                content += piece
                if len(content) > limit:
                    break

            return Response(
                url,
                answer.status_code,
                answer.headers,
                bytes(content),
            )

    def close(self) -> None:
        """End the connections."""
        self._http.close()


class WebsiteConnector:
    """The pages that a sitemap lists, of one host."""

    columns: tuple[str, ...] = ()

    def __init__(self, place: Place) -> None:
        parts = place.parts
        self._site = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
        self._url = urlunsplit((*parts[:1], parts.netloc.rpartition("@")[2], *parts[2:4], ""))
        self._client = PoliteClient(place, place.source.delay_seconds)
        self._now = place.now
        self._robots = RobotFileParser()

    def list_documents(self) -> Iterator[RemoteDocument]:
        """The pages of the sitemap that robots.txt allows, each once."""
        self._read_robots()

        urls: set[str] = set()
        for url, modified in self._list_pages():
            if url in urls or not self._client.is_here(url):
                continue
            if not self._robots.can_fetch(AGENT, url):
                continue

            urls.add(url)
            if len(urls) > _MAX_PAGES:
                raise SyncError(
                    f"the sitemap of {self._site} lists more than {_MAX_PAGES:,} pages; add its "
                    "parts as several sources"
                )

            yield RemoteDocument(
                id=url,
                name=_name_of(url),
                address=url,
                modified=self._past(modified),
            )

    def _read_robots(self) -> None:
        answer = self._client.get(f"{self._site}/robots.txt", 1 << 20)
        lines = [] if answer.status >= 400 else answer.content.decode("utf-8", "replace")
        self._robots.parse(lines.splitlines() if isinstance(lines, str) else lines)
        delay = self._robots.crawl_delay(AGENT)
        self._client.delay_seconds = max(self._client.delay_seconds, float(delay or 0))

    def _list_pages(self) -> Iterator[tuple[str, datetime | None]]:
        waiting = [self._url]
        if not urlsplit(self._url).path.endswith((".xml", ".xml.gz")):
            folder = urlsplit(self._url).path.rstrip("/")
            at_root = [] if folder else self._robots.site_maps()
            waiting = at_root or [f"{self._site}{folder}/sitemap.xml"]

        read: set[str] = set()
        while waiting:
            url = waiting.pop(0)
            if url in read or not self._client.is_here(url):
                continue

            read.add(url)
            if len(read) > _MAX_SITEMAPS:
                raise SyncError(f"{self._site} has more than {_MAX_SITEMAPS} sitemaps")

            for name, location, modified in self._read_sitemap(url):
                if name == "sitemap":
                    waiting.append(location)
                else:
                    yield location, modified

    def _read_sitemap(self, url: str) -> Iterator[tuple[str, str, datetime | None]]:
        """The entries of a sitemap; one that is missing or cut is an error, not an empty site."""
        answer = self._client.get(url, _MAX_SITEMAP_BYTES)
        if answer.status != 200:
            raise SyncError(
                f"{url} answered {answer.status}; give the address of the site's sitemap.xml"
            )

        content = answer.content
        try:
            if content.startswith(b"\x1f\x8b"):
                content = zlib.decompressobj(_GZIP).decompress(content, _MAX_SITEMAP_BYTES)
            root = etree.fromstring(
                content,
                etree.XMLParser(resolve_entities=False, no_network=True),
            )
        except (etree.XMLSyntaxError, zlib.error) as error:
            raise SyncError(
                f"{url} is no whole sitemap ({error}); a part of the pages may be missing, so "
                "nothing was changed"
            ) from None

        for entry in root.iterchildren("{*}url", "{*}sitemap"):
            location = urljoin(url, (entry.findtext("{*}loc") or "").strip())
            if self._client.scheme == "https" and location.startswith("http://"):
                location = f"https://{location.removeprefix('http://')}"

            modified = moment_of((entry.findtext("{*}lastmod") or "").strip())
            yield etree.QName(entry).localname, location, modified

    def _past(self, modified: datetime | None) -> datetime | None:
        """A time of the server; one in the future is of a clock that is wrong."""
        if modified is not None and modified <= self._now():
            return modified
        return None

    def read_documents(
        self,
        documents: Sequence[RemoteDocument],
        versions: Mapping[str, str],
    ) -> Iterator[Reading]:
        """Ask for each page, with the version that is there."""
        for document in documents:
            yield self._read_page(document, versions.get(document.id, ""))

    def _read_page(self, document: RemoteDocument, version: str) -> Reading:
        kind, _, stamp = version.partition(" ")
        conditions = {
            "etag": "if-none-match",
            "date": "if-modified-since",
        }
        if kind in conditions:
            headers = {conditions[kind]: stamp}
        else:
            headers = {}

        limit = size_limit(document.name)
        answer = self._client.get(document.id, limit, headers)
        if answer.status == 304 and headers:
            return Reading(replace(document, version=version))
        if answer.status in _GONE:
            return Reading(document, is_gone=True)

        if answer.status != 200:
            detail = f"answered {answer.status}"
            return Reading(
                document,
                problem=Unusable(RejectReason.UNREADABLE, detail),
            )

        if len(answer.content) > limit:
            return Reading(
                document,
                problem=too_large(document.name, len(answer.content)),
            )

        return self._page(document, answer)

    def _page(self, document: RemoteDocument, answer: Response) -> Reading:
        """A page with the format that it says it has; only a name without one is changed."""
        name = document.name
        if name.endswith(".html"):
            suffix = _SUFFIXES.get(answer.media_type or "text/html")
            if suffix is None:
                problem = Unusable(RejectReason.NOT_TEXT, f"{answer.media_type} is not read")
                return Reading(document, problem=problem)

            name = str(PurePosixPath(name).with_suffix(suffix))

        modified = self._past(moment_of(answer.headers.get("last-modified", "")))
        version = ""
        if etag := answer.headers.get("etag"):
            version = f"etag {etag}"
        elif modified is not None:
            version = f"date {answer.headers['last-modified']}"

        page = replace(
            document,
            name=name,
            version=version,
            modified=modified or document.modified,
        )
        return Reading(page, _as_utf8(answer))

    def close(self) -> None:
        """End the connections."""
        self._client.close()


def _as_utf8(answer: Response) -> bytes:
    """The content; text in a character set that only its header names, as UTF-8."""
    charset = answer.headers.get("content-type", "").lower().partition("charset=")[2]
    charset = charset.partition(";")[0].strip(" \"'")

    if not answer.media_type.startswith("text/") or charset in ("", "utf-8", "utf8"):
        return answer.content

    try:
        return answer.content.decode(charset).encode()
    except (LookupError, UnicodeDecodeError):
        return answer.content


def _name_of(url: str) -> str:
    """The name of the file that holds a page."""
    parts = urlsplit(url)
    path = parts.path.lstrip("/")

    if not path or path.endswith("/"):
        path += "index.html"

    if parts.query:
        path = f"{path}_{parts.query}.html"
    elif why_not_read(PurePosixPath(path).suffix.lower()) or not PurePosixPath(path).suffix:
        path += ".html"

    return path


KIND = Kind(
    "web",
    "the pages of a web site by its sitemap",
    ("include", "exclude", "delay_seconds"),
    WebsiteConnector,
)
