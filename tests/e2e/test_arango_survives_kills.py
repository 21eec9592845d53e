"""A client killed at commits, on a server that fails often: the next process ends where the
embedded store does.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.arango_double.faults import Sent, every
from tests.arango_double.server import ArangoDouble
from tests.integration.drivers import run_driver

PASSWORD = "of the double"
SMALL = 128 * 1024  # a limit so small that the rows of a few passages take several units
COMMIT = "PUT /_api/transaction"


def test_an_ingest_killed_at_its_commits_on_a_failing_server_loses_and_doubles_nothing(
    tmp_path: Path, programs: Path
) -> None:
    report = kill_and_compare(tmp_path, programs, "ingest", step=1)
    assert report["server"] == report["embedded"]
    assert report["kills"] >= 3


@pytest.mark.soak
def test_a_night_killed_at_each_of_its_commits_in_turn_loses_and_doubles_nothing(
    tmp_path: Path, programs: Path
) -> None:
    report = kill_and_compare(tmp_path, programs, "night", step=1)
    assert report["server"] == report["embedded"]
    assert report["kills"] >= 10


def kill_and_compare(folder: Path, programs: Path, work: str, step: int) -> dict[str, Any]:
    """Two processes are killed at their commit `step`, the next two at 2 * `step`, and so on."""
    with ArangoDouble(
        root_password=PASSWORD, transaction_size_limit=SMALL, tells_options=True
    ) as server:
        kill = killer(folder / "server" / "pid", step, server.expire_transactions)
        faults = server.faults
        faults.drop_before(times=10_000, matching=lambda sent: kill(sent) == "before")
        faults.http_error(503, 38, times=10_000, matching=every(29))  # the server starts
        faults.drop_after(times=10_000, matching=every(4, COMMIT))  # the answer to a commit is lost
        faults.http_error(
            503, 30, times=10_000, matching=every(97, before=server.restart)
        )  # a restart
        reached = {
            "HADES_EMBEDDER": "hashing",
            "HADES_STORE": "arango",
            "HADES_ARANGO_URL": server.url,
            "HADES_ARANGO_DATABASE": "kg",
            "HADES_ARANGO_USER": "root",
            "HADES_ARANGO_PASSWORD": PASSWORD,
        }
        report = run_driver(programs, "arango_kill_driver.py", folder, work, json.dumps(reached))
        journal = server.databases["kg"].collection("write_journal").documents
        assert [
            row for row in journal.values() if "pieces" in row
        ] == []  # no write is complete and not applied
    return report


def killer(pid: Path, step: int, expire: Callable[[], None]) -> Callable[[Sent], str]:
    """Kills the process that announced itself, at its next due commit; every second time the commit
    is not done.

    Transactions of a killed process `expire` when the next process speaks, as they would after a
    minute of silence.
    """
    commits, due, turn, last = 0, step, itertools.count(), ""

    def look(sent: Sent) -> str:
        nonlocal commits, due, last
        if pid.exists() and (speaks := pid.read_text()) != last:
            expire()
            last = speaks
        if COMMIT not in f"{sent.method} {sent.path}" or not pid.exists():
            return ""
        commits += 1
        if commits < due:
            return ""
        killed = next(turn)
        commits, due = 0, step * (1 + (killed + 1) // 2)
        os.kill(int(pid.read_text()), signal.SIGKILL)
        return "before" if killed % 2 else "after"

    return look
