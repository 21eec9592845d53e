"""Killed at random and run again, ingestion ends in the very snapshot of an undisturbed run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

DRIVER = Path(__file__).with_name("ingest_kill_driver.py")
KILLS = 50


def test_fifty_kills_end_in_the_same_manifest(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(DRIVER), str(tmp_path), str(KILLS)],
        capture_output=True,
        text=True,
        timeout=800,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 0, done.stderr[-3000:]
    report = json.loads(done.stdout)
    assert report["second_home"] is True, "two homes, one corpus, two manifests"
    assert report["different"] == []
    assert report["late"] < KILLS // 4, "too many builds ended before their kill: the moments are not spread"
