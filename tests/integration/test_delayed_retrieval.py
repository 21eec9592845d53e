"""A question handed to a served worker with `.delay()`, on a real server: answered, and once for each snapshot."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from hades.settings import load_settings
from hades.wiring import open_hades
from tests.e2e.prefect_site import ROOT, PrefectSite, running_server

pytestmark = [pytest.mark.integration, pytest.mark.slow]

WORKER = "from prefect.task_worker import serve; from tasks.retrieval import DELAYABLE; serve(*DELAYABLE)"
ASKER = """
import json, sys
from tasks.retrieval import retrieve_paths
future = retrieve_paths.delay(sys.argv[1])
future.wait(timeout=90)
print(json.dumps({"run": str(future.task_run_id), "state": future.state.name, "answer": future.result(timeout=5)}))
"""


@pytest.fixture
def site(tmp_path):
    publish(tmp_path, "page.md", "# Rivers\n\nThe Rhine flows from Basel to the North Sea. Basel lies on the Rhine.\n")
    with running_server(tmp_path) as (running, start):
        start(["-c", WORKER])
        yield running


def publish(folder, name: str, text: str) -> None:
    (folder / name).write_text(text, encoding="utf-8")
    settings = load_settings({"HADES_HOME": str(folder / "home"), "HADES_EMBEDDER": "hashing"}, folder)
    with open_hades(settings) as hades:
        hades.ingest.documents(folder / name)
        hades.publish()


def asked(site: PrefectSite, question: str) -> dict[str, Any]:
    """What a process gets that hands the question over and waits."""
    command = [sys.executable, "-c", ASKER, question]
    done = subprocess.run(command, cwd=ROOT, env=site.environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_a_delayed_question_is_answered_once_for_each_snapshot(site, tmp_path):
    first = asked(site, "Which river flows from Basel?")
    assert first["state"] == "Completed"
    assert first["answer"]["success"] is True

    again = asked(site, "Which river flows from Basel?")
    assert again["state"] == "Cached"
    assert again["answer"] == first["answer"]

    publish(tmp_path, "more.md", "# More\n\nThe Aare flows into the Rhine.\n")
    later = asked(site, "Which river flows from Basel?")
    assert later["state"] == "Completed"
    assert later["answer"]["snapshot"] != first["answer"]["snapshot"]
