"""One memory for all examples of a property; each example has topics of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hades.memory.memory import Memory
from tests.unit.hades.memory.kept import Clock, empty_store, memory_on


@pytest.fixture(scope="module")
def clock() -> Clock:
    return Clock()


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory, clock: Clock) -> Iterator[Memory]:
    store = empty_store(tmp_path_factory.mktemp("memory"))
    yield memory_on(store, clock)
    store.close()
