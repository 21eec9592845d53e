"""The tier in memory: the least recently used leaves first, and the bytes held never exceed the budget.

Values are held as JSON bytes. So the budget counts what the process really holds (a parsed answer takes several times
its text), and nobody who changes what a look-up returned changes what the next one returns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import RLock
from typing import Any

import cachetools

from hades.cache.tier import MIB, Counts, from_json, to_json

UNKNOWN_BYTES = MIB // 10  # what an object counts that JSON cannot hold
OnEvict = Callable[[str, Any], object]


@dataclass(frozen=True, slots=True)
class _Entry:
    """JSON bytes, or the object itself where JSON cannot hold it; `size` is what it was counted with."""

    payload: bytes | None
    value: object
    size: int

    def read(self) -> Any:
        return self.value if self.payload is None else from_json(self.payload)


class _Order(cachetools.LRUCache[str, _Entry]):
    """The library's order and accounting; whoever it pushes out is remembered."""

    def __init__(self, max_bytes: int) -> None:
        super().__init__(max_bytes, getsizeof=lambda held: held.size)
        self.left: list[tuple[str, _Entry]] = []

    def popitem(self) -> tuple[str, _Entry]:
        item = super().popitem()
        self.left.append(item)
        return item


class LRUCache:
    """Safe to use from several threads. `on_evict` is told who was pushed out, after the lock is given back."""

    def __init__(self, max_size_mb: float = 8192, *, on_evict: OnEvict | None = None) -> None:
        if max_size_mb <= 0:
            raise ValueError(f"max_size_mb is {max_size_mb}; a cache needs room for something")
        self.max_size_mb = max_size_mb
        self.max_bytes = int(max_size_mb * MIB)
        self.counts = Counts()
        self._order = _Order(self.max_bytes)
        self._lock = RLock()
        self._on_evict = on_evict

    def get(self, key: str, default: Any = None) -> Any:
        """The value, now the most recently used; `default` on a miss (pass `MISS` to tell one from a stored None)."""
        with self._lock:
            self.counts.asked += 1
            held = self._order.get(key)
            if held is None:
                return default
            self.counts.hits += 1
        return held.read()

    def put(self, key: str, value: Any, size_mb: float | None = None) -> bool:
        """Keep a value, pushing out others as needed; False when it is larger than the cache.

        What the key held before is gone either way: a value that was replaced is never handed out again.
        """
        held = _measure(value, size_mb)
        with self._lock:
            self._order.pop(key, None)
            if held.size > self.max_bytes:
                return False
            self._order[key] = held
            left, self._order.left = self._order.left, []
            self.counts.stored += 1
            self.counts.evicted += len(left)
        if self._on_evict is not None:
            for name, pushed_out in left:
                self._on_evict(name, pushed_out.read())
        return True

    def remove(self, key: str) -> bool:
        """Let go of a key; whether it was there."""
        with self._lock:
            return self._order.pop(key, None) is not None

    def clear(self) -> int:
        """Let go of everything; how many there were."""
        with self._lock:
            count = len(self._order)
            self._order = _Order(self.max_bytes)
            return count

    def items(self) -> list[tuple[str, Any]]:
        """Everything held, in the order in which it came; says nothing about use."""
        with self._lock:
            held = [(key, cachetools.Cache.__getitem__(self._order, key)) for key in self._order]
        return [(key, one.read()) for key, one in held]

    @property
    def current_bytes(self) -> int:
        """The sum of the sizes held."""
        with self._lock:
            return int(self._order.currsize)

    @property
    def current_size_mb(self) -> float:
        """The same in MiB."""
        return self.current_bytes / MIB

    def __contains__(self, key: object) -> bool:
        """Whether the key is held; says nothing about use."""
        with self._lock:
            return key in self._order

    def __len__(self) -> int:
        with self._lock:
            return len(self._order)


def _measure(value: Any, size_mb: float | None) -> _Entry:
    """Counted by its JSON bytes, or as the caller says; the size stays with the entry: what is added is taken off."""
    written = to_json(value)
    # A copy of exactly its size: the writer's own buffer keeps its spare room, two and a half times the bytes counted.
    payload = None if written is None else bytes(memoryview(written))
    if size_mb is not None:
        if size_mb < 0:
            raise ValueError(f"size_mb is {size_mb}; a size cannot be negative")
        return _Entry(payload, None if payload is not None else value, round(size_mb * MIB))
    if payload is None:
        return _Entry(None, value, UNKNOWN_BYTES)
    return _Entry(payload, None, len(payload))
