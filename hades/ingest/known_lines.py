"""Lines of a corpus file that became documents, kept between readings: a line that is the same is not parsed again.

A document depends on its line, on the files beside it and on the reader, so the file names a digest of the last two. A
line counts as read only while the store has its document as it was made of it. A file that is absent, damaged or of
another version costs time, never a result.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Self

import orjson

from hades.ingest import manifest
from hades.ingest.source_document import LineSource
from hades.ingest.source_fingerprint import READER_VERSION
from hades.ports.store import RowStore

_NAME = "lines-"
_HEAD_BYTES = 64  # a hash of the rest, in hexadecimal digits


class LineDocument(NamedTuple):
    """The document that a line became: its key, its origin and the hash of everything the line said about it."""

    key: str
    origin: str
    digest: str


class KnownLines:
    """The documents of lines, by the digest of the line."""

    def __init__(self, file: Path, basis: str, held: Mapping[bytes, LineDocument]) -> None:
        self._file, self._basis, self._held = file, basis, held
        self._read: dict[bytes, LineDocument] = {}

    @classmethod
    def load(cls, scratch: Path, source: LineSource, domain: str) -> Self:
        """What is known of the lines of a source; nothing where what documents depend on beside them has changed."""
        path = str(source.lines_file.resolve())
        name = hashlib.sha256(os.fsencode(f"{source.kind}\0{path}")).hexdigest()[:24]
        basis = manifest.digest_of(READER_VERSION, str(source.kind), source.corpus, domain, source.digest_beside())
        file = scratch / f"{_NAME}{name}.json"
        return cls(file, basis, _load(file, basis))

    def origins(self, store: RowStore, source: LineSource) -> dict[bytes, str]:
        """The origin of each line whose document the store has as it was read."""
        if not self._held:
            return {}
        stored = manifest.hashes_of_corpus(store, str(source.kind), source.corpus, source.place)
        return {line: one.origin for line, one in self._held.items() if stored.get(one.key) == one.digest}

    def add(self, line: bytes, document: LineDocument) -> None:
        """Take up a line that was read."""
        if line:
            self._read[line] = document

    def save(self, left_out: Collection[bytes]) -> None:
        """Write the lines of this reading, those `left_out` included; where nothing can be written, keep none."""
        if not self._read and len(left_out) == len(self._held):
            return
        lines = {line: self._held[line] for line in left_out} | self._read
        columns = [[line.hex() for line in lines], *map(list, zip(*lines.values(), strict=True))]
        partial = self._file.with_suffix(f".partial-{os.getpid()}")  # two processes may read one file
        try:
            body = orjson.dumps([self._basis, *columns])
            self._file.parent.mkdir(parents=True, exist_ok=True)
            partial.write_bytes(hashlib.sha256(body).hexdigest().encode() + body)
            partial.replace(self._file)
        except (OSError, TypeError):  # TypeError: an origin that JSON cannot hold
            with suppress(OSError):
                partial.unlink(missing_ok=True)


def forget_lines(scratch: Path) -> None:
    """Remove what is known of lines, which names documents."""
    for file in list(scratch.glob(f"{_NAME}*")):
        file.unlink(missing_ok=True)


def _load(file: Path, basis: str) -> Mapping[bytes, LineDocument]:
    try:
        text = file.read_bytes()
        head, body = text[:_HEAD_BYTES], text[_HEAD_BYTES:]
        if hashlib.sha256(body).hexdigest().encode() != head:
            return {}
        held = orjson.loads(body)
        return _documents(*held[1:]) if held[0] == basis else {}
    except (OSError, ValueError, TypeError):
        return {}


def _documents(
    lines: Iterable[str], keys: Iterable[str], origins: Iterable[str], digests: Iterable[str]
) -> dict[bytes, LineDocument]:
    documents = map(LineDocument, keys, origins, digests)
    return {bytes.fromhex(line): one for line, one in zip(lines, documents, strict=True)}
