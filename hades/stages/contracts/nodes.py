"""The frames of the contract `nodes`."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hades.ports.store import RowStore
from hades.stages.contracts.columns import (
    Flags,
    Frames,
    Longs,
    column,
    flags,
    ids,
    place,
    read,
    spans_inside,
    with_columns,
)
from hades.stages.contracts.texts import Documents, sha256_matches
from schemas.catalogue import collection_named


def node_frames(store: RowStore) -> Frames:
    """Documents, entities, papers, files and functions with what rules ask of them."""
    documents, known = _documents(store)
    digests = column(documents, "sha256")
    return Frames(
        {
            "documents": documents,
            "entities": _entities(store),
            "papers_raw": _pointing(store, "papers_raw", known, "id"),
            "files": _files(store, known, digests),
            "funcs": _funcs(store, known),
        }
    )


def _documents(store: RowStore) -> tuple[pa.Table, Documents]:
    """Hashed batch by batch: the texts of a large store do not fit beside each other."""
    names = ["_key", "origin", "source", "sha256"]
    declared = collection_named("documents")
    assert declared is not None
    schema = pa.schema([pa.field(name, declared.schema.field(name).type) for name in names])
    batches, sound, lengths = [], [np.zeros(0, np.bool_)], [np.zeros(0, np.int64)]
    for batch in store.scan("documents", columns=[*names, "text"]):
        texts = batch.column("text")
        sound.append(sha256_matches(texts.to_pylist(), batch.column("sha256").to_pylist()))
        lengths.append(pc.utf8_length(texts).to_numpy(zero_copy_only=False).astype(np.int64))
        batches.append(batch.select(names).cast(schema))
    table = pa.Table.from_batches(batches, schema=schema).combine_chunks()
    known = Documents(ids("documents", column(table, "_key")), np.concatenate(lengths))
    return with_columns(table, sha256_matches=np.concatenate(sound)), known


def _entities(store: RowStore) -> pa.Table:
    table = read(store, "entities", "name", "name_lower", "type", "layer")
    return with_columns(table, name_lower_matches=_is_lower(column(table, "name"), column(table, "name_lower")))


def _is_lower(names: pa.Array, lower: pa.Array) -> Flags:
    """Arrow and Python lower a few letters differently (final sigma, dotted I); where they do, Python's word counts."""
    same = flags(pc.equal(pc.utf8_lower(names), lower))
    for row in np.flatnonzero(~same).tolist():
        name = names[row].as_py()
        same[row] = name is not None and name.lower() == lower[row].as_py()
    return same


def _pointing(store: RowStore, collection: str, known: Documents, *columns: str) -> pa.Table:
    table = read(store, collection, "document", *columns)
    return with_columns(table, document_exists=known.rows_of(column(table, "document")) >= 0)


def _files(store: RowStore, known: Documents, digests: pa.Array) -> pa.Table:
    table = _pointing(store, "files", known, "path", "sha256")
    rows: Longs = place(column(table, "document"), known.ids)
    expected = digests.take(pa.array(rows, mask=rows < 0))
    return with_columns(table, sha256_matches=flags(pc.equal(column(table, "sha256"), expected), missing=True))


def _funcs(store: RowStore, known: Documents) -> pa.Table:
    table = _pointing(store, "funcs", known, "span")
    lengths = known.lengths_of(column(table, "document"))
    inside = spans_inside(column(table, "span"), lengths) | (lengths < 0)
    return with_columns(table, document_length=lengths, span_inside_document=inside)
