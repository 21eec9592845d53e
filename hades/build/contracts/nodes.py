"""Contract nodes: its rules and the rows they read."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hades.build.contracts.columns import (
    Documents,
    Flags,
    Frames,
    Longs,
    Source,
    column,
    flags,
    sha256_matches,
    spans_inside,
    texts_at,
    with_columns,
)
from hades.build.contracts.rule import Contract, Rule, between, holds, matches, occurs_again, one_of, unique
from schemas.catalogue import collection_named
from schemas.nodes import EntityType
from schemas.sources import SourceKind

# Nodes: documents are what their hash says, entities are named and typed, papers and code point at their documents.


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


# The frames of the contract `nodes`.


def node_frames(source: Source) -> Frames:
    """Documents, entities, papers, files and functions with what rules ask of them."""
    documents, left = _documents(source)
    entities, unread = source.read_new("entities", "name", "name_lower", "type", "layer")
    lower = _is_lower(column(entities, "name"), column(entities, "name_lower"))
    left_out = {"documents": left, "entities": unread}
    tables = {"documents": documents, "entities": with_columns(entities, name_lower_matches=lower)}
    known = Documents(source, "documents", "sha256")
    for name, make, columns in (
        ("papers_raw", _papers, ("id",)),
        ("files", _files, ("path", "sha256")),
        ("funcs", _funcs, ("span",)),
    ):
        keyed = source.read_keys(name, ("document", "id") if name == "papers_raw" else ("document",), columns)
        rows = known.rows_of(column(keyed.table, "document"))
        chosen = keyed.is_new | (rows < 0) | known.are_new(rows)
        if name == "papers_raw":
            chosen |= occurs_again([column(keyed.table, "id")])
        tables[name] = make(keyed.take(chosen, "document", *columns), known, rows[chosen])
        left_out[name] = len(chosen) - tables[name].num_rows
    return Frames(tables, left_out=left_out)


def _documents(source: Source) -> tuple[pa.Table, int]:
    """The documents of new parts, and how many the others have.

    Hashed part by part: the texts of a large store do not fit beside each other.
    """
    names = ["_key", "origin", "source", "sha256"]
    declared = collection_named("documents")
    assert declared is not None
    schema = pa.schema([declared.schema.field(name) for name in names])
    parts, sound, left = [], [np.zeros(0, np.bool_)], 0
    known = source.known.get("documents", frozenset())
    for part in source.store.scan_marked("documents", columns=[*names, "text"], known=known):
        if part.batch is None:
            left += part.rows
            continue
        texts, digests = (part.batch.column(name).to_pylist() for name in ("text", "sha256"))
        sound.append(sha256_matches(texts, digests))
        parts.append(part.batch.select(names))
    table = pa.Table.from_batches(parts, schema=schema).combine_chunks()
    return with_columns(table, sha256_matches=np.concatenate(sound)), left


def _is_lower(names: pa.Array, lower: pa.Array) -> Flags:
    """Arrow and Python lower a few letters differently (final sigma, dotted I); where they do, Python's word counts."""
    same = flags(pc.equal(pc.utf8_lower(names), lower))
    for row in np.flatnonzero(~same).tolist():
        name = names[row].as_py()
        same[row] = name is not None and name.lower() == lower[row].as_py()
    return same


def _papers(table: pa.Table, known: Documents, rows: Longs) -> pa.Table:
    return with_columns(table, document_exists=rows >= 0)


def _files(table: pa.Table, known: Documents, rows: Longs) -> pa.Table:
    documents, places = known.take(rows, "sha256")
    expected = texts_at(column(documents, "sha256"), places)
    matches = flags(pc.equal(column(table, "sha256"), expected), missing=True)
    return with_columns(table, document_exists=rows >= 0, sha256_matches=matches)


def _funcs(table: pa.Table, known: Documents, rows: Longs) -> pa.Table:
    lengths = known.lengths_at(rows)
    inside = spans_inside(column(table, "span"), lengths) | (lengths < 0)
    return with_columns(table, document_exists=rows >= 0, document_length=lengths, span_inside_document=inside)
