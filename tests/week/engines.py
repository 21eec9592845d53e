"""Where the store of the week stands: a file, an ArangoDB server, or a cluster whose servers die.

The programs of ArangoDB are looked for in HADES_ARANGOD, by default beside the repository.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.patience import HANG_SECONDS, wait_until
from tests.week.home_of_the_week import HomeOfTheWeek

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(os.environ.get("HADES_ARANGOD", ROOT.parent / "shared" / "tools" / "arangod"))
DATABASE = "week"
DB_SERVERS = 3
COPIES = "--cluster.default-replication-factor=3 --cluster.write-concern=2"


def missing_programs() -> str:
    """Why no ArangoDB can be started here, as a sentence; empty where one can."""
    if (PROGRAMS / "start").is_file():
        return ""
    return f"no ArangoDB to start: {PROGRAMS} is not there (HADES_ARANGOD names another folder)"


def run_program(name: str, *words: object) -> dict[str, str]:
    """Run a program of the folder; the variables that it prints."""
    done = subprocess.run(
        [PROGRAMS / name, *map(str, words)],
        env=os.environ | {"ARANGOD_OPTIONS": COPIES if name == "start-cluster" else ""},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    exported = [line.removeprefix("export ") for line in done.stdout.splitlines()]
    return dict(word.split("=", 1) for word in shlex.split(" ".join(exported)) if "=" in word)


def settings_of(variables: dict[str, str]) -> dict[str, str]:
    """The settings of HADES for the server that a program started."""
    return {
        "HADES_STORE": "arango",
        "HADES_ARANGO_URL": variables["HADES_TEST_ARANGO_URL"],
        "HADES_ARANGO_USER": "root",
        "HADES_ARANGO_PASSWORD": variables["HADES_TEST_ARANGO_PASSWORD"],
        "HADES_ARANGO_DATABASE": DATABASE,
    }


@contextmanager
def running_server(folder: Path) -> Iterator[dict[str, str]]:
    """One server on loopback, stopped by its process id."""
    try:
        yield settings_of(run_program("start", folder))
    finally:
        run_program("stop", folder, "-9")


class Cluster:
    """An agent, a coordinator and three DB servers on loopback; each row is on all three."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.settings = settings_of(run_program("start-cluster", folder, DB_SERVERS))

    @contextmanager
    def crash_during(self, home: HomeOfTheWeek, moment: str) -> Iterator[None]:
        """Lose the server that leads the shards (-9) amid a command; it is back afterwards."""
        wait_until(self._has_all_copies)
        leader = self._leader()
        begun = home.size_of_lineage()

        def has_come() -> bool:
            if moment == "night":
                return "edges" in home.started_stages(begun)
            return self._holds_passages()

        is_over, is_lost = threading.Event(), threading.Event()

        def crash() -> None:
            wait_until(lambda: has_come() or is_over.is_set())
            if not is_over.is_set():
                run_program("stop", leader, "-9")
                is_lost.set()

        crashing = threading.Thread(target=crash)
        crashing.start()
        try:
            yield
        finally:
            is_over.set()
            crashing.join()
            run_program("start-cluster", self._folder, DB_SERVERS)
        assert is_lost.is_set(), f"the {moment} ended before a server was lost in it"
        wait_until(self._has_all_copies)

    def stop(self) -> None:
        """End every process, by its id."""
        for server in ("coordinator", *self._servers(), "agent"):
            run_program("stop", self._folder / server, "-9")

    def _servers(self) -> list[str]:
        return [f"db{number}" for number in range(1, DB_SERVERS + 1)]

    def _get(self, path: str) -> dict[str, Any]:
        """What the coordinator answers."""
        url = f"{self.settings['HADES_ARANGO_URL']}/_db/{DATABASE}{path}"
        answer = httpx.get(url, trust_env=False, timeout=HANG_SECONDS).raise_for_status()
        return dict(answer.json())

    def _holds_passages(self) -> bool:
        return bool(self._get("/_api/collection/doc_chunks/count")["count"])

    def _shards(self) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        """Where each shard is to be, and where it is."""
        collections = self._get("/_admin/cluster/shardDistribution")["results"].values()
        return [
            (planned, collection["Current"].get(shard, {}))
            for collection in collections
            for shard, planned in collection["Plan"].items()
        ]

    def _has_all_copies(self) -> bool:
        """Whether each shard has a leader and two copies in step with it."""
        return all(
            len(current.get("followers", ())) == DB_SERVERS - 1 for _, current in self._shards()
        )

    def _leader(self) -> Path:
        """The folder of the server that leads the shards."""
        _, current = self._shards()[0]
        health = self._get("/_admin/cluster/health")["Health"].values()
        named = {server.get("ShortName"): server["Endpoint"] for server in health}
        port = named[current["leader"]].rpartition(":")[2]
        ports = (self._folder / "ports").read_text().split()
        return self._folder / f"db{ports.index(port) - 1}"
