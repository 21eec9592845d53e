"""Undoing: acts are taken back whole, in order, and nothing that was said is lost."""

from __future__ import annotations

import pytest

from hades.memory.history.rows import MemoryRefused, UnknownMemory
from hades.memory.memory import Memory
from schemas.memory import MemoryAudit
from tests.unit.hades.memory.kept import T1, T2, Clock


@pytest.fixture
def pair(memory: Memory) -> Memory:
    """Two topics."""
    memory.add("x", "blocked for now")
    memory.add("bug", "the bug")
    return memory


def test_a_whole_change_is_taken_back_at_once(pair: Memory, clock: Clock) -> None:
    edge = pair.link("x", "bug", "blocked_by", valid_from=T1)
    clock.at = T2
    done = pair.change("x", "the bug was fixed")
    assert done.act
    undone = pair.undo(done.act, who="ana", why="it was not")
    assert undone["retracted"] == [done.new_state.id]
    assert pair.latest("x").content == "blocked for now"  # type: ignore[union-attr]
    assert [one.id for one in pair.edges("x")] == [edge.id]
    assert [state.content for state in pair.history("x")] == [
        "blocked for now",
        "the bug was fixed",
    ]
    again = pair.undo(undone["act"], who="ana", why="it was, after all")
    assert [state.content for state in again["new_states"]] == ["the bug was fixed"]
    assert pair.latest("x").content == "the bug was fixed"  # type: ignore[union-attr]
    assert pair.check() == []


def test_what_later_acts_rest_on_is_not_taken_back(pair: Memory) -> None:
    edge = pair.link("x", "bug", "blocked_by", valid_from=T1)
    first = last(pair, edge.id).key
    pair.close(edge.id, at=T2)
    with pytest.raises(MemoryRefused, match="undo what came later first"):
        pair.undo(first, who="ana")
    added = pair.audit(pair.add("x", "more").id)[0].key
    pair.add("x", "and more")
    with pytest.raises(MemoryRefused, match="newer versions than 2"):
        pair.undo(added, who="ana")


def test_a_first_version_is_taken_back_once_and_an_unknown_act_never(pair: Memory) -> None:
    first = pair.audit(pair.trace("x").states[0])[0].key
    pair.undo(first, who="ana")
    assert pair.latest("x") is None
    assert pair.search("blocked") == []
    with pytest.raises(MemoryRefused, match="undone or erased already"):
        pair.undo(first, who="ana")
    with pytest.raises(UnknownMemory, match="no act 0_0"):
        pair.undo("0_0", who="ana")


def last(memory: Memory, subject: str) -> MemoryAudit:
    return memory.audit(subject)[-1]
