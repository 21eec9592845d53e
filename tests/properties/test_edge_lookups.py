"""Edges by node hold what the rows say after any sequence of writes, also where weights are set in their pages."""

from __future__ import annotations

import sqlite3
import tempfile
from pathlib import Path

import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hades.ports.store import Mode
from hades.stores.row_checks import require
from hades.stores.sqlite import lookups, pages
from hades.stores.sqlite.lookups import Registry, lookups_of
from hades.stores.sqlite.store import SqliteStore
from tests.contract.examples import entity, put, relation, table
from tests.patience import examples

NODES = [f"n{number:02}" for number in range(20)]
PAIRS = [(tail, head) for tail in NODES for head in NODES if tail != head]
weights = st.none() | st.floats(0.0, 1.0)
some = st.builds(
    lambda first, step, many: PAIRS[first::step][:many],
    st.integers(0, 30),
    st.integers(1, 9),
    st.sampled_from((1, 3, 60, 200)),
)
steps = st.lists(
    st.tuples(st.just("put"), some, weights, st.sampled_from(("related_to", "extends")))
    | st.tuples(st.just("patch"), some, weights, weights)
    | st.tuples(st.just("delete"), some, st.none(), st.none()),
    min_size=2,
    max_size=6,
)


@settings(max_examples=examples(6), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(history=steps, lost=st.none() | st.integers(1, 4))
def test_look_ups_by_node_follow_every_write(history: list, lost: int | None) -> None:
    """Also those of edges whose entries were lost before step `lost`: they are written again with the edge."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "graph.db"
        store = SqliteStore.open(path, Mode.ADMIN)
        store.provision()
        put(store, "entities", *(entity(name) for name in NODES))
        for step, (action, pairs, one, other) in enumerate([("put", PAIRS[:150], 0.5, "related_to"), *history]):
            if step == lost:
                _lose_lookups(path)
                put(store, "relations", *_stored(store, weight=0.125))
            edges = [relation(*pair, weight=one) for pair in pairs]
            if action == "put":
                put(store, "relations", *({**edge, "type": other} for edge in edges))
            elif action == "delete":
                store.delete("relations", keys=[edge["_key"] for edge in edges])
            else:
                held = {row["_key"] for row in _stored(store)}
                rows = [{"_key": edge["_key"], "weight": one, "cost": other} for edge in edges if edge["_key"] in held]
                if rows:
                    store.patch("relations", table("relations", rows))
            _check(path)
        assert store.check() == []


def _stored(store: SqliteStore, **changed: object) -> list[dict]:
    return [{**row, **changed} for batch in store.scan("relations") for row in batch.to_pylist()]


def _lose_lookups(path: Path) -> None:
    with sqlite3.connect(path) as file:
        file.execute(
            "DELETE FROM page WHERE tree IN (SELECT id FROM tree WHERE name IN ('relations#from', 'relations#to'))"
        )
        file.execute("UPDATE tree SET rows = 0 WHERE name IN ('relations#from', 'relations#to')")
    file.close()


def _check(path: Path) -> None:
    with sqlite3.connect(path) as file:
        registry, declared = Registry(file), require("relations")
        rows = registry.rows(declared)
        stored = pa.Table.from_batches(pages.scan(file, rows), schema=rows.schema)
        for lookup in lookups_of(declared):
            tree = registry.lookup(declared, lookup)
            held = pa.Table.from_batches(pages.scan(file, tree), schema=tree.schema)
            assert held.to_pylist() == lookups.make_entries(tree, declared, lookup, stored).to_pylist()
    file.close()
