"""Kept readings save reading texts again; they change no row and hold no text that is gone."""

from __future__ import annotations

import ast
import importlib
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from hades.ingest.entities.corpus import read_corpus
from hades.ingest.entities.derive import DerivedRows, derive
from hades.ingest.readings import kept_readings
from hades.ingest.readings import read_chunks as reader
from hades.ingest.readings.kept_readings import READERS, KeptReadings, readers_digest
from hades.ingest.readings.read_chunks import read_chunks
from hades.ingest.readings.text_readings import read_texts
from hades.ingest.workers.worker_pool import WorkerPool
from tests.unit.hades.ingest.entities.conftest import build_view
from tests.unit.hades.ingest.readings.test_text_readings import assert_same

Row = dict[str, Any]
PEOPLE = ("Ada Lovelace", "Charles Babbage", "Grace Hopper", "Alan Turing", "Gene Hackman", "John Huston")
PLACES = ("London", "Zürich", "New York", "the Bank of England (BE)", "Lothair II", "Chicago")


def write_row(number: int, seed: int) -> Row:
    made = random.Random(f"{number} {seed}")
    said = [
        f"{made.choice(PEOPLE)} {made.choice(('met', 'wrote to', 'is a friend of'))} {made.choice(PEOPLE)} in "
        f"{made.choice(PLACES)}."
        for _ in range(made.randint(1, 4))
    ]
    return {"id": f"d{number:03}", "title": made.choice(("", *PEOPLE)), "text": " ".join(said)}


def tables(derived: DerivedRows) -> list[Any]:
    return [getattr(derived, name) for name in ("entities", "mentions", "relations", "merge_log", "titles")]


@pytest.fixture
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "SEGMENT_CHARS", 300)


@pytest.fixture
def texts_read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every text that was read and not taken from what is kept."""
    seen: list[str] = []
    real = reader.read_bytes

    def watch(texts: bytes) -> bytes:
        seen.extend(reader.from_bytes(texts).column("text").to_pylist())
        return real(texts)

    monkeypatch.setattr(reader, "read_bytes", watch)
    return seen


@pytest.mark.usefixtures("small_segments")
@pytest.mark.parametrize("seed", range(3))
def test_any_history_gives_the_rows_of_a_corpus_that_is_read_whole(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    held: dict[int, Row] = {number: write_row(number, 0) for number in range(0, 40, 2)}
    for step in range(1, 8):
        for _ in range(chance.randint(0, 5)):
            number = chance.randrange(40)
            if number in held and chance.random() < 0.4:
                del held[number]
            else:
                held[number] = write_row(number, step)
        if step == 4:
            damage(tmp_path, chance)
        rows = list(held.values())
        chance.shuffle(rows)
        kept, whole = derive(build_view(rows), scratch=tmp_path), derive(build_view(rows))
        assert all(one.equals(other) for one, other in zip(tables(kept), tables(whole), strict=True))


def damage(folder: Path, chance: random.Random) -> None:
    files = sorted((folder / "text-readings").glob("*.arrow"))
    assert len(files) > 2
    spoilt, lost = chance.sample(files, 2)
    data = bytearray(spoilt.read_bytes())
    data[len(data) // 2] ^= 1
    spoilt.write_bytes(bytes(data))
    lost.unlink()


@pytest.mark.parametrize(
    "text", ["", "[]", '{"readers": "READERS", "segments": [["", "gone.arrow"]]}', '{"readers": 0}']
)
def test_a_state_that_cannot_be_read_costs_no_result(tmp_path: Path, text: str) -> None:
    view = build_view([write_row(number, 0) for number in range(5)])
    expected = tables(derive(view, scratch=tmp_path))
    (tmp_path / "text-readings" / "state.json").write_text(text.replace("R", readers_digest()))
    assert all(one.equals(other) for one, other in zip(tables(derive(view, scratch=tmp_path)), expected, strict=True))


@pytest.mark.usefixtures("small_segments")
def test_only_new_texts_are_read(tmp_path: Path, texts_read: list[str]) -> None:
    rows = [write_row(number, 0) for number in range(30)]
    read(rows, tmp_path)
    assert sorted(texts_read) == sorted(row["text"] for row in rows)
    texts_read.clear()
    rows[7] = write_row(7, 1)
    read([*rows[:20], *rows[21:], write_row(50, 0)], tmp_path)
    assert sorted(texts_read) == sorted([rows[7]["text"], write_row(50, 0)["text"]])


@pytest.mark.usefixtures("small_segments")
def test_words_of_a_text_that_went_are_in_no_file(tmp_path: Path) -> None:
    secret = {"id": "d010", "text": "Zyxwvut Qrstuv lived here."}
    rows = [write_row(number, 0) for number in range(20) if number != 10]
    read([*rows, secret], tmp_path)
    assert any(b"zyxwvut" in file.read_bytes() for file in (tmp_path / "text-readings").iterdir())
    read(rows, tmp_path)
    assert not any(b"zyxwvut" in file.read_bytes() for file in (tmp_path / "text-readings").iterdir())


@pytest.mark.usefixtures("small_segments")
@pytest.mark.parametrize("workers", [1, 2])
def test_worker_processes_read_the_same(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, workers: int) -> None:
    monkeypatch.setattr(reader, "SMALL_CHARS", 100)
    corpus = read_corpus(build_view([write_row(number, 0) for number in range(20)]))
    with WorkerPool(workers) as pool:
        assert_same(read_chunks(corpus, pool, KeptReadings(tmp_path)), read_texts(corpus.texts))


def test_readings_of_other_code_are_made_again(
    tmp_path: Path, texts_read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    read([write_row(1, 0)], tmp_path)
    monkeypatch.setattr(kept_readings, "readers_digest", lambda: "of the code of tomorrow")
    texts_read.clear()
    read([write_row(1, 0)], tmp_path)
    assert texts_read == [write_row(1, 0)["text"]]


def test_every_module_that_reads_texts_is_one_of_the_readers() -> None:
    """Modules of HADES that the reading of texts imports; how bytes travel and are declared changes no reading."""
    seen: set[str] = set()
    waiting = ["hades.ingest.readings.text_readings"]
    while waiting:
        name = waiting.pop()
        if name in seen or not name.startswith(("hades.text.", "hades.ingest.entities.", "hades.ingest.readings.")):
            continue
        seen.add(name)
        tree = ast.parse(Path(str(importlib.import_module(name).__file__)).read_text())
        waiting += [str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert seen == {module.__name__ for module in READERS}


def test_a_folder_that_cannot_be_written_keeps_nothing_and_fails_nothing(tmp_path: Path) -> None:
    (tmp_path / "text-readings").write_text("a file in the place of the folder")
    read([write_row(1, 0)], tmp_path)
    assert KeptReadings(tmp_path).load() == []


def read(rows: Sequence[Row], folder: Path) -> None:
    with WorkerPool(1) as pool:
        read_chunks(read_corpus(build_view(rows)), pool, KeptReadings(folder))
