"""How many rows a collection has, read from the file alone: no catalogue, no Arrow."""

from __future__ import annotations

from pathlib import Path

from hades.errors import StoreError
from hades.ports.store import Mode
from hades.stores.sqlite.connection import Connections


class RowCounts:
    """Counts rows of one file. None stands for a file or a collection that is not there or cannot be read."""

    def __init__(self, path: Path) -> None:
        self._connections = Connections(path, Mode.READ_ONLY)

    def __call__(self, collection: str) -> int | None:
        """The number of rows of a collection."""
        try:
            with self._connections.reading() as connection:
                row = connection.execute("SELECT rows FROM tree WHERE name = ?", (collection,)).fetchone()
        except StoreError:
            return None
        return None if row is None else int(row[0])
