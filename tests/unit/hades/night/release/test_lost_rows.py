"""Rows that are gone from the store: a build stops and names them; repair and ingest bring them
back.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from hades.errors import ContractBroken
from hades.night.repair import repair
from hades.night.stage import begin
from tests.contract.examples import everything
from tests.unit.hades.night.release.small_graphs import MONDAY, opened, write_pages

LOSSES = {
    "a chunk": (
        "delete from doc_chunks where _key in (select _key from doc_chunks limit 1)",
        "chunks.document_covered",
        "hades repair chunks",
    ),
    "every chunk of a document": (
        "delete from doc_chunks where document in (select document from doc_chunks limit 1)",
        "chunks.document_covered",
        "hades repair chunks",
    ),
    "a document": (
        "delete from documents where _key in (select _key from documents limit 1)",
        "nodes.written_rows_stored",
        "hades repair nodes",
    ),
    "an entity": (
        "delete from entities where _key in (select _key from entities limit 1)",
        "edges.derived_rows_stored",
        "hades repair edges",
    ),
    "a relation": (
        "delete from relations where _key in (select _key from relations limit 1)",
        "edges.derived_rows_stored",
        "hades repair edges",
    ),
    "a mention": (
        "delete from mentions where _key in (select _key from mentions limit 1)",
        "edges.derived_rows_stored",
        "hades repair edges",
    ),
}


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of pages, one of which has several chunks."""
    folder = write_pages(tmp_path_factory.mktemp("lost") / "pages", 12)
    long = "Ada Lovelace met Charles Babbage in London again. " * 90
    (folder / "page0.md").write_text(f"# Page 0\n\n{long}")
    return folder


@pytest.fixture(scope="module")
def built(pages: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A built home of these pages. Nobody writes into it."""
    home = tmp_path_factory.mktemp("built") / "home"
    with opened(home) as hades:
        hades.ingest.documents(pages)
        hades.build(as_of=MONDAY)
    return home


@pytest.fixture(params=LOSSES)
def damaged(request: pytest.FixtureRequest, built: Path, tmp_path: Path) -> Iterator[tuple]:
    """A copy of the home from which rows were deleted; what it held, the rule and the remedy."""
    statement, rule, remedy = LOSSES[request.param]
    home = Path(shutil.copytree(built, tmp_path / "home"))
    with opened(home) as hades:
        rows = rows_of(hades)
    with closing(sqlite3.connect(home / "graph.db")) as database:
        assert database.execute(statement).rowcount
        database.commit()
    with opened(home) as hades:
        assert rows_of(hades) != rows
        yield hades, rows, rule, remedy


def test_the_night_stops_and_the_repair_that_it_names_makes_the_next_one_green(damaged) -> None:
    hades, rows, rule, remedy = damaged
    with pytest.raises(ContractBroken, match=rule) as stopped:
        hades.build(as_of=MONDAY)
    assert f"run `{remedy}`" in str(stopped.value)
    outcome = repair(hades.build_context, hades.ingest, begin(MONDAY), [remedy.split()[-1]])
    assert outcome["holds"], outcome["notes"]
    assert rows_of(hades) == rows
    hades.build(as_of=MONDAY)


def test_ingesting_the_folder_again_brings_the_rows_back(damaged, pages: Path) -> None:
    hades, rows, _, _ = damaged
    report = hades.ingest.documents(pages)
    assert (report.new, report.changed) == (0, 0)
    assert rows_of(hades) == rows
    hades.build(as_of=MONDAY)


def test_the_broken_rule_names_the_document(tmp_path: Path, pages: Path) -> None:
    with opened(tmp_path) as hades:
        hades.ingest.documents(pages)
        chunk = next(row for row in everything(hades.store, "doc_chunks") if row["chunk_index"] > 0)
        hades.store.delete("doc_chunks", keys=[chunk["_key"]])
        with pytest.raises(ContractBroken, match=r"1 of 12 rows of written_rows break it \(page0"):
            hades.build(as_of=MONDAY)
        report = hades.ingest.documents(pages)
        assert (report.restored, report.read) == (1, 12)


def test_a_lost_document_without_a_source_is_taken_out_whole(tmp_path: Path) -> None:
    pages = write_pages(tmp_path / "pages", 12)
    with opened(tmp_path / "home") as hades:
        hades.ingest.documents(pages)
        lost = next(row for row in everything(hades.store, "documents"))
        hades.store.delete("documents", keys=[lost["_key"]])
        pages.rename(tmp_path / "elsewhere")
        outcome = repair(hades.build_context, hades.ingest, begin(MONDAY))
        assert outcome["holds"], outcome["notes"]
        assert any(lost["origin"] in note for note in outcome["notes"])
        chunks = everything(hades.store, "doc_chunks")
        assert lost["_key"] not in {row["document"].partition("/")[2] for row in chunks}


def rows_of(hades) -> dict[str, list[str]]:
    """Keys of what was read and derived, by collection."""
    names = ("documents", "doc_chunks", "entities", "relations", "mentions")
    return {name: sorted(row["_key"] for row in everything(hades.store, name)) for name in names}
