"""Remove broken rows, run their stages; watch a folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa

from hades import build_state
from hades.build.context import BuildContext
from hades.build.contracts.check import check_contracts, find_broken_keys
from hades.build.night import NIGHT, STORE_CONTRACTS, stage_named
from hades.build.stage import Night
from hades.errors import HadesError
from hades.ingest import manifest
from hades.ingest.ingest import Ingest
from hades.ingest.phases import Phase
from hades.ports.store import GraphStore
from schemas.catalogue import collection_named

# Repair: remove the rows that break a contract, and compute again what they were made from. A stage skips itself
# while its inputs are unchanged, so a damaged row would stay. Here the broken rows are removed, the stages that
# made them forget that they completed, and they run again.


_STAGES = {"hierarchy": "topics", "weights": "weights", "bridges": "bridges"}
Broken = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Repair:
    """What was broken, how many rows were removed, what ran again, and whether every contract holds now."""

    contracts: list[str]
    broken: dict[str, int]
    stages: list[str]
    notes: list[str]
    holds: bool
    snapshot: str = ""

    def as_dict(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)


def repair(context: BuildContext, ingest: Ingest, night: Night, contracts: Sequence[str] = ()) -> Repair:
    """Compute again what these contracts name as damaged, or what any contract does; then check and publish.

    A contract that is named is recomputed even where it holds.
    """
    if unknown := [name for name in contracts if name not in STORE_CONTRACTS]:
        raise HadesError(f"there is no contract {', '.join(unknown)} to repair; use {', '.join(STORE_CONTRACTS)}")
    broken = {name: find_broken_keys(context.store, name) for name in contracts or STORE_CONTRACTS}
    chosen = list(contracts) or [name for name, keys in broken.items() if keys]
    counts = {name: sum(map(len, keys.values())) for name, keys in broken.items() if keys}
    if not chosen:
        return Repair([], counts, [], ["every contract holds; nothing was changed"], True)
    for name in chosen:
        _REMOVALS[name](context.store, broken[name])
    notes, ran = _run_again(context, ingest, night, chosen)
    outcome = check_contracts(context, STORE_CONTRACTS)
    if outcome.is_broken:
        return Repair(chosen, counts, ran, [*notes, outcome.message], False)
    released = stage_named("released").run(context, ingest, night)
    return Repair(chosen, counts, [*ran, "released"], notes, True, released["snapshot"])


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
            forces = any(_STAGES.get(name) == stage.name for name in chosen)
            stage.run(context, ingest, forced if forces else night)
            ran.append(stage.name)
    return notes, ran


def _remove_nodes(store: GraphStore, broken: Broken) -> None:
    """Entities are derived again whole; documents and what belongs to them are written again from their source."""
    _delete(store, "entities", broken.get("entities", ()))


def _remove_chunks(store: GraphStore, broken: Broken) -> None:
    _delete(store, "doc_chunks", [key for keys in broken.values() for key in keys])


def _remove_vectors(store: GraphStore, broken: Broken) -> None:
    """Chunks lose their vector and are embedded again; entities are derived again whole."""
    by_collection = _by_collection(broken.get("vectors", ()))
    _delete(store, "entities", [*by_collection.get("entities", ()), *broken.get("entities", ())])
    _blank(store, "doc_chunks", by_collection.get("doc_chunks", ()), "embedding", "embedding_model")


def _remove_edges(store: GraphStore, broken: Broken) -> None:
    for collection in ("relations", "mentions"):
        _delete(store, collection, broken.get(collection, ()))
    for collection, keys in _by_collection(broken.get("other_edges", ())).items():
        _delete(store, collection, keys)


def _remove_topics(store: GraphStore, broken: Broken) -> None:
    for collection in ("cluster_edges", "clusters"):
        _delete(store, collection, broken.get(collection, ()))
    _blank(store, "entities", broken.get("entities", ()), "cluster_id")
    build_state.forget(store, build_state.HIERARCHY)


def _remove_weights(store: GraphStore, broken: Broken) -> None:
    """A row of the configuration that is broken goes back to the settings; weights are computed again."""
    _delete(store, "weight_config", broken.get("weight_config", ()))
    build_state.forget(store, build_state.WEIGHTS)


def _remove_bridges(store: GraphStore, broken: Broken) -> None:
    _delete(store, "bridge_cache", broken.get("bridge_cache", ()))
    build_state.forget(store, build_state.BRIDGES)


_REMOVALS: Mapping[str, Callable[[GraphStore, Broken], None]] = {
    "nodes": _remove_nodes,
    "chunks": _remove_chunks,
    "embeddings": _remove_vectors,
    "edges": _remove_edges,
    "hierarchy": _remove_topics,
    "weights": _remove_weights,
    "bridges": _remove_bridges,
}


def _delete(store: GraphStore, collection: str, keys: Sequence[str]) -> None:
    if keys:
        store.delete(collection, keys=sorted(set(keys)))


def _blank(store: GraphStore, collection: str, keys: Sequence[str], *columns: str) -> None:
    declared = collection_named(collection)
    assert declared is not None
    held = store.get(collection, list(keys), columns=["_key"]).column("_key").to_pylist()  # some were removed before
    if held:
        empty = {name: pa.nulls(len(held), declared.schema.field(name).type) for name in columns}
        store.patch(collection, pa.table({"_key": held, **empty}))


def _by_collection(identifiers: Sequence[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for identifier in identifiers:
        collection, _, key = identifier.partition("/")
        found.setdefault(collection, []).append(key)
    return found
