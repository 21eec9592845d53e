"""Derived rows as Arrow tables in the catalogue's columns; a column that is not given takes its declared default."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hades.ports.graph import ALWAYS, FOREVER
from hades.text.words import Ints, Longs
from schemas.catalogue import collection_named
from schemas.edges import MentionType, Provenance
from schemas.ids import edge_key
from schemas.record import TIME, arrow_schema, repeated


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
    since: Longs  # when the first document or sentence that states it was written; `ALWAYS`: not said
    label: Sequence[str] | None = None
    strength: NDArray[np.float64] | None = None
    together: Longs | None = None


@dataclass(frozen=True)
class MentionRows:
    """Mentions as columns: which chunk names which entity, how often and where."""

    chunk: Longs
    entity: Longs
    count: Longs
    positions: pa.ListArray
    since: Longs


def relations_table(part: RelationRows, entities: pa.Array, documents: pa.Array, created: pa.Array) -> pa.Table:
    """Relations of one type; `entities` and `documents` are `_id`s, `created` the dates of the documents."""
    where = pa.array(part.document)
    place = [documents.take(where), _spans_array(part.begin, part.end)]
    source, target = entities.take(pa.array(part.source)), entities.take(pa.array(part.target))
    columns = {
        **edge_columns(part.type, source, target, part.label),
        "created": created.take(where),
        "provenance": pa.StructArray.from_arrays(place, fields=list(arrow_schema(Provenance))),
        "evidence_count": pa.array(part.evidence),
        "valid_from": moments_array(part.since),
    }
    stated = {"label": part.label, "strength": part.strength, "co_occurrence_count": part.together}
    columns |= {name: pa.array(values) for name, values in stated.items() if values is not None}
    return fill("relations", len(part.source), columns)


def mentions_table(chunks: pa.Array, entities: pa.Array, found: MentionRows) -> pa.Table:
    """Mentions with the characters at which each stands in its chunk; `chunks` and `entities` are `_id`s."""
    source, target = chunks.take(pa.array(found.chunk)), entities.take(pa.array(found.entity))
    columns = {
        **edge_columns(MentionType.MENTIONS, source, target),
        "count": pa.array(found.count),
        "positions": found.positions,
        "valid_from": moments_array(found.since),
    }
    return fill("mentions", len(found.chunk), columns)


def edge_columns(
    kind: str, source: pa.Array, target: pa.Array, labels: Sequence[str] | None = None
) -> dict[str, pa.Array]:
    """Key, ends and type of edges of one type; labels tell parallel edges apart."""
    ends = zip(source.to_pylist(), target.to_pylist(), labels or [""] * len(source), strict=True)
    keys = [edge_key(tail, kind, head, *filter(None, [label])) for tail, head, label in ends]
    return {
        "_key": pa.array(keys, pa.string()),
        "_from": source,
        "_to": target,
        "type": pa.repeat(str(kind), len(keys)),
    }


def fill(collection: str, n_rows: int, columns: Mapping[str, pa.Array | pa.ChunkedArray]) -> pa.Table:
    """A table in the collection's schema; columns not given hold their default, or null."""
    declared = collection_named(collection)
    if declared is None:
        raise LookupError(f"{collection!r} is not in schemas/catalogue.py")
    arrays = []
    for column in declared.columns:
        if column.name in columns:
            arrays.append(columns[column.name].cast(column.type))
        elif column.default is None:
            arrays.append(pa.nulls(n_rows, column.type))
        else:
            arrays.append(repeated(column.default, column.type, n_rows))
    return pa.Table.from_arrays(arrays, schema=declared.schema)


def lists_array(values: Longs | Ints, row: Longs, n_rows: int) -> pa.Array:
    """Values gathered by row, as a list column; rows come in order."""
    offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(np.bincount(row, minlength=n_rows))])
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), pa.array(values.astype(np.int64)))


def oldest_dates(row: Longs, written: Longs, n_rows: int) -> Longs:
    """The oldest of the dates that belong to each row."""
    oldest = np.full(n_rows, FOREVER, dtype=np.int64)
    np.minimum.at(oldest, row, written)
    return oldest


def moments_array(since: Longs) -> pa.Array:
    """Dates as a column of times; null where something was always so."""
    return pa.array(since, pa.int64(), mask=since == ALWAYS).cast(TIME)


def _spans_array(begin: Longs, end: Longs) -> pa.Array:
    """[begin, end) pairs as a list column."""
    flat = np.stack([begin, end], axis=1).ravel()
    return pa.ListArray.from_arrays(pa.array(np.arange(0, len(flat) + 1, 2, dtype=np.int32)), pa.array(flat))
