"""Tiers say where a version is kept, never whether it is found."""

from __future__ import annotations

from datetime import timedelta

from schemas.memory import StorageTier
from tests.unit.hades.memory.kept import T1, T3
from tests.unit.hades.memory.scenario import X, tell


def test_the_newest_are_at_hand_the_old_are_put_away_and_all_are_found(memory, clock):
    tell(memory, clock)
    report = memory.refresh(as_of=T3)
    assert (report.working, report.active, report.archived) == (3, 0, 2)
    assert [state.storage_tier for state in memory.history(X)] == [StorageTier.ARCHIVED, StorageTier.WORKING]
    assert memory.at(X, T1 + timedelta(days=1)).content.startswith("Looked at approach X")
    assert memory.state(memory.search("triggers")[0].matched).storage_tier == StorageTier.ARCHIVED


def test_the_same_moment_gives_the_same_tiers_and_moves_nothing_again(memory, clock):
    tell(memory, clock)
    first, again = memory.refresh(as_of=T3), memory.refresh(as_of=T3)
    assert first.moved > 0
    assert again.moved == 0
    assert (first.working, first.archived) == (again.working, again.archived)


def test_the_working_tier_stays_below_a_thousand(memory, clock, monkeypatch):
    monkeypatch.setattr("hades.memory.upkeep.tiers.WORKING_MOST", 5)
    from hades.memory.history.states import NewState

    memory.add_many([NewState(f"n/{number}", f"note {number}", importance=number / 10) for number in range(10)])
    report = memory.refresh(as_of=clock.at + timedelta(days=1))
    assert (report.working, report.active) == (5, 5)
    at_hand = [t for t in memory.topics() if memory.latest(t).storage_tier == StorageTier.WORKING]
    assert at_hand == [f"n/{number}" for number in range(5, 10)]
