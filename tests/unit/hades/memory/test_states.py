"""Versions: numbered without gaps, found by look-up, rebuilt to the letter."""

from __future__ import annotations

from datetime import timedelta

import pytest

from hades.memory.history.rows import MemoryRefused, plain, state_key
from hades.memory.history.states import KEYFRAME_EVERY, NewState
from hades.memory.memory import Memory
from schemas.ids import Mask
from tests.unit.hades.memory.kept import T1, T2, T3, Clock

PAGE = "\n".join(
    f"line {number} says something about the parser and its tests" for number in range(30)
)


def test_versions_count_from_one_and_name_their_parent(memory: Memory) -> None:
    states = [
        memory.add("plan", f"step {number}", tags=("t",), confidence=0.5) for number in range(3)
    ]
    assert [state.version for state in states] == [1, 2, 3]
    assert [state.parent_state_id for state in states] == [None, states[0].id, states[1].id]
    trace = plain(memory.trace("plan"))
    assert trace["id"]
    assert (trace["topic"], trace["states"]) == ("plan", [state.id for state in states])
    assert trace["created_at"] <= trace["updated_at"]
    assert memory.latest("plan") == states[2]
    assert [edge.relationship_type for edge in memory.edges(states[1].id)] == [
        "evolves_to",
        "evolves_to",
    ]


def test_a_bulk_load_is_one_transaction_and_keeps_the_order(memory: Memory) -> None:
    rows = [NewState(f"topic {number % 3}", f"said {number}") for number in range(9)]
    assert [state.version for state in memory.add_many(rows)] == [1, 1, 1, 2, 2, 2, 3, 3, 3]
    with pytest.raises(MemoryRefused, match="blank"):
        memory.add_many([NewState("topic 0", "fine"), NewState("topic 0", "  ")])
    assert [state.content for state in memory.history("topic 0")] == ["said 0", "said 3", "said 6"]


def test_old_versions_are_small_and_read_back_to_the_letter(memory: Memory) -> None:
    contents = [
        PAGE.replace("line 7 ", f"line 7 (edit {number}) ")
        for number in range(2 * KEYFRAME_EVERY + 3)
    ]
    for content in contents[:5]:
        memory.add("page", content)
    memory.add_many([NewState("page", content) for content in contents[5:]])
    assert [state.content for state in memory.history("page")] == contents
    rows = [row for batch in memory.store.scan("memory_states") for row in batch.to_pylist()]
    kept = sum(len(row["content"]) + len(row["diff_from_parent"] or "") for row in rows)
    assert kept < 0.15 * sum(map(len, contents))
    whole = [row["version"] for row in rows if len(row["content"]) > 1_000]
    assert whole == [1, 1 + KEYFRAME_EVERY, 1 + 2 * KEYFRAME_EVERY, len(contents)]


def test_a_reader_cannot_tell_whether_a_version_was_superseded(memory: Memory) -> None:
    memory.add("page", PAGE)
    newest = memory.add("page", PAGE + "\nand one more line")
    assert newest.is_delta
    before = memory.state(newest.id)
    memory.add("page", "something else altogether")
    assert memory.state(newest.id) == before == newest


def test_stepping_over_many_later_versions_ends_at_the_known_one(
    memory: Memory, clock: Clock
) -> None:
    memory.add("plan", "early")
    clock.at = T2
    memory.add_many([NewState("plan", f"late {number}") for number in range(200)])
    assert said(memory, T3, known_at=T1 + timedelta(hours=1)) == "early"


def test_history_keeps_the_newest_and_respects_the_mask(memory: Memory, clock: Clock) -> None:
    memory.add("plan", "one")
    clock.at = T2
    memory.add_many([NewState("plan", "two"), NewState("plan", "three")])
    assert [state.content for state in memory.history("plan", limit=2)] == ["two", "three"]
    assert [
        state.content
        for state in memory.history("plan", mask=Mask(known_at=T1 + timedelta(days=1)))
    ] == ["one"]


@pytest.mark.parametrize("topic", ["", "  ", "a\x1fb", "two\nlines", "x" * 501])
def test_topics_that_a_look_up_cannot_hold_are_refused(memory: Memory, topic: str) -> None:
    with pytest.raises(MemoryRefused, match="is not a topic"):
        memory.add(topic, "something")


def test_shares_and_intervals_are_checked_before_anything_is_written(memory: Memory) -> None:
    with pytest.raises(MemoryRefused, match=r"confidence 1\.5 of 'plan'"):
        memory.add("plan", "x", confidence=1.5)
    with pytest.raises(MemoryRefused, match="which is not after"):
        memory.add("plan", "x", valid_from=T2, valid_until=T2)
    with pytest.raises(MemoryRefused, match="no time zone"):
        memory.add("plan", "x", valid_from=T2.replace(tzinfo=None))
    assert memory.topics() == []


def test_topics_are_listed_by_prefix(memory: Memory) -> None:
    memory.add_many([NewState(name, "x") for name in ("bugs/b", "bugs/a", "design/x")])
    assert memory.topics("bugs/") == ["bugs/a", "bugs/b"]
    assert memory.topics() == ["bugs/a", "bugs/b", "design/x"]


def test_check_finds_what_is_wrong_and_writes_traces_out(memory: Memory) -> None:
    memory.add_many([NewState("plan", "one"), NewState("plan", "two")])
    assert memory.check(write_out=True) == []
    assert memory.store.get("memory_traces", [memory.trace("plan").key]).to_pylist()[0][
        "states"
    ] == list(memory.trace("plan").states)
    memory.store.delete(
        "memory_edges", keys=[edge.key for edge in memory.edges("plan", types=["evolves_to"])]
    )
    memory.store.delete("memory_states", keys=[state_key("plan", 2)])
    assert memory.check() == ["'plan': 1 versions, but the newest is said to be 2"]


def said(memory: Memory, moment: object, topic: str = "plan", **known: object) -> str | None:
    state = memory.at(topic, moment, **known)  # type: ignore[arg-type]
    return state.content if state else None


def test_bytes_that_are_no_utf8_are_refused_in_words(memory: Memory) -> None:
    broken = b"caf\xe9".decode("utf-8", "surrogateescape")
    for call in (
        lambda: memory.add("drinks", broken),
        lambda: memory.add(broken, "coffee"),
        lambda: memory.search(broken),
    ):
        with pytest.raises(MemoryRefused, match="not valid UTF-8 at character 3"):
            call()


def test_a_strength_above_one_is_refused_in_words(memory: Memory) -> None:
    memory.add("a", "one")
    with pytest.raises(
        MemoryRefused, match=r"strength 1\.5 of the edge relates_to is not between 0 and 1"
    ):
        memory.link("a", "a", "relates_to", strength=1.5)


def test_a_topic_whose_only_version_expired_is_not_shown_but_can_be_written(
    memory: Memory, clock: Clock
) -> None:
    memory.add(
        "offer", "Ten percent off", valid_from=clock.at, valid_until=clock.at + timedelta(days=3)
    )
    clock.at += timedelta(days=4)
    assert memory.latest("offer") is None
    assert memory.search("percent off") == []
    memory.change("offer", "Five percent off")
    assert memory.latest("offer").content == "Five percent off"


def test_a_writer_with_a_slow_clock_still_reads_what_it_wrote(memory: Memory, clock: Clock) -> None:
    memory.add("note", "written by a fast clock")
    clock.at -= timedelta(days=365)
    memory.add("note", "written by a slow clock")
    assert memory.latest("note").content == "written by a slow clock"
