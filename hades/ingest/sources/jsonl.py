"""JSON lines, plain or gzipped, streamed: one row in memory, bad rows named by line instead of ending the run."""

from __future__ import annotations

import gzip
import hashlib
import os
import stat
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, cast

import orjson

from hades.ingest.source_document import RejectReason
from hades.ingest.sources.reading import SourceError, Unusable

MAX_ROW_BYTES = 8 << 20
_MAX_SKIPPED_BYTES = 256 << 20  # a compressed row may go on for ever; beyond this the rest of the file is given up
_SAMPLE_BYTES = 1 << 20
_HELD_BYTES = 64 << 20  # of lines that changed; where more did, the whole file is read as a stream
_DIGEST_BYTES = 16
_GZIP = b"\x1f\x8b"
_BROKEN_GZIP = (EOFError, OSError, zlib.error)

Row = dict[str, Any]
NumberedLine = tuple[int, "bytes | Unusable"]


def require_rows(path: Path, expectation: str) -> Path:
    """The path, if rows can be read from it."""
    try:
        is_file = stat.S_ISREG(os.stat(path).st_mode)
    except OSError as error:
        raise SourceError(f"{path}: {error.strerror}; expected {expectation}, as .jsonl or .jsonl.gz") from error
    if not is_file:
        raise SourceError(f"{path} is not a file; expected {expectation}, as .jsonl or .jsonl.gz")
    if not os.access(path, os.R_OK):
        raise SourceError(f"{path} may not be read; expected {expectation}; check its permissions")
    return path


def read_rows(path: Path) -> Iterator[tuple[int, Row | Unusable]]:
    """Each row with its line number; what is no JSON object comes as the reason why."""
    for number, line in read_lines(path):
        yield number, line if isinstance(line, Unusable) else parse_row(line)


def read_lines(path: Path) -> Iterator[tuple[int, bytes | Unusable]]:
    """Each line that is not blank, with its number; what cannot be read comes as the reason why."""
    with path.open("rb") as raw, _open(raw) as lines:
        number = 0
        while True:
            try:
                line = lines.readline(MAX_ROW_BYTES + 1)
                is_cut = len(line) > MAX_ROW_BYTES and not line.endswith(b"\n")
                is_lost = is_cut and not _skip_line(lines)
            except _BROKEN_GZIP as error:
                detail = f"compressed data is damaged, the rest of the file is lost: {error}"
                yield number + 1, Unusable(RejectReason.UNREADABLE, detail)
                return
            if not line:
                return
            number += 1
            if is_cut:
                rest = "; the rest of the file is not read" if is_lost else ""
                yield number, Unusable(RejectReason.OVERSIZED, f"a row of more than {MAX_ROW_BYTES} bytes{rest}")
                if is_lost:
                    return
            elif number == 1 and line.startswith(b"\xef\xbb\xbf"):
                yield number, line[3:]
            elif not line.isspace():
                yield number, line


def digest_line(line: bytes) -> bytes:
    """What a line is known by, with or without its end: the last line of a file may have none."""
    return hashlib.blake2b(line.rstrip(), digest_size=_DIGEST_BYTES).digest()


def digest_file(path: Path | None) -> str:
    """A hash of the bytes of a file; empty where there is none."""
    if path is None:
        return ""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class UnreadLines:
    """The lines of a file but for those whose documents are known."""

    def __init__(self, path: Path, origin_of: Callable[[bytes], str | None]) -> None:
        self._path, self._origin_of = path, origin_of
        self._chosen: list[NumberedLine] | None = None  # None: all
        self.left_out: dict[str, bytes] = {}  # digests by the origins of their documents

    def leave_out(self, known: Mapping[bytes, str]) -> list[bytes]:
        """See `RecordSource.leave_out`."""
        chosen = _leave_out_lines(self._path, known, self._origin_of) if known else None
        self._chosen, self.left_out = chosen or (None, {})
        return list(self.left_out.values())

    def __iter__(self) -> Iterator[NumberedLine]:
        return iter(read_lines(self._path) if self._chosen is None else self._chosen)


def _leave_out_lines(
    path: Path, known: Mapping[bytes, str], origin_of: Callable[[bytes], str | None]
) -> tuple[list[NumberedLine], dict[str, bytes]] | None:
    """The lines to be read, and of the others the digests by the origins of their documents.

    None where so much changed that the whole file is to be read. Which of two lines with one origin counts depends on
    their order, so both are read.
    """
    unread: list[NumberedLine] = []
    left_out: dict[str, bytes] = {}
    repeated: set[str] = set()
    size = 0
    for number, line in read_lines(path):
        if isinstance(line, bytes):
            digest = digest_line(line)
            origin = known.get(digest)
            if origin is not None:
                repeated.update([origin] if origin in left_out else [])
                left_out[origin] = digest
                continue
            size += len(line)
            if size > _HELD_BYTES:
                return None
        unread.append((number, line))
    repeated.update(
        origin
        for _, line in unread
        if isinstance(line, bytes) and (origin := origin_of(line)) is not None and origin in left_out
    )
    if repeated:
        again = {left_out.pop(origin) for origin in repeated}
        both = ((number, line) for number, line in read_lines(path) if isinstance(line, bytes))
        unread = sorted([*unread, *(one for one in both if digest_line(one[1]) in again)], key=lambda one: one[0])
    return unread, left_out


def parse_row(line: bytes) -> Row | Unusable:
    """The JSON object of a line, or the reason why there is none."""
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        return Unusable(RejectReason.MALFORMED, f"not JSON: {error}"[:200], len(line))
    if not isinstance(value, dict):
        return Unusable(RejectReason.MALFORMED, f"a JSON {type(value).__name__}, expected an object", len(line))
    return value


def estimate_rows(path: Path) -> int:
    """How many rows to expect, from the first megabyte; exact for files that fit in it."""
    size = path.stat().st_size
    with path.open("rb") as raw, _open(raw) as lines:
        try:
            sample = lines.read(_SAMPLE_BYTES)
        except _BROKEN_GZIP:
            return 0
        seen = sample.count(b"\n") + (not sample.endswith(b"\n") and len(sample) < _SAMPLE_BYTES)
        if len(sample) < _SAMPLE_BYTES:
            return seen
        consumed = len(sample) if lines is raw else raw.tell()
        return max(seen, round(seen * size / consumed))


def _open(raw: IO[bytes]) -> IO[bytes]:
    """The rows' bytes; told by the first bytes, because names lie."""
    is_compressed = raw.read(2) == _GZIP
    raw.seek(0)
    return cast(IO[bytes], gzip.GzipFile(fileobj=raw)) if is_compressed else raw


def _skip_line(lines: IO[bytes]) -> bool:
    """Whether the line's end came within bounds."""
    skipped = 0
    while skipped < _MAX_SKIPPED_BYTES:
        part = lines.readline(1 << 20)
        skipped += len(part)
        if not part or part.endswith(b"\n"):
            return True
    return False
