"""Entities as documents and curators together say them: edits laid over derived rows, the same way everywhere.

Derived rows are a function of the documents and of the edits that stand (ADR 0005). Derivation lays edits over every
row; whoever makes or undoes one lays them over that row at once. Both call `edited`, so both write the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from hades.ports.store import RowStore, Term
from hades.ports.text import Embedder
from schemas.catalogue import collection_named
from schemas.curation import EditState, EntityEdit
from schemas.record import canonical_json

EDITS = "entity_edits"
DERIVED = "derived"  # in an edited entity's metadata: what the documents say of the columns that were edited
NAME = "name"  # `vector_of` of an entity that is placed by its name
CURATED = ("name", "name_lower", "canonical_name", "aliases", "type", "summary", "domain", "metadata")

Row = dict[str, Any]
Edits = Mapping[str, Sequence[EntityEdit]]  # by entity key, in the order in which they count


def standing_edits(store: RowStore, entities: Sequence[str] | None = None) -> dict[str, list[EntityEdit]]:
    """The edits that are applied, of these entities (keys) or of all; of two the one applied later comes later."""
    where = [Term("state", "==", str(EditState.APPLIED))]
    if entities is not None:
        where.append(Term("entity", "in", sorted(entities)))
    rows = [read_edit(row) for batch in store.scan(EDITS, where=where) for row in batch.to_pylist()]
    found: dict[str, list[EntityEdit]] = {}
    for edit in sorted(rows, key=lambda edit: (edit.applied_at or edit.at, edit.key)):
        found.setdefault(edit.entity, []).append(edit)
    return found


def read_edit(row: Row) -> EntityEdit:
    """An edit as the store holds it."""
    return EntityEdit.model_validate({**row, "fields": orjson.loads(row["fields"])})


def fingerprint(edits: Edits) -> list[tuple[str, str, str]]:
    """What derivation works from beside the documents; empty when nothing was edited."""
    return [
        (edit.key, key, canonical_json([edit.fields, edit.applied_at])) for key in sorted(edits) for edit in edits[key]
    ]


def with_edits(entities: pa.Table, edits: Edits) -> pa.Table:
    """Derived entities, in key order, with the edits laid over those they are of."""
    touched = pc.is_in(entities.column("_key"), value_set=pa.array(sorted(edits), pa.string()))
    rows = entities.filter(touched).to_pylist()
    if not rows:
        return entities
    laid = pa.Table.from_pylist([{**row, **edited(row, edits[row["_key"]])} for row in rows], schema=entities.schema)
    joined = pa.concat_tables([entities.filter(pc.invert(touched)), laid])
    return joined.take(pc.sort_indices(joined.column("_key"))).combine_chunks()


def refresh_entities(store: RowStore, keys: Sequence[str], embedder: Embedder | None = None) -> int:
    """Bring stored entities to what documents and standing edits say; how many changed.

    A changed name needs a new vector: made here where there is an embedder, else left out until the next derivation.
    """
    edits = standing_edits(store, keys)
    columns = ["_key", *CURATED, "vector_of"]
    changed: list[Row] = []
    renamed: list[Row] = []
    for row in store.get("entities", sorted(keys), columns=columns).to_pylist():
        wanted = edited(as_derived(row), edits.get(row["_key"], ()))
        if any(wanted[name] != row[name] for name in CURATED):
            changed.append({"_key": row["_key"], **wanted})
            if wanted["name"] != row["name"] and row["vector_of"] == NAME:
                renamed.append({"_key": row["_key"], **wanted})
    if changed:
        store.patch("entities", _table(changed))
    if renamed:
        store.patch("entities", _table(_vectors(renamed, embedder)))
    return len(changed)


def edited(row: Row, edits: Sequence[EntityEdit]) -> Row:
    """The curated columns of a derived row with edits laid over it, and what they hide kept in its metadata."""
    derived = {name: row[name] for name in CURATED}
    said: Row = {}
    for edit in edits:
        said.update(edit.fields)
    laid = {**derived, **said}
    if "name" in said:
        laid |= {"name_lower": laid["name"].lower(), "canonical_name": laid["name"]}
        laid["aliases"] = said.get("aliases", [*row["aliases"], row["name"]])  # texts go on calling it so
    if "name" in said or "aliases" in said:
        laid["aliases"] = sorted(set(laid["aliases"]) - {laid["name"]})
    hidden = {name: derived[name] for name in CURATED if laid[name] != derived[name]}
    if hidden:
        laid["metadata"] = canonical_json({**orjson.loads(row["metadata"]), DERIVED: hidden})
    return laid


def as_derived(row: Row) -> Row:
    """The curated columns of a stored row as the documents alone have them."""
    metadata = orjson.loads(row["metadata"])
    hidden = metadata.pop(DERIVED, None)
    plain = {name: row[name] for name in CURATED}
    return plain if hidden is None else {**plain, **hidden, "metadata": canonical_json(metadata)}


def _vectors(rows: Sequence[Row], embedder: Embedder | None) -> list[Row]:
    if embedder is None:
        return [{"_key": row["_key"], "embedding": None, "embedding_model": None} for row in rows]
    made = embedder.embed([row["name"] for row in rows])
    tag = embedder.model.tag
    return [
        {"_key": row["_key"], "embedding": vector.tolist(), "embedding_model": tag}
        for row, vector in zip(rows, made, strict=True)
    ]


def _table(rows: Sequence[Row]) -> pa.Table:
    declared = collection_named("entities")
    assert declared is not None
    return pa.Table.from_pylist(
        list(rows), schema=pa.schema([pa.field(name, declared.schema.field(name).type) for name in rows[0]])
    )
