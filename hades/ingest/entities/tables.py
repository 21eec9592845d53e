"""Derived rows as Arrow tables in the catalogue's columns; a column that is not given takes its declared default."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hades.ingest.entities.corpus import NodeIds, Signatures, find_keys, sign_numbers, sign_texts
from hades.ingest.write_changes import FormerRows, join_rows, reuse_rows
from hades.text.words import Ints, Longs
from schemas.catalogue import Collection, collection_named
from schemas.edges import MentionType, Provenance
from schemas.record import arrow_schema


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

    def take(self, rows: Longs) -> RelationRows:
        """Some of the rows."""
        if len(rows) == len(self.source):
            return self
        return RelationRows(
            self.type,
            self.source[rows],
            self.target[rows],
            self.document[rows],
            self.begin[rows],
            self.end[rows],
            self.evidence[rows],
            label=None if self.label is None else [self.label[row] for row in rows.tolist()],
            strength=None if self.strength is None else self.strength[rows],
            together=None if self.together is None else self.together[rows],
        )


@dataclass(frozen=True)
class MentionRows:
    """Mentions as columns: which chunk names which entity, how often and where; `row` owns each of the positions."""

    chunk: Longs
    entity: Longs
    count: Longs
    positions: pa.ListArray
    row: Longs


@dataclass(frozen=True)
class DocumentColumns:
    """Documents as relations quote them: their `_id`s and dates, and a signature of both."""

    ids: pa.StringArray
    created: pa.Array
    signatures: Signatures


def relations_table(
    parts: Sequence[RelationRows],
    entities: NodeIds,
    documents: DocumentColumns,
    former: FormerRows | None = None,
) -> FormerRows:
    """All relations, parts in the order given and rows in theirs; rows of `former` are reused."""

    def reuse(part: RelationRows) -> FormerRows:
        asked = _sign_relations(part, entities, documents)
        return reuse_rows(former, asked, lambda rows: _relation_part(part.take(rows), entities, documents))

    return join_rows([reuse(part) for part in parts])


def mentions_table(
    chunks: NodeIds,
    entities: NodeIds,
    found: MentionRows,
    former: FormerRows | None = None,
) -> FormerRows:
    """Mentions with the characters at which each stands in its chunk; rows of `former` are reused."""
    ends = chunks.signatures.take(found.chunk).join(entities.signatures.take(found.entity))
    said = sign_numbers(found.positions.values.to_numpy())
    asked = ends.mix(found.count).join(said.add_up(found.row, len(found.chunk)))

    def build(rows: Longs) -> pa.Table:
        chunk, entity = found.chunk[rows], found.entity[rows]
        columns = {
            "_key": find_keys(chunks, chunk, MentionType.MENTIONS, entities, entity),
            "_from": chunks.column.take(pa.array(chunk)),
            "_to": entities.column.take(pa.array(entity)),
            "type": constant(MentionType.MENTIONS, len(rows)),
            "count": pa.array(found.count[rows]),
            "positions": found.positions.take(pa.array(rows)),
        }
        return fill("mentions", len(rows), columns)

    return reuse_rows(former, asked, build)


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


def _sign_relations(part: RelationRows, entities: NodeIds, documents: DocumentColumns) -> Signatures:
    """The signature of all that each row says; that of a document stands for its key and its date."""
    signed = entities.signatures.take(part.source).join(entities.signatures.take(part.target))
    signed = signed.join(documents.signatures.take(part.document)).mix(part.begin).mix(part.end).mix(part.evidence)
    kind = sign_texts([part.type])
    signed = signed.join(kind.take(np.zeros(len(part.source), dtype=np.int64)))
    if part.label is not None:
        signed = signed.join(sign_texts(part.label))
    if part.strength is not None:
        signed = signed.mix(part.strength.view(np.uint64))
    return signed if part.together is None else signed.mix(part.together)


def _relation_part(part: RelationRows, entities: NodeIds, documents: DocumentColumns) -> pa.Table:
    where = pa.array(part.document)
    place = [documents.ids.take(where), spans_array(part.begin, part.end)]
    arrays = {
        "_key": find_keys(entities, part.source, part.type, entities, part.target, part.label),
        "_from": entities.column.take(pa.array(part.source)),
        "_to": entities.column.take(pa.array(part.target)),
        "type": constant(part.type, len(part.source)),
        "created": documents.created.take(where),
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
