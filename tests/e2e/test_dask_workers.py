"""Shards on the workers of a Dask scheduler, without a Prefect server: real processes on
loopback.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hades.ingest import chunks as embeddings
from hades.ingest.phases import Phase
from hades.settings.load import load_settings
from hades.surfaces.cli.doctor import check_servers
from hades.wiring import open_hades
from tasks.dask_workers import dask_client, run_on_workers
from tests.command_line import run
from tests.homes import live_in
from tests.patience import HANG_SECONDS
from tests.ports import free_port

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("whole_installation")]


def test_shards_of_a_night_without_a_server_run_on_the_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embeddings, "WINDOW", 10)
    here, there = tmp_path / "here", tmp_path / "there"
    write_chunks(here, monkeypatch)
    assert embedded_by_run(monkeypatch, "threads") == (15, 2)
    write_chunks(there, monkeypatch)
    with dask_workers(tmp_path) as (address, log):
        assert embedded_by_run(monkeypatch, address) == (15, 2)
    assert "Receive client connection" in log.read_text()
    assert vectors(there) == vectors(here)


def test_an_address_where_no_scheduler_is_fails_the_run_and_the_doctor_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_chunks(tmp_path / "home", monkeypatch)
    address = f"tcp://127.0.0.1:{free_port()}"
    monkeypatch.setenv("HADES_TASK_RUNNER", address)
    done = run("run", "embed")
    assert done.exit_code == 1
    assert f"HADES_TASK_RUNNER={address}: no Dask scheduler answers" in " ".join(
        done.output.split()
    )
    (check,) = check_servers(load_settings())
    assert (check.name, check.status) == ("dask", "fail")
    assert address in check.found
    assert "HADES_TASK_RUNNER" in check.next


def test_a_scheduler_without_workers_is_found_by_the_doctor_and_the_missing_workers_are_said(
    tmp_path: Path,
) -> None:
    warnings: list[str] = []
    with (
        dask_workers(tmp_path, workers=0) as (address, _),
        dask_client(address, warnings.append),
    ):
        settings = load_settings({"HADES_TASK_RUNNER": address})
        assert [check.status for check in check_servers(settings)] == ["ok"]
    assert len(warnings) == 1
    assert "the scheduler has no worker yet" in warnings[0]


def test_a_worker_that_is_lost_is_named_and_its_shard_runs_on_another(tmp_path: Path) -> None:
    warnings: list[str] = []
    with dask_workers(tmp_path, workers=2) as (address, _):
        marker = tmp_path / "first"
        results = run_on_workers(
            address, die_once, [str(marker)], lambda done, total: None, warnings.append
        )
    assert results == [f"second {marker}"]
    assert "was lost; its 1 unfinished shards run on the others" in warnings[-1]


def die_once(marker: str) -> str:
    """Kill the worker that runs it, the first time."""
    if not Path(marker).exists():
        Path(marker).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return f"second {marker}"


def write_chunks(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home with fifteen chunks that have no vectors yet."""
    home.mkdir()
    live_in(home, monkeypatch)
    corpus = home / "corpus.jsonl"
    rows = [
        {"id": str(number), "title": f"Note {number}", "text": f"Note {number} tells of engines."}
        for number in range(15)
    ]
    corpus.write_text("\n".join(map(json.dumps, rows)))
    with open_hades() as hades:
        hades.ingest.passages(corpus, phases=[Phase.NODES, Phase.CHUNKS])


def embedded_by_run(monkeypatch: pytest.MonkeyPatch, runner: str) -> tuple[int, int]:
    monkeypatch.setenv("HADES_TASK_RUNNER", runner)
    done = run("run", "embed", "--json")
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout)["report"]
    return report["embedded"], report["shards"]


def vectors(home: Path) -> list[dict[str, Any]]:
    with open_hades(load_settings({"HADES_HOME": str(home)})) as hades:
        columns = ["_key", "embedding", "embedding_model"]
        return [batch.to_pydict() for batch in hades.store.scan("doc_chunks", columns=columns)]


@contextmanager
def dask_workers(folder: Path, workers: int = 1) -> Iterator[tuple[str, Path]]:
    """A scheduler and workers in processes of their own; its address and its log."""
    address = f"tcp://127.0.0.1:{free_port()}"
    log = folder / "dask.log"
    dask = [sys.executable, "-m", "dask"]
    listen = ["--host", "127.0.0.1", "--port", address.rpartition(":")[2], "--no-dashboard"]
    work = ["--nthreads", "1", "--no-nanny", "--no-dashboard", "--host", "127.0.0.1"]
    commands = [[*dask, "scheduler", *listen], *([[*dask, "worker", address, *work]] * workers)]
    with log.open("w") as lines:
        running = [
            subprocess.Popen(command, stderr=lines, stdout=lines, cwd=ROOT) for command in commands
        ]
    try:
        yield address, log
    finally:
        for process in running:
            process.terminate()
            process.wait(HANG_SECONDS)
