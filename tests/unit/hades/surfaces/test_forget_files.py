"""After forgetting and publishing, no file of the home holds a word that only the page wrote."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from hades.night.text_places import PLACES, Treatment
from hades.snapshot.pointer import served
from tests.command_line import run, run_json
from tests.unit.hades.night.release.small_graphs import write_pages

pytestmark = pytest.mark.slow
SECRET = """# Zanzibar Protocol

The Quokka Ledger (QL) is a notebook of smuggled marmalade. Quintus Farnaby hid it below the
Vermilion Gate, and Ada Lovelace never opened it. See [the first page](page0.md) for xylophonic
details of the quixotic exchange.

## Quixotic marmalade exchange

Quintus Farnaby sent the Quokka Ledger to Ada Lovelace by the xylophonic post of Zanzibar.
"""
LINKING = """# Letters

For details of smuggled notebooks see [the protocol](secret.md) of the old archive in Vienna.
"""
WORDS = (b"zanzibar", b"quokka", b"quintus", b"farnaby", b"vermilion", b"xylophonic", b"marmalade")
ENVIRONMENT = {"HADES_EMBEDDER": "hashing"}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a home that was built twice, examined, asked and judged."""
    folder = tmp_path_factory.mktemp("forgetting")
    pages = write_pages(folder / "pages")
    (pages / "secret.md").write_text(SECRET)
    (pages / "letters.md").write_text(LINKING)
    environment = {**ENVIRONMENT, "HADES_HOME": str(folder / "home")}
    done = run("ingest", "documents", str(pages), **environment)
    assert done.exit_code == 0, done.output
    for _ in range(2):
        done = run("build", **environment)
        assert done.exit_code == 0, done.output
    done = run("exam", **environment)
    assert done.exit_code == 0, done.output
    question = "What did the smuggler hide below the gate?"
    asked = run_json("query", question, **environment)
    passages = [row["document"] for row in asked["passages"]]
    rank = str(1 + passages.index("secret.md"))
    done = run("feedback", asked["query_id"], "--good-passage", rank, **environment)
    assert done.exit_code == 0, done.output
    done = run("build", **environment)
    assert done.exit_code == 0, done.output
    (pages / "secret.md").unlink()
    return environment


def test_the_words_stood_in_many_files_and_stand_in_none_after_publishing(
    home: dict[str, str],
) -> None:
    environment, folder = home, Path(home["HADES_HOME"])
    exam = pq.read_table(folder / "exam" / "exam.parquet").to_pylist()
    assert [row for row in exam if row["kind"] == "judged"]
    before = files_holding(folder)
    tops = {name.partition("/")[0] for name in before}
    assert {"graph.db", "exam", "artifacts", "reports", "snapshots"} <= tops, before
    done = run("forget", "secret.md", **environment)
    assert done.exit_code == 0, done.output
    assert "QUESTIONS ARE STILL ANSWERED FROM IT" in done.output
    left = {name.partition("/")[0] for name in files_holding(folder)}
    published = {place.path for place in PLACES if place.treatment is Treatment.REPLACED}
    assert {f"{name}/" for name in left} <= published, files_holding(folder)
    done = run("publish", "--prune", "1", **environment)
    assert done.exit_code == 0, done.output
    assert files_holding(folder) == {}
    exam = pq.read_table(folder / "exam" / "exam.parquet").to_pylist()
    assert not [row for row in exam if row["kind"] == "judged"]
    assert not [row for row in exam if "forgotten" in str(row["gold"])]


def test_forget_publishes_and_prunes_where_it_is_told_to(tmp_path: Path) -> None:
    environment = {**ENVIRONMENT, "HADES_HOME": str(tmp_path / "home")}
    pages = write_pages(tmp_path / "pages", 6)
    (pages / "secret.md").write_text(SECRET)
    run("ingest", "documents", str(pages), **environment)
    run_json("publish", **environment)
    certificate = run_json("forget", "secret.md", "--publish", **environment)
    assert certificate["snapshots_from_before"] == []
    assert files_holding(tmp_path / "home") == {}
    assert served(tmp_path / "home") == certificate["published"]


def test_the_command_that_an_erasure_names_removes_the_logged_question(tmp_path: Path) -> None:
    environment = {**ENVIRONMENT, "HADES_HOME": str(tmp_path / "home")}
    pages = write_pages(tmp_path / "pages", 6)
    run("ingest", "documents", str(pages), **environment)
    run_json("publish", **environment)
    sentence = "Quintus Farnaby hid the Quokka Ledger below the Vermilion Gate."
    run_json("memory", "add", "ledger", sentence, **environment)
    asked = run_json("query", f"Is it true? {sentence}", **environment)
    certificate = run_json("memory", "erase", "ledger", "--why", "asked", code=1, **environment)
    command = f"hades forget --query {asked['query_id']}"
    assert certificate["commands"] == [command]
    document = run_json(*command.split()[1:], **environment)
    assert document["questions_removed"] == [asked["query_id"]]
    assert files_holding(tmp_path / "home") == {}
    assert run(*command.split()[1:], **environment).exit_code == 1
    assert run("forget", **environment).exit_code == 1


def files_holding(folder: Path) -> dict[str, list[bytes]]:
    """Files with the words they hold: as bytes, in the rows of Parquet, in the rows of SQLite."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_relative_to(folder / "cache" / "models"):
            body = b"\n".join(contents_of(path)).lower()
            words = [word for word in WORDS if word in body]
            if words:
                found[path.relative_to(folder).as_posix()] = words
    return found


def contents_of(path: Path) -> Iterator[bytes]:
    yield path.read_bytes()
    if path.suffix == ".parquet":
        yield str(pq.read_table(path).to_pylist()).encode()
    if path.suffix == ".db":
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
            yield "\n".join(database.iterdump()).encode()
