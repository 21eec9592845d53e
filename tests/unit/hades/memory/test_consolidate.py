"""Days, weeks and months: made once, led back to the originals, mended after late arrivals and
erasure.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from hades.memory.history import rows as records
from hades.memory.history.rows import (
    MemoryRefused,
    UnknownMemory,
    state_key,
    topic_key,
)
from hades.memory.history.states import NewState
from hades.memory.upkeep.consolidate import DAILY, MONTHLY, WEEKLY, period_of
from hades.ports.services import Completion
from schemas.memory import LatestState, MemoryState
from tests.homes import empty_store
from tests.unit.hades.memory.kept import memory_on

DAY = timedelta(days=1)
START = datetime(2024, 3, 4, 9, tzinfo=UTC)  # a Monday
END = datetime(2024, 4, 10, tzinfo=UTC)


@pytest.fixture
def lived(memory, clock):
    """Ten days of work on two projects, and a topic of no area."""
    new: list[NewState] = []
    clock.at = START - DAY
    for number in range(10):
        then = START + number * DAY
        said = [
            NewState(
                "project/alpha", f"Alpha reached step {number}. The team is small.", importance=0.8
            )
        ]
        if number % 3 == 0:
            said.append(NewState("project/beta", f"Beta was reviewed, round {number}."))
        new += [replace(one, valid_from=then) for one in said]
    memory.add_many([*new, NewState("reminder", "Buy milk", valid_from=START + 9 * DAY)])
    clock.at = END
    return memory


def test_a_day_is_summarised_with_its_sources(lived):
    (report,) = lived.consolidate(1)
    assert report["periods"] == 11
    summary = lived.latest("summary/daily/project/2024-03-04")
    assert summary.content == (
        "What changed in project, 2024-03-04: 2 changes.\n"
        "- project/alpha: Alpha reached step 0. The team is small.\n"
        "- project/beta: Beta was reviewed, round 0."
    )
    assert (summary.is_consolidated, summary.consolidation_level) == (True, 1)
    assert [state.topic for state in lived.drill_down(summary.id)] == [
        "project/alpha",
        "project/beta",
    ]
    assert lived.latest("summary/daily/general/2024-03-13") is not None


def test_two_memories_with_the_same_history_get_the_same_summaries(lived, tmp_path, clock):
    (tmp_path / "other").mkdir()
    store = empty_store(tmp_path / "other" / "graph.db")
    other = memory_on(store, clock)
    states = sorted(
        (one for t in lived.topics() for one in lived.history(t)), key=lambda one: one.timestamp
    )
    clock.at = START - DAY
    other.add_many(
        NewState(one.topic, one.content, valid_from=one.valid_from, importance=one.importance_score)
        for one in states
    )
    for one in (lived, other):
        clock.at = END
        one.consolidate(3, as_of=END)
    texts = [
        {t: (m.latest(t).content, m.latest(t).consolidated_from) for t in m.topics("summary/")}
        for m in (lived, other)
    ]
    assert texts[0] == texts[1]
    store.close()


def test_month_to_weeks_to_days_to_originals(lived):
    lived.consolidate(3)
    month = lived.latest("summary/monthly/project/2024-03")
    assert "14 changes" in month.content.splitlines()[0]
    assert "project/alpha: Alpha reached step 9. The team is small. (10 changes)" in month.content
    weeks = lived.drill_down(month.id)
    assert [week.topic for week in weeks] == [
        "summary/weekly/project/2024-W10",
        "summary/weekly/project/2024-W11",
    ]
    days = lived.drill_down(weeks[0].id)
    assert [day.consolidation_level for day in days] == [1] * 7
    originals = lived.drill_down(month.id, to_originals=True)
    assert len(originals) == 14
    assert {state.consolidation_level for state in originals} == {0}
    assert [s.content for s in originals if s.topic == "project/alpha"] == [
        state.content for state in lived.history("project/alpha")
    ]


def test_a_period_that_is_not_over_waits(lived):
    assert lived.consolidate(1, as_of=START + timedelta(hours=5))[0]["periods"] == 0
    assert lived.consolidate(1, as_of=START + DAY)[0]["periods"] == 1


def test_what_was_recorded_later_than_the_moment_does_not_count_and_is_said(lived):
    (report,) = lived.consolidate(1, as_of=START - 2 * DAY)
    assert (report["written"], report["recorded_later"]) == ([], 0)
    lived.add("project/alpha", "It began long ago.", valid_from=START - 9 * DAY)
    (report,) = lived.consolidate(1, as_of=START - 2 * DAY)
    assert (report["written"], report["recorded_later"]) == ([], 1)
    (report,) = lived.consolidate(1, as_of=END + DAY)
    assert report["recorded_later"] == 0


def test_what_comes_late_renews_the_day_and_what_is_made_of_it(lived):
    lived.consolidate(3)
    lived.add(
        "project/gamma", "Gamma was found in the archive.", valid_from=START + timedelta(hours=1)
    )
    reports = lived.consolidate(3)
    assert [len(one["written"]) for one in reports] == [1, 1, 1]
    assert "Gamma was found" in lived.latest("summary/monthly/project/2024-03").content
    assert [s.version for s in lived.history("summary/daily/project/2024-03-04")] == [1, 2]


def test_an_earlier_moment_does_not_take_back_what_is_known_later(lived):
    lived.add("project/gamma", "Gamma was found in the archive.", valid_from=START)
    lived.consolidate(1, as_of=END + DAY)
    assert lived.consolidate(1, as_of=END - DAY)[0]["written"] == []


def test_erasing_an_original_takes_its_summaries_and_the_next_run_makes_them_of_the_rest(lived):
    lived.consolidate(3)
    secret = lived.history("project/beta")[0]
    certificate = lived.erase(secret.id, who="ana", why="asked to")
    assert len(certificate["derived"]) == 3
    assert certificate["complete"]
    assert lived.latest("summary/daily/project/2024-03-04") is None
    lived.consolidate(3)
    renewed = lived.latest("summary/daily/project/2024-03-04")
    assert "round 0" not in renewed.content
    assert "1 change." in renewed.content
    assert "13 changes" in lived.latest("summary/monthly/project/2024-03").content


def test_a_language_model_writes_it_once_and_a_blank_answer_is_replaced(lived):
    class Writer:
        model = "writer"
        said = "Alpha moved on."
        calls = 0

        def allows(self, calls, tokens):
            return True

        def complete(self, prompt, *, max_tokens):
            self.calls += 1
            assert "- project/" in prompt or "- reminder" in prompt
            return Completion(self.said, 1, 1)

    lived.language_model = writer = Writer()
    lived.consolidate(1)
    assert lived.latest("summary/daily/project/2024-03-05").content.endswith("Alpha moved on.")
    assert writer.calls == 11
    lived.consolidate(1)
    assert writer.calls == 11
    writer.said = " "
    lived.consolidate(2)
    assert "Alpha reached step 6" in lived.latest("summary/weekly/project/2024-W10").content


def test_only_summaries_can_be_drilled_into(lived):
    with pytest.raises(UnknownMemory, match="is not a summary"):
        lived.drill_down(lived.latest("project/alpha").id)
    with pytest.raises(MemoryRefused, match="no level 4"):
        lived.consolidate(4)


def test_every_moment_lies_in_one_period_of_each_level_and_periods_touch():
    moment = datetime(2023, 12, 25, 12, tzinfo=UTC)
    for level in (DAILY, WEEKLY, MONTHLY):
        period = period_of(level, moment)
        for _ in range(500):
            assert (
                period_of(level, period.start)
                == period
                == period_of(level, period.end - timedelta(microseconds=1))
            )
            after = period_of(level, period.end)
            assert after.start == period.end
            period = after
    assert period_of(MONTHLY, datetime(2024, 1, 1, tzinfo=UTC)).name == "2024-01"
    assert period_of(MONTHLY, datetime(2024, 3, 31, tzinfo=UTC)).name == "2024-03"
    assert period_of(MONTHLY, datetime(2024, 2, 29, tzinfo=UTC)).name == "2024-02"
    assert period_of(MONTHLY, datetime(2024, 9, 30, tzinfo=UTC)).name == "2024-10"
    assert period_of(WEEKLY, datetime(2024, 12, 31, tzinfo=UTC)).name == "2025-W01"


def test_a_note_cannot_take_the_name_of_a_summary(lived):
    with pytest.raises(MemoryRefused, match="reserved for consolidation"):
        lived.add("summary/daily/design/2024-03-05", "a note")
    lived.consolidate(1)
    with pytest.raises(MemoryRefused, match="reserved"):
        lived.promote(lived.topics("summary/")[0], "because")


def test_a_damaged_summary_is_reported_and_rebuilt(lived):
    lived.consolidate(3)
    topic = lived.topics("summary/daily/")[0]
    whole = lived.latest(topic)
    row = records.fetch(lived.store, MemoryState, [whole.key])[whole.key]
    records.put(lived.store, [row.model_copy(update={"metadata": {}})])
    stray = whole.model_copy(
        update={
            "key": state_key("summary/weekly/x", 1),
            "topic": "summary/weekly/x",
            "metadata": {},
            "version": 1,
        }
    )
    records.put(lived.store, [stray])
    pointer = LatestState(
        key=topic_key(stray.topic),
        topic=stray.topic,
        latest_state_id=stray.key,
        version=1,
        updated_at=stray.timestamp,
    )
    records.put(lived.store, [pointer])
    done = lived.consolidate(3)
    assert [one["damaged"] for one in done] == [[topic], ["summary/weekly/x"], []]
    assert lived.latest(topic).metadata["lines"] == whole.metadata["lines"]
    assert lived.latest(topic).content == whole.content
    assert [one["damaged"] for one in lived.consolidate(3)] == [[], ["summary/weekly/x"], []]


def test_an_erased_summary_does_not_return(lived):
    lived.consolidate(3)
    topic = lived.topics("summary/daily/")[0]
    lived.erase(topic, who="ana", why="asked to")
    again = lived.consolidate(3)
    assert again[0]["erased"] == 1
    assert lived.latest(topic) is None
