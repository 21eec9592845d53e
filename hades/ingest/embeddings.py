"""Phase embeddings: every chunk gets a vector of the model in use; a change of model replaces all of them at once.

Work is taken in key order, a window of chunks at a time, and each window is committed: a run that was stopped goes on
where it was. When chunks hold vectors of another model, the new ones are first made beside the store and then swapped
in within one transaction, so that no reader ever finds two models mixed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from hades.ingest.chunks import embedding_text
from hades.ingest.report import Progress, silent
from hades.ingest.workers.write_ahead import WriteAhead
from hades.ports.store import GraphStore, RowStore, Term
from hades.ports.text import Embedder

WINDOW = 2_048
_COLUMNS = ("_key", "title", "headings", "text", "sha256")


def embed_chunks(store: GraphStore, embedder: Embedder, scratch: Path, progress: Progress = silent) -> int:
    """Embed what has no vector of the current model; how many were embedded."""
    tag = embedder.model.tag
    others = store.count("doc_chunks", where=[Term("embedding_model", "!=", tag)])
    if others:
        return _replace_model(store, embedder, scratch, progress)
    return _embed_missing(store, embedder, [Term("embedding_model", "is_null")], progress)


def pending_ranges(store: RowStore, tag: str, *, most: int = 64) -> list[tuple[str, str]]:
    """Chunks without a vector as a bounded number of key ranges, first and last, to be embedded side by side.

    None when vectors of another model are there: they are replaced all at once, by `embed_chunks`.
    """
    if store.count("doc_chunks", where=[Term("embedding_model", "!=", tag)]):
        return []
    missing = [Term("embedding_model", "is_null")]
    keys = [
        key
        for batch in store.scan("doc_chunks", where=missing, columns=["_key"])
        for key in batch.column("_key").to_pylist()
    ]
    size = max(WINDOW, -(-len(keys) // most))
    return [(keys[start], keys[min(start + size, len(keys)) - 1]) for start in range(0, len(keys), size)]


def embed_range(store: GraphStore, embedder: Embedder, first: str, last: str, progress: Progress = silent) -> int:
    """Embed the chunks of one range that have no vector; several processes may do different ranges at once."""
    where = [Term("embedding_model", "is_null"), Term("_key", ">=", first), Term("_key", "<=", last)]
    return _embed_missing(store, embedder, where, progress)


def _embed_missing(store: GraphStore, embedder: Embedder, where: Sequence[Term], progress: Progress) -> int:
    total, done = store.count("doc_chunks", where=where), 0
    # The scan goes on reading the store as it was when it began, whatever is written meanwhile.
    with WriteAhead(in_thread=total > WINDOW) as writes:
        for window in _windows(store, where):
            vectors = embedder.embed(window.texts)
            writes.run(partial(store.patch, "doc_chunks", _patch(window.keys, vectors, embedder.model.tag)))
            done += len(window.keys)
            progress("embeddings", done, total)
    return done


def _replace_model(store: GraphStore, embedder: Embedder, scratch: Path, progress: Progress) -> int:
    """Embed everything with the new model into a file, then swap in one transaction."""
    tag = embedder.model.tag
    total = store.count("doc_chunks")
    cache = _SideVectors(scratch / f"reembed-{_safe(tag)}", embedder.model.dimension)
    have = cache.hashes()
    done = made = 0
    for window in _windows(store):
        new = [row for row, digest in enumerate(window.hashes) if digest not in have]
        if new:
            vectors = embedder.embed([window.texts[row] for row in new])
            digests = [window.hashes[row] for row in new]
            cache.add(digests, vectors)
            have.update(digests)
        done, made = done + len(window.keys), made + len(new)
        progress("embeddings", done, total)
    with store.bulk(["doc_chunks"]) as inside:
        _swap(inside, cache, tag)
    cache.remove()
    return made


def _swap(inside: RowStore, cache: _SideVectors, tag: str) -> None:
    vectors = cache.load()
    keys, digests = [], []
    for batch in inside.scan("doc_chunks", columns=["_key", "sha256"]):
        keys += batch.column("_key").to_pylist()
        digests += batch.column("sha256").to_pylist()
    for start in range(0, len(keys), WINDOW):
        stop = start + WINDOW
        rows = np.stack([vectors[digest] for digest in digests[start:stop]])
        inside.patch("doc_chunks", _patch(keys[start:stop], rows, tag))


class _Window:
    """Some chunks, in key order, and what is to be embedded of each."""

    def __init__(self, rows: pa.Table) -> None:
        self.keys: list[str] = rows.column("_key").to_pylist()
        self.hashes: list[str] = rows.column("sha256").to_pylist()
        columns = (rows.column(name).to_pylist() for name in ("title", "headings", "text"))
        self.texts = [embedding_text(*parts) for parts in zip(*columns, strict=True)]


def _windows(store: GraphStore, where: Sequence[Term] = ()) -> Iterator[_Window]:
    for batch in store.scan("doc_chunks", where=where, columns=_COLUMNS, batch_rows=WINDOW):
        yield _Window(pa.Table.from_batches([batch]))


def _patch(keys: Sequence[str], vectors: np.ndarray, tag: str) -> pa.Table:
    return pa.table({"_key": list(keys), "embedding": as_lists(vectors), "embedding_model": [tag] * len(keys)})


def as_lists(vectors: np.ndarray) -> pa.Array:
    """(n, dim) float32 as an Arrow list column."""
    rows, dimension = vectors.shape
    flat = pa.array(np.ascontiguousarray(vectors, dtype=np.float32).reshape(-1))
    return pa.ListArray.from_arrays(pa.array(np.arange(0, (rows + 1) * dimension, dimension, dtype=np.int32)), flat)


class _SideVectors:
    """Vectors by the hash of their text, in numbered files of a folder; a torn last file is ignored."""

    def __init__(self, folder: Path, dimension: int) -> None:
        self._folder = folder
        self._dimension = dimension
        folder.mkdir(parents=True, exist_ok=True)

    def hashes(self) -> set[str]:
        return set(self.load())

    def add(self, hashes: Sequence[str], vectors: np.ndarray) -> None:
        number = len(list(self._folder.glob("*.arrow")))
        target = self._folder / f"{number:08d}.arrow"
        table = pa.table({"sha256": list(hashes), "embedding": as_lists(vectors)})
        with (
            pa.OSFile(str(target.with_suffix(".partial")), "wb") as sink,
            pa.ipc.new_file(sink, table.schema) as writer,
        ):
            writer.write_table(table)
        target.with_suffix(".partial").replace(target)

    def load(self) -> dict[str, np.ndarray]:
        found: dict[str, np.ndarray] = {}
        for path in sorted(self._folder.glob("*.arrow")):
            with pa.memory_map(str(path)) as source:
                table = pa.ipc.open_file(source).read_all()
            flat = table.column("embedding").combine_chunks().flatten().to_numpy()
            rows = flat.reshape(-1, self._dimension)
            found.update(zip(table.column("sha256").to_pylist(), rows, strict=True))
        return found

    def remove(self) -> None:
        for path in self._folder.iterdir():
            path.unlink()
        self._folder.rmdir()


def _safe(tag: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "-." else "_" for letter in tag)
