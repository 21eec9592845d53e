"""`hades run nightly` is the Prefect flow, without a server too; without Prefect the same stages run and it says so."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hades.build.night import STAGE_NAMES
from hades.surfaces.cli import build
from hades.surfaces.cli.commands import whole_app

pytestmark = pytest.mark.slow


def test_a_night_runs_as_the_flow_and_without_prefect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "page.md").write_text("# Rivers\n\nThe Rhine flows to the North Sea.\n")
    monkeypatch.setenv("HADES_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HADES_EMBEDDER", "hashing")
    runner = CliRunner()
    assert runner.invoke(whole_app(), ["ingest", "documents", str(tmp_path / "notes")]).exit_code == 0
    done = runner.invoke(whole_app(), ["run", "nightly", "-p", "keep=3", "--json"])
    assert done.exit_code == 0, done.output
    flow = json.loads(done.stdout)["report"]
    assert [name for name in flow if name in STAGE_NAMES] == list(STAGE_NAMES)
    assert [one["stage"] for one in flow["contracts"]] == [
        "sources", "embeddings", "edges", "topics", "weights", "bridges",
    ]  # fmt: skip
    assert "shards" in flow["embeddings"]  # only the flow embeds in shards
    monkeypatch.setattr(build, "find_spec", lambda name: None if name == "prefect" else find_spec(name))
    done = runner.invoke(whole_app(), ["run", "nightly", "--json"])
    assert done.exit_code == 0, done.output
    assert "Prefect is not installed" in done.stderr
    plain = json.loads(done.stdout)["report"]
    assert set(flow) - set(plain) == {"took"}
    assert plain["released"]["snapshot"] == flow["released"]["snapshot"]
    refused = runner.invoke(whole_app(), ["run", "weigh_edges", "--json"])
    assert refused.exit_code == 1
    assert "pip install 'hades-graphrag[flows]'" in refused.stdout
