"""The embedded store's own file: versions, late indexes, locks and damage."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from hades.errors import NotProvisioned, StoreBusy, StoreDamaged, StoreError
from hades.ports.store import Mode, Term
from hades.stores.sqlite.store import SqliteStore
from tests.contract.examples import entity, everything, keys, put, relation, table
from tests.homes import empty_store


@pytest.fixture
def path(tmp_path: Path) -> Path:
    store = empty_store(tmp_path / "graph.db")
    put(
        store,
        "entities",
        entity("a", name="Alpha", summary="first letter"),
        entity("b", name="Beta"),
    )
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


@pytest.mark.parametrize(("version", "step"), [(99, "upgrade HADES"), (3, "build again")])
def test_a_file_of_another_version_is_refused(path: Path, version: int, step: str) -> None:
    change(path, f"PRAGMA user_version = {version}")
    with pytest.raises(StoreError, match=f"version {version}, .*{step}"):
        SqliteStore.open(path, Mode.ADMIN).provision()
    with pytest.raises(StoreError, match=f"version {version}"):
        SqliteStore.open(path, Mode.READ_ONLY).counts()


def test_a_column_and_an_index_the_catalogue_gained_are_added(path: Path) -> None:
    change(
        path,
        "DROP INDEX entities_by_cluster_id",
        "ALTER TABLE entities DROP COLUMN cluster_id",
        "ALTER TABLE entities DROP COLUMN frequency",
    )
    with pytest.raises(NotProvisioned, match="entities lacks cluster_id, frequency"):
        SqliteStore.open(path, Mode.READ_WRITE).count("entities")
    store = SqliteStore.open(path, Mode.ADMIN)
    store.provision()
    assert [row["frequency"] for row in everything(store, "entities")] == [0, 0]
    store.patch("entities", table("entities", [{"_key": "b", "cluster_id": "t1"}]))
    found = [
        key
        for batch in store.scan("entities", where=[Term("cluster_id", "==", "t1")])
        for key in keys(batch)
    ]
    assert found == ["b"]
    assert store.check() == []


def test_a_writer_that_waits_too_long_says_so(path: Path) -> None:
    holder = SqliteStore.open(path, Mode.READ_WRITE)
    waiting = SqliteStore.open(path, Mode.READ_WRITE, busy_seconds=0.2)
    with (
        holder.transaction(["entities"]),
        pytest.raises(StoreBusy, match=r"another writer for 0\.2 s"),
    ):
        put(waiting, "entities", entity("c"))
    put(waiting, "entities", entity("c"))
    assert waiting.count("entities") == 3


def test_a_file_that_is_no_database_is_damaged(tmp_path: Path) -> None:
    broken = tmp_path / "graph.db"
    broken.write_bytes(b"this is not a database, however long it may be" * 100)
    with pytest.raises(StoreDamaged, match="restore a backup"):
        SqliteStore.open(broken, Mode.READ_WRITE).count("entities")


def test_a_row_changed_behind_the_store_that_breaks_a_rule_is_found(path: Path) -> None:
    change(path, "UPDATE entities SET layer = NULL WHERE _key = 'b'")
    assert SqliteStore.open(path, Mode.READ_WRITE).check() == [
        "entities (_key 'b'): layer is missing"
    ]


def test_rows_can_be_read_with_sql(path: Path) -> None:
    put(SqliteStore.open(path, Mode.READ_WRITE), "relations", relation("a", "b", weight=0.5))
    with sqlite3.connect(path) as file:
        assert file.execute("SELECT _from, _to, weight FROM relations").fetchall() == [
            ("entities/a", "entities/b", 0.5)
        ]
    file.close()


def test_the_mark_of_a_collection_changes_with_every_write_to_it_and_with_no_other(
    path: Path,
) -> None:
    store = SqliteStore.open(path, Mode.READ_WRITE)
    seen = [store.marks(["entities", "relations"])]
    put(store, "entities", entity("c"))
    seen.append(store.marks(["entities", "relations"]))
    store.patch("entities", table("entities", [{"_key": "b", "cluster_id": "t1"}]))
    seen.append(store.marks(["entities", "relations"]))
    store.delete("entities", keys=["c"])
    seen.append(store.marks(["entities", "relations"]))
    assert len({one["entities"] for one in seen}) == 4
    assert len({one["relations"] for one in seen}) == 1
