"""Contract edges."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hades.build.contracts.columns import (
    Documents,
    Flags,
    Frames,
    Longs,
    Source,
    at,
    column,
    flags,
    ids,
    keep,
    per_row,
    place,
    place_ends,
    spans_inside,
    texts_at,
    wholes,
    with_columns,
)
from hades.build.contracts.rule import Contract, Rule, between, holds, later, one_of
from schemas.catalogue import collection_named
from schemas.edges import allows
from schemas.nodes import EntityType, RelationType

# Edges: both ends are there, of types the relation allows, and every relation points at the text it was read in.


_DERIVE = "run `hades repair edges`"
CONTRACT = Contract(
    "edges",
    "relations, mentions and the edges between texts and code",
    (
        Rule(
            "edges.relation_type_known",
            "relations",
            "a relation is of a known type",
            one_of("type", [str(kind) for kind in RelationType]),
            repair=_DERIVE,
        ),
        Rule(
            "edges.ends_exist",
            "relations",
            "both ends of a relation are stored",
            holds("ends_exist"),
            ("_from", "_to"),
            repair=_DERIVE,
        ),
        Rule(
            "edges.endpoint_types_allowed",
            "relations",
            "a relation joins entity types that its type allows",
            holds("endpoints_allowed"),
            ("type", "from_type", "to_type"),
            repair=_DERIVE,
        ),
        Rule(
            "edges.no_self_loop",
            "relations",
            "a relation joins two different entities",
            holds("joins_two"),
            ("_from", "_to"),
            repair=_DERIVE,
        ),
        Rule(
            "edges.provenance_given",
            "relations",
            "a relation names where it was read; only similar_to is measured instead",
            holds("provenance_given"),
            ("type",),
            repair=_DERIVE,
        ),
        Rule(
            "edges.provenance_document_exists",
            "relations",
            "the document a relation was read in is stored",
            holds("document_exists"),
            ("document",),
            repair=_DERIVE,
        ),
        Rule(
            "edges.span_inside_document",
            "relations",
            "a relation's span lies inside the document it was read in",
            holds("span_inside_document"),
            ("document", "span", "document_length"),
            repair=_DERIVE,
        ),
        Rule(
            "edges.evidence_counted",
            "relations",
            "a relation is stated in at least one place",
            between("evidence_count", 1),
            repair=_DERIVE,
        ),
        Rule(
            "edges.strength_in_unit_interval",
            "relations",
            "a strength lies between 0 and 1",
            between("strength", 0, 1),
            repair=_DERIVE,
        ),
        Rule(
            "edges.valid_interval_ordered",
            "relations",
            "a relation begins to be true before it stops",
            later("valid_until", "valid_from"),
            repair=_DERIVE,
        ),
        Rule(
            "edges.known_interval_ordered",
            "relations",
            "a relation is recorded before it is withdrawn",
            later("retracted_at", "recorded_at"),
            repair=_DERIVE,
        ),
        Rule(
            "edges.out_degree_counted",
            "entities",
            "deg_out is how many relations leave the entity",
            holds("degree_matches"),
            ("deg_out", "relations_out"),
            repair=_DERIVE,
        ),
        Rule(
            "edges.mention_ends_exist",
            "mentions",
            "both ends of a mention are stored",
            holds("ends_exist"),
            ("_from", "_to"),
            repair=_DERIVE,
        ),
        Rule(
            "edges.mention_inside_chunk",
            "mentions",
            "a mention stands inside its chunk",
            holds("positions_inside_chunk"),
            ("_from", "last_position", "chunk_length"),
            repair=_DERIVE,
        ),
        Rule(
            "edges.mention_count_covers_positions",
            "mentions",
            "a mention counts at least the places it lists",
            holds("count_covers_positions"),
            ("count", "positions"),
            repair=_DERIVE,
        ),
        Rule(
            "edges.other_ends_exist",
            "other_edges",
            "both ends of an edge between texts, files and functions are stored",
            holds("ends_exist"),
            ("_from", "_to"),
            repair=_DERIVE,
        ),
    ),
)
# The frames of the contract `edges`.
_OTHER = ("references", "contains", "imports", "chunk_code_edges")
_TIMES = ("valid_from", "valid_until", "recorded_at", "retracted_at")
_RELATION = ("_from", "_to", "type", "provenance", "evidence_count", "strength", *_TIMES)
_TYPES, _ENTITY_TYPES = tuple(RelationType), tuple(EntityType)
# By relation type, tail type, head type; the last place of each axis is an unknown type, which is another rule's.
_ALLOWED = np.ones((len(_TYPES) + 1, len(_ENTITY_TYPES) + 1, len(_ENTITY_TYPES) + 1), dtype=np.bool_)
_ALLOWED[:-1, :-1, :-1] = [
    [[allows(kind, tail, head) for head in _ENTITY_TYPES] for tail in _ENTITY_TYPES] for kind in _TYPES
]


@dataclass(frozen=True)
class _Nodes:
    """Entities by row: their ids and their types."""

    ids: pa.Array
    types: pa.Array


def edge_frames(source: Source) -> Frames:
    """Relations, mentions and the other edges with what is known of their ends."""
    keyed = source.read_keys("entities", ("type", "deg_out"))
    table, is_new = keyed.table, keyed.is_new
    nodes = _Nodes(ids("entities", column(table, "_key")), column(table, "type"))
    documents = Documents(source)
    relations, tails, all_relations = _relations(source, nodes, documents)
    leaving: Longs = np.bincount(tails[tails >= 0], minlength=table.num_rows).astype(np.int64)
    matches = wholes(column(table, "deg_out"), -1) == leaving
    entities = keep(with_columns(table, relations_out=leaving, degree_matches=matches), is_new | ~matches)
    mentions, all_mentions = _mentions(source, nodes)
    others, all_others = _other_edges(source)
    tables = {"relations": relations, "entities": entities, "mentions": mentions, "other_edges": others}
    totals = (all_relations, table.num_rows, all_mentions, all_others)
    left_out = {name: total - tables[name].num_rows for name, total in zip(tables, totals, strict=True)}
    return Frames(tables, left_out=left_out)


def _relations(source: Source, nodes: _Nodes, documents: Documents) -> tuple[pa.Table, Longs, int]:
    """The relations that need a check, the row of every relation's tail, and how many relations there are."""
    keyed = source.read_keys("relations", ("_from", "_to", "type", "provenance"), _RELATION)
    all_tails, all_heads = place_ends(keyed.table, nodes.ids)
    named = pc.struct_field(column(keyed.table, "provenance"), "doc")
    rows = documents.rows_of(named)
    allowed = _endpoints_allowed(column(keyed.table, "type"), nodes.types, all_tails, all_heads)
    chosen = keyed.is_new | (all_tails < 0) | (all_heads < 0) | ~allowed
    chosen |= documents.are_new(rows) | ((rows < 0) & flags(pc.is_valid(named)))
    table, tails, heads = keyed.take(chosen, *_RELATION), all_tails[chosen], all_heads[chosen]
    document, span = (pc.struct_field(column(table, "provenance"), name) for name in ("doc", "span"))
    read_somewhere = flags(pc.is_valid(document))
    lengths = documents.lengths_at(rows[chosen])
    measured = flags(pc.equal(column(table, "type"), str(RelationType.SIMILAR_TO)))
    exists = lengths >= 0
    frame = with_columns(
        table.drop_columns(["provenance"]),
        from_type=texts_at(nodes.types, tails),
        to_type=texts_at(nodes.types, heads),
        ends_exist=(tails >= 0) & (heads >= 0),
        endpoints_allowed=allowed[chosen],
        joins_two=flags(pc.not_equal(column(table, "_from"), column(table, "_to"))),
        document=document,
        span=span,
        document_length=lengths,
        provenance_given=read_somewhere | measured,
        document_exists=exists | ~read_somewhere,
        span_inside_document=spans_inside(span, lengths) | ~exists,
    )
    return frame, all_tails, len(chosen)


