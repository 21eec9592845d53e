"""Records of a corpus that became documents, kept between readings: a record that is the same is not read again.

A record is a line of a file or a file of a folder. Its document depends on it, on what lies beside it and on the
reader, so the list names a digest of the last two. A record counts as read only while the store has its document as it
was made of it. A list that is absent, damaged or of another version costs time, never a result.
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
from hades.ingest.source_document import RecordSource
from hades.ingest.source_fingerprint import READER_VERSION
from hades.ports.store import RowStore

_NAME = "records-"
_HEAD_BYTES = 64  # a hash of the rest, in hexadecimal digits


class RecordDocument(NamedTuple):
    """The document that a record became: its key, its origin and the hash of everything the record said about it."""

    key: str
    origin: str
    digest: str


class KnownRecords:
    """The documents of records, by the digest of the record."""

    def __init__(self, file: Path, basis: str, held: Mapping[bytes, RecordDocument]) -> None:
        self._file, self._basis, self._held = file, basis, held
        self._read: dict[bytes, RecordDocument] = {}

    @classmethod
    def load(cls, scratch: Path, source: RecordSource, domain: str) -> Self:
        """What is known of the records of a source; nothing where what documents depend on beside them has changed."""
        path = str(source.records_path.resolve())
        name = hashlib.sha256(os.fsencode(f"{source.kind}\0{path}")).hexdigest()[:24]
        basis = manifest.digest_of(READER_VERSION, str(source.kind), source.corpus, domain, source.digest_beside())
        file = scratch / f"{_NAME}{name}.json"
        return cls(file, basis, _load(file, basis))

    def origins(self, store: RowStore, source: RecordSource) -> dict[bytes, str]:
        """The origin of each record whose document the store has as it was read."""
        if not self._held:
            return {}
        stored = manifest.hashes_of_corpus(store, str(source.kind), source.corpus, source.place)
        return {record: one.origin for record, one in self._held.items() if stored.get(one.key) == one.digest}

    def keys_of(self, records: Iterable[bytes]) -> set[str]:
        """The keys of the documents of known records."""
        return {self._held[record].key for record in records}

    def add(self, record: bytes, document: RecordDocument) -> None:
        """Take up a record that was read; an empty digest is that of none."""
        if record:
            self._read[record] = document

    def save(self, left_out: Collection[bytes]) -> None:
        """Write the records of this reading, those `left_out` included; where nothing can be written, keep none."""
        if not self._read and len(left_out) == len(self._held):
            return
        records = {record: self._held[record] for record in left_out} | self._read
        columns = [[record.hex() for record in records], *map(list, zip(*records.values(), strict=True))]
        partial = self._file.with_suffix(f".partial-{os.getpid()}")  # two processes may read one corpus
        try:
            body = orjson.dumps([self._basis, *columns])
            self._file.parent.mkdir(parents=True, exist_ok=True)
            partial.write_bytes(hashlib.sha256(body).hexdigest().encode() + body)
            partial.replace(self._file)
        except (OSError, TypeError):  # TypeError: an origin that JSON cannot hold
            with suppress(OSError):
                partial.unlink(missing_ok=True)


def forget_records(scratch: Path) -> None:
    """Remove what is known of records, which names documents."""
    for file in list(scratch.glob(f"{_NAME}*")):
        file.unlink(missing_ok=True)


def _load(file: Path, basis: str) -> Mapping[bytes, RecordDocument]:
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
    records: Iterable[str], keys: Iterable[str], origins: Iterable[str], digests: Iterable[str]
) -> dict[bytes, RecordDocument]:
    documents = map(RecordDocument, keys, origins, digests)
    return {bytes.fromhex(record): one for record, one in zip(records, documents, strict=True)}
