"""Turns are traces of an MLflow server, and judgements are assessments of them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from mlflow import MlflowClient

from hades.providers.mlflow_registry import log_feedback
from hades.telemetry.logs import stop_sending
from tests.command_line import run_json
from tests.homes import live_in
from tests.ports import free_port
from tests.registry_template import put_new_registry

pytestmark = pytest.mark.slow


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """The address of a server of its own."""
    put_new_registry(tmp_path / "server.db")
    port = free_port()
    command = [
        sys.executable,
        "-m",
        "mlflow",
        "server",
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--workers",
        "1",
    ]
    command += ["--backend-store-uri", f"sqlite:///{tmp_path / 'server.db'}"]
    command += ["--artifacts-destination", str(tmp_path / "files")]
    environment = {
        **os.environ,
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
    }
    with (tmp_path / "server.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
    try:
        address = f"http://127.0.0.1:{port}"
        _wait_for(f"{address}/health", process, tmp_path / "server.log")
        yield address
    finally:
        process.terminate()
        process.wait()


def test_a_judged_turn_is_a_trace_with_assessments(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "page.md").write_text("# Rivers\n\nThe Rhine flows to the North Sea.\n")
    live_in(tmp_path / "home", monkeypatch)
    run_json("ingest", "documents", str(tmp_path / "notes"))
    run_json("build")
    monkeypatch.setenv("HADES_MLFLOW_URI", server)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-mlflow-experiment-id=0")
    asked = run_json("query", "where does the Rhine flow?")
    stop_sending()
    run_json("feedback", asked["query_id"], "--good-passage", "1")
    stop_sending()
    client = MlflowClient(server)
    (trace,) = client.search_traces(locations=["0"])
    names = [span.name for span in trace.data.spans]
    assert names[0] == "hades.turn"
    assert any(name.startswith("hades.turn.") for name in names)
    judged = {one.name: one for one in trace.info.assessments}
    assert judged["good"].value == {"paths": [], "passages": [1]}
    assert judged["good"].source.source_type == "HUMAN"


def test_feedback_is_kept_where_the_server_is_down(caplog: pytest.LogCaptureFixture) -> None:
    log_feedback("http://127.0.0.1:9", "q_1", {"good": {"passages": [1]}}, "ada")
    assert "the judgement of q_1 was not sent to http://127.0.0.1:9" in caplog.text


def _wait_for(address: str, process: subprocess.Popen[bytes], log: Path) -> None:
    while process.poll() is None:
        try:
            with urlopen(address, timeout=5):
                return
        except (URLError, OSError):
            time.sleep(0.2)
    raise AssertionError(log.read_text())
