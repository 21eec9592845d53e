"""Whoever asks, the same question of the same snapshot has the same paths and passages in the same
order.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hades.compat.pathrag import MemoryEnhancedPathRAG
from hades.ports.store import Mode
from hades.settings.load import load_settings
from hades.settings.tree import Settings
from hades.surfaces.access.limits import Door
from hades.surfaces.mcp.server import ToolService, build_server
from hades.wiring import open_hades
from tests.command_line import run_json
from tests.homes import live_in
from tests.integration.rest_site import serving
from tests.mcp_client import call_tool
from tests.unit.hades.surfaces.mcp_home import QUESTION, make_home

# What the class makes of the plan where none is given.
WIDENED = {"graph": {"hops": 2, "fanout": 3, "beam": 16}, "final_context": 8}
PATHS = 4


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return make_home(tmp_path_factory.mktemp("one_answer"))


@pytest.fixture(autouse=True)
def here(settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    live_in(settings.home, monkeypatch, tmp_path)


def by_command_line(question: str) -> dict[str, Any]:
    return run_json("query", question, "--paths", str(PATHS))


def by_rest(settings: Settings, question: str) -> dict[str, Any]:
    with serving(settings) as running:
        document: dict[str, Any] = running.client.post(
            "/v1/query", json={"query": question, "max_paths": PATHS}
        ).json()
    return document


def by_mcp(settings: Settings, question: str) -> dict[str, Any]:
    with closing(ToolService(settings, Door(Mode.READ_ONLY))) as service:
        found = call_tool(
            build_server(service), "pathrag_retrieve", {"query": question, "max_paths": PATHS}
        )
    return dict(found.structured_content)


def by_task(question: str) -> dict[str, Any]:
    from tasks.retrieval import retrieve
    from tasks.unit import without_server

    with without_server():
        return retrieve(question, max_paths=PATHS)


def by_python(question: str) -> dict[str, Any]:
    with open_hades(load_settings()) as hades:
        return hades.retrieve(question, max_paths=PATHS).model_dump(mode="json")


def by_memory_enhanced_pathrag(question: str) -> dict[str, Any]:
    with MemoryEnhancedPathRAG() as rag:
        return dict(rag.retrieve_paths(question, PATHS))


def test_six_ways_of_asking_give_one_answer(settings: Settings) -> None:
    answers = {
        "command line": by_command_line(QUESTION),
        "rest": by_rest(settings, QUESTION),
        "mcp": by_mcp(settings, QUESTION),
        "task": by_task(QUESTION),
        "python": by_python(QUESTION),
        "MemoryEnhancedPathRAG": by_memory_enhanced_pathrag(QUESTION),
    }
    expected = answers["python"]
    assert len(expected["paths"]) > 1
    assert len(expected["passages"]) > 1
    by_reliability = [
        "mcp",
        "MemoryEnhancedPathRAG",
    ]  # the order and the pruning of specification 000
    for name, answer in answers.items():
        assert answer["snapshot"] == expected["snapshot"], name
        if name not in by_reliability:
            assert (answer["paths"], answer["passages"]) == (
                expected["paths"],
                expected["passages"],
            ), name
    assert answers["mcp"]["paths"] == answers["MemoryEnhancedPathRAG"]["paths"]
    with open_hades() as hades:
        every = hades.retrieve(QUESTION, max_paths=2 * PATHS, plan=WIDENED).paths
    texts = {path["text"] for path in answers["mcp"]["paths"]}
    assert texts <= {path.text for path in every}


def test_the_tool_takes_the_rules_of_the_class_from_the_settings_file(tmp_path: Path) -> None:
    (tmp_path / "hades.yaml").write_text(
        "pathrag: {pruning_threshold: 0.5, decay_rate: 0.2}", encoding="utf-8"
    )
    told, promised = by_mcp(load_settings(), QUESTION), by_memory_enhanced_pathrag(QUESTION)
    assert (told["count"], told["paths"]) == (promised["count"], promised["paths"])
