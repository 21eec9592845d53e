"""The contract of edges."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hades.ingest import manifest
from hades.night.columns import (
    Frames,
    at,
    column,
    flags,
    ids,
    lengths_of,
    per_row,
    place_ends,
    read,
    spans_inside,
    texts_at,
    with_columns,
)
from hades.night.contracts.nodes import written_rows
from hades.night.contracts.rule import (
    between,
    contract,
    equal,
    later,
    one_of,
)
from hades.ports.store import RowStore
from hades.snapshot.files import integers, places_of
from models.arrays import Flags, Longs
from schemas.catalogue import declared
from schemas.edges import allows
from schemas.nodes import EntityType, RelationType

EDGES_CONTRACT = contract(
    "edges",
    "relations, mentions and the edges between texts and code",
    "run `hades repair edges`",
    {
        "relations": [
            (
                "relation_type_known",
                "a relation is of a known type",
                one_of("type", RelationType),
            ),
            ("ends_exist", "both ends of a relation are stored", "_from", "_to"),
            (
                "endpoint_types_allowed",
                "a relation joins entity types that its type allows",
                "type",
                "from_type",
                "to_type",
            ),
            ("no_self_loop", "a relation joins two different entities", "_from", "_to"),
            (
                "provenance_given",
                "a relation names where it was read; only similar_to is measured instead",
                "type",
            ),
            (
                "provenance_document_exists",
                "the document a relation was read in is stored",
                "document",
            ),
            (
                "span_inside_document",
                "a relation's span lies inside the document it was read in",
                "document",
                "span",
                "document_length",
            ),
            (
                "evidence_counted",
                "a relation is stated in at least one place",
                between("evidence_count", 1),
            ),
            (
                "strength_in_unit_interval",
                "a strength lies between 0 and 1",
                between("strength", 0, 1),
            ),
            (
                "valid_interval_ordered",
                "a relation begins to be true before it stops",
                later("valid_until", "valid_from"),
            ),
            (
                "known_interval_ordered",
                "a relation is recorded before it is withdrawn",
                later("retracted_at", "recorded_at"),
            ),
        ],
        "entities": [
            (
                "out_degree_counted",
                "deg_out is how many relations leave the entity",
                "deg_out",
                "relations_out",
            ),
        ],
        "mentions": [
            ("mention_ends_exist", "both ends of a mention are stored", "_from", "_to"),
            (
                "mention_inside_chunk",
                "a mention stands inside its chunk",
                "_from",
                "last_position",
                "chunk_length",
            ),
            (
                "mention_count_covers_positions",
                "a mention counts at least the places it lists",
                "count",
                "positions",
            ),
        ],
        "other_edges": [
            (
                "other_ends_exist",
                "both ends of an edge between texts, files and functions are stored",
                "_from",
                "_to",
            ),
        ],
        "derived_rows": [
            (
                "derived_rows_stored",
                "every row that was derived from the documents is stored",
                equal("stored", "written"),
                "stored",
                "written",
            ),
        ],
    },
)
_OTHER = ("references", "contains", "imports", "chunk_code_edges")
_TIMES = ("valid_from", "valid_until", "recorded_at", "retracted_at")
_RELATION = ("_from", "_to", "type", "provenance", "evidence_count", "strength", *_TIMES)
_TYPES, _ENTITY_TYPES = tuple(RelationType), tuple(EntityType)
# By relation type, tail type, head type; the last place of each axis is an unknown type, which is
# another rule's.
_ALLOWED = np.ones(
    (len(_TYPES) + 1, len(_ENTITY_TYPES) + 1, len(_ENTITY_TYPES) + 1),
    dtype=np.bool_,
)
for places in np.ndindex(
    len(_TYPES),
    len(_ENTITY_TYPES),
    len(_ENTITY_TYPES),
):
    _ALLOWED[places] = allows(
        _TYPES[places[0]],
        _ENTITY_TYPES[places[1]],
        _ENTITY_TYPES[places[2]],
    )


def edge_frames(store: RowStore) -> Frames:
    """Relations, mentions and the other edges with what is known of their ends."""
    entities = read(store, "entities", "type", "deg_out")
    relations = read(store, "relations", *_RELATION)
    entity_ids = ids("entities", column(entities, "_key"))
    tails, heads = place_ends(relations, entity_ids)
    leaving = np.bincount(tails[tails >= 0], minlength=entities.num_rows).astype(np.int64)
    matches = integers(column(entities, "deg_out"), -1) == leaving
    return Frames(
        {
            "relations": _relations(
                store,
                relations,
                column(entities, "type"),
                tails,
                heads,
            ),
            "entities": with_columns(
                entities,
                relations_out=leaving,
                out_degree_counted=matches,
            ),
            "mentions": _mentions(store, entity_ids),
            "other_edges": _other_edges(store),
            "derived_rows": written_rows(manifest.count_derived_rows(store)),
        }
    )


def _relations(
    store: RowStore,
    table: pa.Table,
    types: pa.Array,
    tails: Longs,
    heads: Longs,
) -> pa.Table:
    provenance = column(table, "provenance")
    kinds = column(table, "type")
    document = pc.struct_field(provenance, "doc")
    span = pc.struct_field(provenance, "span")
    lengths = lengths_of(store, "documents", document)
    exists = lengths >= 0
    is_read = flags(pc.is_valid(document))
    is_measured = flags(pc.equal(kinds, str(RelationType.SIMILAR_TO)))
    codes = places_of(types, pa.array(map(str, _ENTITY_TYPES)))
    relation = places_of(kinds, pa.array(map(str, _TYPES)))
    is_loop = pc.equal(column(table, "_from"), column(table, "_to"))
    return with_columns(
        table.drop_columns(["provenance"]),
        from_type=texts_at(types, tails),
        to_type=texts_at(types, heads),
        ends_exist=(tails >= 0) & (heads >= 0),
        endpoint_types_allowed=_ALLOWED[relation, at(codes, tails, -1), at(codes, heads, -1)],
        no_self_loop=flags(pc.invert(is_loop)),
        document=document,
        span=span,
        document_length=lengths,
        provenance_given=is_read | is_measured,
        provenance_document_exists=exists | ~is_read,
        span_inside_document=spans_inside(span, lengths) | ~exists,
    )


def _mentions(store: RowStore, entity_ids: pa.Array) -> pa.Table:
    table = read(
        store,
        "mentions",
        "_from",
        "_to",
        "count",
        "positions",
    )
    lengths = lengths_of(
        store,
        "doc_chunks",
        column(table, "_from"),
    )
    positions = column(table, "positions")
    flat = integers(pc.list_flatten(positions), 0)
    first = per_row(positions, flat, np.minimum, 0)
    last = per_row(positions, flat, np.maximum, 0)
    listed = integers(pc.list_value_length(positions), 0)
    return with_columns(
        table,
        mention_ends_exist=(lengths >= 0) & (places_of(column(table, "_to"), entity_ids) >= 0),
        last_position=last,
        chunk_length=np.maximum(lengths, 0),
        mention_inside_chunk=((first >= 0) & (last < lengths)) | (lengths < 0) | (listed == 0),
        mention_count_covers_positions=integers(column(table, "count"), 0) >= np.maximum(listed, 1),
    )


def _other_edges(store: RowStore) -> pa.Table:
    """All smaller edge collections in one frame; keys are ids, for two collections may share a
    key.
    """
    known = cache(lambda collection: ids(collection, column(read(store, collection), "_key")))

    parts = []
    for name in _OTHER:
        table = read(store, name, "_from", "_to")
        has_ends = _have_ends(known, name, table)
        renamed = table.set_column(
            0,
            "_key",
            ids(name, column(table, "_key")),
        )
        parts.append(with_columns(renamed, other_ends_exist=has_ends))

    return pa.concat_tables(parts).combine_chunks()


def _have_ends(
    known: Callable[[str], pa.Array],
    collection: str,
    edges: pa.Table,
) -> Flags:
    """Which edges join nodes of collections that such an edge may join; `known` gives the ids of a
    collection.
    """
    ends = declared(collection).edge
    assert ends is not None
    has_ends = np.zeros((2, edges.num_rows), dtype=np.bool_)

    for name in dict.fromkeys((*ends.sources, *ends.targets)) if edges.num_rows else ():
        has_ends |= np.array(place_ends(edges, known(name))) >= 0

    both: Flags = has_ends[0] & has_ends[1]
    return both
