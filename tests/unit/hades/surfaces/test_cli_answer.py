"""`hades answer` on a real home: quoted without a model, written and checked with one."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chat_endpoint import ChatEndpoint, chat_endpoint
from tests.command_line import run, run_json
from tests.homes import live_in, publish_pages


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pages = {"rhine.md": "# Rhine\n\nThe Rhine flows from Basel to the North Sea.\n"}
    return publish_pages(tmp_path_factory.mktemp("answered"), pages).home


@pytest.fixture
def home(published: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = Path(shutil.copytree(published, tmp_path / "home"))
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    live_in(home, monkeypatch, tmp_path)
    return home


@pytest.fixture
def endpoint(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ChatEndpoint]:
    with chat_endpoint() as told:
        monkeypatch.setenv("HADES_LLM_BASE_URL", told.url)
        monkeypatch.setenv("HADES_LLM_MODEL", "writer")
        yield told


def test_without_a_model_the_passage_is_shown_under_its_heading_and_file(home: Path) -> None:
    shown = run("answer", "Where does the Rhine flow?")
    assert shown.exit_code == 0, shown.output
    assert (
        "[1] Rhine  rhine.md  (said only here)\n    The Rhine flows from Basel to the North Sea."
        in shown.output
    )


@pytest.mark.parametrize(
    ("option", "value"), [("--path", "other/*"), ("--type", "pdf"), ("--tag", "lake")]
)
def test_filters_leave_documents_out_and_say_how_many(home: Path, option: str, value: str) -> None:
    for command in ("answer", "query"):
        shown = run(command, "Where does the Rhine flow?", option, value)
        assert shown.exit_code == 0, shown.output
        assert "North Sea" not in shown.output
        assert "1 documents are left out by the filters or the time of the question" in shown.output
    found = run("answer", "Where does the Rhine flow?", "--path", "rhine.*")
    assert "0 documents are left out" in found.output
    assert "North Sea" in found.output


def test_a_model_writes_and_an_unsupported_sentence_is_shown_as_such(
    endpoint: ChatEndpoint,
) -> None:
    endpoint.pieces = ["The Rhine reaches the North Sea [1]. It froze in 1709 [1]."]
    told = run_json("answer", "Where does the Rhine flow?")
    assert [one["is_supported"] for one in told["sentences"]] == [True, False]
    shown = run("answer", "Where does the Rhine flow?").output
    assert "not supported: the cited source does not hold 1709" in " ".join(shown.split())
    assert "tokens sent" in shown


def test_an_estimate_asks_nothing(endpoint: ChatEndpoint) -> None:
    shown = run("answer", "Where does the Rhine flow?", "--estimate")
    assert "tokens to send" in shown.output
    assert endpoint.seen == []


@pytest.fixture
def copied(tmp_path: Path, home: Path) -> None:
    """A second document states what the first does, a third speaks of something else."""
    pages = {"copy.md": "# Rivers\n\nThe Rhine flows from Basel to the North Sea.\n"}
    publish_pages(
        tmp_path, pages | {"elbe.md": "# Elbe\n\nThe Elbe rises in the Giant Mountains.\n"}
    )


def test_a_source_is_needed_until_another_states_the_same(copied: None) -> None:
    found = run_json("answer", "Where does the Rhine flow?")
    told = {one["document"]: one for one in found["sources"] if one["kind"] == "passage"}
    assert found["check_ms"] > 0.0
    assert not told["rhine.md"]["carries"]
    assert told["rhine.md"]["instead"] == told["copy.md"]["id"]
    alone = run_json("answer", "Where does the Elbe rise?")
    told = {one["document"]: one for one in alone["sources"] if one["kind"] == "passage"}
    assert told["elbe.md"]["carries"]
    assert told["elbe.md"]["needed"] > max(told["rhine.md"]["needed"], told["copy.md"]["needed"])


def test_an_explanation_marks_the_sources_that_the_answer_marks(tmp_path: Path, home: Path) -> None:
    everywhere = (
        "# Timeouts\n\nHTTPX is careful to enforce timeouts everywhere by default. It "
        "raises after 5 seconds.\n"
    )
    client = (
        "# Clients\n\nYou can set a timeout on a client, which is used as the default for "
        "its "
        "requests.\n"
    )
    publish_pages(tmp_path, {"everywhere.md": everywhere, "client.md": client})
    found = run_json("answer", "what is the default timeout?")
    marked = {one["number"]: one["carries"] for one in found["sources"] if one["kind"] == "passage"}
    told = run_json("explain", found["query_id"])["sources"]
    assert {one["number"]: one["carries"] for one in told} == marked


def test_a_turn_is_replayed_without_a_source(copied: None) -> None:
    for question, source, stands in (
        ("Where does the Rhine flow?", "rhine.md", True),
        ("the Elbe", "elbe.md", False),
    ):
        asked = run_json("query", question)["query_id"]
        told = run_json("explain", asked, "--without", source)
        assert told["without"]["stands"] is stands
        assert source not in [one["document"] for one in told["without"]["new"]]
        assert len(told["sources"]) == 3
    shown = run("explain", asked, "--without", "elbe.md").output
    assert "Without elbe.md the answer does not stand" in shown
    assert next(line.split()[-1] for line in shown.splitlines() if "elbe.md" in line) == "*"
    refused = run("explain", asked, "--without", "oder.md")
    assert refused.exit_code == 1
    assert "'oder.md' is no source of this answer" in refused.output


def test_an_abstaining_turn_says_what_it_searched(copied: None) -> None:
    found = run_json(
        "answer", "Who governs Atlantis, I am now to wonder, in Zanzibar?", "--path", "*.md"
    )
    told = found["absence"]
    assert (told["passages"], told["filters"]) == (3, {"paths": ["*.md"]})
    assert told["unknown_words"] == ["governs", "Atlantis", "wonder", "Zanzibar"]
    assert told["unknown_names"] == ["Atlantis", "Zanzibar"]
    assert told["nearest"][0]["lacks"] == ["governs", "Atlantis", "wonder", "Zanzibar"]
    assert {"lexical", "memory"} <= told["channels"].keys()
    assert told["sentence"] in found["text"]
    shown = run("answer", "Who governs Atlantis in Zanzibar?").output
    assert "No passage names Atlantis, Zanzibar." in " ".join(shown.split())
    assert "No passage holds: governs." in " ".join(shown.split())


def test_a_question_that_follows_shows_what_it_carries(home: Path) -> None:
    first = run_json("answer", "Where does the Rhine flow?", "--path", "rhine.*")
    told = run_json("answer", "and from where?", "--follow", first["query_id"])
    assert told["carried"] == {
        "follows": first["query_id"],
        "words": ["Rhine", "flow"],
        "filters": {"path": ["rhine.*"]},
    }
    assert told["excluded"] == 0
    assert "Basel" in told["text"]
    found = run_json(
        "query",
        "and from where?",
        "--follow",
        first["query_id"],
        "--drop",
        "path",
        "--drop",
        "flow",
    )
    assert (found["carried"]["words"], found["carried"]["filters"], found["excluded"]) == (
        ["Rhine"],
        {},
        None,
    )
    shown = run("answer", "and from where?", "--follow", first["query_id"]).output
    assert (
        f"carried from {first['query_id']}: Rhine, flow; path rhine.* (leave one out with --drop)"
        in shown
    )
    unknown = run("answer", "and then?", "--follow", "q_none")
    assert unknown.exit_code == 1


def test_queries_tell_what_was_returned_against_the_files_it_comes_from(home: Path) -> None:
    told = run_json("query", "Where does the Rhine flow?")
    context = run_json("queries")["context"]
    assert context["returned_tokens"] == told["tokens"]["prompt"]
    assert (context["files"], context["file_tokens"] > 5) == (1, True)
    assert "tokens returned; the 1 files they come from hold" in run("queries").output
