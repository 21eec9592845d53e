"""Ids as small integers: a view over AQL numbers what it meets, in the order it meets it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hades.errors import BadQuery
from hades.ports.view import Numbers


class IdTable:
    """Two-way table of ids and numbers."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._numbers: dict[str, int] = {}
        self._names: list[str] = []

    def __contains__(self, name: str) -> bool:
        return name in self._numbers

    def add(self, names: Sequence[str]) -> Numbers:
        """The number of each id, a new one where it is met for the first time."""
        for name in names:
            if name not in self._numbers:
                self._numbers[name] = len(self._names)
                self._names.append(name)
        return self.find(names)

    def find(self, names: Sequence[str]) -> Numbers:
        """The number of each id, -1 where it has none."""
        return np.fromiter((self._numbers.get(name, -1) for name in names), np.int64, len(names))

    def names(self, numbers: Numbers) -> list[str]:
        """The id of each number; refuses one that was never given out."""
        asked = np.asarray(numbers, np.int64)
        wrong = asked[(asked < 0) | (asked >= len(self._names))]
        if wrong.size:
            raise BadQuery(
                f"{int(wrong[0])} is not a {self._what} of this view; numbers come from the view that is asked"
            )
        return [self._names[number] for number in asked.tolist()]
