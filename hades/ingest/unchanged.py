"""What need not be read again."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Self

import orjson

from hades import build_state
from hades.build_state import Edits, fingerprint, standing_edits
from hades.ingest import chunks, manifest
from hades.ingest.entities.known_names import EntityRules
from hades.ingest.sources.material import RecordSource, Source
from hades.ports.services import Embedder
from hades.ports.store import GraphStore, RowStore, Term
from schemas.sources import SourceSpec

# Whether the files of a corpus are as they were when it was last read: by sizes, times and inodes, not by bytes.


READER_VERSION = 2  # raise it with any change of what a reader makes of a file: the next night reads everything again
_GIT = ("HEAD", "index", "packed-refs", "ORIG_HEAD")
_PASSED_OVER = {".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv", "venv"}
Stat = tuple[str, int, int, int, int]


def is_unread(store: RowStore, spec: SourceSpec, source: Source) -> int | None:
    """How many documents the corpus had when its files were as they are now; None when it must be read."""
    done = build_state.complete(store, _record(source))
    if done is None or done.digest != _digest(store, spec, source, read_stats(spec)):
        return None
    return int(done.report["documents"])


def read_stats(spec: SourceSpec) -> list[list[Stat]]:
    """The state of the files of a corpus now."""
    paths = [spec.path, spec.citations, spec.code_links, spec.triples]
    return [list(_stats(Path(path))) for path in paths if path]


def note_read(
    store: GraphStore, spec: SourceSpec, source: Source, documents: int, files: Sequence[Sequence[Stat]]
) -> None:
    """Remember the state that the files had before they were read, and what the store holds of them.

    A file that was changed while the corpus was read has another state afterwards, so it is read again.
    """
    digest = _digest(store, spec, source, files)
    done = build_state.StageCompletion(_record(source), digest, report={"documents": documents})
    with store.bulk(["build_stages"]) as inside:
        build_state.record(inside, done)


def _record(source: Source) -> str:
    return f"source-{build_state.digest_of(str(source.kind), source.corpus, source.place)[:24]}"


def _digest(store: RowStore, spec: SourceSpec, source: Source, files: Sequence[Sequence[Stat]]) -> str:
    """Files and rows together: a document that was forgotten since is read again from a file that still has it."""
    held = manifest.entries_digest(store, str(source.kind), source.corpus, source.place)
    return build_state.digest_of(
        READER_VERSION, chunks.CHUNKER_VERSION, chunks.MAX_TOKENS, spec.model_dump(mode="json"), files, held
    )


def _stats(path: Path) -> Iterator[Stat]:
    if not path.is_dir():
        yield _stat(path.name, path)
        return
    for folder, names, files in os.walk(path):
        names[:] = sorted(name for name in names if name not in _PASSED_OVER)
        here = Path(folder)
        for name in sorted(files):
            yield _stat(str((here / name).relative_to(path)), here / name)
    heads = (path / ".git" / "refs" / "heads").rglob("*")
    for file in (*(path / ".git" / name for name in _GIT), *sorted(heads)):
        if file.is_file():
            yield _stat(str(file.relative_to(path)), file)


def _stat(name: str, path: Path) -> Stat:
    try:
        found = path.stat()
    except OSError:  # a link that leads nowhere
        return name, -1, 0, 0, 0
    return name, found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino


# Records of a corpus that became documents, kept between readings: a record that is the same is not read again. A
# record is a line of a file or a file of a folder. Its document depends on it, on what lies beside it and on the
# reader, so the list names a digest of the last two. A record counts as read only while the store has its document
# as it was made of it. A list that is absent, damaged or of another version costs time, never a result.


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


# What the derived rows follow from, as one digest: a night without a change compares it and loads no derivation.


DERIVE_VERSION = 12  # raise it with any change of what is derived: the next run derives all edges again


def is_derived(store: RowStore, digest: str) -> bool:
    """Whether the derived rows are what curators say now and documents of this digest."""
    return manifest.derive_digest(store) == add_edits(digest, standing_edits(store))


def digest_documents(store: RowStore, embedder: Embedder, rules: EntityRules) -> str:
    """A digest of what documents, models and rules say."""
    documents = manifest.phases_digest(store)
    settings = sorted((name, repr(value)) for name, value in vars(rules).items())
    extractions = [
        key for batch in store.scan("extractions", columns=["_key"]) for key in batch.column("_key").to_pylist()
    ]
    tag = embedder.model.tag
    embedded = store.count("doc_chunks", where=[Term("embedding_model", "==", tag)])
    return manifest.digest_of(documents, settings, tag, embedded, extractions, DERIVE_VERSION)


def add_edits(digest: str, edits: Edits) -> str:
    """The digest with what curators say."""
    return manifest.digest_of(digest, fingerprint(edits)) if edits else digest
