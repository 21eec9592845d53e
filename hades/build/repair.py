"""Remove broken rows, run their stages; watch a folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from hades import build_state
from hades.build.context import BuildContext
from hades.build.contracts.check import check_contracts, find_broken_keys
from hades.build.night import NIGHT, STAGES, STORE_CONTRACTS
from hades.build.stage import Night
from hades.errors import HadesError
from hades.ingest import manifest
from hades.ingest.ingest import Ingest
from hades.ingest.phases import Phase
from hades.ports.store import GraphStore
from schemas.catalogue import columns_schema

# Repair: remove the rows that break a contract, and compute again what they were made from. A stage skips itself
# while its inputs are unchanged, so a damaged row would stay. Here the broken rows are removed, the stages that
# made them forget that they completed, and they run again.
_DELETED: Mapping[str, tuple[str, ...]] = {  # by contract, the collections whose broken rows go; edges first
    "nodes": ("entities",),  # documents and what belongs to them are written again from their source
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
_STAGE_OF = {contract: stage for stage in NIGHT if stage.ledger for contract in stage.contracts}


def repair(context: BuildContext, ingest: Ingest, night: Night, contracts: Sequence[str] = ()) -> dict[str, Any]:
    """Compute again what these contracts name as damaged, or what any contract does; then check and publish.

    A contract that is named is recomputed even where it holds. The report says how many rows were broken and removed,
    what ran again, and whether every contract holds now.
    """
    if unknown := [name for name in contracts if name not in STORE_CONTRACTS]:
        raise HadesError(f"there is no contract {', '.join(unknown)} to repair; use {', '.join(STORE_CONTRACTS)}")
    broken = {name: find_broken_keys(context.store, name) for name in contracts or STORE_CONTRACTS}
    chosen = list(contracts) or [name for name, keys in broken.items() if keys]
    counts = {name: sum(map(len, keys.values())) for name, keys in broken.items() if keys}
    if not chosen:
        told = {"stages": [], "notes": ["every contract holds; nothing was changed"]}
        return {"contracts": [], "broken": counts, **told, "holds": True, "snapshot": ""}
    for name in chosen:
        _remove(context.store, name, broken[name])
    notes, ran = _run_again(context, ingest, night, chosen)
    outcome, snapshot = check_contracts(context, STORE_CONTRACTS), ""
    if outcome.broken_rules:
        notes.append(outcome.message)
    else:
        snapshot = STAGES["released"].run(context, ingest, night)["snapshot"]
        ran.append("released")
    holds = not outcome.broken_rules
    return {"contracts": chosen, "broken": counts, "stages": ran, "notes": notes, "holds": holds, "snapshot": snapshot}


def _run_again(
    context: BuildContext, ingest: Ingest, night: Night, chosen: Sequence[str]
) -> tuple[list[str], list[str]]:
    """Run every stage from the first one that must, in the order of the night; notes, and which ran."""
    notes, ran = [], []
    if {"nodes", "chunks"} & set(chosen):
        gone = ingest.rewrite()
        notes += [f"{path} is gone, so its documents could not be read again" for path in gone]
        ran.append("sources")
    ingest.run_from_store([Phase.EMBEDDINGS])
    if {"nodes", "chunks", "embeddings", "edges"} & set(chosen):
        manifest.forget_derived(context.store)
        ingest.run_from_store([Phase.EDGES])
        ran += ["embeddings", "edges"]
    forced = Night(night.as_of, night.began, mode="full", keep=night.keep)
    for stage in NIGHT:
        if stage.ledger:
            stage.run(context, ingest, forced if set(stage.contracts) & set(chosen) else night)
            ran.append(stage.name)
    return notes, ran


def _remove(store: GraphStore, contract: str, broken: Mapping[str, Sequence[str]]) -> None:
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
        wanted = sorted(keys.get(collection, ())) if name == contract else []
        found = store.get(collection, wanted, columns=["_key"]).column("_key").to_pylist()  # some were removed before
        if found:
            empty = {field.name: pa.nulls(len(found), field.type) for field in columns_schema(collection, columns)}
            store.patch(collection, pa.table({"_key": found, **empty}))
    if contract in _STAGE_OF:
        build_state.forget(store, _STAGE_OF[contract].ledger)
