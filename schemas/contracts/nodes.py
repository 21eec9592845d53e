"""Nodes: documents are what their hash says, entities are named and typed, papers and code point at their documents."""

from __future__ import annotations

from schemas.contracts.rule import Contract, Rule, between, holds, matches, one_of, unique
from schemas.graph_types import EntityType
from schemas.source_kinds import SourceKind

_INGEST = "run `hades repair nodes`"

CONTRACT = Contract(
    "nodes",
    "what was read: documents, entities, papers, files and functions",
    (
        Rule(
            "nodes.document_has_origin",
            "documents",
            "a document names the id it came in with",
            matches("origin", r"\S"),
            repair=_INGEST,
        ),
        Rule(
            "nodes.document_source_known",
            "documents",
            "a document comes from a known kind of source",
            one_of("source", [str(kind) for kind in SourceKind]),
            repair=_INGEST,
        ),
        Rule(
            "nodes.document_sha256_of_text",
            "documents",
            "a document's sha256 is that of its text",
            holds("sha256_matches"),
            ("sha256",),
            repair=_INGEST,
        ),
        Rule(
            "nodes.entity_has_name",
            "entities",
            "an entity has a name",
            matches("name", r"\S"),
            repair=_INGEST,
        ),
        Rule(
            "nodes.entity_type_known",
            "entities",
            "an entity is a paper, concept, method, person or code symbol",
            one_of("type", [str(kind) for kind in EntityType]),
            repair=_INGEST,
        ),
        Rule(
            "nodes.entity_name_lower",
            "entities",
            "name_lower is the name in lower case",
            holds("name_lower_matches"),
            ("name", "name_lower"),
            repair=_INGEST,
        ),
        Rule(
            "nodes.entity_layer_zero",
            "entities",
            "an entity stands in layer 0",
            between("layer", 0, 0),
            repair=_INGEST,
        ),
        Rule(
            "nodes.paper_id_unique",
            "papers_raw",
            "an arXiv id stands once",
            unique("id"),
            repair=_INGEST,
        ),
        Rule(
            "nodes.paper_document_exists",
            "papers_raw",
            "a paper's document is stored",
            holds("document_exists"),
            ("document",),
            repair=_INGEST,
        ),
        Rule(
            "nodes.file_document_exists",
            "files",
            "a file's document is stored",
            holds("document_exists"),
            ("document",),
            repair=_INGEST,
        ),
        Rule(
            "nodes.file_sha256_of_document",
            "files",
            "a file's sha256 is that of its document",
            holds("sha256_matches"),
            ("path", "sha256"),
            repair=_INGEST,
        ),
        Rule(
            "nodes.func_document_exists",
            "funcs",
            "a function's document is stored",
            holds("document_exists"),
            ("document",),
            repair=_INGEST,
        ),
        Rule(
            "nodes.func_span_inside_document",
            "funcs",
            "a function's span lies inside its document",
            holds("span_inside_document"),
            ("document", "span", "document_length"),
            repair=_INGEST,
        ),
    ),
)
