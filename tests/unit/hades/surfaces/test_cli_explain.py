"""`hades explain` and `hades queries` on a real home: why a path is there, why a node is not, the
page over it.
"""

from __future__ import annotations

import pytest

from tests.command_line import run, run_json
from tests.homes import live_in
from tests.unit.hades.night.test_pages import read
from tests.unit.hades.retrieval.dated_corpus import published


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    place = tmp_path_factory.mktemp("explained")
    published(place)
    return place


@pytest.fixture(autouse=True)
def here(home, monkeypatch, tmp_path):
    live_in(home, monkeypatch, tmp_path)


def asked(question: str, *arguments: str) -> str:
    """The id under which a question was logged."""
    return str(run_json("query", question, *arguments)["query_id"])


def explained(query_id: str, missing: str) -> dict[str, str]:
    return dict(run_json("explain", query_id, "--missing", missing)["missing"])


def test_a_person_reads_the_question_and_why_each_path_was_kept():
    said = run("explain", asked("Ada Holm")).stdout
    assert said.startswith("Ada Holm\nauto, asked 20")
    assert "1. Ada Holm – " in said
    assert "   1 hop from Ada Holm" in said
    assert "embeddings_missing:" in said


def test_a_node_that_the_moment_hides_is_behind_the_mask():
    why = explained(asked("Ada Holm", "--as-of", "2026-01-05"), "entities/moor")
    assert (why["code"], why["next"]) == (
        "mask",
        "ask with another --as-of or --known-at, or without",
    )


def test_a_person_is_told_where_the_search_began_and_what_to_change():
    said = run("explain", asked("Ada Holm"), "--missing", "Ivo Kern").stdout
    assert "Ivo Kern (entities/kern): cap_hops" in said
    assert "the search began at Ada Holm" in said
    assert "to reach it: raise graph.hops (now 1)" in said


@pytest.mark.parametrize("missing", ["entities/nobody", "Nobody at all"])
def test_what_is_no_node_is_named(missing):
    done = run("explain", asked("Ada Holm"), "--missing", missing)
    assert done.exit_code == 1
    assert repr(missing) in " ".join(done.output.split())


def test_a_recipe_without_paths_says_which_to_ask():
    done = run("explain", asked("Ada Holm", "--recipe", "lexical"), "--missing", "entities/kern")
    assert done.exit_code == 1
    assert "ask again with hirag_pathrag or pathrag" in " ".join(done.output.split())


def test_the_page_over_the_questions_renders(home):
    asked("Ada Holm <b>& co</b>")
    assert run("queries").exit_code == 0
    said = read(home / "reports" / "queries.html")
    assert "Ada Holm <b>& co</b>" in said
    assert all(
        heading in said for heading in ("Stages", "Conveyance", "Reasons", "Newest questions")
    )
    assert all(stage in said for stage in ("seeds", "graph", "rerank", "pack"))
