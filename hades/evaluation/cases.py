"""Questions with gold."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from hades.errors import HadesError
from hades.ingest.sources.files import Unusable
from hades.ingest.sources.passages import read_rows

# Questions with their gold, read from the files of a benchmark; nothing here knows which benchmark
# it is.
Row = dict[str, Any]
_Read = TypeVar("_Read")


class BadCases(HadesError):
    """A file of questions that cannot be used."""


def read_unanswerable(path: Path) -> list[str]:
    """The questions of a file whose gold is empty: the corpus does not say their answer."""
    return [str(row["question"]) for row in read_lines(path) if row.get("gold") == []]


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
