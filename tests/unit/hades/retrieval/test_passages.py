"""Passages behind nodes and paths, and the neighbourhood they are compared with."""

from __future__ import annotations

import pytest

from hades.retrieval.core.types import FoundPath
from hades.retrieval.search.code_passages import passages_of
from hades.retrieval.walks.neighbourhood import neighbourhood
from hades.snapshot.view import GraphView
from tests.unit.hades.retrieval.graphs import keys_of, metered, number, published, question, seeds


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> GraphView:
    """a - b - far; one chunk names both a and b, one a alone, one far, and twelve only the common
    one.
    """
    return published(
        tmp_path_factory.mktemp("passages"),
        [("a", "b", 0.5), ("b", "far", 0.5)],
        names=["common"],
        mentions={
            "both": ["a", "b"],
            "a-alone": ["a"],
            "far": ["far"],
            **{f"common{n:02}": ["common"] for n in range(12)},
        },
    )


def test_a_chunk_that_names_both_ends_of_an_edge_comes_first(graph: GraphView) -> None:
    a, b = number(graph, "a"), number(graph, "b")
    path = FoundPath((a, b), (0,), (True,), 0.5)
    view = metered(graph)
    found = passages_of(view, question(), {}, [path], limit=5)
    assert [keys_of(graph, [one.node]) for one in found] == ["both", "a-alone"]
    assert found[0].tiers["graph"] == 1.0
    assert view.turn.reads_spent == 0


def test_a_name_that_stands_everywhere_says_little(graph: GraphView) -> None:
    mass = {number(graph, "common"): 1.0, number(graph, "far"): 0.5}
    assert keys_of(graph, [passages_of(metered(graph), question(), mass, limit=1)[0].node]) == "far"


def test_the_neighbourhood_is_ranked_by_summed_weight(graph: GraphView) -> None:
    found = neighbourhood(metered(graph), question(), seeds(graph, "a"), limit=5)
    # both: .5 from a, then .5 x .5 x .5 by b; a-alone: .5; far is three steps away.
    assert [(keys_of(graph, [one.node]), round(one.score, 4)) for one in found] == [
        ("both", 0.625),
        ("a-alone", 0.5),
    ]
