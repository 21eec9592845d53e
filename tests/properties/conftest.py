"""One memory for all examples of a property, each of which has topics of its own; and how often
they are tried.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, Phase, settings

from hades.memory.memory import Memory
from tests.homes import empty_store
from tests.patience import examples
from tests.unit.hades.memory.kept import Clock, memory_on


@pytest.fixture(scope="module")
def clock() -> Clock:
    return Clock()


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory, clock: Clock) -> Iterator[Memory]:
    store = empty_store(tmp_path_factory.mktemp("memory") / "graph.db")
    yield memory_on(store, clock)
    store.close()


def writing(number: int) -> settings:
    """How a property that writes to this memory is tried: an example takes a second, shrinking one
    takes hundreds.
    """
    return settings(
        max_examples=examples(number),
        deadline=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )
