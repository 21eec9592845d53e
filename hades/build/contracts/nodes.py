"""The contract `nodes`: documents are what their hash says, entities are named and typed, code points at documents."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hades.build.columns import (
    Flags,
    Frames,
    Longs,
    at,
    column,
    count_characters,
    flags,
    ids,
    place,
    read,
    sha256_matches,
    spans_inside,
    texts_at,
    with_columns,
)
from hades.build.context import schema_of
from hades.build.contracts.rule import between, contract, holds, matches, one_of, unique
from hades.ports.store import RowStore
from schemas.nodes import EntityType
from schemas.sources import SourceKind

# fmt: off
CONTRACT = contract(
    "nodes",
    "what was read: documents, entities, papers, files and functions",
    "run `hades repair nodes`",
    {
        "documents": [
            ("document_has_origin", "a document names the id it came in with", matches("origin", r"\S")),
            ("document_source_known", "a document comes from a known kind of source",
             one_of("source", [str(kind) for kind in SourceKind])),
            ("document_sha256_of_text", "a document's sha256 is that of its text", holds("sha256_matches"), "sha256"),
        ],
        "entities": [
            ("entity_has_name", "an entity has a name", matches("name", r"\S")),
            ("entity_type_known", "an entity is a paper, concept, method, person or code symbol",
             one_of("type", [str(kind) for kind in EntityType])),
            ("entity_name_lower", "name_lower is the name in lower case",
             holds("name_lower_matches"), "name", "name_lower"),
            ("entity_layer_zero", "an entity stands in layer 0", between("layer", 0, 0)),
        ],
        "papers_raw": [
            ("paper_id_unique", "an arXiv id stands once", unique("id")),
            ("paper_document_exists", "a paper's document is stored", holds("document_exists"), "document"),
        ],
        "files": [
            ("file_document_exists", "a file's document is stored", holds("document_exists"), "document"),
            ("file_sha256_of_document", "a file's sha256 is that of its document",
             holds("sha256_matches"), "path", "sha256"),
        ],
        "funcs": [
            ("func_document_exists", "a function's document is stored", holds("document_exists"), "document"),
            ("func_span_inside_document", "a function's span lies inside its document",
             holds("span_inside_document"), "document", "span", "document_length"),
        ],
    },
)
# fmt: on


def node_frames(store: RowStore) -> Frames:
    """Documents, entities, papers, files and functions with what rules ask of them."""
    documents, lengths = _documents(store)
    stored = ids("documents", column(documents, "_key"))
    entities = read(store, "entities", "name", "name_lower", "type", "layer")
    lower = _is_lower(column(entities, "name"), column(entities, "name_lower"))
    papers, files, funcs = (
        read(store, name, "document", *columns)
        for name, columns in (("papers_raw", ("id",)), ("files", ("path", "sha256")), ("funcs", ("span",)))
    )
    of_paper, of_file, of_func = (place(column(table, "document"), stored) for table in (papers, files, funcs))
    expected = texts_at(column(documents, "sha256"), of_file)
    inside = at(lengths, of_func, -1)
    return Frames(
        {
            "documents": documents,
            "entities": with_columns(entities, name_lower_matches=lower),
            "papers_raw": with_columns(papers, document_exists=of_paper >= 0),
            "files": with_columns(
                files,
                document_exists=of_file >= 0,
                sha256_matches=flags(pc.equal(column(files, "sha256"), expected), missing=True),
            ),
            "funcs": with_columns(
                funcs,
                document_exists=of_func >= 0,
                document_length=inside,
                span_inside_document=spans_inside(column(funcs, "span"), inside) | (inside < 0),
            ),
        }
    )


def _documents(store: RowStore) -> tuple[pa.Table, Longs]:
    """Documents and how many characters each has; hashed part by part, as their texts may not fit beside each other."""
    schema = schema_of("documents", ("_key", "origin", "source", "sha256"))
    parts, sound, lengths = [], [np.zeros(0, np.bool_)], [np.zeros(0, np.int64)]
    for batch in store.scan("documents", columns=[*schema.names, "text"]):
        sound.append(sha256_matches(*(batch.column(name).to_pylist() for name in ("text", "sha256"))))
        lengths.append(count_characters(batch.column("text")))
        parts.append(batch.select(schema.names))
    table = pa.Table.from_batches(parts, schema=schema).combine_chunks()
    return with_columns(table, sha256_matches=np.concatenate(sound)), np.concatenate(lengths)


def _is_lower(names: pa.Array, lower: pa.Array) -> Flags:
    """Arrow and Python lower a few letters differently (final sigma, dotted I); where they do, Python's word counts."""
    same = flags(pc.equal(pc.utf8_lower(names), lower))
    for row in np.flatnonzero(~same).tolist():
        name = names[row].as_py()
        same[row] = name is not None and name.lower() == lower[row].as_py()
    return same
