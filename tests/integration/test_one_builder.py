"""Commands that overlap build one after the other, whoever is killed, on a home and in a
database.
"""

from __future__ import annotations

import json
import time
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pytest

from tests.arango_double.server import ArangoDouble
from tests.integration.drivers import run_driver

PASSWORD = "of the double"
AT_ONCE = 8
FASTER = 3  # as in the driver


@pytest.mark.slow
@pytest.mark.integration
@pytest.mark.parametrize("store", ["sqlite", "arango"])
def test_eight_commands_at_once_build_one_at_a_time_and_lose_nothing(
    tmp_path: Path, programs: Path, store: str
) -> None:
    assert run_rounds(tmp_path, programs, store, 1, killed=1)["documents"] == AT_ONCE


@pytest.mark.soak
@pytest.mark.parametrize("store", ["sqlite", "arango"])
def test_twenty_rounds_of_eight_commands_lose_nothing(
    tmp_path: Path, programs: Path, store: str
) -> None:
    assert run_rounds(tmp_path, programs, store, 20, killed=2)["stopped"] >= 5


def run_rounds(
    folder: Path, programs: Path, store: str, rounds: int, *, killed: int
) -> dict[str, Any]:
    server: AbstractContextManager[ArangoDouble | None] = (
        ArangoDouble(root_password=PASSWORD, clock=lambda: FASTER * time.monotonic())
        if store == "arango"
        else nullcontext()
    )
    with server as running:
        reached = (
            {}
            if running is None
            else {
                "HADES_STORE": "arango",
                "HADES_ARANGO_URL": running.url,
                "HADES_ARANGO_DATABASE": "kg",
                "HADES_ARANGO_USER": "root",
                "HADES_ARANGO_PASSWORD": PASSWORD,
            }
        )
        report = run_driver(
            programs,
            "one_builder_driver.py",
            folder,
            rounds,
            killed,
            json.dumps(reached),
            seconds=1800,
        )
    assert report["failed"] == []
    assert report["overlaps"] == []
    assert report["documents"] == AT_ONCE * rounds
    assert report["dangling"] == {}
    return report
