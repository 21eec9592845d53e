"""Remove broken rows, run their stages; watch a folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from hades import stage_ledger
from hades.errors import HadesError
from hades.ingest import manifest
from hades.ingest.forget import remove_documents
from hades.ingest.ingest import Ingest
from hades.ingest.phases import Phase
from hades.night.context import BuildContext
from hades.night.contracts.check import check_contracts, find_broken_keys
from hades.night.stage import Night
from hades.night.stages import NIGHT, STAGES, STORE_CONTRACTS
from hades.ports.store import GraphStore
from schemas.catalogue import columns_schema
from schemas.record import JsonObject

# Repair: remove the rows that break a contract, and compute again what they were made from. A stage
# skips itself while its inputs are unchanged, so a damaged row would stay. Here the broken rows are
# removed, the stages that made them forget that they completed, and they run again.
# By contract, the collections whose broken rows go; edges first.
_DELETED: Mapping[str, tuple[str, ...]] = {
    # Documents and what belongs to them are written again from their source.
    "nodes": ("entities",),
    "chunks": ("doc_chunks",),
    "embeddings": ("entities",),
    "edges": ("relations", "mentions", "references", "contains", "imports", "chunk_code_edges"),
    "hierarchy": ("cluster_edges", "clusters"),
    "weights": ("weight_config",),
    "bridges": ("bridge_cache",),
}
_BLANKED = {  # columns that broken rows lose and are given again
    ("embeddings", "doc_chunks"): ("embedding", "token_signs", "embedding_model"),
    ("hierarchy", "entities"): ("cluster_id",),
}
_KEYED_BY_ID = ("vectors", "other_edges")  # frames of several collections


def repair(
    context: BuildContext,
    ingest: Ingest,
    night: Night,
    contracts: Sequence[str] = (),
) -> JsonObject:
    """Compute again what these contracts name as damaged, or what any contract does; then check and
    publish.

    A contract that is named is recomputed even where it holds. The report says how many rows were
    broken and removed, what ran again, and whether every contract holds now.
    """
    unknown = [name for name in contracts if name not in STORE_CONTRACTS]
    if unknown:
        raise HadesError(
            f"there is no contract {', '.join(unknown)} to repair; use {', '.join(STORE_CONTRACTS)}"
        )

    broken = {name: find_broken_keys(context.store, name) for name in contracts or STORE_CONTRACTS}
    chosen = list(contracts) or [name for name, keys in broken.items() if keys]
    counts = {name: sum(map(len, keys.values())) for name, keys in broken.items() if keys}

    if not chosen:
        unchanged = {
            "stages": [],
            "notes": ["every contract holds; nothing was changed"],
        }
        return {
            "contracts": [],
            "broken": counts,
            **unchanged,
            "holds": True,
            "snapshot": "",
        }

    for name in chosen:
        _remove(context.store, name, broken[name])

    notes, stages_run = _run_again(context, ingest, night, chosen)
    outcome = check_contracts(context, STORE_CONTRACTS)
    snapshot = ""

    if outcome.broken_rules:
        notes.append(outcome.message)
    else:
        snapshot = STAGES["released"].run(context, ingest, night)["snapshot"]
        stages_run.append("released")

    holds = not outcome.broken_rules
    return {
        "contracts": chosen,
        "broken": counts,
        "stages": stages_run,
        "notes": notes,
        "holds": holds,
        "snapshot": snapshot,
    }


def _run_again(
    context: BuildContext,
    ingest: Ingest,
    night: Night,
    chosen: Sequence[str],
) -> tuple[list[str], list[str]]:
    """Run every stage from the first one that must, in the order of the night; notes, and which
    ran.
    """
    notes = []
    stages_run = []

    if {"nodes", "chunks"} & set(chosen):
        missing_paths = ingest.rewrite()
        for path in missing_paths:
            notes.append(f"{path} is gone, so its documents could not be read again")

        notes += _drop_lost_documents(context.store)
        stages_run.append("sources")

    ingest.run_from_store([Phase.EMBEDDINGS])
    if {"nodes", "chunks", "embeddings", "edges"} & set(chosen):
        manifest.forget_derived(context.store)
        ingest.run_from_store([Phase.EDGES])
        stages_run += ["embeddings", "edges"]

    forced = Night(
        night.as_of,
        night.began,
        mode="full",
        keep=night.keep,
    )
    for stage in NIGHT:
        if stage.ledger:
            stage.run(
                context,
                ingest,
                forced if set(stage.contracts) & set(chosen) else night,
            )
            stages_run.append(stage.name)

    return notes, stages_run


def _drop_lost_documents(store: GraphStore) -> list[str]:
    """Take out what is left of documents that no source brought back; a note for each."""
    lost = sorted(manifest.documents_with_lost_rows(store, ("documents",)))
    entries = manifest.entries(store, lost)
    remove_documents(store, lost)

    notes = []
    for key, entry in entries.items():
        lost_document = f"{entry.origin} ({key}) is lost and its source is gone"
        notes.append(f"{lost_document}, so what was left of it was removed")

    return notes


def _remove(
    store: GraphStore,
    contract: str,
    broken: Mapping[str, Sequence[str]],
) -> None:
    """Take away what is broken, and let the stage that made it forget that it completed."""
    keys: dict[str, set[str]] = {}
    for frame, names in broken.items():
        for name in names:
            collection, _, key = name.partition("/") if frame in _KEYED_BY_ID else (frame, "", name)
            keys.setdefault(collection, set()).add(key)

    for collection in _DELETED[contract]:
        if collection in keys:
            store.delete(collection, keys=sorted(keys[collection]))

    for (name, collection), columns in _BLANKED.items():
        if name == contract:
            broken_keys = sorted(keys.get(collection, ()))
        else:
            broken_keys = []

        # Some were removed before.
        stored = store.get(collection, broken_keys, columns=["_key"]).column("_key")
        if len(stored):
            fields = columns_schema(collection, columns)
            empty = {}
            for field in fields:
                empty[field.name] = pa.nulls(len(stored), field.type)

            store.patch(collection, pa.table({"_key": stored, **empty}))

    for stage in NIGHT:
        if stage.ledger and contract in stage.contracts:
            stage_ledger.forget(store, stage.ledger)
