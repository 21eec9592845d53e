"""What memory is for: a novel in ten thousand tokens, a bug, a question of research, a decision."""

from __future__ import annotations

from datetime import timedelta

import pytest

from hades.memory.history.facts import Fact
from hades.providers.hashing import HashingEmbedder
from hades.providers.tokens import MiniLmTokenizer
from tests.unit.hades.memory.kept import T1
from tests.unit.hades.memory.novel import QUESTION, write_novel

DAY = timedelta(days=1)


@pytest.fixture
def asked(memory):
    """A memory that can be searched by meaning and counts tokens."""
    memory.embedder, memory.tokenizer = HashingEmbedder(), MiniLmTokenizer()
    return memory


@pytest.mark.parametrize(
    ("scenes", "tokens"), [(1, 70_000), pytest.param(6, 400_000, marks=pytest.mark.soak)]
)
def test_a_novel_is_asked_with_ten_thousand_tokens(asked, clock, scenes, tokens):
    write_novel(asked, clock, scenes)
    whole = sum(
        asked.tokenizer.count_many(
            [asked.latest(topic).content for topic in asked.topics("chapter/")]
        )
    )
    assert whole > tokens
    context = asked.retrieve_within_budget(QUESTION, max_tokens=11_111)
    assert context.tokens <= 10_000
    assert (context.intent, context.level) == ("status", 0)
    topics = [entry.text.split(",")[0].strip("[") for entry in context.latest]
    assert {"character/sarah", "relationship/sarah_to_king"} <= set(topics)
    related = "\n".join(entry.text for entry in context.related)
    assert "character/sarah --has_trait--> trait/sarah_fear_of_king" in related
    assert "trait/sarah_fear_of_king --caused_by--> event/parents_murdered" in related
    assert "trait/sarah_desire_for_revenge --caused_by--> event/kingdom_burned" in related
    assert "Her parents were murdered" in context.text
    met = [
        line
        for line in related.splitlines()
        if line.startswith("character/sarah --interacted_with-->")
    ]
    assert sorted(line.split("--> ")[1].split(",")[0] for line in met) == [
        "chapter/0985",
        "chapter/0990",
        "chapter/0995",
        "chapter/0998",
        "chapter/1003",
    ]
    assert "character/merchants --interacted_with" not in context.text


def test_bug_tracking(asked, clock):
    asked.add("project/feature_x", "Working on feature X. Approach Z is being considered.")
    bug = asked.add("bugs/bug_y", "Bug Y: feature X loses rows when approach Z is used.")
    asked.link("project/feature_x", bug.id, "blocked_by", description="bug Y loses rows")
    for step in (
        "Bug Y is investigated.",
        "Bug Y comes from approach Z.",
        "A fix of bug Y is tested.",
        "Bug Y is fixed.",
    ):
        clock.at += DAY
        asked.add("bugs/bug_y", step)
    changed = asked.change(
        "project/feature_x",
        "Bug Y is fixed",
        facts=[Fact("enabled_by", "bugs/bug_y", replaces="blocked_by")],
        content="Feature X is complete. Bug Y is fixed; approach Z was avoided because it loses "
        "rows.",
    )
    assert changed.new_state.version == 2
    edges = asked.edges("project/feature_x")
    assert [(edge.relationship_type, edge.target) for edge in edges] == [
        ("enabled_by", f"memory_states/{asked.latest('bugs/bug_y').id}")
    ]
    found = asked.graph_enhanced_retrieval("why was approach Z avoided in feature X?").matches[0]
    assert found.state.content.startswith("Feature X is complete")
    assert "Bug Y is fixed." in [one.state.content for one in found.related_states]
    assert [state.version for state in found.historical_context] == [1]
    context = asked.retrieve_within_budget("Why was approach Z avoided?", 4_000)
    assert "project/feature_x --enabled_by--> bugs/bug_y" in context.text
    assert "Bug Y comes from approach Z." in context.text


def test_research_evolution(asked, clock):
    topic, paper = "research/topic_a", "papers/new_results"
    asked.add(topic, "Topic A is understood as X.")
    clock.at += 30 * DAY
    asked.add(paper, "A new paper measures topic A and finds the opposite of X.")
    asked.link(topic, paper, "contradicts", description="the measurements disagree")
    asked.add(topic, "Topic A is disputed: a new paper contradicts X.")
    asked.link(topic, paper, "relates_to")
    clock.at += 30 * DAY
    asked.add(topic, "X holds only at low temperature.")
    promoted = asked.promote(topic, "the contradiction is resolved").state
    assert promoted.version == 4
    assert promoted.metadata["reason"] == "the contradiction is resolved"
    assert promoted.content.endswith("X holds only at low temperature.")
    assert "resolved" not in promoted.content
    assert asked.history(topic)[0].content == "Topic A is understood as X."
    assert asked.at(topic, T1 + DAY).content == "Topic A is understood as X."
    context = asked.retrieve_within_budget(
        "How did our understanding of topic A change over time?", 4_000
    )
    assert context.intent == "change"
    assert "contradicts--> papers/new_results" in context.text
    assert "Topic A is disputed" in context.text


def test_decision_making(asked, clock):
    asked.add("decision/database", "We compare technology X and technology Y.")
    asked.add("evaluation/technology_x", "Technology X: 2 ms a query in our load test.")
    asked.add(
        "evaluation/technology_y", "Technology Y: 40 ms a query, and the licence forbids hosting."
    )
    clock.at += DAY
    asked.add("decision/database", "We chose technology X over technology Y.")
    asked.link("decision/database", "evaluation/technology_x", "supports", strength=0.9)
    asked.link("decision/database", "evaluation/technology_y", "rejected_because", strength=0.9)
    clock.at += DAY
    context = asked.retrieve_within_budget("Why did we choose technology X over Y?", 4_000)
    assert context.intent == "why"
    assert context.latest[0].text.endswith("We chose technology X over technology Y.")
    for part in (
        "2 ms a query",
        "the licence forbids hosting",
        "We compare technology X and technology Y.",
    ):
        assert part in context.text
