"""A value that cannot be used is answered in one plain sentence on every surface."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hades.night.stages import STAGE_NAMES
from hades.ports.store import Mode
from hades.settings.tree import Settings
from hades.surfaces.access.limits import Door
from hades.surfaces.mcp.server import ToolServer, ToolService, build_server
from tests.command_line import run, run_json
from tests.mcp_client import call_tool
from tests.unit.hades.surfaces.mcp_home import QUESTION, make_home

OF_A_VALIDATOR = ("Value error", "pydantic", "type=", "https://", "input_value")


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return make_home(tmp_path_factory.mktemp("values"))


@pytest.fixture
def server(settings: Settings) -> Iterator[ToolServer]:
    service = ToolService(settings, Door(Mode.READ_WRITE))
    yield build_server(service)
    service.close()


def words_of_a_validator(text: str) -> list[str]:
    return [words for words in OF_A_VALIDATOR if words in text]


@pytest.mark.parametrize(
    ("tool", "arguments", "expected"),
    [
        ("hipporag_retrieve", {"query": QUESTION, "mode": "dreaming"}, "mode is 'dreaming': "),
        ("pathrag_retrieve", {"query": QUESTION, "max_paths": 0}, "max_paths is 0: input should"),
        ("pathrag_retrieve", {"max_paths": 3}, "query is missing"),
        ("pathrag_retrieve", {"query": "x" * 50_000}, "xxx...: string should have at most"),
    ],
)
def test_a_tool_names_the_argument_and_what_it_takes(
    server: ToolServer, tool: str, arguments: dict[str, object], expected: str
) -> None:
    result = call_tool(server, tool, arguments)
    text = result.content[0].text
    assert result.is_error
    assert text.startswith(f"{tool} was not called: ")
    assert expected in text
    assert words_of_a_validator(text) == []
    assert len(text) < 300


@pytest.mark.parametrize(
    "words",
    [
        ("build", "--from", "roof"),
        ("run", "roof"),
        ("memory", "add", "topic", "text", "--mode", "x"),
        ("run", "nightly", "-p", "from_stage=roof"),
        ("run", "nightly", "-p", "keep=0"),
    ],
)
def test_a_command_says_no_word_of_the_validator(words: tuple[str, ...]) -> None:
    done = run(*words)
    assert done.exit_code in (1, 2)
    assert words_of_a_validator(done.output) == []


def test_a_build_may_begin_at_every_stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HADES_EMBEDDER", "hashing")
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "page.md").write_text("# Rivers\n\nThe Rhine flows to the North Sea.\n")
    run_json("ingest", "documents", "notes")
    run_json("build")
    for stage in STAGE_NAMES:
        build = run_json("build", "--from", stage)["builds"][0]
        assert next(iter(build["began"])) == stage
    assert set(run_json("build", "--from", "weights", "--dry-run")["left_out"]) == {
        "sources",
        "embeddings",
        "edges",
        "topics",
    }
