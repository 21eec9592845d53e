"""What one build leaves for the next: ledger, edits, ranker file."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Mapping, Sequence
from datetime import datetime
from io import BytesIO
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from hades.files import write_whole
from hades.ports.services import Embedder
from hades.ports.store import RowStore, Term, scan_rows, scan_values
from models.ranker.infer import BadModel, RankerModel, pack, unpack
from schemas.builds import EditState, EntityEdit, StageRecord
from schemas.catalogue import as_table
from schemas.record import canonical_json, from_rows, to_table

# The ledger of stages: a stage whose inputs hash to what its record says has nothing to do. A
# record is written in the transaction that writes the stage's rows: a stage that was killed has not
# happened, and the next build goes on from the last one that has.

HIERARCHY = "hierarchy"
WEIGHTS = "weights"
BRIDGES = "bridges"


def complete(store: RowStore, stage: str) -> StageRecord | None:
    """The last completion of a stage, or None when it never completed."""
    records = from_rows(StageRecord, store.get("build_stages", [stage]).to_pylist())
    return records[0] if records else None


def record(
    store: RowStore,
    stage: str,
    digest: str,
    generation: str = "",
    as_of: datetime | None = None,
    report: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """Say that a stage completed; call it inside the stage's transaction, which names
    `build_stages`.
    """
    completion = StageRecord(
        key=stage,
        stage=stage,
        digest=digest,
        generation=generation,
        as_of=as_of,
        report=dict(report),
    )
    store.upsert("build_stages", to_table(StageRecord, [completion]))


def forget(store: RowStore, stage: str) -> None:
    """Let the next build do a stage again."""
    store.delete("build_stages", keys=[stage])


def reopen(store: RowStore) -> None:
    """Let the next build do every stage again, from what each left: for whoever took away rows that
    stages wrote.
    """
    keys = list(scan_values(store, "build_stages", "_key"))
    if keys:
        store.patch("build_stages", pa.table({"_key": keys, "digest": [""] * len(keys)}))


def digest_of(*parts: object) -> str:
    """One hash over several things."""
    return hashlib.sha256(canonical_json(list(parts)).encode()).hexdigest()


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
    store: RowStore, entities: Sequence[str] | None = None
) -> dict[str, list[EntityEdit]]:
    """The edits that are applied, of these entities (keys) or of all; of two the one applied later
    comes later.
    """
    where = [Term("state", "==", str(EditState.APPLIED))]
    if entities is not None:
        where.append(Term("entity", "in", sorted(entities)))
    rows = from_rows(EntityEdit, scan_rows(store, EDITS, where=where))
    by_entity: dict[str, list[EntityEdit]] = {}
    for edit in sorted(rows, key=lambda edit: (edit.applied_at or edit.at, edit.key)):
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
    edited_rows = [{**row, **edited(row, edits[row["_key"]])} for row in rows]
    edited_table = pa.Table.from_pylist(edited_rows, schema=entities.schema)
    merged = pa.concat_tables([entities.filter(pc.invert(has_edits)), edited_table])
    return merged.take(pc.sort_indices(merged.column("_key"))).combine_chunks()


def refresh_entities(store: RowStore, keys: Sequence[str], embedder: Embedder | None = None) -> int:
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
        store.patch("entities", as_table("entities", _name_vectors(renamed, embedder)))
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
        curated |= {"name_lower": curated["name"].lower(), "canonical_name": curated["name"]}
        former_names = [*row["aliases"], row["name"]]  # texts go on calling it so
        curated["aliases"] = overrides.get("aliases", former_names)
    if "name" in overrides or "aliases" in overrides:
        curated["aliases"] = sorted(set(curated["aliases"]) - {curated["name"]})
    hidden = {name: derived[name] for name in CURATED if curated[name] != derived[name]}
    if hidden:
        curated["metadata"] = canonical_json({**orjson.loads(row["metadata"]), DERIVED: hidden})
    return curated


def as_derived(row: Row) -> Row:
    """The curated columns of a stored row as the documents alone have them."""
    metadata = orjson.loads(row["metadata"])
    hidden = metadata.pop(DERIVED, None)
    stored = {name: row[name] for name in CURATED}
    if hidden is None:
        return stored
    return {**stored, **hidden, "metadata": canonical_json(metadata)}


def _name_vectors(rows: Sequence[Row], embedder: Embedder | None) -> list[Row]:
    if embedder is None:
        return [{"_key": row["_key"], "embedding": None, "embedding_model": None} for row in rows]
    vectors = embedder.embed([row["name"] for row in rows])
    tag = embedder.model.tag
    return [
        {"_key": row["_key"], "embedding": vector.tolist(), "embedding_model": tag}
        for row, vector in zip(rows, vectors, strict=True)
    ]


# A ranker as a file under HADES_HOME, named by the hash of what it holds: what publishing puts into
# a snapshot. Plain arrays and JSON, no pickle: reading an old or a foreign one runs nobody's code.
# Equal models give equal bytes.
FOLDER = "ranker"


def generation_of(model: RankerModel) -> str:
    """The hash of everything a model is."""
    signature, numbers = pack(model)
    return hashlib.sha256(signature + b"\0" + numbers.tobytes()).hexdigest()


def write_model(path: Path, model: RankerModel) -> None:
    """Put a model into a file."""
    signature, numbers = pack(model)
    content = BytesIO()
    np.savez(content, signature=np.frombuffer(signature, np.uint8), numbers=numbers)
    write_whole(path, content.getvalue())


def read_model(path: Path) -> RankerModel:
    """The model of a file; `BadModel` names the file and what is wrong with it."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return unpack(arrays["signature"].tobytes(), arrays["numbers"])
    except FileNotFoundError as error:
        raise BadModel(f"{path} is not there; train again with `hades run train_ranker`") from error
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise BadModel(
            f"{path} cannot be used: {error}; train again with `hades run train_ranker`"
        ) from error


def keep(home: Path, model: RankerModel) -> str:
    """Keep a model where publishing finds it; its generation."""
    generation = generation_of(model)
    write_model(path_of(home, generation), model)
    return generation


def kept(home: Path, generation: str) -> RankerModel:
    """The model of a generation; one whose bytes are not those of its name is refused."""
    model = read_model(path_of(home, generation))
    if generation_of(model) != generation:
        raise BadModel(f"{path_of(home, generation)} was changed after it was written; train again")
    return model


def path_of(home: Path, generation: str) -> Path:
    """Where a generation is kept."""
    return home / FOLDER / f"{generation}.npz"
