"""What past nights leave is bounded: reports, runs and rankers of the newest, and of every snapshot
that is there.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from hades.night.model_versions import (
    CHAMPION,
    GENERATION,
    RANKER_MODEL,
    SERVED,
    retain_rankers,
)
from hades.ports.services import DATA_HASH, RunRecord, Tracker
from hades.wiring import open_hades, open_tracker
from tests.command_line import run, run_json
from tests.homes import live_in, settings_of
from tests.unit.hades.night.release.small_graphs import MONDAY, write_pages

NIGHTS = 3


def live_for_nights(home: Path, pages: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Nights that each change a page, of which the newest is kept; the first is tagged. The names
    of all nights.
    """
    live_in(home, monkeypatch)
    monkeypatch.setenv("HADES_NIGHTS_KEPT", "1")
    write_pages(pages, 2)
    names = []
    for number in range(NIGHTS):
        (pages / "changing.md").write_text(
            f"# Changing\n\nThe port of night {number} is {number}.\n"
        )
        with open_hades(settings_of(home, HADES_NIGHTS_KEPT="1")) as hades:
            hades.ingest.documents(pages)
            report = hades.build(as_of=MONDAY + timedelta(days=number), keep=1)
        names.append(Path(report["report"]).stem)
        if number == 0:
            run_json("tag", "release-1")
    return names


def test_reports_of_the_newest_nights_and_of_tagged_ones_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    names = live_for_nights(home, tmp_path / "pages", monkeypatch)
    kept = {path.stem for path in (home / "reports").glob("nightly-*")}
    assert kept == {names[0], names[-1]}
    status = run_json("status")
    assert status["kept"]["nights"] == 2
    assert status["kept"]["limit"] == 1
    assert "kept: 2 nights of at most 1 and those of snapshots" in run("status").output
    with closing(sqlite3.connect(home / "registry.db")) as registry:
        rows = registry.execute("SELECT name FROM runs WHERE experiment = 'hades-nightly'")
        assert {name for (name,) in rows} == kept
    assert len(run_json("log")["nights"]) == NIGHTS
    assert run_json("rollback", "--to", "release-1")["weights_version"] is not None


@pytest.mark.usefixtures("with_mlflow")
def test_runs_of_older_nights_go_from_mlflow_with_their_parts_files_and_inputs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    names = live_for_nights(home, tmp_path / "pages", monkeypatch)
    kept = {names[0], names[-1]}
    with closing(sqlite3.connect(home / "mlflow.db")) as registry:
        runs = dict(registry.execute("SELECT run_uuid, name FROM runs"))
        parts = registry.execute("SELECT value FROM tags WHERE key = 'mlflow.parentRunId'")
        parents = {parent for (parent,) in parts}
        versions = registry.execute(
            "SELECT run_id FROM model_versions WHERE current_stage = 'None'"
        )
        assert {run_id for (run_id,) in versions} <= set(runs)
        readers = registry.execute("SELECT destination_id FROM inputs")
        assert {run_id for (run_id,) in readers} <= set(runs)
        unread = "dataset_uuid NOT IN (SELECT source_id FROM inputs)"
        unread_count = registry.execute(f"SELECT count(*) FROM datasets WHERE {unread}")
        assert unread_count.fetchone() == (0,)
    assert {name for name in runs.values() if name.startswith("nightly-")} == kept
    assert kept <= {runs.get(parent) for parent in parents}
    assert sum(name == "weights" for name in runs.values()) == len(kept)
    folders = {path.name for path in (home / "artifacts").iterdir()}
    assert folders <= set(runs)
    assert run_json("rollback", "--to", "release-1")["weights_version"] is not None


@pytest.fixture(params=["file", "mlflow"])
def tracker(request: pytest.FixtureRequest, tmp_path: Path) -> Tracker:
    if request.param == "mlflow":
        request.getfixturevalue("with_mlflow")
    return open_tracker(settings_of(tmp_path / "home"))


def register_ranker(tracker: Tracker, number: int, folder: Path) -> str:
    path = folder / "ranker.npz"
    path.write_text(str(number))
    tags = {DATA_HASH: f"generation {number}", GENERATION: f"generation {number}"}
    record = RunRecord(f"ranker {number}", tags=tags, artifacts=[path])
    return tracker.register(RANKER_MODEL, tracker.log_run(RANKER_MODEL, record), path.name)


def test_rankers_that_a_rollback_needs_are_kept(tracker: Tracker, tmp_path: Path) -> None:
    versions = [register_ranker(tracker, number, tmp_path) for number in range(6)]
    for version in (versions[1], versions[2]):  # the former and the present champion
        tracker.tag(RANKER_MODEL, version, {SERVED: CHAMPION})
        tracker.set_alias(RANKER_MODEL, CHAMPION, version)
    retain_rankers(tracker, 1, {"generation 0"})
    kept = {version.version for version in tracker.versions(RANKER_MODEL)}
    assert kept == {versions[0], versions[1], versions[2], versions[5]}
