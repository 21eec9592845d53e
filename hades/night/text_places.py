"""Every place under a home where words of a document can stand, and what forgetting does there."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from pathlib import Path

import pyarrow as pa

from hades.ingest.forget import words_of


class Treatment(StrEnum):
    """What `hades forget` does with a place."""

    CORRECTED = "corrected"  # its rows are removed or corrected, then the file is compacted
    EMPTIED = "emptied"
    SEARCHED = "searched"  # files that hold such words are removed
    REPLACED = "replaced"  # by the next publishing; `--prune 1` removes what was published before
    LEFT = "left"  # read by no search of ours and written by no document


@dataclass(frozen=True)
class TextPlace:
    """A file or folder under a home, by the beginning of its path there."""

    path: str
    holds: str
    treatment: Treatment


# What is not listed here is searched as well, and named where it holds such words.
PLACES = (
    TextPlace(
        "graph.db",
        "documents and all that follows from them",
        Treatment.CORRECTED,
    ),
    TextPlace(
        "cache/models/",
        "exported models",
        Treatment.LEFT,
    ),
    TextPlace(
        "cache/",
        "answers, their plans, and graphs of past nights",
        Treatment.EMPTIED,
    ),
    TextPlace(
        "plans/",
        "rows, answers and lines of plans",
        Treatment.EMPTIED,
    ),
    TextPlace(
        "history/",
        "sentences that each night changed",
        Treatment.CORRECTED,
    ),
    TextPlace(
        "branches/",
        "graphs of their own; forgotten in them too",
        Treatment.CORRECTED,
    ),
    TextPlace(
        "exam/",
        "questions made of passages",
        Treatment.SEARCHED,
    ),
    TextPlace(
        "artifacts/",
        "exams, topics and pages of registered versions",
        Treatment.SEARCHED,
    ),
    TextPlace(
        "reports/",
        "pages that name topics, entities and questions",
        Treatment.SEARCHED,
    ),
    TextPlace(
        "sources/mirrors/",
        "copies of documents from elsewhere",
        Treatment.SEARCHED,
    ),
    TextPlace(
        "sources/staged/",
        "copies that a sync has not finished",
        Treatment.SEARCHED,
    ),
    TextPlace(
        "snapshots/",
        "published graphs",
        Treatment.REPLACED,
    ),
)
_NOT_SHOWN = re.compile(r"<(style|script)\b.*?</\1>|<[^>]*>", re.DOTALL)


def remove_files(home: Path, words: AbstractSet[str]) -> list[str]:
    """Remove files of the searched places that hold one of these words; their paths in the home."""
    removed = []
    for name, path in _files(home):
        if treatment_of(name) is Treatment.SEARCHED and not words.isdisjoint(words_in(path)):
            path.unlink()
            removed.append(name)

    return removed


def find_files(home: Path, words: AbstractSet[str]) -> list[str]:
    """Files of no listed place that hold one of these words, by their paths in the home."""
    names = []
    for name, path in _files(home):
        if treatment_of(name) is None and not words.isdisjoint(words_in(path)):
            names.append(name)

    return names


def treatment_of(name: str) -> Treatment | None:
    """What forgetting does with a file, by its path in the home; None where no place is listed."""
    return next(
        (place.treatment for place in PLACES if name.startswith(place.path)),
        None,
    )


def words_in(path: Path) -> set[str]:
    """The words of a file: of the text columns of Parquet, of the shown text of a page, else of its
    bytes.
    """
    if path.suffix == ".parquet":
        return set(chain.from_iterable(map(words_of, _parquet_texts(path))))

    text = path.read_bytes().decode("utf-8", errors="ignore")
    return set(words_of(_NOT_SHOWN.sub(" ", text) if path.suffix == ".html" else text))


def _parquet_texts(path: Path) -> Iterator[str]:
    # with libraries of file systems, which most commands do not need
    import pyarrow.parquet as pq

    for column in pq.read_table(path).columns:
        yield from _texts_of(column.combine_chunks())


def _texts_of(column: pa.Array) -> Iterable[str]:
    """The texts of a column, within lists too; structs hold numbers here."""
    while pa.types.is_list(column.type):
        column = column.flatten()

    return column.drop_null().to_pylist() if pa.types.is_string(column.type) else ()


def _files(home: Path) -> Iterator[tuple[str, Path]]:
    """Every plain file under a home with its path there."""
    for path in sorted(home.rglob("*")):
        if path.is_file() and not path.is_symlink():
            yield path.relative_to(home).as_posix(), path
