"""Answers kept as long as their snapshot serves: the same question of the same graph has the same answer.

Questions repeat, and an answer is a function of the snapshot and of what was asked. What depended on the moment (a turn
that ran out of time, a view that was degraded, a graph that is read live) is not kept.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass

from schemas.plan import Reason
from schemas.telemetry import QueryLog

_OF_THE_MOMENT = frozenset({Reason.TIMEOUT, Reason.VIEW_DEGRADED})


@dataclass(frozen=True)
class CachedAnswer:
    """An answer as JSON text, and the log of the turn that worked it out."""

    log: QueryLog
    text: bytes


class AnswerCache:
    """The most recently asked answers of one snapshot, at most so many bytes of JSON."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._held: OrderedDict[str, CachedAnswer] = OrderedDict()
        self._snapshot, self._bytes = "", 0
        self._lock = threading.Lock()
        self.hits = 0

    @property
    def bytes(self) -> int:
        """What is held."""
        return self._bytes

    def find(self, snapshot: str, asked: str) -> CachedAnswer | None:
        """The answer that this snapshot gave to this question, if it is held."""
        with self._lock:
            if snapshot != self._snapshot or asked not in self._held:
                return None
            self._held.move_to_end(asked)
            self.hits += 1
            return self._held[asked]

    def keep(self, asked: str, kept: CachedAnswer) -> None:
        """Hold an answer; those of another snapshot go, and the least recently asked where there is no room."""
        snapshot = kept.log.snapshot
        if len(kept.text) > self._max_bytes // 4 or _OF_THE_MOMENT & set(kept.log.reasons):
            return
        with self._lock:
            if snapshot != self._snapshot:
                self._held.clear()
                self._snapshot, self._bytes = snapshot, 0
            if (before := self._held.pop(asked, None)) is not None:
                self._bytes -= len(before.text)
            self._held[asked] = kept
            self._bytes += len(kept.text)
            while self._bytes > self._max_bytes:
                _, oldest = self._held.popitem(last=False)
                self._bytes -= len(oldest.text)
