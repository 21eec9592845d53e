"""The frames of the contract `nodes`."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hades.stages.contracts.columns import Flags, Frames, Longs, column, flags, spans_inside, texts_at, with_columns
from hades.stages.contracts.source import Source
from hades.stages.contracts.texts import Documents, sha256_matches
from schemas.catalogue import collection_named
from schemas.contracts.evaluate import occurs_again


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
