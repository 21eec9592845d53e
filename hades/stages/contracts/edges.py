"""The frames of the contract `edges`."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hades.ports.store import RowStore
from hades.stages.contracts.columns import (
    Flags,
    Frames,
    Longs,
    at,
    column,
    count,
    flags,
    ids,
    per_row,
    place,
    read,
    spans_inside,
    texts_at,
    wholes,
    with_columns,
)
from hades.stages.contracts.texts import Documents, lengths_of_chunks, read_documents
from schemas.catalogue import collection_named
from schemas.edges import allows
from schemas.graph_types import EntityType, RelationType

_OTHER = ("references", "contains", "imports", "chunk_code_edges")
_TIMES = ("valid_from", "valid_until", "recorded_at", "retracted_at")
_TYPES, _ENTITY_TYPES = tuple(RelationType), tuple(EntityType)
# By relation type, tail type, head type; the last place of each axis is an unknown type, which is another rule's.
_ALLOWED = np.ones((len(_TYPES) + 1, len(_ENTITY_TYPES) + 1, len(_ENTITY_TYPES) + 1), dtype=np.bool_)
_ALLOWED[:-1, :-1, :-1] = [
    [[allows(kind, tail, head) for head in _ENTITY_TYPES] for tail in _ENTITY_TYPES] for kind in _TYPES
]


def edge_frames(store: RowStore) -> Frames:
    """Relations, mentions and the other edges with what is known of their ends."""
    entities = read(store, "entities", "type", "deg_out")
    entity_ids = ids("entities", column(entities, "_key"))
    relations = _relations(store, entities, entity_ids, read_documents(store))
    leaving = count(column(relations, "_from"), entity_ids)
    entities = with_columns(
        entities, relations_out=leaving, degree_matches=wholes(column(entities, "deg_out"), -1) == leaving
    )
    frames = {"relations": relations, "entities": entities, "mentions": _mentions(store, entity_ids)}
    return Frames({**frames, "other_edges": _other_edges(store)})


def _relations(store: RowStore, entities: pa.Table, entity_ids: pa.Array, documents: Documents) -> pa.Table:
    names = ("_from", "_to", "type", "provenance", "evidence_count", "strength", *_TIMES)
    table = read(store, "relations", *names)
    tails, heads = (place(column(table, end), entity_ids) for end in ("_from", "_to"))
    kinds = column(entities, "type")
    provenance = column(table, "provenance")
    document, span = (pc.struct_field(provenance, name) for name in ("doc", "span"))
    read_somewhere = flags(pc.is_valid(document))
    lengths = documents.lengths_of(document)
    measured = flags(pc.equal(column(table, "type"), str(RelationType.SIMILAR_TO)))
    exists = lengths >= 0
    return with_columns(
        table.drop_columns(["provenance"]),
        from_type=texts_at(kinds, tails),
        to_type=texts_at(kinds, heads),
        ends_exist=(tails >= 0) & (heads >= 0),
        endpoints_allowed=_endpoints_allowed(column(table, "type"), kinds, tails, heads),
        joins_two=flags(pc.not_equal(column(table, "_from"), column(table, "_to"))),
        document=document,
        span=span,
        document_length=lengths,
        provenance_given=read_somewhere | measured,
        document_exists=exists | ~read_somewhere,
        span_inside_document=spans_inside(span, lengths) | ~exists,
    )


def _endpoints_allowed(types: pa.Array, kinds: pa.Array, tails: Longs, heads: Longs) -> Flags:
    codes = place(kinds, pa.array([str(kind) for kind in _ENTITY_TYPES]))
    relation = place(types, pa.array([str(kind) for kind in _TYPES]))
    allowed: Flags = _ALLOWED[relation, at(codes, tails, -1), at(codes, heads, -1)]
    return allowed


def _mentions(store: RowStore, entity_ids: pa.Array) -> pa.Table:
    table = read(store, "mentions", "_from", "_to", "count", "positions")
    chunk_ids, lengths = lengths_of_chunks(store)
    chunks = place(column(table, "_from"), chunk_ids)
    positions = column(table, "positions")
    flat = wholes(pc.list_flatten(positions))
    first, last = per_row(positions, flat, np.minimum, 0), per_row(positions, flat, np.maximum, 0)
    limit = at(lengths, chunks, 0)
    listed = wholes(pc.list_value_length(positions))
    return with_columns(
        table,
        ends_exist=(chunks >= 0) & (place(column(table, "_to"), entity_ids) >= 0),
        last_position=last,
        chunk_length=limit,
        positions_inside_chunk=((first >= 0) & (last < limit)) | (chunks < 0) | (listed == 0),
        count_covers_positions=wholes(column(table, "count")) >= np.maximum(listed, 1),
    )


def _other_edges(store: RowStore) -> pa.Table:
    """All smaller edge collections in one frame; keys are ids, for two collections may share a key."""
    known = cache(lambda collection: ids(collection, column(read(store, collection), "_key")))
    parts = []
    for name in _OTHER:
        table = read(store, name, "_from", "_to")
        there = np.ones(table.num_rows, dtype=np.bool_)
        for end in ("_from", "_to"):
            there &= _are_stored(known, name, column(table, end))
        renamed = table.set_column(0, "_key", ids(name, column(table, "_key")))
        parts.append(with_columns(renamed, ends_exist=there))
    return pa.concat_tables(parts).combine_chunks()


def _are_stored(known: Callable[[str], pa.Array], collection: str, ends: pa.Array) -> Flags:
    """Which ends are nodes of a collection that such an edge may join; `known` gives the ids of a collection."""
    declared = collection_named(collection)
    assert declared is not None
    assert declared.edge is not None
    found = np.zeros(len(ends), dtype=np.bool_)
    for name in dict.fromkeys((*declared.edge.sources, *declared.edge.targets)) if len(ends) else ():
        found |= place(ends, known(name)) >= 0
    return found
