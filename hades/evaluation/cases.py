"""Questions with their gold, read from the files of a benchmark; nothing here knows which benchmark it is."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hades.errors import HadesError

_NO_TEXT = frozenset({"yes", "no", "true", "false"})


class BadCases(HadesError):
    """A file of questions that cannot be used."""


@dataclass(frozen=True)
class Case:
    """One question and the ids of what answers it. `group` is its type or number of hops, for tables by group.

    `excluded` documents are taken out of every ranking: what asks is no answer. `answers` are spellings of the answer,
    to be looked for in the prompt; none where it is not a text to be found, as yes and no are not. `near` are the
    ids of what it is asked from, `beside` is what is written there, for the baselines that may know it too.
    `is_answerable` is False where the gold is only what a question is about, without its answer.
    """

    id: str
    question: str
    gold: frozenset[str]
    group: str = ""
    excluded: frozenset[str] = frozenset()
    answers: tuple[str, ...] = ()
    near: tuple[str, ...] = ()
    beside: str = ""
    is_answerable: bool = True


def read_cases(path: Path) -> list[Case]:
    """Rows of question and gold; a row without gold cannot be scored and is refused."""
    cases = []
    for number, row in enumerate(read_lines(path), 1):
        if not isinstance(row, dict) or not row.get("question") or not row.get("gold"):
            raise BadCases(f"{path} line {number}: a row needs `question` and a non-empty `gold`; got {str(row)[:80]}")
        gold = frozenset(str(one) for one in row["gold"])
        group = str(row.get("type") or (f"{row['hops']} hops" if row.get("hops") else ""))
        answers = _answers(row)
        known = bool(row.get("answerable", True))
        key, text = str(row.get("id", number)), str(row["question"])
        cases.append(Case(key, text, gold, group, answers=answers, is_answerable=known))
    if not cases:
        raise BadCases(f"{path} holds no question")
    return cases


def _answers(row: dict[str, Any]) -> tuple[str, ...]:
    given = [row.get("answer"), *(row.get("answers") or ())]
    texts = (" ".join(one.split()).casefold() for one in given if isinstance(one, str))
    return tuple(dict.fromkeys(text for text in texts if text and text not in _NO_TEXT))


def read_lines(path: Path) -> Iterator[Any]:
    """JSON values, one a line, of a plain or gzipped file."""
    if not path.is_file():
        raise BadCases(f"{path} is not there; give the path of a .jsonl or .jsonl.gz file")
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                try:
                    yield json.loads(line)
                except json.JSONDecodeError as error:
                    raise BadCases(f"{path} line {number} is not JSON: {error}") from error


def digest(paths: Sequence[Path]) -> str:
    """One hash over files, so that a figure says which data it is of."""
    found = hashlib.sha256()
    for path in paths:
        with path.open("rb") as file:
            for block in iter(lambda: file.read(1 << 20), b""):
                found.update(block)
    return found.hexdigest()
