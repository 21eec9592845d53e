"""What reviewers found on the surfaces and must not come back."""

from __future__ import annotations

import json
import re

import anyio
import pytest
from mcp.client.client import Client

from hades.compat.pathrag import MemoryEnhancedPathRAG
from hades.ports.store import Mode
from hades.settings.load import load_settings
from hades.surfaces.access.limits import Door
from hades.surfaces.mcp.server import ToolService, build_server
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
        [json.loads(line)["path"] for line in (home / "logs" / f"audit_{mode}.jsonl").read_text().splitlines()]
        for mode in ("rw", "ro")
    )
    assert written == ["memory add", "ingest documents", "publish"]
    assert read == ["memory latest"]


@pytest.mark.parametrize("section", ["", "pathrag: {pruning_threshold: 0.5, decay_rate: 0.2}"])
def test_the_tool_pathrag_retrieve_answers_as_the_class_does(home, tmp_path, section):
    (tmp_path / "hades.yaml").write_text(section, encoding="utf-8")
    settings = load_settings()
    with MemoryEnhancedPathRAG(settings=settings) as rag:
        promised = rag.retrieve_paths(QUESTION, 20)
    service = ToolService(settings, Door(Mode.READ_ONLY))

    async def ask():
        async with Client(build_server(service)) as client:
            return await client.call_tool("pathrag_retrieve", {"query": QUESTION, "max_paths": 20})

    try:
        told = anyio.run(ask).structured_content
    finally:
        service.close()
    assert told["success"]
    assert [path["text"] for path in told["paths"]] == [path["text"] for path in promised["paths"]]
    assert told["count"] == promised["count"]


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
