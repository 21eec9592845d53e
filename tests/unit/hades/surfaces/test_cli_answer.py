"""`hades answer` on a real home: quoted without a model, written and checked with one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hades.settings.load import load_settings
from hades.surfaces.cli.commands import whole_app
from hades.wiring import open_hades
from tests.chat_endpoint import ChatEndpoint, chat_endpoint


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "rhine.md").write_text("# Rhine\n\nThe Rhine flows from Basel to the North Sea.\n")
    settings = load_settings({"HADES_HOME": str(tmp_path / "home"), "HADES_EMBEDDER": "hashing"}, tmp_path)
    with open_hades(settings) as hades:
        hades.ingest.documents(tmp_path / "rhine.md")
        hades.publish()
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HADES_HOME", str(settings.home))
    monkeypatch.setenv("HADES_EMBEDDER", "hashing")
    monkeypatch.chdir(tmp_path)
    return settings.home


@pytest.fixture
def endpoint(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ChatEndpoint]:
    with chat_endpoint() as told:
        monkeypatch.setenv("HADES_LLM_BASE_URL", told.url)
        monkeypatch.setenv("HADES_LLM_MODEL", "writer")
        yield told


def test_without_a_model_the_passage_is_shown_under_its_heading_and_file(home: Path) -> None:
    shown = CliRunner().invoke(whole_app(), ["answer", "Where does the Rhine flow?"])
    assert shown.exit_code == 0, shown.output
    assert "[1] Rhine  rhine.md\n    The Rhine flows from Basel to the North Sea." in shown.output


@pytest.mark.parametrize(("option", "value"), [("--path", "other/*"), ("--type", "pdf"), ("--tag", "lake")])
def test_filters_leave_documents_out_and_say_how_many(home: Path, option: str, value: str) -> None:
    for command in ("answer", "query"):
        shown = CliRunner().invoke(whole_app(), [command, "Where does the Rhine flow?", option, value])
        assert shown.exit_code == 0, shown.output
        assert "North Sea" not in shown.output
        assert "1 documents are left out by the filters of the question" in shown.output
    found = CliRunner().invoke(whole_app(), ["answer", "Where does the Rhine flow?", "--path", "rhine.*"])
    assert "0 documents are left out" in found.output
    assert "North Sea" in found.output


def test_a_model_writes_and_an_unsupported_sentence_is_shown_as_such(endpoint: ChatEndpoint) -> None:
    endpoint.pieces = ["The Rhine reaches the North Sea [1]. It froze in 1709 [1]."]
    told = json.loads(CliRunner().invoke(whole_app(), ["answer", "Where does the Rhine flow?", "--json"]).stdout)
    assert [one["is_supported"] for one in told["sentences"]] == [True, False]
    shown = CliRunner().invoke(whole_app(), ["answer", "Where does the Rhine flow?"]).output
    assert "not supported: the cited source does not hold 1709" in " ".join(shown.split())
    assert "tokens sent" in shown


def test_an_estimate_asks_nothing(endpoint: ChatEndpoint) -> None:
    shown = CliRunner().invoke(whole_app(), ["answer", "Where does the Rhine flow?", "--estimate"])
    assert "tokens to send" in shown.output
    assert endpoint.seen == []
