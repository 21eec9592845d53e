"""Where an entry starts: importance is how likely it is to be asked for again, as far as that has been measured.

    importance = (prior + repeats) / (1 + repeats) + recency + confidence + recent question,  within [0, 1]

`repeats` is how often the key was asked for before, forgotten by halves. `prior` is what the caller says, else the
share of keys that were asked for again so far, 0.5 before any were. The other terms are those of requirement A44: +0.3,
+0.2 or +0.1 for what was updated less than 1, 7 or 30 days ago, +0.2 or +0.1 for a confidence above 0.8 or 0.5, +0.3
once where an earlier question stands in the data. There is no term for length: scoring holds length against a path, so
importance must not reward it (X-25).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from threading import Lock
from typing import Any

from hades.cache.tier import MemoryTier, to_json

BASE = 0.5
RECENCY = ((1, 0.3), (7, 0.2), (30, 0.1))  # days, bonus
CONFIDENCE = ((0.8, 0.2), (0.5, 0.1))  # above, bonus
RECENT_QUESTION = 0.3
REMEMBERED_KEYS = 65_536
_DOUBT = 10  # keys that must be measured before they outweigh the base


class Reuse:
    """How often each key was asked for, counted in one process. Counts are halved from time to time (TinyLFU's ageing).

    So it follows what is asked now, and never holds more than a fixed number of keys.
    """

    def __init__(self, keys: int = REMEMBERED_KEYS) -> None:
        self._keys = keys
        self._asks: dict[str, int] = {}
        self._repeated = 0
        self._lock = Lock()

    def asked(self, key: str) -> None:
        """Count one."""
        with self._lock:
            if key not in self._asks and len(self._asks) >= self._keys:
                self._age()
            self._asks[key] = self._asks.get(key, 0) + 1
            self._repeated += self._asks[key] == 2

    def repeats(self, key: str) -> int:
        """How often it was asked for before this time."""
        with self._lock:
            return max(0, self._asks.get(key, 0) - 1)

    @property
    def share(self) -> float:
        """The share of the other keys that were asked for again, drawn towards 0.5 while there are few."""
        with self._lock:
            return (self._repeated + _DOUBT * BASE) / (max(0, len(self._asks) - 1) + _DOUBT)

    def _age(self) -> None:
        """Halve every count; keys that were asked for once are forgotten, and if none were, the oldest quarter."""
        kept = {key: asks // 2 for key, asks in self._asks.items() if asks > 1}
        if len(kept) >= self._keys:
            kept = dict(list(kept.items())[-(self._keys * 3 // 4) :])
        self._asks = kept
        self._repeated = sum(asks > 1 for asks in kept.values())


def importance(
    data: Any, *, now: datetime, repeats: int = 0, prior: float = BASE, earlier: Iterable[str] = ()
) -> float:
    """How likely an entry is to be asked for again, in [0, 1]. `earlier` are questions before the one it answers."""
    value = (prior + repeats) / (1 + repeats)
    if isinstance(data, Mapping):
        value += _recency(data.get("updated_at"), now) + _confidence(data.get("confidence"))
    return min(1.0, max(0.0, value + _find_mentioned(data, earlier)))


def starting_tier(importance: float, threshold: float) -> MemoryTier:
    """RAM from the threshold on, the fast disk from half of it, else the reliable one (A43)."""
    if importance >= threshold:
        return MemoryTier.RAM
    return MemoryTier.NVME_RAID0 if importance >= threshold / 2 else MemoryTier.RAID1


def _recency(updated_at: object, now: datetime) -> float:
    """A time without a zone is taken as UTC; what is no time says nothing."""
    if isinstance(updated_at, str):
        try:
            updated_at = datetime.fromisoformat(updated_at)
        except ValueError:
            return 0.0
    if not isinstance(updated_at, datetime):
        return 0.0
    aware = updated_at if updated_at.tzinfo is not None else updated_at.replace(tzinfo=UTC)
    days = (now - aware).total_seconds() / 86_400
    return next((bonus for limit, bonus in RECENCY if days < limit), 0.0)


def _confidence(confidence: object) -> float:
    if isinstance(confidence, bool) or not isinstance(confidence, int | float):
        return 0.0
    return next((bonus for limit, bonus in CONFIDENCE if confidence > limit), 0.0)


def _find_mentioned(data: Any, earlier: Iterable[str]) -> float:
    questions = [question.lower() for question in earlier if question.strip()]
    if not questions:
        return 0.0
    body = to_json(data)
    text = (str(data) if body is None else body.decode()).lower()
    return RECENT_QUESTION if any(question in text for question in questions) else 0.0
