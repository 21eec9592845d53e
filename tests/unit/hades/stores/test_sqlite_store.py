"""The embedded store's own file: versions, late indexes, locks and damage."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hades.errors import NotProvisioned, StoreBusy, StoreDamaged, StoreError
from hades.ports.store import Direction, Mode, Term
from hades.stores.row_checks import require
from hades.stores.sqlite import lookups, pages
from hades.stores.sqlite.connection import RowCounts
from hades.stores.sqlite.lookups import Registry, lookups_of
from hades.stores.sqlite.store import SqliteStore
from tests.contract.examples import entity, everything, keys, put, relation, table
from tests.patience import examples


@pytest.fixture
def path(tmp_path: Path) -> Path:
    store = SqliteStore.open(tmp_path / "graph.db", Mode.ADMIN)
    store.provision()
    put(store, "entities", entity("a", name="Alpha", summary="first letter"), entity("b", name="Beta"))
    store.close()
    return tmp_path / "graph.db"


def change(path: Path, *statements: str) -> None:
    """Alter the file behind the store's back."""
    with sqlite3.connect(path) as file:
        for statement in statements:
            file.execute(statement)
    file.close()


def test_a_file_that_is_not_there_names_the_next_step(tmp_path: Path) -> None:
    with pytest.raises(NotProvisioned, match="hades provision"):
        SqliteStore.open(tmp_path / "none.db", Mode.READ_WRITE).count("entities")


def test_rows_are_counted_from_the_file_alone(path: Path, tmp_path: Path) -> None:
    count = RowCounts(path)
    assert [count("entities"), count("relations")] == [2, 0]
    store = SqliteStore.open(path, Mode.READ_WRITE)
    put(store, "entities", entity("c", name="Gamma"))
    store.close()
    assert count("entities") == 3


def test_what_is_not_there_cannot_be_counted(path: Path, tmp_path: Path) -> None:
    assert RowCounts(path)("things") is None
    assert RowCounts(tmp_path / "none.db")("entities") is None
    change(path, "DROP TABLE tree")
    assert RowCounts(path)("entities") is None


NODES = [f"n{number}" for number in range(6)]


@pytest.fixture(scope="module")
def two_stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[SqliteStore]]:
    """Two stores of the same nodes."""
    folder = tmp_path_factory.mktemp("two")
    stores = [SqliteStore.open(folder / f"{name}.db", Mode.ADMIN) for name in ("one", "other")]
    for store in stores:
        store.provision()
        put(store, "entities", *map(entity, NODES))
    yield stores
    for store in stores:
        store.close()


@settings(max_examples=examples(12), deadline=None)
@given(st.lists(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(1, 9)), max_size=6), max_size=5))
def test_batches_of_one_call_leave_the_rows_and_look_ups_of_one_call_each(
    two_stores: list[SqliteStore], batches: list[list[tuple[int, ...]]]
) -> None:
    edges = [
        {row["_key"]: row for row in (relation(NODES[tail], NODES[head], weight=w / 10) for tail, head, w in batch)}
        for batch in batches
    ]
    tables = [table("relations", list(rows.values())).to_batches()[0] for rows in edges if rows]
    together, apart = two_stores
    for store in two_stores:
        store.delete("relations", keys=[row["_key"] for row in everything(store, "relations")])
    with together.transaction(["relations"]) as inside:
        inside.upsert("relations", iter(tables))
    for batch in tables:
        apart.upsert("relations", batch)
    assert everything(together, "relations") == everything(apart, "relations")
    ids = [f"entities/{name}" for name in NODES]
    for direction in Direction:
        found = [store.neighbours(ids, direction=direction, fanout=20) for store in two_stores]
        assert found[0].equals(found[1])
    assert together.check() == []


def test_a_file_of_a_newer_version_is_refused(path: Path) -> None:
    change(path, "PRAGMA user_version = 99")
    with pytest.raises(StoreError, match="version 99"):
        SqliteStore.open(path, Mode.ADMIN).provision()


