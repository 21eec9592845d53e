"""Killed at random and run again, ingestion ends in the same snapshot as an uninterrupted run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.patience import HANG_SECONDS

DRIVER = Path(__file__).with_name("ingest_kill_driver.py")


def test_three_kills_end_in_the_same_manifest(tmp_path: Path) -> None:
    report = kill_and_compare(tmp_path, 3, 400)
    assert report["different"] == []


@pytest.mark.soak
def test_fifty_kills_end_in_the_same_manifest(tmp_path: Path) -> None:
    report = kill_and_compare(tmp_path, 50, 1_200)
    assert report["different"] == []
    assert report["late"] < 50 // 4, "too many builds ended before their kill: the moments are not spread"


def kill_and_compare(folder: Path, kills: int, passages: int) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, str(DRIVER), str(folder), str(kills), str(passages)],
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 0, done.stderr[-3000:]
    report: dict[str, Any] = json.loads(done.stdout)
    assert report["second_home"] is True, "two homes, one corpus, two manifests"
    return report
