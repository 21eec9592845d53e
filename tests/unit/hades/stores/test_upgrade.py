"""A file that the first version wrote is brought to today's form with every row, and a later one is refused."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from hades.build.release.backup import read
from hades.errors import NotProvisioned, StoreError
from hades.ports.store import Direction, Mode
from hades.settings.load import load_settings
from hades.stores.sqlite.store import VERSION, SqliteStore, rows_of
from hades.surfaces.cli.build import run_backup
from hades.wiring import open_hades
from schemas.catalogue import COLLECTIONS
from tests.unit.hades.stores.first_form import ROWS, write_first_form


@pytest.fixture
def path(tmp_path) -> Path:
    write_first_form(tmp_path / "graph.db")
    return tmp_path / "graph.db"


@pytest.fixture
def upgraded(path):
    with closing(SqliteStore.open(path, Mode.ADMIN)) as store:
        store.provision()
        yield store


def test_before_it_is_brought_up_the_next_step_is_named(path):
    with closing(SqliteStore.open(path, Mode.READ_ONLY)) as store, pytest.raises(NotProvisioned, match="provision"):
        store.counts()
    assert rows_of(path) == {name: len(rows) for name, rows in ROWS.items()}


def test_every_row_is_there_with_the_values_it_had_and_defaults_for_what_came_later(upgraded):
    assert {name: rows for name, rows in upgraded.counts().items() if rows} == {
        name: len(rows) for name, rows in ROWS.items()
    }
    for name, rows in ROWS.items():
        collection = next(one for one in COLLECTIONS if one.name == name)
        later = {column.name: column.default for column in collection.columns}
        for row, found in zip(rows, upgraded.get(name, [row["_key"] for row in rows]).to_pylist(), strict=True):
            had = {column: value for column, value in row.items() if column != "_rev"}
            if had.get("embedding"):
                assert found.pop("embedding") == pytest.approx(had.pop("embedding"))
            assert found == {column: had.get(column, later[column]) for column in found}


def test_it_is_sound_and_answers_as_a_new_file_does(upgraded):
    assert upgraded.check() == []
    assert upgraded.dangling() == {}
    out = upgraded.neighbours(["entities/e2"], fanout=9, direction=Direction.ANY).to_pylist()
    assert [(one["neighbour"], one["type"], one["weight"]) for one in out] == [
        ("entities/e1", "related_to", 0.9),
        ("entities/e3", "refers_to", 0.4),
    ]
    assert upgraded.neighbours(["doc_chunks/c1"], edges="mentions", fanout=1).column("neighbour").to_pylist() == [
        "entities/e1"
    ]


def test_what_the_first_version_kept_and_nobody_reads_is_gone(path, upgraded):
    with closing(sqlite3.connect(path)) as file:
        assert file.execute("PRAGMA user_version").fetchone() == (VERSION,)
        assert file.execute(
            "SELECT count(*) FROM sqlite_master WHERE name IN ('adjacency', 'page', 'tree') OR name LIKE 'fts%'"
        ).fetchone() == (0,)
    assert upgraded.provision().created == ()


def test_rows_written_before_and_after_live_in_one_collection(upgraded):
    rows = upgraded.get("entities", ["e1"])
    upgraded.upsert("entities", rows)
    assert upgraded.get("entities", ["e1"]).equals(rows)
    assert upgraded.count("entities") == 3
    assert upgraded.check() == []


def test_a_first_form_is_backed_up_as_it_is_and_built_upon(tmp_path, monkeypatch):
    (tmp_path / "home").mkdir()
    write_first_form(tmp_path / "home/graph.db")
    monkeypatch.setenv("HADES_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    run_backup(tmp_path / "safe", rows=False, logs=False, dated=False, keep=None)
    assert read(tmp_path / "safe").rows == {name: len(rows) for name, rows in ROWS.items()}
    settings = load_settings({"HADES_HOME": str(tmp_path / "home"), "HADES_EMBEDDER": "hashing"}, tmp_path)
    with open_hades(settings) as hades:
        hades.publish()
        with hades.answers.lease() as view:
            assert view.info.nodes["entities"] == 3
        assert hades.retrieve("Who wrote to Charles?", recipe="lexical").passages[0].text == "Ada wrote to Charles."


@pytest.mark.parametrize("mode", [Mode.READ_ONLY, Mode.READ_WRITE])
def test_a_file_of_a_later_version_is_refused_by_every_handle(path, mode):
    with closing(sqlite3.connect(path)) as file:
        file.execute("PRAGMA user_version = 99")
    with closing(SqliteStore.open(path, mode)) as store, pytest.raises(StoreError, match="version 99"):
        store.counts()
