"""Rows that the store holds just so are told from those that differ."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hades.ingest.manifest import as_table
from hades.ingest.write_changes import find_different
from hades.ports.store import Mode
from hades.stores.sqlite.store import SqliteStore

_FUNC = {
    "name": "read",
    "qualified_name": "Reader.read",
    "kind": "method",
    "path": "reader.py",
    "language": "python",
    "document": "documents/d1",
    "signature": "def read(self)",
    "docstring": "",
}


def _funcs(**spans: list[int]) -> list[dict[str, Any]]:
    return [{"_key": key, **_FUNC, "span": span} for key, span in spans.items()]


@pytest.fixture
def store(tmp_path: Path) -> SqliteStore:
    made = SqliteStore.open(tmp_path / "graph.db", Mode.ADMIN)
    made.provision()
    made.upsert("funcs", as_table("funcs", _funcs(f1=[0, 4], f2=[5, 9])))
    return made


def _differing(store: SqliteStore, rows: list[dict[str, Any]], *left_out: str) -> list[str]:
    table = as_table("funcs", rows)
    found = find_different(store, "funcs", table, ["f1", "f2"], left_out)
    assert found.schema == table.schema
    keys: list[str] = found.column("_key").to_pylist()
    return keys


def test_only_new_and_different_rows_are_found_in_their_order(store: SqliteStore) -> None:
    assert _differing(store, _funcs(f2=[5, 9], f1=[0, 4])) == []
    assert _differing(store, _funcs(f3=[10, 12], f2=[5, 8], f1=[0, 4])) == ["f3", "f2"]
    told = [{**row, "docstring": "Read it."} for row in _funcs(f1=[0, 4])]
    assert _differing(store, [*told, *_funcs(f2=[5, 9])]) == ["f1"]


def test_without_a_key_that_is_stored_every_row_is_new(store: SqliteStore) -> None:
    table = as_table("funcs", _funcs(f1=[0, 4]))
    assert find_different(store, "funcs", table, []) == table


def test_what_a_row_does_not_say_counts_as_absent_unless_it_is_left_out(store: SqliteStore) -> None:
    store.patch("funcs", as_table("funcs", [{"_key": "f1", "embedding_model": "other@8"}]))
    rows = _funcs(f1=[0, 4], f2=[5, 9])
    assert _differing(store, rows) == ["f1"]
    assert _differing(store, rows, "embedding_model") == []
