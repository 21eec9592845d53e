"""Where the registry's file believes its artifacts to be, and telling it that they have moved.

MLflow writes whole paths into its database. A home that is restored or moved to another place would otherwise look for
the files of old weights where they were.
"""

from __future__ import annotations

import fcntl
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

_EXPERIMENTS = "SELECT DISTINCT artifact_location FROM experiments WHERE artifact_location LIKE 'file://%'"
_MOVE_EXPERIMENTS = "UPDATE experiments SET artifact_location = ?2 WHERE artifact_location = ?1"
_MOVE_RUNS = """
UPDATE runs SET artifact_uri = ?2 || substr(artifact_uri, length(?1) + 1)
WHERE substr(artifact_uri, 1, length(?1) + 1) = ?1 || '/'
"""


def relocate_artifacts(database: Path, artifacts: Path) -> int:
    """Make every run of the registry's file look for its files below `artifacts`; how many runs had another place."""
    here = artifacts.resolve().as_uri()
    moved = 0
    with closing(sqlite3.connect(database)) as registry, registry:
        for (there,) in registry.execute(_EXPERIMENTS).fetchall():
            if there != here and there.endswith(f"/{artifacts.name}"):
                moved += registry.execute(_MOVE_RUNS, (there, here)).rowcount
                registry.execute(_MOVE_EXPERIMENTS, (there, here))
    return moved


@contextmanager
def hold_lock(path: Path) -> Iterator[None]:
    """Wait for a lock and hold it. The system lets go of it when the process dies."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def stamp_of(database: Path) -> list[int]:
    """Size and time of the last change of the registry's file; zeros where there is none."""
    try:
        found = database.stat()
    except FileNotFoundError:
        return [0, 0]
    return [found.st_size, found.st_mtime_ns]
