"""A clock and an empty memory for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hades.memory.memory import Memory
from tests.homes import empty_store
from tests.unit.hades.memory.kept import Clock, memory_on


@pytest.fixture
def clock() -> Clock:
    """Starts at T1."""
    return Clock()


@pytest.fixture
def memory(tmp_path: Path, clock: Clock) -> Iterator[Memory]:
    """Empty, on a real file."""
    store = empty_store(tmp_path / "graph.db")
    yield memory_on(store, clock)
    store.close()
