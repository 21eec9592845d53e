"""Paths with a memory: what a hit may never bypass, what is not kept, and what a new snapshot
changes (A63 to A72).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hades.cache.tiers import TieredMemoryManager
from hades.compat.functions import retrieve_paths
from hades.compat.pathrag import EnhancedPathRAG
from hades.retrieval.core.words import shipped_ranking
from hades.settings.tree import PathragSettings
from schemas.plan import Reason
from tests.contract.examples import entity, put, relation
from tests.homes import empty_store
from tests.unit.hades.retrieval.dated_corpus import answering, published, published_later

QUESTION = "Ada Holm"
WIDE = {"graph": {"hops": 2, "fanout": 3, "beam": 16}, "retriever": {"k": 8}, "final_context": 8}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    published(tmp_path)
    return tmp_path


@pytest.fixture
def rag(home: Path) -> Iterator[EnhancedPathRAG]:
    with opened(home) as one:
        yield one


def opened(home: Path, **rules: Any) -> EnhancedPathRAG:
    memory = TieredMemoryManager({"ram_cache_size_mb": 8}, home=home)
    return EnhancedPathRAG(answering(home), memory, PathragSettings(**rules))


def ends(found: Any) -> set[str]:
    assert found["success"], found
    return {
        node["id"].removeprefix("entities/") for path in found["paths"] for node in path["nodes"]
    }


def tiers(rag: EnhancedPathRAG, *asked: Any, times: int = 2, **named: Any) -> list[str]:
    return [str(rag.retrieve_paths(*asked, **named)["tier"]) for _ in range(times)]


def test_the_second_time_memory_answers_the_same(rag):
    first, second = rag.retrieve_paths(QUESTION), rag.retrieve_paths(QUESTION)
    assert (first["tier"], second["tier"]) == ("RAID5", "RAM")
    assert first["query_id"] != second["query_id"]  # each turn can be explained and judged
    assert {**first, "tier": "", "query_id": ""} == {**second, "tier": "", "query_id": ""}
    assert first["success"]
    assert first["count"] == len(first["paths"]) > 0
    assert first["pruned_from"] >= first["count"]
    assert [path["rank"] for path in first["paths"]] == list(range(1, first["count"] + 1))


def test_at_most_as_many_paths_as_asked_most_reliable_first(rag):
    found = rag.retrieve_paths(QUESTION, 1, plan=WIDE)
    assert (found["count"], found["pruned_from"]) == (1, 7)
    several = rag.retrieve_paths(QUESTION, 5, plan=WIDE)
    assert several["paths"][0] == found["paths"][0]
    reliable = [path["reliability"] for path in several["paths"]]
    assert reliable == sorted(reliable, reverse=True)
    assert all(0.0 <= one <= 1.0 for one in reliable)


@pytest.mark.parametrize("recipe", ["auto", "hirag_pathrag"])
def test_report_pruning_and_order_have_one_reliability(home, recipe):
    rag = opened(home, pruning_threshold=0.0)
    paths = rag.retrieve_paths(QUESTION, 5, plan=WIDE, recipe=recipe)["paths"]
    assert len(paths) > 1
    for path in paths:
        assert rag.calculate_path_score(path, path["nodes"][0]) == pytest.approx(
            path["reliability"]
        )
        assert path["path"] == " -> ".join(node["name"] for node in path["vertices"])
        assert (
            path["path_length"]
            == len(path["edge_weights"])
            == len(path["edge_types"])
            == len(path["edges"])
        )
        assert path["vertex_types"] == [node["type"] for node in path["nodes"]]
    assert rag.prune_paths(paths) == [
        {**path, "reliability": pytest.approx(path["reliability"])} for path in paths
    ]
    answer = rag.answers.retrieve(QUESTION, plan=WIDE, recipe=recipe, max_paths=5)
    told = {tuple(edge.id for edge in path.edges): path.reliability for path in answer.paths}
    same = {
        ids: path["reliability"]
        for path in paths
        if (ids := tuple(edge["id"] for edge in path["edges"])) in told
    }
    assert same
    assert same == {ids: pytest.approx(told[ids]) for ids in same}
    least = paths[0]["reliability"]
    kept = opened(home, pruning_threshold=least).retrieve_paths(
        QUESTION, 5, plan=WIDE, recipe=recipe
    )["paths"]
    assert kept
    assert all(path["reliability"] >= least for path in kept)


def test_the_most_relevant_path_of_the_prompt_is_the_first(rag):
    first = rag.retrieve_paths(QUESTION, 5, plan=WIDE)["paths"][0]
    prompt = rag.retrieve_and_format(QUESTION, 5, plan=WIDE)["formatted_prompt"]
    last = prompt.partition("Most relevant path")[2]
    assert f"({first['reliability']:.2f})" in last
    assert all(node["name"] in last for node in first["nodes"])


@pytest.mark.parametrize(
    "asked",
    [(QUESTION, "5"), (QUESTION, 2.5), (QUESTION, None), (QUESTION, 5, 7), (QUESTION, 5, None, 12)],
)
def test_an_argument_of_another_type_is_told(rag, asked):
    for ask in (rag.retrieve_paths, rag.retrieve_and_format):
        assert ask(*asked)["success"] is False


@pytest.mark.parametrize(
    "other",
    [
        {"max_paths": 4},
        {"domain_filter": "art"},
        {"as_of_version": "2026-01-05"},
        {"recipe": "pathrag"},
        {"plan": {"budget": {"docs_max": 5}}},
    ],
)
def test_another_limit_version_or_filter_is_computed_anew(rag, other):
    rag.retrieve_paths(QUESTION)
    assert rag.retrieve_paths(QUESTION, **other)["tier"] == "RAID5"
    assert rag.retrieve_paths(QUESTION, **other)["tier"] != "RAID5"


def test_a_hit_respects_version_and_filter(rag):
    for _ in range(2):
        before = rag.retrieve_paths(QUESTION, 5, None, "2026-01-05")
        after = rag.retrieve_paths(QUESTION, 5, None, "2026-01-20T00:00Z")
        assert ("brod" in ends(before), "brod" in ends(after)) == (True, False)
        assert "orin" not in ends(rag.retrieve_paths(QUESTION, 5, "art", plan=WIDE))
        assert "orin" in ends(rag.retrieve_paths(QUESTION, 5, None, plan=WIDE))


def test_pruning_by_another_threshold_never_meets_what_was_kept(home):
    loose, strict = opened(home, pruning_threshold=0.0), opened(home, pruning_threshold=1.0)
    assert loose.retrieve_paths(QUESTION)["count"] > 0
    found = strict.retrieve_paths(QUESTION)
    assert (found["success"], found["count"], found["reason"], found["tier"]) == (
        True,
        0,
        "no_paths",
        "RAID5",
    )
    assert found["pruned_from"] > 0
    assert opened(home, decay_rate=0.5).retrieve_paths(QUESTION)["tier"] == "RAID5"


def test_an_answer_by_another_ranking_is_computed_anew(home, monkeypatch):
    rag = opened(home)
    assert tiers(rag, QUESTION) == ["RAID5", "RAM"]
    shipped = shipped_ranking()
    monkeypatch.setattr(
        "hades.retrieval.cached_answers.shipped_ranking",
        lambda: replace(shipped, looks=shipped.looks[1:]),
    )
    assert tiers(rag, QUESTION) == ["RAID5", "RAM"]


def test_a_threshold_prunes_paths_through_a_hub(tmp_path):
    store = empty_store(tmp_path / "graph.db")
    leaves = [f"leaf{number}" for number in range(120)]
    put(
        store,
        "entities",
        entity("hub", name="Grand Hub", deg_out=120),
        entity("ada", name="Ada Holm", deg_out=1),
    )
    put(store, "entities", entity("bo", name="Bo Lind"))
    put(store, "entities", *(entity(leaf, name=f"Leaf {leaf}") for leaf in leaves))
    put(
        store,
        "relations",
        *(relation("hub", leaf, weight=0.5) for leaf in leaves),
        relation("ada", "bo", weight=0.9),
    )
    from hades.snapshot.publish import publish

    publish(store, tmp_path)
    for rag in (opened(tmp_path), opened(tmp_path, pruning_threshold=0.01)):
        found = rag.retrieve_paths("Grand Hub and Ada Holm", 5, recipe="hirag_pathrag")
        assert found["pruned_from"] > found["count"] > 0
        assert all(
            {"ada", "bo"} == ends({"success": True, "paths": [path]}) for path in found["paths"]
        )


def test_a_new_snapshot_starts_with_nothing_and_the_old_one_keeps_its_answers(home, rag):
    first = rag.retrieve_paths("Lea Moor", plan=WIDE)
    assert tiers(rag, "Lea Moor", plan=WIDE, times=1) == ["RAM"]
    published_later(home)
    later = rag.retrieve_paths("Lea Moor", plan=WIDE)
    assert (later["tier"], later["snapshot"] != first["snapshot"]) == ("RAID5", True)
    assert "kern" in ends(later)
    then = rag.retrieve_paths("Lea Moor", 5, None, str(first["snapshot"]), plan=WIDE)
    assert then["snapshot"] == first["snapshot"]
    assert then["paths"] == first["paths"]
    assert tiers(rag, "Lea Moor", 5, None, str(first["snapshot"]), plan=WIDE, times=1) == ["RAM"]


def test_no_paths_are_kept_too_but_in_a_slower_tier(rag):
    found = rag.retrieve_paths(QUESTION, 5, "music")
    assert (found["success"], found["count"], found["reason"]) == (True, 0, "no_paths")
    assert tiers(rag, QUESTION, 5, "music", times=1) == ["RAID1"]


def test_an_answer_that_ran_out_of_time_is_not_kept(rag, monkeypatch):
    answer = rag.answers.retrieve

    def slow(*asked: Any, **named: Any) -> Any:
        return answer(*asked, **named).model_copy(update={"reasons": (Reason.TIMEOUT,)})

    monkeypatch.setattr(rag.answers, "retrieve", slow)
    assert tiers(rag, QUESTION) == ["RAID5", "RAID5"]


def test_answers_that_learn_from_feedback_are_not_kept(rag):
    assert tiers(rag, QUESTION, recipe="nexus") == ["RAID5", "RAID5"]


def test_an_answer_with_more_paths_than_are_kept_is_not_kept(home):
    assert tiers(opened(home, max_cache_paths=0), QUESTION) == ["RAID5", "RAID5"]


@pytest.mark.parametrize("query", [None, b"Ada Holm", ["Ada Holm"], 7])
def test_what_is_no_text_is_refused_and_leaves_no_trace(rag, query):
    for ask in (rag.retrieve_paths, rag.retrieve_and_format):
        found = ask(query)
        assert found["success"] is False
        assert f"the question is of type {type(query).__name__}" in found["error"]
    assert list(rag.recent_queries) == []
    assert rag.retrieve_paths(QUESTION)["success"]


def test_the_last_ten_questions_are_remembered(rag):
    for number in range(12):
        rag.retrieve_paths(f"question {number}")
    assert list(rag.recent_queries) == [f"question {number}" for number in range(2, 12)]


@pytest.mark.parametrize("method", ["retrieve_paths", "retrieve_and_format"])
@pytest.mark.parametrize(
    ("asked", "words"),
    [(("",), "empty"), ((QUESTION, 0), "at least 1"), ((QUESTION, 5, None, "g00"), "g00")],
)
def test_an_error_is_told_and_never_kept(rag, method, asked, words):
    for _ in range(2):
        found = getattr(rag, method)(*asked)
        assert found["success"] is False
        assert words in found["error"]


def test_a_prompt_fits_the_window_whatever_gave_the_paths(home):
    rag = opened(home, context_window_tokens=120, reserve_tokens=40)
    for tier in ("RAID5", "RAM"):
        found = rag.retrieve_and_format(QUESTION, plan=WIDE)
        assert found["success"]
        assert found["formatted_prompt"].startswith(f"Query: {QUESTION}")
        assert 0 < found["tokens"]["prompt"] <= 80
        assert found["tier"] == tier


def test_no_more_paths_are_asked_for_than_the_window_could_hold(home):
    rag = opened(home, context_window_tokens=400, reserve_tokens=100, path_token_estimate=150)
    assert rag.retrieve_and_format(QUESTION, 5, plan=WIDE)["count"] <= 2


def test_a_window_that_holds_no_path_is_told(home):
    found = opened(home, context_window_tokens=30, reserve_tokens=10).retrieve_and_format(
        QUESTION, plan=WIDE
    )
    assert (found["count"], found["reason"]) == (0, "prompt_full")
    assert "prompt_full" in found["reasons"]


def test_a_question_longer_than_the_window_is_an_error(home):
    found = opened(home, context_window_tokens=20, reserve_tokens=10).retrieve_and_format(
        QUESTION + " ship" * 50
    )
    assert found["success"] is False
    assert "tokens" in found["error"]


def test_no_paths_and_an_error_cannot_be_mistaken_for_a_prompt(rag):
    none = rag.retrieve_and_format(QUESTION, 5, "music")
    assert (none["success"], none["count"], none["reason"]) == (True, 0, "no_paths")
    assert "Path (" not in none["formatted_prompt"]


def test_without_memory_every_question_is_computed(home):
    rag = EnhancedPathRAG(answering(home))
    assert tiers(rag, QUESTION) == ["RAID5", "RAID5"]
    assert rag.report() is None
    plain = retrieve_paths(rag.answers, QUESTION, 10, plan=WIDE)
    assert ends(rag.retrieve_paths(QUESTION, plan=WIDE)) <= ends(plain)
