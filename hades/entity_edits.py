"""Edits of entities by curators, laid over what the documents say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from hades.ports.services import Embedder
from hades.ports.store import RowStore, Term, scan_rows
from schemas.builds import EditState, EntityEdit
from schemas.catalogue import as_table
from schemas.record import canonical_json, from_rows

# Entities as documents and curators together say them: edits laid over derived rows, the same way
# everywhere. Derived rows are a function of the documents and of the edits that stand (ADR 0005).
# Derivation lays edits over every row; whoever makes or undoes one lays them over that row at once.
# Both call `edited`, so both write the same.
EDITS = "entity_edits"
# in an edited entity's metadata: what the documents say of the columns that were edited
DERIVED = "derived"
NAME = "name"  # `vector_of` of an entity that is placed by its name
CURATED = (
    "name",
    "name_lower",
    "canonical_name",
    "aliases",
    "type",
    "summary",
    "domain",
    "metadata",
)
Row = dict[str, Any]
Edits = Mapping[str, Sequence[EntityEdit]]  # by entity key, in the order in which they count


def standing_edits(
    store: RowStore,
    entities: Sequence[str] | None = None,
) -> dict[str, list[EntityEdit]]:
    """The edits that are applied, of these entities (keys) or of all; of two the one applied later
    comes later.
    """
    where = [Term("state", "==", str(EditState.APPLIED))]
    if entities is not None:
        where.append(Term("entity", "in", sorted(entities)))

    rows = from_rows(EntityEdit, scan_rows(store, EDITS, where=where))
    by_entity: dict[str, list[EntityEdit]] = {}
    for edit in sorted(
        rows,
        key=lambda edit: (edit.applied_at or edit.at, edit.key),
    ):
        by_entity.setdefault(edit.entity, []).append(edit)

    return by_entity


def fingerprint(edits: Edits) -> list[tuple[str, str, str]]:
    """What derivation works from beside the documents; empty when nothing was edited."""
    parts = []
    for entity in sorted(edits):
        for edit in edits[entity]:
            content = canonical_json([edit.fields, edit.applied_at])
            parts.append((edit.key, entity, content))

    return parts


def with_edits(entities: pa.Table, edits: Edits) -> pa.Table:
    """Derived entities, in key order, with the edits laid over those they are of."""
    edited_keys = pa.array(sorted(edits), pa.string())
    has_edits = pc.is_in(entities.column("_key"), value_set=edited_keys)
    rows = entities.filter(has_edits).to_pylist()

    if not rows:
        return entities

    edited_rows = []
    for row in rows:
        edited_rows.append(
            {
                **row,
                **edited(row, edits[row["_key"]]),
            }
        )

    edited_table = pa.Table.from_pylist(edited_rows, schema=entities.schema)
    merged = pa.concat_tables([entities.filter(pc.invert(has_edits)), edited_table])
    return merged.take(pc.sort_indices(merged.column("_key"))).combine_chunks()


def refresh_entities(
    store: RowStore,
    keys: Sequence[str],
    embedder: Embedder | None = None,
) -> int:
    """Bring stored entities to what documents and standing edits say; how many changed.

    A changed name needs a new vector: made here where there is an embedder, else left out until the
    next derivation.
    """
    edits = standing_edits(store, keys)
    columns = ["_key", *CURATED, "vector_of"]
    changed: list[Row] = []

    renamed: list[Row] = []
    for row in store.get("entities", sorted(keys), columns=columns).to_pylist():
        expected = edited(as_derived(row), edits.get(row["_key"], ()))
        if all(expected[name] == row[name] for name in CURATED):
            continue

        changed_row = {"_key": row["_key"], **expected}
        changed.append(changed_row)
        if expected["name"] != row["name"] and row["vector_of"] == NAME:
            renamed.append(changed_row)

    if changed:
        store.patch("entities", as_table("entities", changed))
    if renamed:
        store.patch(
            "entities",
            as_table("entities", _name_vectors(renamed, embedder)),
        )

    return len(changed)


def edited(row: Row, edits: Sequence[EntityEdit]) -> Row:
    """The curated columns of a derived row with edits laid over it, and what they hide kept in its
    metadata.
    """
    derived = {name: row[name] for name in CURATED}

    overrides: Row = {}
    for edit in edits:
        overrides.update(edit.fields)

    curated = {**derived, **overrides}
    if "name" in overrides:
        curated |= {
            "name_lower": curated["name"].lower(),
            "canonical_name": curated["name"],
        }
        former_names = [*row["aliases"], row["name"]]  # texts go on calling it so
        curated["aliases"] = overrides.get("aliases", former_names)

    if "name" in overrides or "aliases" in overrides:
        curated["aliases"] = sorted(set(curated["aliases"]) - {curated["name"]})

    hidden = {}
    for name in CURATED:
        if curated[name] != derived[name]:
            hidden[name] = derived[name]

    if hidden:
        curated["metadata"] = canonical_json(
            {
                **orjson.loads(row["metadata"]),
                DERIVED: hidden,
            }
        )

    return curated


def as_derived(row: Row) -> Row:
    """The curated columns of a stored row as the documents alone have them."""
    metadata = orjson.loads(row["metadata"])
    hidden = metadata.pop(DERIVED, None)
    stored = {name: row[name] for name in CURATED}

    if hidden is None:
        return stored

    return {
        **stored,
        **hidden,
        "metadata": canonical_json(metadata),
    }


def _name_vectors(rows: Sequence[Row], embedder: Embedder | None) -> list[Row]:
    if embedder is None:
        return [
            {
                "_key": row["_key"],
                "embedding": None,
                "embedding_model": None,
            }
            for row in rows
        ]

    vectors = embedder.embed([row["name"] for row in rows])
    tag = embedder.model.tag
    return [
        {
            "_key": row["_key"],
            "embedding": vector.tolist(),
            "embedding_model": tag,
        }
        for row, vector in zip(rows, vectors, strict=True)
    ]
