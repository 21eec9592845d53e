"""A copy of a SQLite file as it was at one moment, while others go on writing it."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

from hades.stores.sqlite.connection import BUSY_TIMEOUT_SECONDS, translate

_BEGINNING = b"SQLite format 3\x00"


def copy_as_of_now(source: Path, target: Path) -> None:
    """Copy a file of any kind to the new file `target`; a database as it is at one moment."""
    with source.open("rb") as file:
        is_database = file.read(len(_BEGINNING)) == _BEGINNING
    (copy_database if is_database else shutil.copy2)(source, target)


def copy_database(source: Path, target: Path) -> None:
    """Write what `source` holds now to the new file `target`, by SQLite's own backup.

    All pages are read in one step under one read lock: writers of a write-ahead log go on, and the copy has none of
    what they commit meanwhile. The copy stands alone, without a log beside it.
    """
    with (
        translate(source),
        closing(sqlite3.connect(f"{source.resolve().as_uri()}?mode=ro", uri=True, timeout=BUSY_TIMEOUT_SECONDS)) as old,
        closing(sqlite3.connect(target, isolation_level=None)) as new,
    ):
        old.backup(new)
        new.execute("PRAGMA journal_mode=DELETE")


def rows_of(path: Path) -> dict[str, int]:
    """Rows by collection, as the file counts them itself; also of a file that an older version wrote."""
    with translate(path), closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as file:
        if file.execute("SELECT 1 FROM sqlite_master WHERE name = 'tree'").fetchone() is None:
            return {}
        counts = file.execute("SELECT name, rows FROM tree WHERE rows > 0 AND instr(name, '#') = 0 ORDER BY name")
        return dict(counts.fetchall())
