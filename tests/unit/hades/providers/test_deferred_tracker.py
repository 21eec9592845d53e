"""Writes to the registry wait in files and end up in it as if they had been made at once."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from hades.ports.services import DATA_HASH, TrackingError
from hades.providers.file_registry import MOST_RUNS, DeferredTracker, FileTracker, stamp_of


@pytest.fixture
def inner(tmp_path: Path) -> FileTracker:
    return FileTracker(tmp_path / "registry.db", tmp_path / "artifacts")


def deferred(inner: FileTracker, folder: Path) -> DeferredTracker:
    """The registry as a new process finds it."""
    return DeferredTracker(inner, folder / "outbox", lambda: stamp_of(folder / "registry.db"))


def log_night(tracker: DeferredTracker, folder: Path, data_hash: str) -> str:
    path = folder / "weights.bin"
    path.write_text(f"weights of {data_hash}")
    if (known := tracker.version_of("edges", data_hash)) is not None:
        return known
    tags = {DATA_HASH: data_hash}
    run = tracker.log_run("weights", "night", params={"a": 1}, metrics={"m": 0.5}, artifacts=[path], tags=tags)
    version = tracker.register("edges", run, "weights.bin")
    tracker.tag("edges", version, {"snapshot": data_hash})
    tracker.set_alias("edges", "champion", version)
    return version


def test_the_first_write_goes_to_the_registry_and_later_ones_wait(inner: FileTracker, tmp_path: Path) -> None:
    assert log_night(deferred(inner, tmp_path), tmp_path, "h1") == "1"
    assert inner.alias("edges", "champion") == "1"
    assert log_night(deferred(inner, tmp_path), tmp_path, "h2") == "2"
    assert [one.version for one in inner.versions("edges")] == ["1"]
    reader = deferred(inner, tmp_path)
    assert [one.version for one in reader.versions("edges")] == ["2", "1"]
    assert reader.alias("edges", "champion") == "2"
    assert inner.versions("edges")[0].tags["snapshot"] == "h2"
    assert reader.fetch("edges", "2").read_text() == "weights of h2"


def test_the_same_data_that_waits_is_registered_once(inner: FileTracker, tmp_path: Path) -> None:
    for data_hash in ("h1", "h2", "h2", "h1", "h3"):
        log_night(deferred(inner, tmp_path), tmp_path, data_hash)
    assert [one.version for one in deferred(inner, tmp_path).versions("edges")] == ["3", "2", "1"]


def test_a_delivery_that_was_cut_short_is_repeated_without_harm(inner: FileTracker, tmp_path: Path) -> None:
    log_night(deferred(inner, tmp_path), tmp_path, "h1")
    log_night(deferred(inner, tmp_path), tmp_path, "h2")
    shutil.copytree(tmp_path / "outbox", tmp_path / "before")
    assert deferred(inner, tmp_path).alias("edges", "champion") == "2"
    shutil.rmtree(tmp_path / "outbox")
    (tmp_path / "before").rename(tmp_path / "outbox")
    reader = deferred(inner, tmp_path)
    assert [one.version for one in reader.versions("edges")] == ["2", "1"]
    assert reader.alias("edges", "champion") == "2"


def test_a_write_by_somebody_else_is_seen_before_the_next_number_is_given(inner: FileTracker, tmp_path: Path) -> None:
    log_night(deferred(inner, tmp_path), tmp_path, "h1")
    path = tmp_path / "other.bin"
    path.write_text("other")
    run = inner.log_run("weights", "other", params={}, metrics={}, artifacts=[path], tags={DATA_HASH: "x"})
    assert inner.register("edges", run, "other.bin") == "2"
    assert log_night(deferred(inner, tmp_path), tmp_path, "h3") == "3"
    assert [one.version for one in inner.versions("edges")] == ["3", "2", "1"]


def test_only_a_few_runs_wait_and_old_versions_go_with_the_delivery(inner: FileTracker, tmp_path: Path) -> None:
    for number in range(MOST_RUNS + 3):
        tracker = deferred(inner, tmp_path)
        version = log_night(tracker, tmp_path, f"h{number}")
        tracker.keep_newest("edges", 3, [])
        assert version == str(number + 1)
    assert len(inner.versions("edges")) <= 4  # the newest one may wait
    assert int(inner.alias("edges", "champion") or 0) > MOST_RUNS
    assert len(deferred(inner, tmp_path).versions("edges")) == 3


def test_a_version_that_is_not_there_is_refused(inner: FileTracker, tmp_path: Path) -> None:
    log_night(deferred(inner, tmp_path), tmp_path, "h1")
    with pytest.raises(TrackingError, match="has no version 9"):
        deferred(inner, tmp_path).tag("edges", "9", {"a": "b"})
