"""Traces of documents anywhere in the store: their ids, the ids of what went with them, and runs of their words.

Every column of every collection that can hold text is read, whatever the collection is for, so one that is added to the
catalogue tomorrow is searched as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hades.ingest.needle_filter import NeedleFilter
from hades.ingest.remove_nodes import OWNED_BY_DOCUMENT, keys_of_documents
from hades.ports.store import RowStore, Term
from schemas.catalogue import COLLECTIONS, Collection
from schemas.ids import node_id

Flags = NDArray[np.bool_]

RUN_WORDS, RUN_CHARS = 6, 24  # a run of words long enough to be a quotation
RUNS_OF_DOCUMENT, RUNS_IN_ALL = 64, 4_096
_AT_ONCE = 100  # alternatives of one pattern: more and RE2 leaves its fast path
_IN_KEYS = r"A-Za-z0-9_\-.@()+,=;$!*'%"
_KEYS = ("_key", "_from", "_to")
_HASHED = re.compile(r"-[0-9a-f]{10}$")
_PLAIN = re.compile(r'[^"\\\x00-\x1f\x7f\ud800-\udfff]+')  # what JSON writes as it is
_WORDS = re.compile(r"\S+")


@dataclass(frozen=True)
class Traces:
    """What would tell of documents: keys of their rows, and of entities and relations that went or may go with them."""

    rows: tuple[str, ...]
    entities: tuple[str, ...]
    relations: tuple[str, ...]
    runs: tuple[str, ...]


def traces_of(store: RowStore, documents: Sequence[str]) -> Traces:
    """What to look for once these documents (keys) are gone; read it while they are there."""
    owned = {name: keys_of_documents(store, name, documents) for name in OWNED_BY_DOCUMENT}
    chunks = [node_id("doc_chunks", key) for keys in owned["doc_chunks"].values() for key in keys]
    named = {
        target.partition("/")[2]
        for batch in store.scan("mentions", where=[Term("_from", "in", chunks)], columns=["_to"])
        for target in batch.column("_to").to_pylist()
    }
    texts = store.get("documents", list(documents), columns=["_key", "text"]).column("text").to_pylist()
    most = min(RUNS_OF_DOCUMENT, max(1, RUNS_IN_ALL // max(1, len(texts))))
    return Traces(
        rows=tuple(sorted({*documents, *(key for held in owned.values() for keys in held.values() for key in keys)})),
        entities=tuple(sorted(named)),
        relations=(),
        runs=tuple(dict.fromkeys(run for text in texts for run in runs_of(text, most))),
    )


def left_of(store: RowStore, traces: Traces, relations: Sequence[str] = ()) -> Traces:
    """The traces that must be nowhere: without entities that others support and words that others write.

    `relations` are the keys of those that the derivation without the documents removed.
    """
    return Traces(
        rows=traces.rows,
        entities=_absent(store, "entities", traces.entities),
        relations=_absent(store, "relations", [*traces.relations, *relations]),
        runs=_find_own_runs(store, traces.runs),
    )


def find_traces(store: RowStore, traces: Traces) -> dict[str, list[str]]:
    """Keys of the rows that still hold one, by collection; collections without any are left out."""
    seekers = _Seekers.of(traces)
    found = {one.name: [*_rows_with(store, one, seekers)] for one in COLLECTIONS}
    return {name: keys for name, keys in found.items() if keys}


def runs_of(text: str, limit: int) -> list[str]:
    """Runs of six words as they stand in one line of a text, spread over it; none of a text of a few words."""
    runs = []
    for line in _PLAIN.finditer(text):
        words = [word.span() for word in _WORDS.finditer(line.group())]
        for first in range(0, len(words) - RUN_WORDS + 1, RUN_WORDS):
            run = line.group()[words[first][0] : words[first + RUN_WORDS - 1][1]]
            if len(run) >= RUN_CHARS:
                runs.append(run)
    step = max(1, -(-len(runs) // limit))
    return runs[::step]


@dataclass(frozen=True)
class _Seekers:
    """Patterns for any text, and bare entity keys, which are common words: they count only where keys are kept."""

    keys: pa.Array  # bare and as `_id`s of every collection
    proposals: NeedleFilter  # a fast first choice: the patterns decide on what it proposes
    patterns: tuple[str, ...]
    entity_keys: pa.Array

    @classmethod
    def of(cls, traces: Traces) -> _Seekers:
        hashed = [key for key in traces.entities if _HASHED.search(key)]
        ids = [*traces.rows, *traces.relations, *hashed, *(node_id("entities", key) for key in traces.entities)]
        whole = [rf"(?:^|[^{_IN_KEYS}]){anyone}(?:$|[^{_IN_KEYS}])" for anyone in _alternatives(ids)]
        patterns = (*whole, *_alternatives(traces.runs))
        keys = [*ids, *(node_id(one.name, key) for one in COLLECTIONS for key in ids if "/" not in key)]
        return cls(
            pa.array(keys, pa.string()),
            NeedleFilter([*ids, *traces.runs]),
            patterns,
            pa.array(traces.entities, pa.string()),
        )

    def find(self, texts: pa.Array, column: str) -> Flags:
        """Which texts of a column hold a trace."""
        if column in _KEYS:  # these hold a key or an `_id` and nothing else, so they are compared whole
            return _flags(pc.is_in(texts, value_set=self.keys))
        held = np.zeros(len(texts), np.bool_)
        proposed = self.proposals.propose(texts)
        if len(proposed):
            held[proposed] = self._test(texts.take(pa.array(proposed)))
        if "entity" in column or "entities" in column:
            held |= _flags(pc.is_in(texts, value_set=self.entity_keys))
        return held

    def _test(self, texts: pa.Array) -> Flags:
        """Which texts match a pattern. Each distinct text is searched once; many columns repeat a few."""
        coded = texts.dictionary_encode()
        distinct = coded.dictionary
        held = np.zeros(len(distinct) + 1, np.bool_)  # the last one is for null
        for pattern in self.patterns:
            held[:-1] |= _flags(pc.match_substring_regex(distinct, pattern))
        place: NDArray[np.int32] = pc.fill_null(coded.indices, len(distinct)).to_numpy(zero_copy_only=False)
        return held[place]


def _alternatives(texts: Sequence[str]) -> list[str]:
    return [
        "(?:" + "|".join(rf"\Q{text}\E" for text in texts[start : start + _AT_ONCE]) + ")"
        for start in range(0, len(texts), _AT_ONCE)
    ]


def _rows_with(store: RowStore, collection: Collection, seekers: _Seekers) -> Iterator[str]:
    columns = [column.name for column in collection.columns if not column.is_vector and _holds_text(column.type)]
    for batch in store.scan(collection.name, columns=columns):
        hit = np.zeros(batch.num_rows, np.bool_)
        for name in columns:
            for row, texts in _texts(batch.column(name)):
                hit[row[seekers.find(texts, name)]] = True
        yield from batch.column("_key").filter(pa.array(hit)).to_pylist()


def _holds_text(kind: pa.DataType) -> bool:
    if pa.types.is_list(kind):
        return _holds_text(kind.value_type)
    if pa.types.is_struct(kind):
        return any(_holds_text(field.type) for field in kind)
    return bool(pa.types.is_string(kind))


def _texts(column: pa.Array, rows: NDArray[np.int64] | None = None) -> Iterator[tuple[NDArray[np.int64], pa.Array]]:
    """Every text within a column, with the row each stands in."""
    rows = np.arange(len(column)) if rows is None else rows
    if pa.types.is_list(column.type):
        yield from _texts(pc.list_flatten(column), rows[pc.list_parent_indices(column).to_numpy()])
    elif pa.types.is_struct(column.type):
        for number in range(column.type.num_fields):
            yield from _texts(pc.struct_field(column, number), rows)
    elif pa.types.is_string(column.type):
        yield rows, column


def _flags(found: pa.Array) -> Flags:
    flags: Flags = pc.fill_null(found, False).to_numpy(zero_copy_only=False)
    return flags


def _absent(store: RowStore, collection: str, keys: Sequence[str]) -> tuple[str, ...]:
    held = set(store.get(collection, list(keys), columns=["_key"]).column("_key").to_pylist())
    return tuple(key for key in keys if key not in held)


def _find_own_runs(store: RowStore, runs: Sequence[str]) -> tuple[str, ...]:
    """The runs that no other document holds: what many write is nobody's trace."""
    left, proposals = list(runs), NeedleFilter(runs)
    for batch in store.scan("documents", columns=["_key", "text"]) if runs else ():
        proposed = proposals.propose(batch.column("text"))
        for text in batch.column("text").take(pa.array(proposed)).to_pylist():
            left = [run for run in left if run not in text]
    return tuple(left)
