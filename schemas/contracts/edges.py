"""Edges: both ends are there, of types the relation allows, and every relation points at the text it was read in."""

from __future__ import annotations

from schemas.contracts.rule import Contract, Rule, between, holds, later, one_of
from schemas.graph_types import RelationType

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
