"""The contract `edges`: both ends are there, of types the relation allows, and a relation names where it was read."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hades.build.columns import (
    Flags,
    Frames,
    Lengths,
    Longs,
    at,
    column,
    flags,
    ids,
    per_row,
    place,
    place_ends,
    read,
    spans_inside,
    texts_at,
    wholes,
    with_columns,
)
from hades.build.contracts.rule import between, contract, holds, later, one_of
from hades.ports.store import RowStore
from schemas.catalogue import collection_named
from schemas.edges import allows
from schemas.nodes import EntityType, RelationType

# fmt: off
CONTRACT = contract(
    "edges",
    "relations, mentions and the edges between texts and code",
    "run `hades repair edges`",
    {
        "relations": [
            ("relation_type_known", "a relation is of a known type",
             one_of("type", [str(kind) for kind in RelationType])),
            ("ends_exist", "both ends of a relation are stored", holds("ends_exist"), "_from", "_to"),
            ("endpoint_types_allowed", "a relation joins entity types that its type allows",
             holds("endpoints_allowed"), "type", "from_type", "to_type"),
            ("no_self_loop", "a relation joins two different entities", holds("joins_two"), "_from", "_to"),
            ("provenance_given", "a relation names where it was read; only similar_to is measured instead",
             holds("provenance_given"), "type"),
            ("provenance_document_exists", "the document a relation was read in is stored",
             holds("document_exists"), "document"),
            ("span_inside_document", "a relation's span lies inside the document it was read in",
             holds("span_inside_document"), "document", "span", "document_length"),
            ("evidence_counted", "a relation is stated in at least one place", between("evidence_count", 1)),
            ("strength_in_unit_interval", "a strength lies between 0 and 1", between("strength", 0, 1)),
            ("valid_interval_ordered", "a relation begins to be true before it stops",
             later("valid_until", "valid_from")),
            ("known_interval_ordered", "a relation is recorded before it is withdrawn",
             later("retracted_at", "recorded_at")),
        ],
        "entities": [
            ("out_degree_counted", "deg_out is how many relations leave the entity",
             holds("degree_matches"), "deg_out", "relations_out"),
        ],
        "mentions": [
            ("mention_ends_exist", "both ends of a mention are stored", holds("ends_exist"), "_from", "_to"),
            ("mention_inside_chunk", "a mention stands inside its chunk",
             holds("positions_inside_chunk"), "_from", "last_position", "chunk_length"),
            ("mention_count_covers_positions", "a mention counts at least the places it lists",
             holds("count_covers_positions"), "count", "positions"),
        ],
        "other_edges": [
            ("other_ends_exist", "both ends of an edge between texts, files and functions are stored",
             holds("ends_exist"), "_from", "_to"),
        ],
    },
)
# fmt: on
_OTHER = ("references", "contains", "imports", "chunk_code_edges")
_TIMES = ("valid_from", "valid_until", "recorded_at", "retracted_at")
_RELATION = ("_from", "_to", "type", "provenance", "evidence_count", "strength", *_TIMES)
_TYPES, _ENTITY_TYPES = tuple(RelationType), tuple(EntityType)
# By relation type, tail type, head type; the last place of each axis is an unknown type, which is another rule's.
_ALLOWED = np.ones((len(_TYPES) + 1, len(_ENTITY_TYPES) + 1, len(_ENTITY_TYPES) + 1), dtype=np.bool_)
_ALLOWED[:-1, :-1, :-1] = [
    [[allows(kind, tail, head) for head in _ENTITY_TYPES] for tail in _ENTITY_TYPES] for kind in _TYPES
]


def edge_frames(store: RowStore) -> Frames:
    """Relations, mentions and the other edges with what is known of their ends."""
    entities, relations = read(store, "entities", "type", "deg_out"), read(store, "relations", *_RELATION)
    entity_ids = ids("entities", column(entities, "_key"))
    tails, heads = place_ends(relations, entity_ids)
    leaving = np.bincount(tails[tails >= 0], minlength=entities.num_rows).astype(np.int64)
    matches = wholes(column(entities, "deg_out"), -1) == leaving
    return Frames(
        {
            "relations": _relations(store, relations, column(entities, "type"), tails, heads),
            "entities": with_columns(entities, relations_out=leaving, degree_matches=matches),
            "mentions": _mentions(store, entity_ids),
            "other_edges": _other_edges(store),
        }
    )


def _relations(store: RowStore, table: pa.Table, types: pa.Array, tails: Longs, heads: Longs) -> pa.Table:
    document, span = (pc.struct_field(column(table, "provenance"), name) for name in ("doc", "span"))
    lengths = Lengths(store, "documents").find(document)
    exists, is_read = lengths >= 0, flags(pc.is_valid(document))
    is_measured = flags(pc.equal(column(table, "type"), str(RelationType.SIMILAR_TO)))
    return with_columns(
        table.drop_columns(["provenance"]),
        from_type=texts_at(types, tails),
        to_type=texts_at(types, heads),
        ends_exist=(tails >= 0) & (heads >= 0),
        endpoints_allowed=_endpoints_allowed(column(table, "type"), types, tails, heads),
        joins_two=flags(pc.not_equal(column(table, "_from"), column(table, "_to"))),
        document=document,
        span=span,
        document_length=lengths,
        provenance_given=is_read | is_measured,
        document_exists=exists | ~is_read,
        span_inside_document=spans_inside(span, lengths) | ~exists,
    )


def _endpoints_allowed(types: pa.Array, kinds: pa.Array, tails: Longs, heads: Longs) -> Flags:
    codes = place(kinds, pa.array([str(kind) for kind in _ENTITY_TYPES]))
    relation = place(types, pa.array([str(kind) for kind in _TYPES]))
    allowed: Flags = _ALLOWED[relation, at(codes, tails, -1), at(codes, heads, -1)]
    return allowed


def _mentions(store: RowStore, entity_ids: pa.Array) -> pa.Table:
    table = read(store, "mentions", "_from", "_to", "count", "positions")
    lengths = Lengths(store, "doc_chunks").find(column(table, "_from"))
    positions = column(table, "positions")
    flat = wholes(pc.list_flatten(positions))
    first, last = per_row(positions, flat, np.minimum, 0), per_row(positions, flat, np.maximum, 0)
    listed = wholes(pc.list_value_length(positions))
    return with_columns(
        table,
        ends_exist=(lengths >= 0) & (place(column(table, "_to"), entity_ids) >= 0),
        last_position=last,
        chunk_length=np.maximum(lengths, 0),
        positions_inside_chunk=((first >= 0) & (last < lengths)) | (lengths < 0) | (listed == 0),
        count_covers_positions=wholes(column(table, "count")) >= np.maximum(listed, 1),
    )


def _other_edges(store: RowStore) -> pa.Table:
    """All smaller edge collections in one frame; keys are ids, for two collections may share a key."""
    known = cache(lambda collection: ids(collection, column(read(store, collection), "_key")))
    parts = []
    for name in _OTHER:
        table = read(store, name, "_from", "_to")
        renamed = table.set_column(0, "_key", ids(name, column(table, "_key")))
        parts.append(with_columns(renamed, ends_exist=_have_ends(known, name, table)))
    return pa.concat_tables(parts).combine_chunks()


def _have_ends(known: Callable[[str], pa.Array], collection: str, edges: pa.Table) -> Flags:
    """Which edges join nodes of collections that such an edge may join; `known` gives the ids of a collection."""
    declared = collection_named(collection)
    assert declared is not None
    assert declared.edge is not None
    tails, heads = (np.zeros(edges.num_rows, dtype=np.bool_) for _ in range(2))
    for name in dict.fromkeys((*declared.edge.sources, *declared.edge.targets)) if edges.num_rows else ():
        among = place_ends(edges, known(name))
        tails |= among[0] >= 0
        heads |= among[1] >= 0
    both: Flags = tails & heads
    return both
