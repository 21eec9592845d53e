"""Nothing is read past the meter: answers are cut before the question is asked, and the ledger
equals the reads.
"""

from __future__ import annotations

import numpy as np
import pytest

from hades.budget import Caps, Turn
from hades.ports.graph import Kind
from hades.ports.store import Direction
from hades.retrieval.core.metered_view import MeteredView
from schemas.plan import Reason
from tests.unit.hades.retrieval.memory_view import CountingView, Graph, MemoryView


def star(leaves: int) -> Graph:
    graph = Graph()
    hub = graph.node(Kind.ENTITY, "hub", [1, 0, 0])
    for number in range(leaves):
        graph.edge(
            hub, graph.node(Kind.ENTITY, f"leaf {number}", [0, 1, 0]), weight=1 - number / 100
        )
    return graph


def opened(graph: Graph, *, reads: int = 100, work: int = 100) -> tuple[MeteredView, CountingView]:
    counting = CountingView(MemoryView(graph))
    return MeteredView(counting, Turn(Caps(reads, work, 1000))), counting


def test_only_the_first_documents_that_may_be_read_are():
    view, counting = opened(star(9), reads=4)
    assert [node.name for node in view.nodes(np.arange(10))] == [
        "hub",
        "leaf 0",
        "leaf 1",
        "leaf 2",
    ]
    assert view.edges(np.arange(3)) == []
    assert (counting.reads, view.turn.reads_spent, view.turn.reasons) == (
        4,
        4,
        [Reason.BUDGET_DOCS],
    )


def test_what_was_read_once_is_not_read_again():
    view, counting = opened(star(9), reads=4)
    view.nodes(np.array([1, 2, 3]))
    assert [node.id for node in view.nodes(np.array([3, 1, 3, 5, 2]))] == [
        "entities/n000003",
        "entities/n000001",
        "entities/n000003",
        "entities/n000005",
        "entities/n000002",
    ]
    assert counting.reads == view.turn.reads_spent == 4
    assert view.turn.reasons == []


def test_an_answer_ends_at_the_first_document_that_is_denied_even_when_later_ones_are_known():
    view, _ = opened(star(9), reads=2)
    view.nodes(np.array([7, 8]))
    assert [node.name for node in view.nodes(np.array([7, 1, 8]))] == ["leaf 6"]


@pytest.mark.parametrize("kind", ["nodes", "edges", "passages", "sources"])
def test_an_exhausted_budget_reads_nothing_of_any_kind(kind):
    view, counting = opened(star(3), reads=0)
    asked = ["documents/1"] if kind == "sources" else np.array([1])
    assert getattr(view, kind)(asked) == []
    assert counting.reads == 0
    assert view.turn.reasons == [Reason.BUDGET_DOCS]


def test_work_is_bounded_by_what_is_left_of_the_turns():
    view, counting = opened(star(50), work=7)
    found = view.expand(np.array([0]), direction=Direction.OUT)
    assert len(found) == found.work == counting.work == view.turn.work_spent == 7
    assert view.turn.reasons == [Reason.CAP_EXCEEDED]
    again = view.expand(np.array([0]), direction=Direction.OUT)
    assert len(again) == 0
    assert view.turn.work_spent == 7
