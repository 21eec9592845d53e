"""The flow of every night: summaries, learning, a check; and the tasks that ask memory by the
specification's names.
"""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from flows.local import run
from hades.memory.history.states import NewState
from hades.ports.services import silent
from hades.settings.load import load_settings
from hades.wiring import open_embedder, open_memory
from tasks import memory as tasks
from tasks.unit import without_server
from tests.homes import live_in


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    live_in(tmp_path, monkeypatch)
    with open_memory(load_settings()) as memory:
        memory.add_many(
            NewState(
                "project/alpha",
                f"Alpha reached step {day}.",
                valid_from=datetime(2024, 3, day, tzinfo=UTC),
            )
            for day in (4, 5, 6)
        )


def test_a_night_summarises_learns_and_checks_and_a_second_one_changes_nothing():
    first = run("consolidate_memory", {"level": "3", "as_of": "2027-05-01"}, silent)
    assert [(one["name"], one["written"]) for one in first["summaries"]["levels"]] == [
        ("daily", 3),
        ("weekly", 1),
        ("monthly", 1),
    ]
    assert first["learning"]["topics"] >= 1
    assert first["check"]["problems"] == []
    second = run("consolidate_memory", {"level": "3", "as_of": "2027-05-01"}, silent)
    assert [one["written"] for one in second["summaries"]["levels"]] == [0, 0, 0]
    assert (second["learning"]["topics"], second["learning"]["edges"]) == (0, 0)


def test_tasks_ask_by_the_names_of_the_specification():
    vector = open_embedder(load_settings()).embed(["alpha reached a step"])[0].tolist()
    with without_server():
        assert tasks.search_memories("alpha")["results"][0]["state"]["version"] == 3
        assert (
            tasks.search_memories("alpha", [None, datetime(2024, 3, 1, tzinfo=UTC)])["count"] == 0
        )
        match = tasks.graph_enhanced_retrieval("alpha")["matches"][0]
        assert [state["version"] for state in match["historical_context"]] == [1, 2]
        assert tasks.retrieve_within_budget("What is the status of alpha?", 500)["tokens"] <= 450
        assert tasks.get_relevant_subgraph(vector, 5)["nodes"][0]["topic"] == "project/alpha"
