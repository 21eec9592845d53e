"""Questions find the recipe that suits them, and the route says why."""

from __future__ import annotations

from pathlib import Path

import pytest

from hades.retrieval.turn.route import RECIPES, Intent, determine_consolidation_level, intent_of, route
from hades.snapshot.open import open_snapshot
from hades.snapshot.publish import publish
from tests.unit.hades.retrieval.small_corpus import published
from tests.unit.hades.snapshot.homes import empty_store


@pytest.mark.parametrize(
    ("question", "intent"),
    [
        ("What's the current status of the parser?", Intent.STATUS),
        ("How is the migration going?", Intent.STATUS),
        ("What happened last week?", Intent.RECENT),
        ("what is new since Monday", Intent.RECENT),
        ("Summarize the entire project", Intent.OVERVIEW),
        ("Give me an overview of attention", Intent.OVERVIEW),
        ("Why did the current status change?", Intent.WHY),
        ("What caused the outage yesterday?", Intent.WHY),
        ("the reason for the retry", Intent.WHY),
        ("papers like Attention Is All You Need", Intent.SIMILARITY),
        ("What is similar to HDBSCAN?", Intent.SIMILARITY),
        ("who implements X?", Intent.RELATION),
        ("Lorenzo Monaco was influenced by which painter?", Intent.RELATION),
        ("Which film was released more recently, Alpha or Beta?", Intent.RELATION),
        ("Sherwood was born in what New York county?", Intent.RELATION),
        ("graph attention", Intent.OTHER),
        ("restatus the dayweek", Intent.OTHER),
    ],
)
def test_intents_are_read_from_whole_words(question: str, intent: Intent):
    assert intent_of(question)[0] is intent


@pytest.mark.parametrize(
    ("question", "level"),
    [
        ("What's current status?", 0),
        ("What happened last week?", 1),
        ("Summarize entire project", 3),
        ("Why did X happen?", 0),
        ("who wrote it?", 2),
        ("anything", 2),
    ],
)
def test_levels_of_memory(question: str, level: int):
    assert determine_consolidation_level(question) == route(question).level == level


def test_only_causes_ask_for_the_graph_filter():
    assert route("Why did X happen?").needs_graph_filter
    assert not route("What's the current status?").needs_graph_filter


def test_memory_serves_status_where_it_exists():
    assert route("What's the current status?").recipe == "memory"
    without = route("What's the current status?", available=RECIPES - {"memory"})
    assert without.recipe == "vector"
    assert without.why == "status question (“current status”): vector; not memory, there is no such recipe here"


def test_the_route_names_what_the_question_names(tmp_path: Path):
    chosen = route("Who taught Ada Holm?", published(tmp_path))
    assert chosen.recipe == "hipporag"
    assert chosen.why == "relation question (“who”) that names Ada Holm: hipporag"


def test_what_the_graph_lacks_is_not_chosen(tmp_path: Path):
    overview = route("Give me an overview of Karst", published(tmp_path))
    assert overview.recipe == "vector"
    assert "not hirag, topics have not been built" in overview.why


def test_an_empty_graph_is_searched_by_words(tmp_path: Path):
    publish(empty_store(tmp_path / "graph.db"), tmp_path)
    chosen = route("Who taught Ada Holm?", open_snapshot(tmp_path))
    assert chosen.recipe == "lexical"
    assert "not vector, the graph has no vectors" in chosen.why


def test_a_closed_list_of_recipes_falls_back_to_the_default():
    assert route("similar to this", available=()).recipe == "hirag_pathrag"
