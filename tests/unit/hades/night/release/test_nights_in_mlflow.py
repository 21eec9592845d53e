"""What a plain MLflow client finds after nights that train, that stop, and that the registry
fails.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow as pa
import pytest
from mlflow import MlflowClient
from mlflow.entities import Run

from hades.errors import ContractBroken
from hades.night.release.publish import MODELS
from hades.night.stages import NIGHT, STAGE_NAMES
from hades.ports.services import RunRecord, TrackingError
from hades.providers.file_registry import FileTracker
from hades.wiring import open_hades
from tests.command_line import run
from tests.homes import live_in, settings_of
from tests.unit.hades.night.release.small_graphs import MONDAY, ingested, write_pages

pytestmark = pytest.mark.slow
PARENT = "mlflow.parentRunId"
PARTS = ("Client", "Server", "Proxy", "Stream", "Cache", "Tunnel")
TOPICS = ("timeouts", "limits", "retries", "certificates", "redirects", "sessions")


def write_manual(folder: Path) -> Path:
    """Thirty-six pages that link to each other: over sixty questions whose words can teach."""
    folder.mkdir()
    names = [f"{part} {topic}" for part in PARTS for topic in TOPICS]
    for place, name in enumerate(names):
        before = names[place - 1]
        link = f"[{before}]({before.lower().replace(' ', '-')}.md)"
        text = (
            f"# {name}\n\nThe chapter on {name} explains number{place} in full. Before support "
            f"calls people read {link} about setting{place}.\n\n## Tuning {name}\n\nSet the "
            f"value{place} of {name} before sending anything to slow machines, as {link} says "
            f"for level{place}.\n"
        )
        (folder / f"{name.lower().replace(' ', '-')}.md").write_text(text)
    return folder


def nights_of(home: Path) -> tuple[list[Run], dict[str, list[Run]]]:
    """The runs of whole nights, the first one first, and the nested ones by their parent."""
    client = MlflowClient(f"sqlite:///{home.resolve() / 'mlflow.db'}")
    experiment = client.get_experiment_by_name("hades-nightly")
    runs = client.search_runs([experiment.experiment_id], order_by=["attributes.start_time ASC"])
    nested: dict[str, list[Run]] = {}
    for each in runs:
        nested.setdefault(each.data.tags.get(PARENT, ""), []).append(each)
    return nested.pop("", []), nested


def test_the_page_on_operations_lists_every_metric_of_every_stage() -> None:
    page = (Path(__file__).parents[5] / "docs" / "operations.md").read_text("utf-8")
    for stage in NIGHT:
        (line,) = (line for line in page.splitlines() if line.startswith(f"| `{stage.name}` | `"))
        listed = re.findall("`([^`]+)`", line.split("|")[2])
        assert listed == list(stage.figures)


@pytest.mark.usefixtures("with_mlflow")
def test_every_night_of_a_home_that_trains_is_good_and_one_finished_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live_in(tmp_path / "home", monkeypatch)
    assert run("ingest", "documents", str(write_manual(tmp_path / "manual"))).exit_code == 0
    for _ in range(3):
        night = run("run", "nightly")
        assert night.exit_code == 0, night.output
    nights, stages = nights_of(tmp_path / "home")
    assert [night.info.status for night in nights] == ["FINISHED"] * 3
    for night in nights:
        parts = stages[night.info.run_id]
        assert {part.info.run_name for part in parts} == set(STAGE_NAMES)
        assert {part.info.status for part in parts} == {"FINISHED"}
        assert all(
            night.info.start_time <= part.info.start_time <= part.info.end_time for part in parts
        )
    trained, repeated = (night.data.metrics for night in nights[1:])
    assert trained["ranker.questions"] + trained["ranker.held"] >= 60
    assert trained["ranker.figures.mrr"] == repeated["ranker.figures.mrr"] > 0.0
    assert set(trained) == set(repeated)  # the same names every night
    client = MlflowClient(f"sqlite:///{tmp_path / 'home' / 'mlflow.db'}")
    assert client.get_experiment("0").artifact_location.startswith((tmp_path / "home").as_uri())
    models = client.search_registered_models()
    assert {model.name for model in models} == {*MODELS, "hades-ranker"}
    assert all(model.description for model in models)
    (weights,) = client.search_model_versions("name = 'hades-weights'")
    as_of = nights[0].data.params["as_of"][:10]
    assert client.get_run(weights.run_id).info.run_name.startswith(f"weights {as_of} ")


@pytest.mark.usefixtures("with_mlflow")
def test_a_night_that_somebody_cancels_is_a_killed_run_with_what_it_did(tmp_path: Path) -> None:
    def cancel(stage: str, done: int, total: int | None) -> None:
        if stage == "weights":
            raise KeyboardInterrupt

    with open_hades(settings_of(tmp_path / "home"), progress=cancel) as hades:
        hades.ingest.documents(write_pages(tmp_path / "pages", 4))
        with pytest.raises(KeyboardInterrupt):
            hades.build(as_of=MONDAY)
    ((night,), stages) = nights_of(tmp_path / "home")
    assert (night.info.status, night.data.tags["stopped"]) == ("KILLED", "KeyboardInterrupt: ")
    parts = {part.info.run_name: part for part in stages[night.info.run_id]}
    assert [parts[name].info.status for name in STAGE_NAMES[:5]] == ["FINISHED"] * 4 + ["KILLED"]
    assert set(parts) == set(STAGE_NAMES[:5])
    assert night.info.start_time <= parts["weights"].info.start_time <= night.info.end_time
    assert night.data.metrics["sources.documents.read"] == 4


@pytest.mark.usefixtures("with_mlflow")
def test_a_night_that_a_contract_stops_is_a_failed_run_that_says_why(tmp_path: Path) -> None:
    with ingested(tmp_path) as hades:
        hades.build(as_of=MONDAY)
        (key, *_) = next(hades.store.scan("relations"))["_key"].to_pylist()
        hades.store.patch("relations", pa.table({"_key": [key], "weight": [0.9876]}))
        with pytest.raises(ContractBroken):
            hades.build(as_of=MONDAY)
    good, failed = nights_of(tmp_path / "home")[0]
    assert (good.info.status, failed.info.status) == ("FINISHED", "FAILED")
    assert failed.data.tags["stopped"].startswith("ContractBroken: ")
    assert "weights.weight_recomputes" in failed.data.tags["stopped"]


def test_a_registry_that_fails_after_publishing_leaves_a_good_night_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log_run = FileTracker.log_run

    def fail(tracker: FileTracker, experiment: str, record: RunRecord) -> str:
        if experiment in ("hades-nightly", "hades-snapshot"):
            raise TrackingError("the disk of the registry is full")
        return log_run(tracker, experiment, record)

    live_in(tmp_path / "home", monkeypatch)
    assert run("ingest", "documents", str(write_pages(tmp_path / "pages", 4))).exit_code == 0
    monkeypatch.setattr(FileTracker, "log_run", fail)
    night = run("run", "nightly")
    assert night.exit_code == 0, night.output
    status = json.loads(run("status", "--json").stdout)
    assert "the disk of the registry is full" in status["runs"][0]["not_registered"]
    alerts = (tmp_path / "home" / "logs" / "alerts.jsonl").read_text().splitlines()
    assert [json.loads(alert)["what"] for alert in alerts] == ["not registered"] * 2
    monkeypatch.setattr(FileTracker, "log_run", log_run)
    assert run("run", "nightly").exit_code == 0
    tracker = FileTracker(tmp_path / "home" / "registry.db", tmp_path / "home" / "artifacts")
    assert tracker.alias("hades-snapshot", "champion") == "1"
    assert json.loads(run("status", "--json").stdout)["runs"][0]["not_registered"] == ""
