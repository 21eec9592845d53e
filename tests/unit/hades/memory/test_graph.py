"""From a find to what it is joined to: every true edge, strongest first, in a budget; ranked, then
cut.
"""

from __future__ import annotations

from datetime import timedelta

import pytest

from hades.budget import Caps
from hades.memory.history.edges import NewEdge
from hades.memory.history.rows import MemoryRefused
from hades.memory.history.states import NewState
from hades.memory.recall.graph import enhance, get_relevant_subgraph
from hades.providers.hashing import HashingEmbedder
from schemas.ids import Mask
from tests.unit.hades.memory.kept import T1
from tests.unit.hades.memory.scenario import REFACTORING, X, Y, tell


@pytest.fixture
def seen(memory, clock):
    memory.embedder = HashingEmbedder()
    tell(memory, clock)
    return memory


def star(memory, count=30):
    """A hub joined to many leaves, ever more strongly, and a chain behind the strongest."""
    memory.add_many([NewState("hub/centre", "the centre of the wheel")])
    memory.add_many(
        [NewState(f"leaf/{number:02d}", f"spoke number {number}") for number in range(count)]
    )
    memory.add_many(
        [NewState("far/one", "behind the last spoke"), NewState("far/two", "further behind")]
    )
    memory.link_many(
        [
            *(
                NewEdge("hub/centre", f"leaf/{n:02d}", "relates_to", strength=n / count)
                for n in range(count)
            ),
            NewEdge("far/one", f"leaf/{count - 1:02d}", "relates_to", strength=0.5),
            NewEdge("far/one", "far/two", "relates_to", strength=0.5),
        ]
    )


def test_the_answer_of_the_scenario_is_reached_whatever_its_relation_is_called(seen):
    match = seen.graph_enhanced_retrieval("approach X viable", matches=1).matches[0]
    assert match.state.topic == X
    assert [(one.state.topic, one.way[0].relationship_type) for one in match.related_states] == [
        (REFACTORING, "viable_after_fix")
    ]
    assert [state.version for state in match.historical_context] == [1]


def test_a_reader_in_the_past_walks_the_edges_of_then(seen):
    then = Mask(as_of=T1 + timedelta(days=1))
    match = seen.graph_enhanced_retrieval("approach X", matches=1, mask=then).matches[0]
    assert [(one.state.topic, one.way[0].relationship_type) for one in match.related_states] == [
        (Y, "rejected_because")
    ]
    assert match.related_states[0].since is None


def test_everything_within_reach_comes_strongest_way_first(seen):
    star(seen)
    match = seen.graph_enhanced_retrieval("centre of the wheel", matches=1).matches[0]
    strengths = [one.strength for one in match.related_states]
    assert strengths == sorted(strengths, reverse=True)
    assert len(match.related_states) == 31
    behind = next(one for one in match.related_states if one.state.topic == "far/one")
    assert (len(behind.way), behind.near) == (2, "leaf/29")
    assert behind.strength == pytest.approx(29 / 30 * 0.5)
    assert [one.state.topic for one in match.related_states if one.strength == 0] == ["leaf/00"]


def test_depth_says_how_far(seen):
    star(seen)
    reached = {}
    for depth in (0, 1, 2, 3):
        match = seen.graph_enhanced_retrieval("centre of the wheel", depth, matches=1).matches[0]
        reached[depth] = len(match.related_states)
    assert reached == {0: 0, 1: 30, 2: 31, 3: 32}
    with pytest.raises(MemoryRefused, match="depth"):
        seen.graph_enhanced_retrieval("centre", -1)


def test_caps_hold_and_say_so(seen):
    star(seen)
    matches = seen.search("centre of the wheel", limit=1)
    found = enhance(seen.reader(), matches, 2, caps=Caps(docs_max=7, work_max=40, latency_ms=1e9))
    assert found.reads == 7
    assert found.work <= 40
    assert len(found.matches[0].related_states) <= 7
    assert found.reasons != []


def test_a_subgraph_is_ranked_then_cut_and_holds_each_version_once(seen):
    star(seen)
    vector = seen.embedder.embed(["the centre of the wheel"])[0]
    whole = get_relevant_subgraph(seen.reader(), vector, latest=1)
    topics = [state.topic for state, _ in whole.nodes]
    assert topics[0] == "hub/centre"
    assert topics[1:6] == [f"leaf/{number}" for number in (29, 28, 27, 26, 25)]
    assert "far/one" in topics
    assert len(set(topics)) == len(topics)
    assert whole.weaker >= 15
    scores = [score for _, score in whole.nodes]
    assert scores == sorted(scores, reverse=True)
    cut = seen.get_relevant_subgraph(vector, max_nodes=3)
    assert len(cut.nodes) == 3
    assert cut.nodes[0][0].topic == "hub/centre"
    kept = {f"memory_states/{state.key}" for state, _ in cut.nodes}
    assert all({edge.source, edge.target} <= kept for edge in cut.edges)
