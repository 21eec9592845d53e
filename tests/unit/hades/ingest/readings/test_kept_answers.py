"""Answers that are kept are found again, and those that nobody asks for any more are gone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hades.ingest.readings import kept_answers
from hades.ingest.readings.kept_answers import KeptAnswers, Signatures, sign_texts


class Worker:
    """Answers in capitals, and remembers what it was asked for."""

    def __init__(self, texts: list[str]) -> None:
        self.texts = texts
        self.asked: list[str] = []

    def __call__(self, places: list[int]) -> list[str]:
        self.asked += [self.texts[place] for place in places]
        return [self.texts[place].upper() for place in places]


def ask(folder: Path, texts: list[str]) -> list[str]:
    """The texts that had to be answered anew; every answer is checked."""
    worker = Worker(texts)
    answers = KeptAnswers(folder).answer("capitals", __name__, sign_texts(texts), worker)
    assert answers == [text.upper() for text in texts]
    return worker.asked


def test_only_what_was_not_asked_before_is_worked_out(tmp_path: Path) -> None:
    assert ask(tmp_path, ["one", "two", "one", ""]) == ["one", "two", "one", ""]
    assert ask(tmp_path, ["two", "", "three", "one"]) == ["three"]
    assert ask(tmp_path, ["two", "three", "one", ""]) == []
    assert ask(tmp_path, []) == []


def test_answers_that_nobody_asks_for_are_gone(tmp_path: Path) -> None:
    ask(tmp_path, ["one", "two"])
    ask(tmp_path, ["two"])
    assert not any(b"ONE" in file.read_bytes() for file in (tmp_path / "answers").iterdir())
    assert ask(tmp_path, ["one", "two"]) == ["one"]


@pytest.mark.parametrize("file", ["capitals.arrow", "capitals.json"])
@pytest.mark.parametrize("damage", [b"", b"{}", b"[]", b"[1, 2"])
def test_a_damaged_file_costs_no_result(tmp_path: Path, file: str, damage: bytes) -> None:
    ask(tmp_path, ["one", "two"])
    (tmp_path / "answers" / file).write_bytes(damage)
    assert ask(tmp_path, ["one", "two"]) == ["one", "two"]
    assert ask(tmp_path, ["one", "two"]) == []


def test_a_folder_that_cannot_be_written_fails_nothing(tmp_path: Path) -> None:
    (tmp_path / "answers").write_text("a file in the place of the folder")
    assert ask(tmp_path, ["one"]) == ask(tmp_path, ["one"]) == ["one"]


def test_answers_of_other_code_do_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ask(tmp_path, ["one"])
    monkeypatch.setattr(kept_answers, "readers_digest", lambda: "of the code of tomorrow")
    assert ask(tmp_path, ["one"]) == ["one"]


def test_a_signature_of_a_run_tells_order_and_length() -> None:
    def sign(*runs: list[str]) -> list[tuple[int, int]]:
        begins = np.cumsum([0, *map(len, runs[:-1])])
        found = sign_texts(text for run in runs for text in run).join_runs(begins)
        return list(zip(found.high.tolist(), found.low.tolist(), strict=True))

    runs = sign(["a", "b"], ["b", "a"], ["a"], ["a", "b"], ["a", "a"], ["b"])
    assert runs[0] == runs[3]
    assert len(set(runs)) == 5


def test_a_signature_with_a_number_is_another() -> None:
    one = sign_texts(["a", "a", "b"]).mix(np.array([1, 2, 1]))
    assert len(set(zip(one.high.tolist(), one.low.tolist(), strict=True))) == 3
    both = Signatures(one.high, one.low).join(sign_texts(["x", "x", "y"]))
    assert both.high.tolist() != one.high.tolist()
