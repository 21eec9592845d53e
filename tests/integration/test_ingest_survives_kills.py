"""Killed at random and run again, ingestion ends in the same snapshot as an uninterrupted run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.integration.drivers import run_driver


def test_three_kills_end_in_the_same_manifest(tmp_path: Path, programs: Path) -> None:
    report = kill_and_compare(tmp_path, programs, 3, 400)
    assert report["different"] == []


@pytest.mark.soak
def test_fifty_kills_end_in_the_same_manifest(tmp_path: Path, programs: Path) -> None:
    report = kill_and_compare(tmp_path, programs, 50, 1_200)
    assert report["different"] == []
    assert report["late"] < 50 // 4, (
        "too many builds ended before their kill: the moments are not spread"
    )


def kill_and_compare(folder: Path, programs: Path, kills: int, passages: int) -> dict[str, Any]:
    report = run_driver(programs, "ingest_kill_driver.py", folder, kills, passages)
    assert report["second_home"] is True, "two homes, one corpus, two manifests"
    return report
