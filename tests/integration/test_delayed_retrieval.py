"""A question handed to a served worker with `.delay()`, on a real server: answered, and once for each snapshot."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from hades.settings import load_settings
from hades.wiring import open_hades
from tests.e2e.prefect_site import ROOT, running_server
from tests.patience import HANG_SECONDS

pytestmark = [pytest.mark.integration, pytest.mark.slow]

WORKER = "from prefect.task_worker import serve; from tasks.retrieval import DELAYABLE; serve(*DELAYABLE)"
ASKER = f"""
import json, sys
from tasks.retrieval import retrieve_paths
from tasks.unit import wait_for
for question in sys.stdin:
    future = retrieve_paths.delay(question.strip())
    answer = wait_for(future, {HANG_SECONDS})
    print(json.dumps([future.state.name, answer]), flush=True)
"""


@pytest.fixture
def ask(tmp_path):
    """Hands a question over from another process and waits for what becomes of it."""
    publish(tmp_path, "page.md", "# Rivers\n\nThe Rhine flows from Basel to the North Sea. Basel lies on the Rhine.\n")
    with running_server(tmp_path) as (site, start):
        start(["-c", WORKER])
        command = [sys.executable, "-c", ASKER]
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        with subprocess.Popen(command, cwd=ROOT, env=site.environment, **pipes) as asker:

            def asked(question: str) -> list[Any]:
                print(question, file=asker.stdin, flush=True)
                return json.loads(asker.stdout.readline())

            yield asked
            asker.stdin.close()


def publish(folder, name: str, text: str) -> None:
    (folder / name).write_text(text, encoding="utf-8")
    settings = load_settings({"HADES_HOME": str(folder / "home"), "HADES_EMBEDDER": "hashing"}, folder)
    with open_hades(settings) as hades:
        hades.ingest.documents(folder / name)
        hades.publish()


def test_a_delayed_question_is_answered_once_for_each_snapshot(ask, tmp_path):
    state, first = ask("Which river flows from Basel?")
    assert (state, first["success"]) == ("Completed", True)
    assert ask("Which river flows from Basel?") == ["Cached", first]
    publish(tmp_path, "more.md", "# More\n\nThe Aare flows into the Rhine.\n")
    state, later = ask("Which river flows from Basel?")
    assert state == "Completed"
    assert later["snapshot"] != first["snapshot"]
