"""Promotion without a language model: nothing that is still true is lost, and what is over is left
out.
"""

from __future__ import annotations

from datetime import timedelta

import pytest

from hades.memory.memory import Memory
from hades.memory.upkeep.promote import find_conflicts, merge_versions
from tests.unit.hades.memory.kept import Clock


def test_thirty_facts_survive_fifty_promotions(memory: Memory, clock: Clock) -> None:
    facts = [
        f"Fact {word} was measured by team {number} in 2020." for number, word in enumerate(WORDS)
    ]
    memory.add("lab", " ".join(facts), metadata={"project": "p1"})
    for number in range(50):
        clock.at += timedelta(days=1)
        promoted = memory.promote("lab", f"reason number {number}").state
    assert [fact for fact in facts if fact not in promoted.content] == []
    assert "reason" not in promoted.content
    assert promoted.metadata["reason"] == "reason number 49"
    assert promoted.metadata["project"] == "p1"


def test_the_last_versions_are_merged_and_what_is_over_is_left_out(
    memory: Memory, clock: Clock
) -> None:
    for text in (
        "The deadline is May 2. Ann works at Acme. The budget covers two people.",
        "The deadline is May 9.",
        "Ann no longer works at Acme.",
    ):
        clock.at += timedelta(days=1)
        memory.add("project", text)
    promoted = memory.promote("project", "weekly review").state
    assert promoted.content == (
        "The budget covers two people. The deadline is May 9. Ann no longer works at Acme."
    )
    assert promoted.metadata["superseded"] == ["The deadline is May 2.", "Ann works at Acme."]
    assert len(promoted.metadata["made_from"]) == 3


def test_what_was_edited_out_and_what_expired_does_not_return(memory: Memory, clock: Clock) -> None:
    memory.add("plan", "Alpha ships. Beta ships. Gamma ships.")
    memory.add("plan", "The office is closed.", valid_until=clock.at + timedelta(days=2))
    memory.add("plan", "Alpha ships. Beta ships. Gamma ships. Delta ships.")
    memory.add("plan", "Alpha ships. Beta ships. Delta ships.")
    clock.at += timedelta(days=9)
    assert memory.promote("plan", "tidy").state.content == "Alpha ships. Beta ships. Delta ships."


def test_contradictions_are_kept_and_reported(memory: Memory) -> None:
    memory.add("server", "The port is 80. The port is 8080. It runs Debian.")
    memory.add("wiki", "The port is 443.")
    memory.link("server", "wiki", "relates_to")
    done = memory.promote("server", "check")
    assert done.state.content == "The port is 80. The port is 8080. It runs Debian."
    assert done.conflicts == [
        ("The port is 80.", "The port is 8080."),
        ("The port is 80.", "The port is 443."),
    ]
    assert done.state.metadata["conflicts"] == [list(pair) for pair in done.conflicts]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("Ann likes tea.", "Ann likes coffee.", "Ann likes tea. Ann likes coffee."),
        ("Ann is the CEO.", "Bob is the CEO.", "Bob is the CEO."),
        ("owner: Ann\nport: 80", "owner: Bob", "port: 80. owner: Bob"),
        ("Step 3 is done.", "Step 4 is done.", "Step 4 is done."),
        ("He won in 1999.", "He won in 2003.", "He won in 1999. He won in 2003."),
        (
            "The team plays in Rome.",
            "The team does not play in Rome any more.",
            "The team does not play in Rome any more.",
        ),
        (
            "The club owns Leeds Road.",
            "The club no longer owns Leeds Road North since 2004.",
            "The club owns Leeds Road. The club no longer owns Leeds Road North since 2004.",
        ),
        (
            "Ann leads Rho.",
            "Ann no longer leads Rho since May 2004.",
            "Ann no longer leads Rho since May 2004.",
        ),
        ("Ann no longer works at Acme.", "Ann works at Acme.", "Ann works at Acme."),
    ],
)
def test_a_later_version_supersedes_only_what_it_contradicts(
    before: str, after: str, expected: str
) -> None:
    assert merge_versions([before, after])[0] == expected


def test_a_question_gives_no_value_and_equal_values_do_not_conflict() -> None:
    assert find_conflicts(["Is the port 80?", "The port is 80.", "The port is 80, still."]) == [
        ("The port is 80.", "The port is 80, still.")
    ]
    assert find_conflicts(["The port is 80.", "The port is now 80."]) == []


_STONES = """
    amber basalt cobalt dune ember fjord garnet hazel iris jade kelp lava moss nectar onyx pearl
    quartz resin slate topaz umber violet willow xenon yarrow zinc agate birch cedar delta
"""
WORDS = _STONES.split()
