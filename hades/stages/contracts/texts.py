"""Documents as rules need them: how long each is, and what of a chunk or a function lies inside."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hades.ports.store import RowStore
from hades.stages.contracts.columns import Flags, Longs, column, flags, ids, place, read, span_bounds


@dataclass(frozen=True)
class Documents:
    """Documents by row: their `_id`s and how many characters each has."""

    ids: pa.Array
    lengths: Longs

    def rows_of(self, identifiers: pa.Array) -> Longs:
        """The row of each document, -1 for one that is not stored."""
        return place(identifiers, self.ids)

    def lengths_of(self, identifiers: pa.Array) -> Longs:
        """The length of each document, -1 for one that is not stored."""
        return np.append(self.lengths, -1)[self.rows_of(identifiers)]


def read_documents(store: RowStore) -> Documents:
    """Every document's id and length; the texts are let go batch by batch."""
    keys, lengths = [pa.array([], pa.string())], [np.zeros(0, np.int64)]
    for batch in store.scan("documents", columns=["_key", "text"]):
        keys.append(batch.column("_key"))
        lengths.append(pc.utf8_length(batch.column("text")).to_numpy(zero_copy_only=False).astype(np.int64))
    return Documents(ids("documents", pa.concat_arrays(keys)), np.concatenate(lengths))


def lengths_of_chunks(store: RowStore) -> tuple[pa.Array, Longs]:
    """Every chunk's id and how many characters it has."""
    table = read(store, "doc_chunks", "text")
    lengths = pc.utf8_length(column(table, "text")).to_numpy(zero_copy_only=False).astype(np.int64)
    return ids("doc_chunks", column(table, "_key")), lengths


def sha256_matches(texts: Sequence[str], digests: Sequence[str]) -> Flags:
    """Which digests are those of their texts."""
    pairs = zip(texts, digests, strict=True)
    return np.array([_sha256(text) == digest for text, digest in pairs], dtype=np.bool_)


def cuts_match(documents: pa.Table, chunks: pa.Table) -> Flags:
    """Which chunks are what their span cuts out of their document; `documents` has `_id` and `text`.

    A document becomes one Python string at a time: spans count characters, which bytes cannot be cut by.
    """
    places = place(column(chunks, "document"), column(documents, "_id"))
    spans = column(chunks, "span")
    is_pair = flags(pc.equal(pc.list_value_length(spans), 2))
    starts, ends = (bounds.tolist() for bounds in span_bounds(spans, is_pair))
    texts = chunks.column("text").to_pylist()
    matches = np.zeros(len(places), dtype=np.bool_)
    held, whole = -1, ""
    for row in np.argsort(places, kind="stable").tolist():
        if places[row] < 0:
            continue
        if places[row] != held:
            held = int(places[row])
            whole = documents.column("text")[held].as_py()
        matches[row] = is_pair[row] and whole[starts[row] : ends[row]] == texts[row]
    return matches


def embed_text(title: str, headings: Sequence[str], text: str) -> str:
    """What a chunk's hash and vector are of: its text under title and headings that it does not begin with.

    Written again beside the one of ingestion, so that the gate finds out when ingestion changes its mind.
    """
    above = dict.fromkeys(line for line in (title, *headings) if line and not text.startswith(line))
    return "\n".join([*above, text])


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
