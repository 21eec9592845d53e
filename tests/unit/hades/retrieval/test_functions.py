"""`retrieve_paths` and `retrieve_and_format` by the names and arguments that other tools call (A5,
A22, X-22, X-23).
"""

from __future__ import annotations

from inspect import signature
from typing import Any

import pytest

from hades.compat import functions
from hades.compat.functions import retrieve_and_format, retrieve_paths
from hades.compat.pathrag import EnhancedPathRAG
from tests.unit.hades.retrieval.dated_corpus import answering, published, published_later

QUESTION = "Ada Holm"
WIDE = {"graph": {"hops": 2, "fanout": 3, "beam": 16}, "retriever": {"k": 8}}


@pytest.fixture(scope="module")
def versions(tmp_path_factory):
    home = tmp_path_factory.mktemp("versions")
    return home, published(home), published_later(home)


@pytest.fixture
def answers(versions):
    with answering(versions[0]) as opened:
        yield opened


def ends(found: Any) -> set[str]:
    """Every vertex of every path."""
    assert found["success"], found
    return {
        node["id"].removeprefix("entities/") for path in found["paths"] for node in path["nodes"]
    }


@pytest.mark.parametrize("owner", [functions, EnhancedPathRAG])
@pytest.mark.parametrize("name", ["retrieve_paths", "retrieve_and_format"])
def test_callers_of_the_base_class_work_unchanged(owner, name):
    known = list(signature(getattr(owner, name)).parameters.items())[1:5]
    assert [(name, one.default) for name, one in known[1:]] == [
        ("max_paths", 5),
        ("domain_filter", None),
        ("as_of_version", None),
    ]
    assert known[0][0] == "query"


def test_without_a_filter_a_path_may_leave_its_domain(answers):
    assert "orin" in ends(retrieve_paths(answers, QUESTION, plan=WIDE))


def test_with_a_filter_every_vertex_belongs_to_the_domain(answers):
    found = retrieve_paths(answers, QUESTION, 5, "art", plan=WIDE)
    assert ends(found) >= {"holm", "moor"}
    assert "orin" not in ends(found)


@pytest.mark.parametrize("function", [retrieve_paths, retrieve_and_format])
def test_no_paths_are_a_success_with_count_0_and_the_reason(answers, function):
    found = function(answers, QUESTION, 5, "music")
    assert (found["success"], found["count"], found["reason"]) == (True, 0, "no_paths")
    assert "no_paths" in found["reasons"]


def test_a_filter_reads_no_more_than_the_plan_allows(answers):
    found = answers.retrieve(QUESTION, plan={**WIDE, "budget": {"docs_max": 5}}, domain="art")
    assert found.telemetry.reads <= 5
    assert "budget_docs" in found.reasons


def test_a_version_is_the_snapshot_that_answers(answers, versions):
    _, first, second = versions
    assert retrieve_paths(answers, "Lea Moor", plan=WIDE)["snapshot"] == second
    assert "kern" in ends(retrieve_paths(answers, "Lea Moor", plan=WIDE))
    then = retrieve_paths(answers, "Lea Moor", 5, None, first, plan=WIDE)
    assert then["snapshot"] == first
    assert not any(
        {"moor", "kern"} == {node["id"][9:] for node in path["nodes"]} for path in then["paths"]
    )
    assert answers.view.info.snapshot == second


def test_a_version_may_be_a_time(answers):
    before = ends(retrieve_paths(answers, QUESTION, 5, None, "2026-01-05"))
    after = ends(retrieve_paths(answers, QUESTION, 5, None, "2026-01-20T00:00Z"))
    assert ("brod" in before, "moor" in before) == (True, False)
    assert ("brod" in after, "moor" in after) == (False, True)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((QUESTION, 5, None, "yesterday"), "hades snapshots"),
        ((QUESTION, 5, None, "../elsewhere"), "hades snapshots"),
        ((QUESTION, 5, None, "g00"), "g00"),
        ((QUESTION, 0), "at least 1"),
        ((" ", 5), "empty"),
    ],
)
@pytest.mark.parametrize("function", [retrieve_paths, retrieve_and_format])
def test_what_cannot_be_asked_is_no_success_and_says_why(answers, function, arguments, words):
    found = function(answers, *arguments)
    assert found["success"] is False
    assert words in found["error"]


def test_a_prompt_is_text_and_never_an_error_in_disguise(answers):
    told = retrieve_and_format(answers, QUESTION, 3, "art", plan=WIDE)
    assert told["formatted_prompt"].startswith("Hierarchy context")
    assert "Lea Moor" in told["formatted_prompt"]
    assert 1 <= told["count"] <= 3


def test_passages_by_the_names_of_the_engine(answers):
    one = functions.retrieve(answers, QUESTION, top_k=1, alpha=0.5)
    assert len(one["passages"]) == 1
    several = functions.retrieve_multi_hop(answers, QUESTION, max_hops=2, top_k=20)
    assert several["passages"][0]["document"] == one["passages"][0]["document"]
    assert several["entities"][0]["id"] == "entities/holm"