def test_an_index_the_catalogue_gained_is_built_from_the_rows(path: Path) -> None:
    tree = "(SELECT id FROM tree WHERE name = 'entities#name_lower')"
    change(
        path,
        f"DELETE FROM page WHERE tree = {tree}",
        f"DELETE FROM layout WHERE tree = {tree}",
        "DELETE FROM tree WHERE name = 'entities#name_lower'",
    )
    with pytest.raises(NotProvisioned, match="entities#name_lower"):
        SqliteStore.open(path, Mode.READ_WRITE).count("entities")
    store = SqliteStore.open(path, Mode.ADMIN)
    store.provision()
    found = [key for batch in store.scan("entities", where=[Term("name_lower", "==", "beta")]) for key in keys(batch)]
    assert found == ["b"]
    assert store.check() == []


def test_a_full_text_index_the_catalogue_gained_is_built_from_the_rows(path: Path) -> None:
    change(path, "DROP TABLE fts_entities", "DROP TABLE fts_entities_key")
    store = SqliteStore.open(path, Mode.ADMIN)
    store.provision()
    assert keys(store.search("entities", "alphas", limit=3)) == ["a"]


def test_a_writer_that_waits_too_long_says_so(path: Path) -> None:
    holder = SqliteStore.open(path, Mode.READ_WRITE)
    waiting = SqliteStore.open(path, Mode.READ_WRITE, busy_seconds=0.2)
    with holder.transaction(["entities"]), pytest.raises(StoreBusy, match=r"another writer for 0\.2 s"):
        put(waiting, "entities", entity("c"))
    put(waiting, "entities", entity("c"))
    assert waiting.count("entities") == 3


def test_a_file_that_is_no_database_is_damaged(tmp_path: Path) -> None:
    broken = tmp_path / "graph.db"
    broken.write_bytes(b"this is not a database, however long it may be" * 100)
    with pytest.raises(StoreDamaged, match="restore a backup"):
        SqliteStore.open(broken, Mode.READ_WRITE).count("entities")


def test_a_flipped_bit_in_a_page_is_found(path: Path) -> None:
    with sqlite3.connect(path) as file:
        data = bytearray(file.execute("SELECT data FROM page ORDER BY length(data) DESC").fetchone()[0])
        data[len(data) // 2] ^= 1
        file.execute(
            "UPDATE page SET data = ? WHERE length(data) = (SELECT max(length(data)) FROM page)", (bytes(data),)
        )
    file.close()
    assert any("checksum" in problem for problem in SqliteStore.open(path, Mode.READ_WRITE).check())


@pytest.mark.parametrize(
    ("collection", "changed"),
    [
        ("entities", {"name_lower": "gamma", "type": "person"}),
        ("entities", {"frequency": 7}),
        ("relations", {"weight": 0.25}),
        ("relations", {"cost": 3.0}),
        ("relations", {"valid_until": datetime(2024, 1, 1, tzinfo=UTC)}),
        ("relations", {"strength": 0.5}),
    ],
)
def test_look_ups_hold_what_the_rows_say_after_any_patch(path: Path, collection: str, changed: dict[str, Any]) -> None:
    store = SqliteStore.open(path, Mode.ADMIN)
    edge = relation("a", "b")
    put(store, "relations", edge)
    key = {"entities": "a", "relations": edge["_key"]}[collection]
    store.patch(collection, table(collection, [{"_key": key, **changed}]))
    assert store.get(collection, [key], columns=list(changed)).to_pylist() == [{"_key": key, **changed}]
    store.close()
    with sqlite3.connect(path) as file:
        registry, declared = Registry(file), require(collection)
        rows = pa.Table.from_batches(pages.scan(file, registry.rows(declared)))
        for lookup in lookups_of(declared):
            tree = registry.lookup(declared, lookup)
            held = pa.Table.from_batches(pages.scan(file, tree), schema=tree.schema)
            assert held.to_pylist() == lookups.make_entries(tree, declared, lookup, rows).to_pylist()
    file.close()
