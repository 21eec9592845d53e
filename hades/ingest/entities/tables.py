"""Derived rows as Arrow tables in the catalogue's columns; what a column does not get here takes its declared default."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import repeat

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hades.ingest.entities.tokens import Ints, Longs
from schemas.catalogue import Collection, collection_named
from schemas.record import arrow_schema
from schemas.edges import Provenance


@dataclass(frozen=True)
class RelationRows:
    """Relations of one type as columns; `source` and `target` are rows of the entities, spans count in the document."""

    type: str
    source: Longs
    target: Longs
    document: Longs
    begin: Longs
    end: Longs
    evidence: Longs
    label: Sequence[str] | None = None
    strength: NDArray[np.float64] | None = None
    together: Longs | None = None


def relations_table(parts: Sequence[RelationRows], entities: pa.Array, documents: pa.Array, created: pa.Array) -> pa.Table:
    """All relations, parts in the order given and rows in theirs; `entities` and `documents` hold `_id`s."""
    return pa.concat_tables([_relation_part(part, entities, documents, created) for part in parts])


def mentions_table(chunk: pa.Array, entity: pa.Array, count: Longs, positions: pa.Array) -> pa.Table:
    """Mentions with the characters at which each stands in its chunk."""
    return fill(
        "mentions",
        len(chunk),
        {
            "_key": edge_keys(chunk, "mentions", entity),
            "_from": chunk,
            "_to": entity,
            "type": constant("mentions", len(chunk)),
            "count": pa.array(count),
            "positions": positions,
        },
    )


def edge_keys(source: pa.Array, relation: str, target: pa.Array, labels: Sequence[str] | None = None) -> pa.Array:
    """`schemas.ids.edge_key` of every edge, the same letters (a test holds them equal) at a third of the time."""
    ends = source.to_pylist(), target.to_pylist()
    middle = _framed(relation)
    framed = {one: _framed(one) for one in {*ends[0], *ends[1]}}
    last = [_framed(label) if label else b"" for label in labels] if labels is not None else repeat(b"")
    keys = [
        blake2b(framed[one] + middle + framed[other] + label, digest_size=13).hexdigest()[:25]
        for one, other, label in zip(*ends, last, strict=False)
    ]
    return pa.array(keys, pa.string())


def _framed(part: str) -> bytes:
    return f"{len(part)}:{part}".encode("utf-8", "surrogatepass")


def fill(collection: str, n_rows: int, columns: Mapping[str, pa.Array]) -> pa.Table:
    """A table in the collection's schema; columns not given hold their default, or null."""
    declared = _collection(collection)
    defaults = {column.name: column.default for column in declared.columns}
    arrays = [
        columns[field.name].cast(field.type)
        if field.name in columns
        else pa.nulls(n_rows, field.type)
        if defaults[field.name] is None
        else pa.array([defaults[field.name]], field.type).take(pa.array(np.zeros(n_rows, dtype=np.int64)))
        for field in declared.schema
    ]
    return pa.Table.from_arrays(arrays, schema=declared.schema)


def constant(value: str, n_rows: int) -> pa.Array:
    """The same text in every row."""
    return pa.array([value], pa.string()).take(pa.array(np.zeros(n_rows, dtype=np.int64)))


def spans_array(begin: Longs, end: Longs) -> pa.Array:
    """[begin, end) pairs as a list column."""
    flat = np.stack([begin, end], axis=1).ravel()
    return pa.ListArray.from_arrays(pa.array(np.arange(0, len(flat) + 1, 2, dtype=np.int32)), pa.array(flat))


def lists_array(values: Longs | Ints, row: Longs, n_rows: int) -> pa.Array:
    """Values gathered by row, as a list column; rows come in order."""
    offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(np.bincount(row, minlength=n_rows))])
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), pa.array(values.astype(np.int64)))


def _relation_part(part: RelationRows, entities: pa.Array, documents: pa.Array, created: pa.Array) -> pa.Table:
    source, target = entities.take(pa.array(part.source)), entities.take(pa.array(part.target))
    where = pa.array(part.document)
    columns = {
        "_key": edge_keys(source, part.type, target, part.label),
        "_from": source,
        "_to": target,
        "type": constant(part.type, len(source)),
        "created": created.take(where),
        "provenance": pa.StructArray.from_arrays(
            [documents.take(where), spans_array(part.begin, part.end)], fields=list(arrow_schema(Provenance))
        ),
        "evidence_count": pa.array(part.evidence),
    }
    if part.label is not None:
        columns["label"] = pa.array(part.label, pa.string())
    if part.strength is not None:
        columns["strength"] = pa.array(part.strength)
    if part.together is not None:
        columns["co_occurrence_count"] = pa.array(part.together)
    return fill("relations", len(source), columns)


def _collection(name: str) -> Collection:
    collection = collection_named(name)
    if collection is None:
        raise LookupError(f"{name!r} is not in schemas/catalogue.py")
    return collection
