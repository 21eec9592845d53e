"""kill -9 in the middle of bulk writes: every batch is all there or not at all, and nothing
committed is lost.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.drivers import run_driver


def test_eight_kills_leave_whole_batches_and_a_sound_file(tmp_path: Path, programs: Path) -> None:
    kill_and_check(tmp_path, programs, 8)


@pytest.mark.soak
def test_fifty_kills_leave_whole_batches_and_a_sound_file(tmp_path: Path, programs: Path) -> None:
    kill_and_check(tmp_path, programs, 50)


def kill_and_check(folder: Path, programs: Path, kills: int) -> None:
    report = run_driver(programs, "kill_driver.py", folder / "graph.db", kills)
    assert report["kills"] == kills
    assert report["torn_batches"] == []
    assert report["lost_batches"] == []
    assert report["problems"] == []
    assert report["killed_while_writing"] > kills // 2, "the kills came too early to prove anything"
