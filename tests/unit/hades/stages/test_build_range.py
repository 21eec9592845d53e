"""`hades build`: from a stage, for a range of days, as a dry run; and the lineage of every stage."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState
from typer.testing import CliRunner

from hades.build.night import STAGE_NAMES
from hades.surfaces.cli.commands import whole_app
from hades.telemetry.logs import StageRun, emitter

RUNNER = CliRunner()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("range")
    (folder / "notes").mkdir()
    (folder / "notes" / "page.md").write_text("# Rivers\n\nThe Rhine flows to the North Sea.\n", encoding="utf-8")
    return folder


@pytest.fixture(autouse=True)
def _here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HADES_HOME", str(folder / "home"))
    monkeypatch.setenv("HADES_EMBEDDER", "hashing")


def test_a_range_is_built_day_by_day_with_lineage_of_every_stage(folder: Path) -> None:
    _hades("ingest", "documents", "notes")
    planned = _hades("build", "--dry-run")
    assert planned["dry_run"]
    assert "released" in planned["stages"]
    assert not (folder / "home" / "snapshots" / "current").exists()
    built = _hades("build", "--as-of", "2026-01-01", "--until", "2026-01-02")["builds"]
    assert [one["as_of"][:10] for one in built] == ["2026-01-01", "2026-01-02"]
    part = _hades("build", "--from", "topics", "--as-of", "2026-01-03")["builds"][0]
    assert set(part).isdisjoint({"sources", "embeddings", "edges"})
    assert part["released"]["snapshot"]
    events = [json.loads(line) for line in (folder / "home" / "logs" / "lineage.jsonl").read_text().splitlines()]
    told = {(one["job"]["name"], one["eventType"]) for one in events}
    assert told == {(f"nightly.{name}", kind) for name in STAGE_NAMES for kind in ("START", "COMPLETE")}
    for one in events:
        _check(one)


def test_a_range_that_ends_before_it_begins_is_bad_usage() -> None:
    done = RUNNER.invoke(whole_app(), ["build", "--as-of", "2026-01-02", "--until", "2026-01-01"])
    assert done.exit_code == 2
    assert "--until needs an earlier --as-of" in done.output


def test_a_failed_stage_says_why_and_an_endpoint_that_is_down_stops_nothing(tmp_path: Path) -> None:
    event = StageRun("hades:test", "nightly-1", "edges", ("documents",), ("relations",)).event(
        "FAIL", datetime(2026, 1, 1, tzinfo=UTC), "ValueError: broken"
    )
    _check(event)
    assert event["run"]["facets"]["errorMessage"]["message"] == "ValueError: broken"
    emitter(tmp_path, "http://127.0.0.1:9/lineage")(event)
    assert json.loads((tmp_path / "lineage.jsonl").read_text(encoding="utf-8")) == event


def _check(event: dict[str, Any]) -> None:
    """Let the classes of OpenLineage's own client take the event: they check ids, times and states."""
    RunEvent(
        eventType=RunState[event["eventType"]],
        eventTime=event["eventTime"],
        producer=event["producer"],
        run=Run(runId=event["run"]["runId"]),
        job=Job(namespace=event["job"]["namespace"], name=event["job"]["name"]),
        inputs=[InputDataset(namespace=one["namespace"], name=one["name"]) for one in event["inputs"]],
        outputs=[OutputDataset(namespace=one["namespace"], name=one["name"]) for one in event["outputs"]],
    )
    assert event["schemaURL"].startswith("https://openlineage.io/spec/2-0-2/")


def _hades(*arguments: str) -> dict[str, Any]:
    done = RUNNER.invoke(whole_app(), [*arguments, "--json"])
    assert done.exit_code == 0, done.output
    document: dict[str, Any] = json.loads(done.stdout)
    return document
