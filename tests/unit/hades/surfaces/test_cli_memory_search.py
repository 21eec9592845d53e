"""`hades memory search` and its neighbours, as a person types them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from hades.memory.history.states import NewState
from hades.settings.load import load_settings
from hades.surfaces.cli.commands import whole_app
from hades.wiring import open_memory


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home of its own with a short story in it."""
    monkeypatch.setenv("HADES_HOME", str(tmp_path))
    monkeypatch.setenv("HADES_EMBEDDER", "hashing")
    from datetime import UTC, datetime

    began = datetime(2024, 1, 10, tzinfo=UTC)
    with open_memory(load_settings()) as memory:
        memory.add_many(
            [
                NewState("design/approach_x", "Approach X was rejected: it triggers bug Y", valid_from=began),
                NewState("bugs/bug_y", "Bug Y corrupts data", valid_from=began),
                NewState("bugs/bug_y", "Bug Y is fixed", valid_from=datetime(2024, 3, 5, tzinfo=UTC)),
            ]
        )
        memory.link("design/approach_x", "bugs/bug_y", "rejected_because")


def hades(*words: str, code: int = 0) -> dict[str, Any]:
    done = CliRunner().invoke(whole_app(), ["memory", *words, "--json"])
    assert done.exit_code == code, done.output
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def shown(*words: str) -> str:
    done = CliRunner().invoke(whole_app(), ["memory", *words])
    assert done.exit_code == 0, done.output
    return done.output


def test_a_search_shows_each_topic_as_it_is_now_or_was_then() -> None:
    found = hades("search", "bug Y corrupts data", "--limit", "1")
    assert (found["count"], found["results"][0]["state"]["version"]) == (1, 2)
    then = hades("search", "bug Y corrupts data", "--limit", "1", "--as-of", "2024-02-01")
    assert then["results"][0]["state"]["version"] == 1
    assert hades("search", "bug Y", "--until", "2024-01-01")["count"] == 0
    assert "similarity" in shown("search", "bug Y")
    assert "nothing is near" in shown("search", "bug Y", "--until", "2024-01-01")


def test_a_search_follows_edges() -> None:
    found = hades("search", "approach X rejected", "--limit", "1", "--related", "2")
    related = found["matches"][0]["related_states"]
    assert [(one["state"]["topic"], one["way"][0]["type"]) for one in related] == [("bugs/bug_y", "rejected_because")]
    assert "--rejected_because--" in shown("search", "approach X rejected", "--related", "1")


def test_a_context_stays_below_its_tokens() -> None:
    made = hades("context", "Why was approach X rejected?", "--max-tokens", "300")
    assert made["tokens"] <= 270
    assert made["intent"] == "why"
    assert "of 300 tokens" in shown("context", "Why was approach X rejected?", "--max-tokens", "300")


def test_summaries_are_made_once_and_lead_back() -> None:
    made = hades("consolidate", "--level", "3")["levels"]
    assert [(one["name"], len(one["written"])) for one in made] == [("daily", 3), ("weekly", 3), ("monthly", 3)]
    assert "daily: 0 written, 3 unchanged" in shown("consolidate")
    below = hades("drill-down", "summary/monthly/bugs/2024-01", "--originals")
    assert [one["content"] for one in below["made_of"]] == ["Bug Y corrupts data"]
    assert hades("search", "bug", "--level", "3")["results"][0]["state"]["consolidation_level"] == 3
    assert "lists them" in hades("drill-down", "summary/none", code=1)["error"]["message"]


def test_a_working_set_is_shown_and_asked() -> None:
    held = hades("working", "design/approach_x")
    assert [one["state"]["topic"] for one in held["related"]] == ["bugs/bug_y"]
    assert hades("working", "design/approach_x", "--ask", "fixed")["results"][0]["state"]["topic"] == "bugs/bug_y"
    assert "are in the working set" in shown("working", "design/approach_x")
