"""`hades entity` on a real home: corrected, listed, agreed to, undone."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.command_line import run, run_json
from tests.homes import live_in
from tests.unit.hades.surfaces.mcp_home import make_home


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    return make_home(tmp_path_factory.mktemp("curated"))


@pytest.fixture(autouse=True)
def here(settings, monkeypatch, tmp_path):
    live_in(settings.home, monkeypatch, tmp_path)


def told(*arguments: str) -> Any:
    return run_json("entity", *arguments)


def test_an_edit_is_made_listed_overruled_with_a_second_party_and_undone(settings):
    made = told(
        "update",
        "entities/london",
        "--set",
        "summary=a city",
        "--as",
        "kim",
        "--why",
        "it is about Ada",
    )
    before = "Ada Lovelace worked with Charles Babbage on the Analytical Engine in London."
    assert (made["state"], made["before"]) == ("applied", {"summary": before})
    waits = told("update", "entities/london", "--set", 'summary="a town"', "--as", "lee")
    assert (waits["state"], waits["approvals_missing"]) == ("pending", 1)
    pending = told("edits", "--state", "pending")["edits"]
    assert [edit["_key"] for edit in pending] == [waits["edit"]]
    assert told("approve", waits["edit"], "--as", "sam")["state"] == "applied"
    assert told("undo", waits["edit"], "--as", "kim")["state"] == "undone"
    assert [(edit["who"], edit["state"]) for edit in told("edits", "entities/london")["edits"]] == [
        ("kim", "applied"),
        ("lee", "undone"),
    ]
    lines = (settings.home / "logs" / "audit_rw.jsonl").read_text().splitlines()
    assert [json.loads(line)["path"] for line in lines] == [
        "entity update",
        "entity update",
        "entity approve",
        "entity undo",
    ]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("update", "entities/nobody", "--set", "name=x"), 1, "no entity has the id"),
        (("update", "entities/london", "--set", "frequency=1"), 1, "frequency"),
        (("update", "entities/london", "--set", "name"), 1, "is not NAME=VALUE"),
        (("approve", "edit_0"), 1, "no edit has the id"),
        (("undo", "../x"), 1, "no edit has the id"),
        (("edits", "--state", "lost"), 2, "'lost' is not one of"),
    ],
)
def test_what_cannot_be_done_says_why(arguments, code, said):
    done = run("entity", *arguments)
    assert done.exit_code == code
    assert said in " ".join(done.output.split())
