"""One built home for all tests of contracts; each test damages its own copy."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from hades.ports.store import Mode
from hades.stores.sqlite.store import SqliteStore
from tests.unit.hades.night.contracts.built import build


@pytest.fixture(autouse=True)
def _engine(whole_installation: None) -> None:
    """Great Expectations, as where the flows are installed."""


@pytest.fixture(scope="session")
def sound_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home whose every contract holds. Nobody writes into it."""
    folder = tmp_path_factory.mktemp("sound")
    build(folder).close()
    return folder


@pytest.fixture
def home(sound_home: Path, tmp_path: Path) -> Path:
    """A copy of the sound home."""
    return Path(shutil.copytree(sound_home, tmp_path / "home"))


@pytest.fixture
def store(home: Path) -> Iterator[SqliteStore]:
    """The copy's store, writable."""
    opened = SqliteStore.open(home / "graph.db", Mode.ADMIN)
    yield opened
    opened.close()
