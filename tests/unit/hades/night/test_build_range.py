"""`hades build`: from a stage, for a range of days, as a dry run; and the lineage of every
stage.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState
from openlineage.client.generated import (
    column_lineage_dataset,
    data_quality_assertions_dataset,
    error_message_run,
    input_statistics_input_dataset,
    output_statistics_output_dataset,
    parent_run,
    schema_dataset,
)

from hades.night.stage import begin
from hades.night.stages import NIGHT, STAGE_NAMES, StageRun, check_stage
from hades.ports.services import Dataset
from hades.settings.tree import Settings
from hades.telemetry import logs
from hades.telemetry.logs import emitter
from hades.wiring import open_hades
from schemas.catalogue import collection_named
from tests.command_line import run, run_json
from tests.homes import live_in


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("range")
    (folder / "notes").mkdir()
    (folder / "notes" / "page.md").write_text(
        "# Rivers\n\nThe Rhine flows to the North Sea.\n", encoding="utf-8"
    )
    return folder


@pytest.fixture(autouse=True)
def _here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    live_in(folder / "home", monkeypatch, folder)


def test_a_range_is_built_day_by_day_with_lineage_of_every_stage(folder: Path) -> None:
    run_json("ingest", "documents", "notes")
    planned = run_json("build", "--dry-run")
    assert planned["dry_run"]
    assert "released" in planned["stages"]
    assert not (folder / "home" / "snapshots" / "current").exists()
    built = run_json("build", "--as-of", "2026-01-01", "--until", "2026-01-02")["builds"]
    assert [one["as_of"][:10] for one in built] == ["2026-01-01", "2026-01-02"]
    part = run_json("build", "--from", "topics", "--as-of", "2026-01-03")["builds"][0]
    assert set(part).isdisjoint({"sources", "embeddings", "edges"})
    assert part["released"]["snapshot"]
    events = [
        json.loads(line)
        for line in (folder / "home" / "logs" / "lineage.jsonl").read_text().splitlines()
    ]
    told = {(one["job"]["name"], one["eventType"]) for one in events}
    contracts = {f"contracts.{name}" for stage in NIGHT for name in stage.contracts}
    assert told == {
        (f"nightly.{name}", kind)
        for name in {*STAGE_NAMES, *contracts}
        for kind in ("START", "COMPLETE")
    }
    for one in events:
        _check(one)


def test_lineage_tells_schema_rows_rules_and_columns(folder: Path) -> None:
    run_json("ingest", "documents", "notes")
    run_json("build", "--as-of", "2026-01-04")
    events = [
        json.loads(line)
        for line in (folder / "home" / "logs" / "lineage.jsonl").read_text().splitlines()
    ]
    done = {one["job"]["name"]: one for one in events if one["eventType"] == "COMPLETE"}
    (chunks,) = done["nightly.embeddings"]["inputs"]
    assert chunks["inputFacets"]["inputStatistics"]["rowCount"] == 1
    assert {"name": "text", "type": "string"} in chunks["facets"]["schema"]["fields"]
    relations = {one["name"]: one for one in done["nightly.weights"]["outputs"]}["relations"]
    weight = relations["facets"]["columnLineage"]["fields"]["weight"]["inputFields"]
    assert ("query_logs", "feedback") in {(one["name"], one["field"]) for one in weight}
    checked = {one["name"]: one for one in done["nightly.contracts.nodes"]["inputs"]}
    rules = {
        one["name"]: one
        for one in checked["entities"]["inputFacets"]["dataQualityAssertions"]["assertions"]
    }
    assert (
        rules["nodes.entity_has_name"]["column"],
        rules["nodes.entity_has_name"]["success"],
    ) == ("name", True)


def test_columns_of_lineage_are_columns_that_the_stage_reads_and_writes() -> None:
    for stage in NIGHT:
        for made, sources in stage.made_of.items():
            for name, allowed in (
                (made, stage.writes),
                *((source, stage.reads) for source in sources),
            ):
                collection, _, column = name.partition(".")
                assert collection in allowed, f"{stage.name}: {name}"
                assert column in collection_named(collection).schema.names, f"{stage.name}: {name}"


def test_a_broken_rule_is_told_before_the_build_stops(folder: Path) -> None:
    with open_hades(Settings(home=folder / "broken", embedder="hashing")) as hades:
        hades.ingest.documents(folder / "notes")
        (key,) = (
            hades.store.scan("documents", columns=["_key"]).__next__().column("_key").to_pylist()
        )
        hades.store.patch("documents", pa.table({"_key": [key], "origin": [""]}))
        outcome = check_stage(hades.build_context, begin(), ["nodes"])
    assert outcome.broken_rules
    event = json.loads((folder / "broken" / "logs" / "lineage.jsonl").read_text().splitlines()[-1])
    _check(event)
    documents = {one["name"]: one for one in event["inputs"]}["documents"]
    failed = [
        one["name"]
        for one in documents["inputFacets"]["dataQualityAssertions"]["assertions"]
        if not one["success"]
    ]
    assert (event["eventType"], failed) == ("FAIL", ["nodes.document_has_origin"])


def test_a_range_that_ends_before_it_begins_is_bad_usage() -> None:
    done = run("build", "--as-of", "2026-01-02", "--until", "2026-01-01")
    assert done.exit_code == 2
    assert "--until needs an earlier --as-of" in done.output


def test_a_failed_stage_says_why_and_an_endpoint_that_is_down_stops_nothing(tmp_path: Path) -> None:
    read, written = Dataset("documents", "", "home", 1), Dataset("relations", "", "home")
    event = StageRun("hades:test", "nightly-1", "edges", [read], [written]).event(
        "FAIL", datetime(2026, 1, 1, tzinfo=UTC), "ValueError: broken"
    )
    _check(event)
    assert event["run"]["facets"]["errorMessage"]["message"] == "ValueError: broken"
    emitter(tmp_path, "http://127.0.0.1:9/lineage")(event)
    assert json.loads((tmp_path / "lineage.jsonl").read_text(encoding="utf-8")) == event


def test_the_file_of_lineage_does_not_grow_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "FILE_BYTES", 100)
    emit = emitter(tmp_path, None)
    for number in range(1_000):
        emit({"event": number})
    written = "".join(path.read_text() for path in sorted(tmp_path.glob("lineage*")))
    assert len(written) < 400
    assert json.dumps({"event": 999}) in written


def _check(event: dict[str, Any]) -> None:
    """Let the classes of OpenLineage's own client take the event: they check ids, times, states,
    facets.
    """
    RunEvent(
        eventType=RunState[event["eventType"]],
        eventTime=event["eventTime"],
        producer=event["producer"],
        run=Run(runId=event["run"]["runId"], facets=_facets(event["run"]["facets"])),
        job=Job(namespace=event["job"]["namespace"], name=event["job"]["name"]),
        inputs=[
            InputDataset(
                one["namespace"],
                one["name"],
                facets=_facets(one["facets"]),
                inputFacets=_facets(one["inputFacets"]),
            )
            for one in event["inputs"]
        ],
        outputs=[
            OutputDataset(
                one["namespace"],
                one["name"],
                facets=_facets(one["facets"]),
                outputFacets=_facets(one["outputFacets"]),
            )
            for one in event["outputs"]
        ],
    )
    assert event["schemaURL"].startswith("https://openlineage.io/spec/2-0-2/")


FACETS: dict[str, Callable[..., Any]] = {
    "parent": lambda run, job: parent_run.ParentRunFacet(
        parent_run.Run(**run), parent_run.Job(**job)
    ),
    "errorMessage": error_message_run.ErrorMessageRunFacet,
    "schema": lambda fields: schema_dataset.SchemaDatasetFacet(
        [schema_dataset.SchemaDatasetFacetFields(**one) for one in fields]
    ),
    "columnLineage": lambda fields: column_lineage_dataset.ColumnLineageDatasetFacet(
        {
            name: column_lineage_dataset.Fields(
                [column_lineage_dataset.InputField(**one) for one in made["inputFields"]]
            )
            for name, made in fields.items()
        }
    ),
    "inputStatistics": input_statistics_input_dataset.InputStatisticsInputDatasetFacet,
    "outputStatistics": output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet,
    "dataQualityAssertions": lambda assertions: (
        data_quality_assertions_dataset.DataQualityAssertionsDatasetFacet(
            [data_quality_assertions_dataset.Assertion(**one) for one in assertions]
        )
    ),
}


def _facets(told: dict[str, Any]) -> dict[str, Any]:
    made = {}
    for name, body in told.items():
        made[name] = FACETS[name](
            **{key: value for key, value in body.items() if not key.startswith("_")}
        )
        assert body["_schemaURL"].rpartition("/")[2] == made[name]._get_schema().rpartition("/")[2]
    return made
