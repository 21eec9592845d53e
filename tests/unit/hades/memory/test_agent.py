"""The agent by rules: the same question takes the same steps, and recalling renews without
editing.
"""

from __future__ import annotations

import pytest

from hades.memory.recall.agent import process_query, reconsolidate
from hades.providers.hashing import HashingEmbedder
from hades.providers.tokens import MiniLmTokenizer
from tests.unit.hades.memory.scenario import X, Y, tell


@pytest.fixture
def asked(memory, clock):
    memory.embedder, memory.tokenizer = HashingEmbedder(), MiniLmTokenizer()
    tell(memory, clock)
    return memory


def test_the_intent_decides_the_steps(asked):
    assert process_query(asked, "What is the status of X?")["steps"] == ["latest", "related"]
    assert process_query(asked, "Why was X rejected?")["steps"] == ["latest", "related", "details"]
    assert process_query(asked, "Summarize everything")["steps"] == [
        "latest",
        "summaries",
        "details",
    ]


def test_an_outcome_says_what_came_back_empty(asked):
    outcome = process_query(asked, "Why is approach X viable?", 4_000)
    assert outcome["grounded"]
    assert "viable_after_fix" in outcome["contexts"][0]["text"]
    assert process_query(asked, "Summarize everything about approach X")["missing"] == [
        "summaries",
        "details",
    ]
    assert outcome["intent"] == "why"


def test_recalling_a_topic_whose_neighbour_moved_on_makes_its_next_version(asked):
    asked.link(X, Y, "relates_to")
    assert reconsolidate(asked, X) is None
    asked.add(Y, "Bug Y is back since the upgrade")
    before = asked.latest(X)
    renewed = reconsolidate(asked, X, who="ana")
    assert renewed.state.version == before.version + 1
    assert renewed.state.metadata["reason"] == "since then bugs/bug_y changed"
    assert renewed.state.content == f"{before.content} {Y}: Bug Y is back since the upgrade"
    assert asked.state(before.id) == before
    assert reconsolidate(asked, "no/such") is None
