"""Decoded pages that are kept between scans, as far as a budget goes: a build scans the same rows a dozen times.

A page is known by its number in the file and its checksum, and these are read at every scan. So a page that was
written since, by whichever process, is read again.
"""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock
from typing import NamedTuple

import pyarrow as pa

HELD_BYTES = 64 << 20


class PageVersion(NamedTuple):
    """What a page is recognised by: its number, rows, checksum, layout and the columns left out."""

    id: int
    rows: int
    crc: int
    layout: int
    absent: int


@dataclass(frozen=True)
class _HeldPage:
    version: PageVersion
    batch: pa.RecordBatch
    size: int


class HeldPages:
    """The pages of one store; once the budget is spent no more are taken until others were dropped."""

    def __init__(self, budget_bytes: int = HELD_BYTES) -> None:
        self._left = budget_bytes
        self._trees: dict[int, dict[str, _HeldPage]] = {}
        self._lock = Lock()

    def find(self, tree: int, fence: str, version: PageVersion) -> pa.RecordBatch | None:
        """The rows of a page, where they are held and it has not been written since."""
        held = self._trees.get(tree, {}).get(fence)
        return held.batch if held is not None and held.version == version else None

    def has_room(self, size: int) -> bool:
        """Whether a page of that size would be held."""
        return size <= self._left

    def keep(self, tree: int, fence: str, version: PageVersion, batch: pa.RecordBatch, size: int) -> None:
        """Hold the rows of a page, in place of what was held of it."""
        with self._lock:
            pages = self._trees.setdefault(tree, {})
            self._remove(pages, fence)
            if size <= self._left:
                pages[fence] = _HeldPage(version, batch, size)
                self._left -= size

    def drop(self, tree: int, first: str, last: str) -> None:
        """Let go of the pages between two fences, which are about to be written."""
        with self._lock:
            pages = self._trees.get(tree, {})
            for fence in [one for one in pages if first <= one <= last]:
                self._remove(pages, fence)

    def _remove(self, pages: dict[str, _HeldPage], fence: str) -> None:
        held = pages.pop(fence, None)
        if held is not None:
            self._left += held.size
