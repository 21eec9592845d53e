"""From topics to candidates on a hierarchy that can be checked by hand (requirements C32 to C34,
C46).
"""

from __future__ import annotations

import pytest

from hades.compat import functions
from hades.providers.tokens import MiniLmTokenizer
from hades.retrieval.answers import Answers
from hades.retrieval.pipeline import Tools
from hades.retrieval.search.seeds import narrow
from hades.settings.tree import HiragPathrag, TopicThresholds
from hades.snapshot.view import GraphView
from schemas.plan import Reason
from tests.unit.hades.retrieval.graphs import keys_of, metered, number, published, question

X, Y = [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]
NEAR_X = [0.8, 0.6, 0.0]


HALF, STRICT = TopicThresholds(super_topic=0.5, topic=0.5), TopicThresholds(super_topic=0.99)


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> GraphView:
    """Topics east (x) and north (y) under one super-topic each; e1 is a hub, `out` is in no topic
    but beside e2.
    """
    return published(
        tmp_path_factory.mktemp("topics"),
        [*(("e1", f"leaf{n:02}", 0.5) for n in range(40)), ("e2", "out", 1.0)],
        vectors={"e1": X, "e2": NEAR_X, "n1": Y, "out": NEAR_X},
        topics={
            "east": (1, X, ["e1", "e2"]),
            "north": (1, Y, ["n1"]),
            "top-east": (2, X, ["east"]),
            "top-north": (2, Y, ["north"]),
        },
    )


def test_it_goes_down_the_nearest_topics_and_demotes_hubs(graph: GraphView) -> None:
    found = narrow(metered(graph), question("q", X), HiragPathrag(topic_k=1, topic_thresholds=HALF))
    assert found is not None
    assert [(keys_of(graph, [topic.node]), topic.level) for topic in found.topics] == [
        ("top-east", 2),
        ("east", 1),
    ]
    # e1 matches fully but leads to 41 places: 1 / (1 + .005 x 41). e2 matches .8, and out is
    # brought in by e2.
    named = dict(
        zip(keys_of(graph, found.nodes.tolist()).split(), found.hscore.tolist(), strict=True)
    )
    assert named["e1"] == pytest.approx(1 / (1 + 0.005 * 41))
    assert named["e2"] == pytest.approx(0.8 / (1 + 0.005 * 2))
    assert named["out"] == pytest.approx(0.8)
    assert "n1" not in named
    assert found.nodes.tolist()[0] == number(graph, "e1")


def test_the_beam_reaches_topics_only_through_kept_parents(graph: GraphView) -> None:
    both = narrow(metered(graph), question("q", NEAR_X), HiragPathrag())
    assert both is not None
    assert {keys_of(graph, [topic.node]) for topic in both.topics} == {
        "top-east",
        "east",
        "top-north",
        "north",
    }
    one = narrow(metered(graph), question("q", NEAR_X), HiragPathrag(beam=(1, 1, 1)))
    assert one is not None
    assert [keys_of(graph, [topic.node]) for topic in one.topics] == ["top-east", "east"]
    wide = narrow(metered(graph), question("q", NEAR_X), HiragPathrag(beam=(1, 2, 1)))
    assert wide is not None
    assert [keys_of(graph, [topic.node]) for topic in wide.topics] == ["top-east", "east"]
    none = narrow(metered(graph), question("q", NEAR_X), HiragPathrag(topic_thresholds=STRICT))
    assert none is not None
    assert (none.topics, len(none.nodes)) == ((), 0)


def test_a_level_keeps_its_width_however_many_parents_there_are(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Two super-topics with three topics each; two topics may be entered, not two under each."""
    names = [f"t{number}" for number in range(6)]
    near = {name: [1.0, 0.1 * place, 0.0] for place, name in enumerate(names)}
    graph = published(
        tmp_path_factory.mktemp("widths"),
        [(f"m{number}", "hub", 0.5) for number in range(6)],
        vectors={f"m{number}": X for number in range(6)},
        topics={
            **{name: (1, near[name], [f"m{place}"]) for place, name in enumerate(names)},
            "one": (2, X, names[:3]),
            "two": (2, NEAR_X, names[3:]),
        },
    )
    found = narrow(metered(graph), question("q", X), HiragPathrag(beam=(8, 2, 1)))
    assert found is not None
    assert [keys_of(graph, [topic.node]) for topic in found.topics] == ["one", "two", "t0", "t1"]
    assert [keys_of(graph, [topic.node]) for topic in found.shown(3)] == ["one", "t0", "t1"]


def test_the_cap_cuts_the_worst_and_says_so(graph: GraphView) -> None:
    view = metered(graph)
    found = narrow(view, question("q", X), HiragPathrag(cand_cap=2))
    assert found is not None
    assert keys_of(graph, found.nodes.tolist()) == "e1 e2"
    assert view.turn.reasons == [Reason.CAP_EXCEEDED]
    assert view.turn.reads_spent == 0


def test_without_a_hierarchy_it_says_so(
    tmp_path_factory: pytest.TempPathFactory, graph: GraphView
) -> None:
    flat = published(tmp_path_factory.mktemp("flat"), [("a", "b", 1.0)], vectors={"a": X})
    for view, asked in ((flat, question("q", X)), (graph, question("q"))):
        account = metered(view)
        assert narrow(account, asked, HiragPathrag()) is None
        assert account.turn.reasons == [Reason.HIERARCHY_UNAVAILABLE]


def test_a_vector_alone_will_do(graph: GraphView) -> None:
    answers = Answers(lambda: graph, lambda: graph.info.snapshot, Tools(MiniLmTokenizer()))
    found = functions.get_hierarchy_candidates(answers, [2.0, 0.0, 0.0], 1, {1: 0.5, 2: 0.5})
    inside = {one["id"] for one in found["nodes"]}
    assert "entities/e1" in inside
    assert "entities/n1" not in inside
