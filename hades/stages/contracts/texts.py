"""Documents as rules need them: how long each is, and what of a chunk or a function lies inside."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hades.stages.contracts.columns import Flags, Longs, column, flags, ids, place, span_bounds
from hades.stages.contracts.source import Source


class Documents:
    """Documents, or chunks, by row: their `_id`s, and how long those are that somebody refers to."""

    def __init__(self, source: Source, collection: str = "documents", *others: str) -> None:
        self._keyed = source.read_keys(collection, (), ("text", *others))
        self.ids = ids(collection, column(self._keyed.table, "_key"))

    @property
    def is_new(self) -> Flags:
        """Which lie in new parts of the store."""
        return self._keyed.is_new

    def rows_of(self, identifiers: pa.Array) -> Longs:
        """The row of each document, -1 for one that is not stored."""
        return place(identifiers, self.ids)

    def are_new(self, rows: Longs) -> Flags:
        """Which of these rows, -1 for none, lie in new parts."""
        return np.append(self.is_new, False)[rows]

    def take(self, rows: Longs, *columns: str) -> tuple[pa.Table, Longs]:
        """These columns of the documents at some rows, and where the row of each is in them; -1 for none."""
        chosen = np.zeros(len(self.ids), np.bool_)
        chosen[rows[rows >= 0]] = True
        places = np.append(np.cumsum(chosen) - 1, -1)[rows]
        return self._keyed.take(chosen, *columns), places

    def lengths_at(self, rows: Longs) -> Longs:
        """How many characters the documents at these rows have, -1 for one that is not stored."""
        texts, places = self.take(rows, "text")
        return np.append(count_characters(column(texts, "text")), -1)[places]


def count_characters(texts: pa.Array) -> Longs:
    """How many characters each text has."""
    counts: Longs = pc.utf8_length(texts).to_numpy(zero_copy_only=False).astype(np.int64)
    return counts


def sha256_matches(texts: Sequence[str], digests: Sequence[str]) -> Flags:
    """Which digests are those of their texts."""
    pairs = zip(texts, digests, strict=True)
    return np.array([_sha256(text) == digest for text, digest in pairs], dtype=np.bool_)


def cuts_match(documents: pa.Table, places: Longs, chunks: pa.Table) -> Flags:
    """Which chunks are what their span cuts out of the document at their place; -1: they have none.

    A document becomes one Python string at a time: spans count characters, which bytes cannot be cut by.
    """
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

    Written again beside the one of ingestion, so that the contract fails when ingestion changes it.
    """
    above = dict.fromkeys(line for line in (title, *headings) if line and not text.startswith(line))
    return "\n".join([*above, text])


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
