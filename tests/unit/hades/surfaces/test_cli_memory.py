"""`hades memory`: the scenario as a person types it, and errors that name the next step."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import run, run_json
from tests.homes import live_in

X, Y, REFACTORING = "design/approach_x", "bugs/bug_y", "refactoring/2024_q1"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home of its own, with the embedder that loads nothing."""
    live_in(tmp_path, monkeypatch)


def hades(*words: str, code: int = 0) -> dict[str, Any]:
    return run_json("memory", *words, code=code)


def shown(*words: str) -> str:
    done = run("memory", *words)
    assert done.exit_code == 0, done.output
    return done.output


def test_the_scenario_is_typed_asked_and_taken_back() -> None:
    since = ["--valid-from", "2024-01-10"]
    hades(
        "add",
        X,
        "Approach X was rejected: it triggers bug Y",
        *since,
        "--who",
        "ana",
        "--why",
        "review",
    )
    hades("add", Y, "Bug Y corrupts data", *since)
    rejection = hades("link", X, "rejected_because", Y, *since)["edge"]["id"]
    hades("add", REFACTORING, "The data layer was rewritten", "--valid-from", "2024-03-05")
    stated = ["--fact", f"viable_after_fix={REFACTORING}", "--at", "2024-03-05"]
    done = hades("change", X, "Bug Y is fixed, approach X is viable", *stated)
    assert [edge["id"] for edge in done["obsolete_edges"]] == [rejection]
    assert hades("latest", X)["state"]["version"] == 2
    answer = hades("why", X)
    assert [edge["type"] for edge in answer["edges"]] == ["viable_after_fix"]
    assert answer["obsolete_edges"][0]["superseded_by"] == done["new_edges"][0]["id"]
    assert hades("why", X, "--as-of", "2024-02-01")["edges"][0]["type"] == "rejected_because"
    then = hades("at", X, "2024-02-01")
    assert (then["state"]["version"], [edge["id"] for edge in then["edges"]]) == (1, [rejection])
    assert (
        hades("when", X, "rejected_because", "viable_after_fix")["at"]
        == "2024-03-05T00:00:00+00:00"
    )
    assert len(hades("edges", X, "--all")["edges"]) == 2
    assert "no longer true" in shown("why", X)
    assert "rejected_because" in shown("edges", X, "--as-of", "2024-02-01")
    hades("undo", done["act"], "--why", "too early")
    assert [edge["id"] for edge in hades("edges", X)["edges"]] == [rejection]
    history = hades("history", X)["states"]
    assert history[0]["act"]["who"] == "ana"
    assert [act["action"] for act in hades("audit", rejection)["acts"]] == [
        "link",
        "close",
        "restore",
    ]
    assert hades("check", "--traces") == {"problems": []}


def test_facts_conflict_are_resolved_and_erased() -> None:
    hades("fact", "ana", "works_at", "north", "--confidence", "0.4", "--valid-from", "2024-01-01")
    met = hades(
        "fact", "ana", "works_at", "south", "--confidence", "0.3", "--valid-from", "2024-02-01"
    )
    assert [one["outcome"] for one in met["conflicts"]] == ["needs_validation"]
    waiting = hades("conflicts", "--open")["conflicts"]
    assert waiting[0]["against"]["object"] == "north"
    assert "ana works_at north" in shown("conflicts")
    hades("resolve", waiting[0]["id"], "new", "--why", "asked her")
    assert hades("conflicts", "--open") == {"conflicts": []}
    assert len(hades("edges", "ana")["edges"]) == 1
    certificate = hades("erase", "ana", "--why", "she asked")
    assert certificate["complete"]
    assert hades("topics")["topics"] == ["north", "south"]


def test_consolidation_counts_what_it_wrote_and_says_what_was_recorded_too_late() -> None:
    hades("add", "project/plan", "Write the parser.", "--valid-from", "2024-01-01")
    said = shown("consolidate", "--as-of", "2024-02-01")
    assert "1 version that began before 2024-02-01" in said
    tomorrow = f"{datetime.now(UTC) + timedelta(days=1):%Y-%m-%d}"
    said = shown("consolidate", "--as-of", tomorrow)
    assert "recorded later" not in said
    assert "t_" not in said, "ids of versions are for --json"


def test_a_version_is_promoted_and_an_edge_closed() -> None:
    hades("add", "plan", "Write the parser.", "--tag", "work", "--metadata", '{"source": "review"}')
    hades("add", "bug", "The parser loses comments.")
    edge = hades("link", "plan", "relates_to", "bug", "--both-ways")["edge"]["id"]
    assert hades("promote", "plan", "the bug is known")["state"]["content"] == "Write the parser."
    assert hades("close", edge, "--why", "done")["edge"]["valid_until"] is not None
    assert "version 2" in shown("latest", "plan")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("latest", "nothing"), "no topic 'nothing'; `hades memory topics` lists"),
        (("add", " ", "x"), "is not a topic; give 1 to 500"),
        (("add", "x", "y", "--metadata", "["), "--metadata is not JSON"),
        (("close", "nope"), "no edge 'nope'"),
        (("undo", "nope"), "no act nope"),
        (("change", "x", "y", "--fact", "blocked_by"), "write RELATION=TOPIC"),
    ],
)
def test_errors_name_the_thing_and_the_next_step(words: tuple[str, ...], says: str) -> None:
    assert says in hades(*words, code=1)["error"]["message"]


def test_a_time_that_is_no_time_is_bad_usage() -> None:
    done = run("memory", "at", "x", "soon")
    assert (done.exit_code, "MOMENT" in done.output) == (2, True)
    assert run("memory", "at", "x", "2026").exit_code == 2


def test_a_version_of_another_time_says_which_one_holds() -> None:
    assert "holds now" not in shown("add", "ceo", "Bob is the CEO.", "--valid-from", "2025-01-01")
    past = shown(
        "add",
        "ceo",
        "Anna was the CEO.",
        "--valid-from",
        "2024-01-01",
        "--valid-until",
        "2025-01-01",
    )
    assert (
        "version 1 still holds now: the new one is true since 2024-01-01 until 2025-01-01" in past
    )
    coming = shown("add", "ceo", "Cora is the CEO.", "--valid-from", "2999-01-01")
    assert "version 1 still holds now: the new one is true since 2999-01-01" in coming
    assert "nothing holds now" in shown("add", "later", "It opens.", "--valid-from", "2999-01-01")
    rows = [line.split() for line in shown("history", "ceo").splitlines()[1:]]
    assert [row[0] for row in rows if "now" in row] == ["1"]
