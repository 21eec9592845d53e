"""Works that a text refers to by author, a question that is asked from a paper, and how a turn of a
talk speaks.
"""

from __future__ import annotations

import pytest

from hades.ports.graph import Kind, Passage
from hades.retrieval.core.types import Question
from hades.retrieval.features.passages import speech
from hades.retrieval.search.near_document import (
    Reference,
    references_in,
    referred_works,
    search_placed,
)
from tests.unit.hades.retrieval.films import metered
from tests.unit.hades.retrieval.memory_view import Graph, MemoryView


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("an additional layer (Orin et al., 2016).", [Reference(("Orin",), 2016)]),
        ("as in Orin and Vale [2003] and in [7]", [Reference(("Orin", "Vale"), 2003)]),
        (
            "known (Orin, 2011a; Holm-Berg et al., 2015)",
            [Reference(("Orin",), 2011), Reference(("Holm-Berg",), 2015)],
        ),
        ("Orin et al. have shown it, and Orin et al. said so", [Reference(("Orin",), None)]),
        ("work by Orin and Vale [12]", [Reference(("Orin", "Vale"), None)]),
        ("The results of Paris and of layer [12] are old", []),
    ],
)
def test_references_are_read_as_papers_write_them(text: str, expected: list[Reference]):
    assert references_in(text) == expected


def library() -> tuple[MemoryView, dict[str, int]]:
    """A paper that asks, and three works: two by one author, one of them with another; none cites
    another.
    """
    graph, at = Graph(), {}
    authors = {name: graph.node(Kind.ENTITY, name) for name in ("ada orin", "bo vale")}
    written = {
        "Place": [],
        "Trees": ["ada orin"],
        "Banks": ["ada orin", "bo vale"],
        "Pike": ["bo vale"],
    }
    for title, by in written.items():
        work = graph.node(Kind.ENTITY, title)
        at[title] = graph.node(Kind.CHUNK, f"text of {title}")
        graph.edge(at[title], work, "mentions", 0.8)
        at[f"{title} work"] = work
        for author in by:
            graph.edge(work, authors[author], "refers_to", 0.5)
    return MemoryView(graph), at


def test_a_reference_to_two_authors_means_the_works_that_both_wrote():
    view, at = library()
    found = referred_works(metered(view), "see Orin and Vale (2003) and Orin et al. (2001)")
    both, first = (passages for _, passages in found)
    assert both.tolist() == [at["Banks"]]
    assert sorted(first.tolist()) == sorted([at["Trees"], at["Banks"]])


def test_a_work_that_the_question_refers_to_comes_first_and_the_place_itself_never():
    view, at = library()
    question = Question(
        "this was shown by Orin and Vale (2003)", near=(at["Place work"], at["Place"])
    )
    found = search_placed(metered(view), question, 10)
    assert found[0].node == at["Banks"]
    assert at["Place"] not in [one.node for one in found]
    assert "reference" in found[0].tiers


def test_a_turn_that_asks_is_told_from_one_that_speaks_of_its_speaker():
    texts = (
        "Ada: Really? Where did you go?",
        "Bo: I went to Galway. It was cold!",
        "Bo: Galway is a city",
    )
    found = speech([Passage(text, text, "d", "documents/d", (0, len(text))) for text in texts])
    assert found["asks"].tolist() == [1.0, 0.0, 0.0]
    assert found["of_self"].tolist() == [0.0, 1.0, 0.0]
    assert found["to_other"].tolist() == [1.0, 0.0, 0.0]
