"""Records of rows that were read lately: rows of a snapshot never change, and questions meet the same ones again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

import numpy as np

from hades.ports.graph import Numbers

Record = TypeVar("Record")


class RowCache(Generic[Record]):
    """Reads each row once while it is remembered, at most `most` of them; safe with any number of threads."""

    def __init__(self, read: Callable[[Numbers], list[Record]], most: int) -> None:
        self._read, self._most = read, most
        self._known: dict[int, Record] = {}

    def read(self, rows: Numbers) -> list[Record]:
        """The records of these rows, in their order."""
        wanted: list[int] = rows.tolist()
        known = self._known
        found = {row: known[row] for row in wanted if row in known}
        missing = [row for row in dict.fromkeys(wanted) if row not in found]
        if missing:
            fresh = dict(zip(missing, self._read(np.array(missing, np.int64)), strict=True))
            found |= fresh
            if len(known) + len(fresh) > self._most:
                self._known = fresh if len(fresh) <= self._most else {}  # another thread may be reading the old one
            else:
                known.update(fresh)
        return [found[row] for row in wanted]
