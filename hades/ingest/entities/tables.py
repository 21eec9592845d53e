"""Derived rows as Arrow tables in the catalogue's columns; a column that is not given takes its declared default."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hades.ingest.entities.keys import EdgeKeys, NodeIds
from hades.text.arrays import Ints, Longs
from schemas.catalogue import Collection, collection_named
from schemas.columns import arrow_schema
from schemas.edges import MentionType, Provenance


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


def relations_table(
    parts: Sequence[RelationRows], entities: NodeIds, documents: Sequence[str], created: pa.Array, keys: EdgeKeys
) -> pa.Table:
    """All relations, parts in the order given and rows in theirs; `documents` are `_id`s."""
    held = pa.array(documents, pa.string())
    return pa.concat_tables([_relation_part(part, entities, held, created, keys) for part in parts])


def mentions_table(
    chunks: NodeIds, entities: NodeIds, chunk: Longs, entity: Longs, count: Longs, positions: pa.Array, keys: EdgeKeys
) -> pa.Table:
    """Mentions with the characters at which each stands in its chunk; `chunk` and `entity` number the ids given."""
    return fill(
        "mentions",
        len(chunk),
        {
            "_key": keys.find(chunks, chunk, MentionType.MENTIONS, entities, entity),
            "_from": chunks.column.take(pa.array(chunk)),
            "_to": entities.column.take(pa.array(entity)),
            "type": constant(MentionType.MENTIONS, len(chunk)),
            "count": pa.array(count),
            "positions": positions,
        },
    )


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


def _relation_part(
    part: RelationRows, entities: NodeIds, documents: pa.StringArray, created: pa.Array, keys: EdgeKeys
) -> pa.Table:
    where = pa.array(part.document)
    place = [documents.take(where), spans_array(part.begin, part.end)]
    arrays = {
        "_key": keys.find(entities, part.source, part.type, entities, part.target, part.label),
        "_from": entities.column.take(pa.array(part.source)),
        "_to": entities.column.take(pa.array(part.target)),
        "type": constant(part.type, len(part.source)),
        "created": created.take(where),
        "provenance": pa.StructArray.from_arrays(place, fields=list(arrow_schema(Provenance))),
        "evidence_count": pa.array(part.evidence),
    }
    if part.label is not None:
        arrays["label"] = pa.array(part.label, pa.string())
    if part.strength is not None:
        arrays["strength"] = pa.array(part.strength)
    if part.together is not None:
        arrays["co_occurrence_count"] = pa.array(part.together)
    return fill("relations", len(part.source), arrays)


def _collection(name: str) -> Collection:
    collection = collection_named(name)
    if collection is None:
        raise LookupError(f"{name!r} is not in schemas/catalogue.py")
    return collection
