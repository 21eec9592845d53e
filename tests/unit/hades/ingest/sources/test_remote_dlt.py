"""Any dlt resource is a source by its import path: rows are documents, the primary key their id."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.hades.ingest.sources.remote_site import Syncing, syncing

pytest.importorskip("dlt")
MODULE = """
import json, os, dlt

def rows(table):
    with open(os.environ["DESK_ROWS"]) as file:
        return json.load(file)[table]

@dlt.resource(primary_key="number")
def tickets():
    yield rows("tickets")

@dlt.resource(primary_key="slug")
def pages(changed=dlt.sources.incremental("edited", initial_value="2000-01-01")):
    yield from rows("pages")

@dlt.source
def desk():
    return tickets, pages

@dlt.resource
def loose():
    yield {"text": "no key"}
"""
ROWS = {
    "tickets": [{"number": 7, "subject": "Printer", "tags": ["a", "b"]}, {"number": 8}],
    "pages": [{"slug": "start", "title": "Start", "edited": "2026-01-01"}],
}


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "desk_of_dlt.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    path = tmp_path / "rows.json"
    path.write_text(json.dumps(ROWS))
    monkeypatch.setenv("DESK_ROWS", str(path))
    return path


def home_of(tmp_path: Path, name: str, **options: str) -> Syncing:
    return syncing(tmp_path / name, f"dlt:desk_of_dlt:{name}", **options)


def test_every_resource_of_a_source_gives_its_rows(rows: Path, tmp_path: Path) -> None:
    home = home_of(tmp_path, "desk")
    assert home.sync().problem == ""
    assert set(home.copies) == {"tickets/7.md", "tickets/8.md", "pages/start.md"}
    assert '- tags: ["a", "b"]' in home.copies["tickets/7.md"].decode()


def test_changes_and_deletes_of_a_resource_are_followed(rows: Path, tmp_path: Path) -> None:
    home = home_of(tmp_path, "tickets")
    home.sync()
    rows.write_text(json.dumps({"tickets": [{"number": 7, "subject": "Printer again"}]}))
    report = home.sync(accept=True)
    assert (report.changed, report.removed) == (1, 1)


def test_an_incremental_resource_goes_by_its_cursor(rows: Path, tmp_path: Path) -> None:
    home = home_of(tmp_path, "pages")
    home.sync()
    copies = home.remotes.ledger("there").copies()
    assert copies["pages/start"].version == "2026-01-01"
    assert home.sync().unchanged == 1


def test_a_resource_without_a_key_and_one_that_is_not_there_are_named(
    rows: Path, tmp_path: Path
) -> None:
    assert "--key" in home_of(tmp_path, "loose").sync().problem
    assert "cannot be imported" in home_of(tmp_path, "nobody").sync().problem


def test_a_field_names_who_may_read_a_row(rows: Path, tmp_path: Path) -> None:
    desk = {"tickets": [{"number": 7, "subject": "Printer", "seen_by": ["hr"]}], "pages": []}
    rows.write_text(json.dumps(desk))
    home = syncing(tmp_path / "home", "dlt:desk_of_dlt:tickets", readers=("seen_by",))
    assert home.sync().problem == ""
    assert home.remotes.ledger("there").rights() == {"tickets/7.md": ("hr",)}
    missing = syncing(tmp_path / "other", "dlt:desk_of_dlt:tickets", readers=("group",))
    assert "'group'" in missing.sync().problem
