"""The registry without MLflow keeps the promises of the port."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hades.ports.services import DATA_HASH, RunRecord, TrackingError
from hades.providers.file_registry import FileTracker


@pytest.fixture
def tracker(tmp_path: Path) -> FileTracker:
    return FileTracker(tmp_path / "registry.db", tmp_path / "artifacts")


def logged(tracker: FileTracker, folder: Path, data_hash: str, text: str) -> str:
    path = folder / "weights.bin"
    path.write_text(text)
    record = RunRecord(
        "night", {"a": 1}, {"m": 0.5}, {DATA_HASH: data_hash}, artifacts=[path], tables={"t": [{"a": 1}]}
    )
    run = tracker.log_run("weights", record)
    return tracker.register("edges", run, "weights.bin")


def test_the_same_data_is_logged_and_registered_once(tracker: FileTracker, tmp_path: Path) -> None:
    assert logged(tracker, tmp_path, "h1", "one") == "1"
    assert logged(tracker, tmp_path, "h1", "one") == "1"
    assert logged(tracker, tmp_path, "h2", "two") == "2"
    assert [one.version for one in tracker.versions("edges")] == ["2", "1"]
    assert tracker.fetch("edges", "1").read_text() == "one"


def test_an_alias_moves_and_protects_its_version(tracker: FileTracker, tmp_path: Path) -> None:
    logged(tracker, tmp_path, "h1", "one")
    logged(tracker, tmp_path, "h2", "two")
    tracker.set_alias("edges", "champion", "1")
    tracker.set_alias("edges", "champion", "2")
    assert tracker.alias("edges", "champion") == "2"
    with pytest.raises(TrackingError, match="named by champion"):
        tracker.delete_version("edges", "2")
    tracker.delete_version("edges", "1")
    assert logged(tracker, tmp_path, "h3", "three") == "3"  # a number is never used again


def test_tags_that_two_give_at_once_are_all_kept(tracker: FileTracker, tmp_path: Path) -> None:
    version = logged(tracker, tmp_path, "h1", "one")
    with ThreadPoolExecutor(8) as people:
        list(people.map(lambda number: tracker.tag("edges", version, {f"t{number}": "x"}), range(48)))
    assert {f"t{number}" for number in range(48)} <= tracker.known("edges", version).tags.keys()


def test_a_changed_or_missing_file_is_refused(tracker: FileTracker, tmp_path: Path) -> None:
    logged(tracker, tmp_path, "h1", "one")
    path = tracker.fetch("edges", "1")
    path.write_text("other")
    with pytest.raises(TrackingError, match="changed after it was logged"):
        tracker.fetch("edges", "1")
    path.unlink()
    with pytest.raises(TrackingError, match="is gone"):
        tracker.fetch("edges", "1")
    with pytest.raises(TrackingError, match="has no version 9"):
        tracker.tag("edges", "9", {"a": "b"})
