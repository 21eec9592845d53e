"""kill -9 in the middle of bulk writes: every batch is all there or not at all, and nothing committed is lost."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

DRIVER = Path(__file__).with_name("kill_driver.py")
KILLS = 50


def test_fifty_kills_leave_whole_batches_and_a_sound_file(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(DRIVER), str(tmp_path / "graph.db"), str(KILLS)],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 0, done.stderr[-3000:]
    report = json.loads(done.stdout)
    assert report["kills"] == KILLS
    assert report["torn_batches"] == []
    assert report["lost_batches"] == []
    assert report["problems"] == []
    assert report["killed_while_writing"] > KILLS // 2, "the kills came too early to prove anything"
