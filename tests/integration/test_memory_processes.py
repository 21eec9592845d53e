"""Many processes write one memory, some are killed: versions without gaps, nothing lost, the latest
right.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.integration.drivers import run_driver
from tests.patience import HANG_SECONDS

DRIVER = "memory_driver.py"


def test_eight_processes_write_without_gaps(tmp_path: Path, programs: Path) -> None:
    check(run(tmp_path, programs, writers=8, versions=60, topics=5, kills=0), versions=60, topics=5)


def test_eight_processes_write_one_topic_without_gaps(tmp_path: Path, programs: Path) -> None:
    check(run(tmp_path, programs, writers=8, versions=40, topics=1, kills=0), versions=40, topics=1)


def test_kills_lose_nothing_that_was_committed_and_leave_no_gap(
    tmp_path: Path, programs: Path
) -> None:
    report = run(tmp_path, programs, writers=4, versions=80, topics=5, kills=6)
    assert report["killed"] >= 1, "the kills came too late to prove anything"
    check(report, versions=80, topics=5)


@pytest.mark.soak
@pytest.mark.parametrize("kills", [0, 40])
def test_ten_thousand_versions_of_fifty_topics(tmp_path: Path, programs: Path, kills: int) -> None:
    report = run(tmp_path, programs, writers=8, versions=10_000, topics=50, kills=kills)
    assert report["killed"] == kills
    check(report, versions=10_000, topics=50)


@pytest.mark.soak
def test_eight_processes_write_ten_thousand_versions_of_one_topic(
    tmp_path: Path, programs: Path
) -> None:
    check(
        run(tmp_path, programs, writers=8, versions=10_000, topics=1, kills=0),
        versions=10_000,
        topics=1,
    )


def check(report: dict[str, Any], *, versions: int, topics: int) -> None:
    assert report["problems"] == []
    assert report["wrong_latest"] == []
    assert report["unreadable"] == []
    assert report["lost"] == []
    assert report["noted_twice"] == 0
    assert report["topics"] == topics
    assert report["noted"] == versions
    # A writer that was killed between its commit and its note wrote more than it noted, never less.
    assert versions <= report["versions"] <= versions + 5 * report["killed"]
    assert report["edges"] == report["versions"] - topics
    assert report["acts"] == report["versions"]


def run(
    folder: Path, programs: Path, *, writers: int, versions: int, topics: int, kills: int
) -> dict[str, Any]:
    """The driver's report; ten thousand versions take three minutes of processor time, on a busy
    machine far longer.
    """
    seconds = (5 if versions > 1_000 else 2) * HANG_SECONDS
    return run_driver(
        programs, DRIVER, folder / "graph.db", writers, versions, topics, kills, seconds=seconds
    )
