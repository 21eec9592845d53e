"""Whether the files of a corpus are as they were when it was last read: by sizes, times and inodes, not by bytes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from hades.build_state import ledger
from hades.ingest import chunks, manifest
from hades.ingest.source_document import Source
from hades.ports.store import GraphStore, RowStore
from schemas.sources import SourceSpec

READER_VERSION = 2  # raise it with any change of what a reader makes of a file: the next night reads everything again
_GIT = ("HEAD", "index", "packed-refs", "ORIG_HEAD")
_PASSED_OVER = {".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv", "venv"}

Stat = tuple[str, int, int, int, int]


def is_unread(store: RowStore, spec: SourceSpec, source: Source) -> int | None:
    """How many documents the corpus had when its files were as they are now; None when it must be read."""
    done = ledger.complete(store, _record(source))
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
    done = ledger.StageCompletion(_record(source), digest, report={"documents": documents})
    with store.bulk(["build_stages"]) as inside:
        ledger.record(inside, done)


def _record(source: Source) -> str:
    return f"source-{ledger.digest_of(str(source.kind), source.corpus, source.place)[:24]}"


def _digest(store: RowStore, spec: SourceSpec, source: Source, files: Sequence[Sequence[Stat]]) -> str:
    """Files and rows together: a document that was forgotten since is read again from a file that still has it."""
    held = manifest.entries_digest(store, str(source.kind), source.corpus, source.place)
    return ledger.digest_of(
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