def _endpoints_allowed(types: pa.Array, kinds: pa.Array, tails: Longs, heads: Longs) -> Flags:
    codes = place(kinds, pa.array([str(kind) for kind in _ENTITY_TYPES]))
    relation = place(types, pa.array([str(kind) for kind in _TYPES]))
    allowed: Flags = _ALLOWED[relation, at(codes, tails, -1), at(codes, heads, -1)]
    return allowed


def _mentions(source: Source, nodes: _Nodes) -> tuple[pa.Table, int]:
    """The mentions that need a check, and how many there are."""
    names = ("_from", "_to", "count", "positions")
    keyed = source.read_keys("mentions", ("_from", "_to"), names)
    known = Documents(source, "doc_chunks")
    all_chunks, all_entities = known.rows_of(column(keyed.table, "_from")), place(column(keyed.table, "_to"), nodes.ids)
    chosen = keyed.is_new | (all_chunks < 0) | (all_entities < 0) | known.are_new(all_chunks)
    table, chunks = keyed.take(chosen, *names), all_chunks[chosen]
    positions = column(table, "positions")
    flat = wholes(pc.list_flatten(positions))
    first, last = per_row(positions, flat, np.minimum, 0), per_row(positions, flat, np.maximum, 0)
    limit = np.maximum(known.lengths_at(chunks), 0)
    listed = wholes(pc.list_value_length(positions))
    frame = with_columns(
        table,
        ends_exist=(chunks >= 0) & (all_entities[chosen] >= 0),
        last_position=last,
        chunk_length=limit,
        positions_inside_chunk=((first >= 0) & (last < limit)) | (chunks < 0) | (listed == 0),
        count_covers_positions=wholes(column(table, "count")) >= np.maximum(listed, 1),
    )
    return frame, len(chosen)


def _other_edges(source: Source) -> tuple[pa.Table, int]:
    """All smaller edge collections in one frame; keys are ids, for two collections may share a key."""
    known = cache(lambda collection: ids(collection, column(source.read(collection), "_key")))
    parts, total = [], 0
    for name in _OTHER:
        keyed = source.read_keys(name, ("_from", "_to"))
        table = keyed.table
        there = _have_ends(known, name, table)
        renamed = table.set_column(0, "_key", ids(name, column(table, "_key")))
        parts.append(keep(with_columns(renamed, ends_exist=there), keyed.is_new | ~there))
        total += table.num_rows
    return pa.concat_tables(parts).combine_chunks(), total


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
