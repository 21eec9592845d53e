"""What reviewers found on the surfaces and must not come back."""

from __future__ import annotations

import json
import re

import pytest

from tests.command_line import run_json
from tests.homes import live_in
from tests.unit.hades.surfaces.mcp_home import QUESTION, make_home


@pytest.fixture
def home(tmp_path, monkeypatch):
    settings = make_home(tmp_path)
    live_in(settings.home, monkeypatch, tmp_path)
    return settings.home


def test_what_the_command_line_writes_is_audited(home, tmp_path):
    run_json("memory", "add", "audit/b", "x")
    run_json("ingest", "documents", str(tmp_path / "docs"))
    run_json("publish")
    run_json("memory", "latest", "audit/b")
    written, read = (
        [
            json.loads(line)["path"]
            for line in (home / "logs" / f"audit_{mode}.jsonl").read_text().splitlines()
        ]
        for mode in ("rw", "ro")
    )
    assert written == ["memory add", "ingest documents", "publish"]
    assert read == ["memory latest"]


def test_numbers_of_the_prompt_are_those_that_feedback_takes(home):
    found = run_json("query", QUESTION)
    paths = len(found["paths"])
    lines = dict(re.findall(r"^(\d+)\) (.*)$", found["prompt"], re.MULTILINE))
    assert lines
    for number, line in lines.items():
        if int(number) <= paths:
            first = found["paths"][int(number) - 1]["nodes"][0]["name"]
            assert first in line
        else:
            assert found["passages"][int(number) - paths - 1]["id"] in line
    beyond = next(number for number in map(int, lines) if number > paths)
    judged = run_json("feedback", found["query_id"], "--good", str(beyond))["feedback"]
    assert judged["good"] == {"paths": [], "passages": [beyond - paths]}
