"""Questions with gold."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from hades.errors import HadesError
from hades.ingest.sources.files import Unusable
from hades.ingest.sources.passages import read_rows

# Questions with their gold, read from the files of a benchmark; nothing here knows which benchmark
# it is.
_NO_TEXT = frozenset({"yes", "no", "true", "false"})
Row = dict[str, Any]
_Read = TypeVar("_Read")


class BadCases(HadesError):
    """A file of questions that cannot be used."""


@dataclass(frozen=True)
class Case:
    """One question and the ids of what answers it. `group` is its type or number of hops, for
    tables by group.

    `excluded` documents are taken out of every ranking: what asks is no answer. `answers` are
    spellings of the answer, to be looked for in the prompt; none where it is not a text to be
    found, as yes and no are not. `near` are the ids of what it is asked from, `context` is what is
    written there, for the baselines that may know it too. `is_answerable` is False where the gold
    is only what a question is about, without its answer.
    """

    id: str
    question: str
    gold: frozenset[str]
    group: str = ""
    excluded: frozenset[str] = frozenset()
    answers: tuple[str, ...] = ()
    near: tuple[str, ...] = ()
    context: str = ""
    is_answerable: bool = True


def read_cases(path: Path) -> list[Case]:
    """Rows of question and gold; those of an empty gold are `read_unanswerable`'s."""
    expected = "`question` and `gold`, a list of ids (empty where the corpus does not answer)"
    return read_each(path, _case, ("question", "gold"), expected)


def read_unanswerable(path: Path) -> list[str]:
    """The questions of a file whose gold is empty: the corpus does not say their answer."""
    return [str(row["question"]) for row in read_lines(path) if row.get("gold") == []]


def _case(row: Row, key: str) -> Case:
    gold = frozenset(str(gold_id) for gold_id in row["gold"])
    group = str(row.get("type") or (f"{row['hops']} hops" if row.get("hops") else ""))
    spellings = [row.get("answer"), *(row.get("answers") or ())]
    texts = (
        " ".join(spelling.split()).casefold() for spelling in spellings if isinstance(spelling, str)
    )
    answers = tuple(dict.fromkeys(text for text in texts if text and text not in _NO_TEXT))
    known = bool(row.get("answerable", True))
    return Case(key, str(row["question"]), gold, group, answers=answers, is_answerable=known)


def read_each(
    path: Path,
    read: Callable[[Row, str], _Read],
    needed: Sequence[str],
    expected: str,
    row_name: str = "question",
) -> list[_Read]:
    """What is read of each row and its id, its number where it has none; one without what is needed
    is refused.

    Rows that say that nothing answers them (an empty `gold`) are left out.
    """
    rows = []
    for number, row in enumerate(read_lines(path), 1):
        if row.get("gold") == [] and row.get("question"):
            continue
        try:
            if not all(row.get(name) for name in needed):
                raise KeyError(needed)
            rows.append(read(row, str(row.get("id", number))))
        except (KeyError, TypeError, AttributeError) as error:
            raise BadCases(
                f"{path} line {number}: a row needs {expected}; got {str(row)[:80]}"
            ) from error
    if not rows:
        raise BadCases(f"{path} holds no {row_name}")
    return rows


def read_lines(path: Path) -> Iterator[Row]:
    """JSON objects, one a line, of a plain or gzipped file."""
    if not path.is_file():
        raise BadCases(f"{path} is not there; give the path of a .jsonl or .jsonl.gz file")
    for number, row in read_rows(path):
        if isinstance(row, Unusable):
            raise BadCases(f"{path} line {number}: {row.detail}")
        yield row


def digest(paths: Sequence[Path]) -> str:
    """One hash over files, so that a figure says which data it is of."""
    sha256 = hashlib.sha256()
    for path in paths:
        with path.open("rb") as file:
            hashlib.file_digest(file, lambda: sha256)
    return sha256.hexdigest()
