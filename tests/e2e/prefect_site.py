"""A Prefect server on loopback with a process worker, and a home of its own; stopped by process
id.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.patience import HANG_SECONDS
from tests.ports import free_port
from tests.registry_template import put_new_registry

ROOT = Path(__file__).resolve().parents[2]
READY_SECONDS = RUN_SECONDS = HANG_SECONDS
# the server keeps everything in one SQLite file, and while a worker starts a reply can wait
ANSWER_SECONDS = HANG_SECONDS
ENDED = {"COMPLETED", "FAILED", "CRASHED", "CANCELLED"}


class AskAgainWhileBusy(httpx.HTTPTransport):
    """A server whose one SQLite file is busy answers 503; its own client asks again, and so does a
    test's.
    """

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """The first answer that is not 503, or the last one."""
        give_up = time.monotonic() + RUN_SECONDS
        while (
            answer := super().handle_request(request)
        ).status_code == 503 and time.monotonic() < give_up:
            answer.close()
            time.sleep(1)
        return answer


@dataclass
class PrefectSite:
    """What a test needs of the running server."""

    home: Path
    environment: dict[str, str]
    api: httpx.Client

    def prefect(self, *arguments: str) -> str:
        """Run the command `prefect` against the server."""
        done = subprocess.run(
            ["prefect", *arguments],
            cwd=ROOT,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def trigger(self, name: str, parameters: dict[str, Any] | None = None) -> str:
        """Ask for a run of a deployment, as the UI does; the run's id."""
        deployment = self.api.get(f"/deployments/name/{name}/{name}").raise_for_status().json()
        body = {"parameters": parameters or {}, "state": {"type": "SCHEDULED"}}
        made = self.api.post(f"/deployments/{deployment['id']}/create_flow_run", json=body)
        return str(made.raise_for_status().json()["id"])

    def wait_for(self, run: str) -> dict[str, Any]:
        """The run once it has ended."""
        give_up = time.monotonic() + RUN_SECONDS
        while time.monotonic() < give_up:
            found = self.api.get(f"/flow_runs/{run}").raise_for_status().json()
            if found["state_type"] in ENDED:
                return found
            time.sleep(0.5)
        raise AssertionError(f"the run did not end: {found['state']}\n{self.logs(run)}")

    def deployment(self, name: str) -> str:
        """The id of a deployment."""
        return str(self.api.get(f"/deployments/name/{name}/{name}").raise_for_status().json()["id"])

    def complete_run(self, name: str) -> None:
        """A run of a deployment that has completed, as far as the server knows; no worker takes
        it.
        """
        later = {"type": "SCHEDULED", "state_details": {"scheduled_time": "2099-01-01T00:00:00Z"}}
        created = self.api.post(
            f"/deployments/{self.deployment(name)}/create_flow_run", json={"state": later}
        )
        done = {"state": {"type": "COMPLETED"}, "force": True}
        self.api.post(
            f"/flow_runs/{created.raise_for_status().json()['id']}/set_state", json=done
        ).raise_for_status()

    def logs(self, run: str) -> str:
        """What the run said."""
        body = {"logs": {"flow_run_id": {"any_": [run]}}, "limit": 200}
        return "\n".join(
            line["message"] for line in self.api.post("/logs/filter", json=body).json()
        )

    def task_runs(self, run: str) -> list[dict[str, Any]]:
        """The task runs of a flow run."""
        body = {"flow_runs": {"id": {"any_": [run]}}, "limit": 200}
        return self.api.post("/task_runs/filter", json=body).raise_for_status().json()

    def artifacts_of(self, run: str) -> list[dict[str, Any]]:
        """What one run left in the UI."""
        return [artifact for artifact in self.artifacts() if artifact["flow_run_id"] == run]

    def artifacts(self) -> list[dict[str, Any]]:
        """Everything that runs left in the UI."""
        return self.api.post("/artifacts/filter", json={"limit": 200}).raise_for_status().json()


@contextmanager
def running_server(
    folder: Path, programs: Path
) -> Iterator[tuple[PrefectSite, Callable[..., None]]]:
    """The server alone, and a way to start more processes beside it; all gone at the end."""
    port = free_port()
    environment = os.environ | {
        "PREFECT_HOME": str(folder / "prefect"),
        "PREFECT_API_URL": f"http://127.0.0.1:{port}/api",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_CLI_PROMPT": "false",
        "PREFECT_WORKER_QUERY_SECONDS": "1",
        "DO_NOT_TRACK": "1",
        "HADES_HOME": str(folder / "home"),
        "HADES_EMBEDDER": "hashing",
        "PYTHONPATH": str(ROOT),
        "PATH": os.pathsep.join(
            [str(programs), str(Path(sys.executable).parent), os.environ["PATH"]]
        ),
    }
    put_new_registry(folder / "home" / "mlflow.db")
    started: list[subprocess.Popen[bytes]] = []
    log = (folder / "server.log").open("wb")

    def start(command: list[str], environment: dict[str, str] = environment) -> None:
        started.append(_start(command, environment, log))

    try:
        start(["prefect", "server", "start", "--host", "127.0.0.1", "--port", str(port)])
        # A connection for each request: a busy machine may send on a kept one as the server closes
        # it for being idle.
        transport = AskAgainWhileBusy(limits=httpx.Limits(max_keepalive_connections=0))
        address = environment["PREFECT_API_URL"]
        with httpx.Client(
            base_url=address, timeout=ANSWER_SECONDS, trust_env=False, transport=transport
        ) as api:
            _until_healthy(api, started[0], folder)
            yield PrefectSite(folder / "home", environment, api), start
    finally:
        for process in reversed(started):
            _stop(process)
        log.close()


def deploy(site: PrefectSite, start: Callable[..., None]) -> None:
    """A work pool, the deployments of prefect.yaml, and a worker that runs them."""
    site.api.post("/work_pools/", json={"name": "hades", "type": "process"}).raise_for_status()
    site.prefect("--no-prompt", "deploy", "--all")
    start(["prefect", "worker", "start", "--pool", "hades"])


def _start(command: list[str], environment: dict[str, str], log: Any) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=log, stderr=log, start_new_session=True
    )


def _until_healthy(api: httpx.Client, server: subprocess.Popen[bytes], folder: Path) -> None:
    give_up = time.monotonic() + READY_SECONDS
    while time.monotonic() < give_up and server.poll() is None:
        try:
            if api.get("/health").status_code == httpx.codes.OK:
                return
        except httpx.TransportError:
            time.sleep(0.3)
    raise AssertionError((folder / "server.log").read_text(errors="replace")[-4000:])


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Ask the process group to end, then insist: a worker may take its time."""
    for signal_number, seconds in ((signal.SIGTERM, 5), (signal.SIGKILL, 5)):
        if process.poll() is not None:
            return
        os.killpg(process.pid, signal_number)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            continue
