"""Small graphs with topics, in a real store, for the bridges stage."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from hades.night.bridges.stage import BridgeRules, bridge
from hades.ports.services import ProgressReport, silent
from hades.ports.store import GraphStore
from hades.stage_ledger import HIERARCHY, WEIGHTS, record
from hades.stores.sqlite.store import SqliteStore
from tests.contract.examples import entity, put, relation
from tests.homes import empty_store
from tests.unit.hades.night.contexts import context_of

NOW = datetime(2026, 3, 1, tzinfo=UTC)
PARAMS = {"algo": "toy", "min_cluster_size": 5, "min_samples": 3, "seed": 42}
RULES = BridgeRules(
    near_pairs=4, far_pairs=2, middles=2, boosts=dict.fromkeys(BridgeRules().boosts, 1.0)
)


def later(days: float) -> datetime:
    """Some days after the first build."""
    return NOW + timedelta(days=days)


def empty(path: Path) -> SqliteStore:
    """A provisioned store whose edges count as weighed."""
    store = empty_store(path)
    record(store, WEIGHTS, "d", "w1")
    return store


def place(store: GraphStore, **topics: str) -> None:
    """Topics with their entities, given as `topic="a b c"`."""
    put(
        store,
        "clusters",
        *({"_key": topic, "level": 1, "cluster_params": PARAMS} for topic in topics),
    )
    put(
        store,
        "entities",
        *(entity(key, cluster_id=topic) for topic, keys in topics.items() for key in keys.split()),
    )


def join(store: GraphStore, *edges: str, **fields: Any) -> list[str]:
    """Relations given as `a b .5` or `a b .5 coref`; their `_id`s."""
    rows = [
        relation(tail, head, *kind, weight=float(weight), **fields)
        for tail, head, weight, *kind in (edge.split() for edge in edges)
    ]
    put(store, "relations", *rows)
    return [f"relations/{row['_key']}" for row in rows]


def build(
    store: GraphStore,
    inputs: str = "1",
    moved: Sequence[str] = (),
    progress: ProgressReport = silent,
    **options: Any,
) -> SimpleNamespace:
    """The stage with the rules of these tests, after topics and weights of these inputs."""
    record(store, HIERARCHY, "d", inputs, report={"moving": [{"cluster": one} for one in moved]})
    record(store, WEIGHTS, "d", f"w{inputs}")
    return SimpleNamespace(
        **bridge(context_of(store, progress=progress), **{"as_of": NOW, "rules": RULES, **options})
    )


def cached(store: GraphStore) -> dict[str, dict[str, Any]]:
    """Rows of the cache by key."""
    return {row["_key"]: row for batch in store.scan("bridge_cache") for row in batch.to_pylist()}


def walks(store: GraphStore) -> list[str]:
    """Nodes of the cached bridges as `a>b>c`, sorted."""
    rows = cached(store).values()
    return sorted(">".join(node.removeprefix("entities/") for node in row["nodes"]) for row in rows)


def scatter(
    store: GraphStore, seed: int, *, topics: int = 6, members: int = 5, edges: int = 90
) -> None:
    """A random graph: entities t0e0, t0e1, ... and relations of various weights between them."""
    chance = np.random.default_rng(seed)
    names = {
        f"t{topic}": " ".join(f"t{topic}e{number}" for number in range(members))
        for topic in range(topics)
    }
    place(store, **names)
    every = [key for keys in names.values() for key in keys.split()]
    pairs = {tuple(chance.choice(len(every), 2, replace=False).tolist()) for _ in range(edges)}
    join(store, *(f"{every[a]} {every[b]} {chance.integers(1, 10) / 10}" for a, b in sorted(pairs)))


def shake(store: GraphStore, seed: int, changes: int) -> None:
    """Change, remove and add a few relations, and move an entity."""
    chance = np.random.default_rng(seed)
    rows = [row for batch in store.scan("relations") for row in batch.to_pylist()]
    for number in range(changes):
        row = rows[int(chance.integers(len(rows)))]
        kind = int(chance.integers(3))
        if kind == 0:
            put(store, "relations", {**row, "weight": int(chance.integers(1, 10)) / 10})
        elif kind == 1:
            store.delete("relations", keys=[row["_key"]])
        else:
            tail, head = (row[end].removeprefix("entities/") for end in ("_from", "_to"))
            join(store, f"{head} {tail} .{int(chance.integers(1, 10))} cites")
        if number == 3:
            put(store, "entities", entity(row["_from"].removeprefix("entities/"), cluster_id="t0"))
