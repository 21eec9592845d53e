"""A question asked from a node: nothing changes without one, with one its neighbours come up."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pytest

from hades.ports.graph import Kind
from hades.retrieval.answer.path_text import ByteCeiling
from hades.retrieval.core.types import RECIPES, Question
from hades.retrieval.pipeline import Tools, retrieve
from hades.retrieval.search.near_document import UnknownPlace, nodes_near, search_placed
from tests.unit.hades.retrieval.films import metered
from tests.unit.hades.retrieval.memory_view import Graph, MemoryView

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


def papers(*, cited: bool = True) -> tuple[MemoryView, dict[str, int]]:
    """Three papers with a text each; the first cites the second where `cited`, none is like the
    question.
    """
    graph, at = Graph(), {}
    for name, text in (
        ("Trees", "parsing words"),
        ("Banks", "stored sentences"),
        ("Pike", "cold fish"),
    ):
        at[name] = graph.node(Kind.ENTITY, name)
        at[f"{name} text"] = graph.node(Kind.CHUNK, text)
        graph.edge(at[f"{name} text"], at[name], "mentions", 1.0)
    if cited:
        graph.edge(at["Trees"], at["Banks"], "cites", 1.0)
    return MemoryView(graph), at


def found_from(view: MemoryView, place: int) -> list[int]:
    return [one.node for one in search_placed(metered(view), Question("zzz", near=(place,)), 10)]


def test_the_walk_from_a_paper_reaches_what_it_cites_and_nothing_else():
    view, at = papers()
    assert set(found_from(view, at["Trees"])) == {at["Trees text"], at["Banks text"]}


def test_a_citation_that_is_withheld_is_not_walked():
    view, at = papers(cited=False)
    assert found_from(view, at["Trees"]) == [at["Trees text"]]


def test_the_pieces_that_a_question_is_asked_from_are_no_answer():
    view, at = papers()
    place = (at["Trees"], at["Trees text"])
    assert [
        one.node for one in search_placed(metered(view), Question("parsing", near=place), 10)
    ] == [at["Banks text"]]


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_question_asked_from_nowhere_is_the_question_itself(recipe):
    view, _ = papers()
    tools = Tools(ByteCeiling(), clock=lambda: 0.0)
    plain, nowhere = (
        retrieve(view, "stored fish", tools, at=NOON, recipe=recipe, **given).model_dump_json()
        for given in ({}, {"near": ()})
    )
    assert plain == nowhere
    assert '"near"' not in plain


def test_the_place_is_part_of_the_id_and_a_stage_of_the_turn():
    view, at = papers()
    tools = Tools(ByteCeiling(), clock=lambda: 0.0)
    (place,) = view.ids(np.array([at["Trees"]]))
    plain = retrieve(view, "fish", tools, at=NOON, recipe="hipporag")
    placed = retrieve(view, "fish", tools, at=NOON, recipe="hipporag", near=[place])
    assert plain.query_id != placed.query_id
    assert "near" in [stage.name for stage in placed.telemetry.stages]
    assert "stored sentences" in [passage.text for passage in placed.passages]
    assert "stored sentences" not in [passage.text for passage in plain.passages]


def test_a_place_that_is_not_there_is_named():
    view, _ = papers()
    view.sources = lambda ids: [None for _ in ids]  # type: ignore[method-assign]
    with pytest.raises(UnknownPlace, match=r"'1706\.03762' is neither a node nor a document"):
        nodes_near(metered(view), ["1706.03762"])
