"""Rows of a database are documents: changes by a cursor or by content, deletes by keys."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.unit.hades.ingest.sources.remote_site import Syncing, syncing

pytest.importorskip("sqlalchemy")
_SYNC = """
import json, sys, tracemalloc
from pathlib import Path
from tests.unit.hades.ingest.sources.remote_site import syncing
# the libraries are imported before memory is counted
syncing(Path(sys.argv[1] + "_few"), sys.argv[2], table="few", key="id").sync()
home = syncing(Path(sys.argv[1]), sys.argv[2], table="reports", key="id")
tracemalloc.start()
report = home.sync()
peak_bytes = tracemalloc.get_traced_memory()[1]
print(json.dumps([report.problem, report.new, report.read, report.bytes, peak_bytes]))
"""
ROWS = [
    (1, "Printer offline", "Its cable was cut.", "2026-01-01"),
    (2, "Badge lost", "Ann lost her badge.", "2026-01-02"),
    (3, "Door stuck", "The door of room nine.", None),
]


@pytest.fixture
def database(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    path = tmp_path / "desk.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("CREATE TABLE tickets (id, subject TEXT, body TEXT, updated_at TEXT)")
        connection.executemany("INSERT INTO tickets VALUES (?, ?, ?, ?)", ROWS)
        yield connection


@pytest.fixture
def home(database: sqlite3.Connection, tmp_path: Path) -> Syncing:
    url = f"sqlite:///{tmp_path / 'desk.db'}"
    return syncing(tmp_path / "home", url, table="tickets", key="id", cursor="updated_at")


def test_a_row_is_a_document_with_its_columns_as_fields(home: Syncing) -> None:
    assert home.sync().problem == ""
    text = home.copies["tickets/1.md"].decode()
    assert text.startswith("# Printer offline\n")
    assert "- body: Its cable was cut.\n" in text
    copies = home.remotes.ledger("there").copies()
    assert copies["tickets/1"].address.endswith("desk.db#tickets/1")


def test_rows_follow_their_cursor_and_their_keys(
    database: sqlite3.Connection, home: Syncing
) -> None:
    home.sync()
    database.execute("UPDATE tickets SET body = 'New cable.', updated_at = '2026-02-01' WHERE id=1")
    database.execute("UPDATE tickets SET body = 'No cursor.' WHERE id = 3")
    database.execute("DELETE FROM tickets WHERE id = 2")
    report = home.sync()
    assert (report.read, report.changed, report.removed) == (2, 2, 1)
    assert set(home.copies) == {"tickets/1.md", "tickets/3.md"}


def test_without_a_cursor_rows_are_compared_by_content(
    database: sqlite3.Connection, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path / 'desk.db'}"
    query = "SELECT id, subject FROM tickets WHERE id < 3"
    home = syncing(tmp_path / "other", url, query=query, key="id")
    assert home.sync().new == 2
    database.execute("UPDATE tickets SET subject = 'Printer online' WHERE id = 1")
    report = home.sync()
    assert (report.changed, report.unchanged) == (1, 1)


def test_rows_without_a_cursor_are_never_together_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "large.db"
    row_bytes, count = 50_000, 400
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("CREATE TABLE few (id, body TEXT)")
        connection.execute("INSERT INTO few VALUES (1, 'A short report.')")
        connection.execute("CREATE TABLE reports (id, body TEXT)")
        rows = ((number, f"{number} " * (row_bytes // 4)) for number in range(count))
        connection.executemany("INSERT INTO reports VALUES (?, ?)", rows)
    # a process of its own: other threads of this one allocate too
    program = [sys.executable, "-c", _SYNC, str(tmp_path / "home"), f"sqlite:///{path}"]
    done = subprocess.run(program, capture_output=True, text=True, check=True)
    problem, new, read, synced_bytes, peak_bytes = json.loads(done.stdout)
    assert (problem, new, read) == ("", count, count)
    assert synced_bytes > count * row_bytes / 2
    assert peak_bytes < synced_bytes / 3
    home = syncing(tmp_path / "home", f"sqlite:///{path}", table="reports", key="id")
    assert home.sync().unchanged == count


def test_what_a_stopped_sync_of_rows_set_down_does_not_grow(
    database: sqlite3.Connection, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path / 'desk.db'}"
    home = syncing(tmp_path / "other", url, table="tickets", key="id", min_documents=9)
    for number in range(3):
        database.execute("UPDATE tickets SET body = ?", (f"Body {number}.",))
        assert "at least 9 are expected" in home.sync().problem
    assert len(list((tmp_path / "other/sources/staged/there").iterdir())) == len(ROWS)


def test_rows_that_share_a_key_stop_the_sync(database: sqlite3.Connection, home: Syncing) -> None:
    home.sync()
    database.execute("INSERT INTO tickets VALUES (1, 'Other', 'Other', '2026-01-01')")
    report = home.sync()
    assert "tickets/1" in report.problem
    assert "unique" in report.problem
    assert len(home.copies) == 3


def test_a_row_that_lost_its_key_stops_the_sync(
    database: sqlite3.Connection, home: Syncing
) -> None:
    home.sync()
    database.execute("UPDATE tickets SET id = NULL WHERE id = 2")
    assert "no value in its key column 'id'" in home.sync().problem
    assert len(home.copies) == 3


def test_a_column_that_is_gone_stops_the_sync_until_it_is_accepted(
    database: sqlite3.Connection, home: Syncing
) -> None:
    home.sync()
    database.execute("ALTER TABLE tickets DROP COLUMN body")
    report = home.sync()
    assert "columns that were there are gone (body)" in report.problem
    assert "--accept" in report.problem
    assert "Its cable" in home.copies["tickets/1.md"].decode()
    assert home.sync(accept=True).problem == ""


def test_a_cursor_or_a_required_column_that_is_gone_cannot_be_accepted(
    database: sqlite3.Connection, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path / 'desk.db'}"
    options = {"table": "tickets", "key": "id", "required": ["subject"]}
    home = syncing(tmp_path / "other", url, **options)
    home.sync()
    database.execute("ALTER TABLE tickets DROP COLUMN subject")
    assert "'subject', which is required" in home.sync(accept=True).problem


def test_a_table_that_is_emptied_does_not_empty_the_corpus(
    database: sqlite3.Connection, home: Syncing
) -> None:
    home.sync()
    database.execute("DELETE FROM tickets")
    assert "0 documents" in home.sync().problem
    assert len(home.copies) == 3


def test_a_table_that_is_gone_is_named_and_the_copies_stay(
    database: sqlite3.Connection, home: Syncing
) -> None:
    home.sync()
    database.execute("DROP TABLE tickets")
    assert "no such table: tickets" in home.sync().problem
    assert len(home.copies) == 3


def test_columns_name_who_may_read_a_row(database: sqlite3.Connection, tmp_path: Path) -> None:
    database.execute("ALTER TABLE tickets ADD COLUMN groups TEXT")
    database.execute("ALTER TABLE tickets ADD COLUMN people TEXT")
    database.execute("UPDATE tickets SET groups = 'hr; legal', people = 'user:Ann' WHERE id = 1")
    database.execute("UPDATE tickets SET groups = 'public' WHERE id = 2")
    url = f"sqlite:///{tmp_path / 'desk.db'}"
    columns = {"key": "id", "cursor": "updated_at", "readers": ("groups", "people")}
    home = syncing(tmp_path / "home", url, table="tickets", **columns)
    assert home.sync().problem == ""
    ledger = home.remotes.ledger("there")
    assert ledger.rights() == {
        "tickets/1.md": ("hr", "legal", "user:ann"),
        "tickets/3.md": (),  # a row that names nobody is shown to nobody
    }
    assert "legal" not in home.copies["tickets/1.md"].decode()
    database.execute("UPDATE tickets SET groups = '[\"board\"]', people = NULL WHERE id = 1")
    report = home.sync()  # the cursor did not move
    assert (report.read, ledger.rights()["tickets/1.md"]) == (1, ("board",))
    database.execute("ALTER TABLE tickets DROP COLUMN people")
    assert "people" in home.sync().problem
    assert ledger.rights()["tickets/1.md"] == ("board",)
