"""kill -9 in the middle of bulk writes: every batch is all there or not at all, and nothing committed is lost."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import HANG_SECONDS

DRIVER = Path(__file__).with_name("kill_driver.py")


def test_eight_kills_leave_whole_batches_and_a_sound_file(tmp_path: Path) -> None:
    kill_and_check(tmp_path, 8)


@pytest.mark.soak
def test_fifty_kills_leave_whole_batches_and_a_sound_file(tmp_path: Path) -> None:
    kill_and_check(tmp_path, 50)


def kill_and_check(folder: Path, kills: int) -> None:
    done = subprocess.run(
        [sys.executable, str(DRIVER), str(folder / "graph.db"), str(kills)],
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 0, done.stderr[-3000:]
    report = json.loads(done.stdout)
    assert report["kills"] == kills
    assert report["torn_batches"] == []
    assert report["lost_batches"] == []
    assert report["problems"] == []
    assert report["killed_while_writing"] > kills // 2, "the kills came too early to prove anything"
