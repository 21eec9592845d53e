"""`hades run nightly` is the Prefect flow, without a server too; without Prefect the same stages
run and it says so.
"""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from mlflow import MlflowClient

from hades.night.release.publish import MODELS
from hades.night.stages import STAGE_NAMES
from hades.surfaces.cli import build
from tests.command_line import run
from tests.homes import live_in

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("with_mlflow")]


def test_a_night_runs_as_the_flow_and_without_prefect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "page.md").write_text("# Rivers\n\nThe Rhine flows to the North Sea.\n")
    live_in(tmp_path / "home", monkeypatch)
    assert run("ingest", "documents", str(tmp_path / "notes")).exit_code == 0
    done = run("run", "nightly", "-p", "keep=3", "--json")
    assert done.exit_code == 0, done.output
    flow = json.loads(done.stdout)["report"]
    assert [name for name in flow if name in STAGE_NAMES] == list(STAGE_NAMES)
    assert [one["stage"] for one in flow["contracts"]] == [
        "sources",
        "embeddings",
        "edges",
        "topics",
        "weights",
        "bridges",
    ]
    assert "shards" in flow["embeddings"]  # only the flow embeds in shards
    _check_mlflow(tmp_path / "home", flow)
    monkeypatch.setattr(
        build, "find_spec", lambda name: None if name == "prefect" else find_spec(name)
    )
    done = run("run", "nightly", "--json")
    assert done.exit_code == 0, done.output
    assert "Prefect is not installed" in done.stderr
    plain = json.loads(done.stdout)["report"]
    assert set(flow) - set(plain) == {"took"}
    assert plain["released"]["snapshot"] == flow["released"]["snapshot"]
    refused = run("run", "weigh_edges", "--json")
    assert refused.exit_code == 1
    assert "pip install 'hades-graphrag[flows]'" in refused.stdout


def _check_mlflow(home: Path, report: dict[str, Any]) -> None:
    """What a user of MLflow finds after the night: its run, one nested run for each stage, a
    champion of each model.
    """
    uri = f"sqlite:///{home / 'mlflow.db'}"
    client = MlflowClient(uri, uri)
    experiment = client.get_experiment_by_name("hades-nightly")
    runs = client.search_runs([experiment.experiment_id])
    (night,) = (one for one in runs if "mlflow.parentRunId" not in one.data.tags)
    stages = {
        one.info.run_name: one
        for one in runs
        if one.data.tags.get("mlflow.parentRunId") == night.info.run_id
    }
    assert set(stages) == set(STAGE_NAMES)
    assert stages["embeddings"].data.metrics["embedded"] == report["embeddings"]["embedded"]
    assert [one.dataset.name for one in stages["embeddings"].inputs.dataset_inputs] == [
        "doc_chunks"
    ]
    for model in MODELS:
        version = client.get_model_version_by_alias(model, "champion")
        assert (
            version.tags["snapshot"]
            == report["released"]["snapshot"]
            == night.data.params["snapshot"]
        )
        assert client.get_run(version.run_id).data.tags["mlflow.parentRunId"] == night.info.run_id
