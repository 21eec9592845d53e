"""Erasing: what is asked for is gone with all that was made of it; the rest stays to the letter."""

from __future__ import annotations

from pathlib import Path

import pytest

from hades.memory.history.erase import find_in_files
from hades.memory.history.rows import MemoryRefused, UnknownMemory
from hades.memory.history.states import NewState
from hades.memory.memory import Memory
from hades.providers.hashing import HashingEmbedder
from schemas.ids import sha256_text
from tests.unit.hades.memory.kept import T1, T2, Clock, memory_on

BASE = " ".join(f"word{number}" for number in range(60))
SECRET = "her number is 555 0199"


def test_a_version_leaves_an_empty_place_and_its_descendants_stay_exact(memory: Memory) -> None:
    contents = [BASE, f"{BASE}. {SECRET}", f"{BASE} and more", f"{BASE} and more and more"]
    states = [memory.add("ana", content, why="told me") for content in contents]
    certificate = memory.erase([states[1].id], who="ben", why="she asked")
    assert certificate["complete"]
    assert certificate["rebased"] == [states[2].id]
    assert [(one["id"], one["sha256"]) for one in certificate["states"]] == [
        (states[1].id, sha256_text(contents[1]))
    ]
    assert [state.content for state in memory.history("ana")] == [contents[0], *contents[2:]]
    assert memory.state(states[1].id) is None
    assert memory.trace("ana").states == tuple(state.id for state in states)
    assert memory.add("ana", "next").version == 5
    assert memory.check() == []
    assert SECRET not in everything(memory)


def test_a_topic_goes_whole_with_its_name_edges_and_records(memory: Memory, clock: Clock) -> None:
    seen = memory_on(memory.store, clock, HashingEmbedder())
    seen.add("people/ana ruiz", SECRET, why="told by ana ruiz")
    seen.add("people/ana ruiz", f"{SECRET}, day and night")
    seen.add("team", "a team of three")
    seen.add("plan", "the plan")
    first = seen.link("team", "people/ana ruiz", "relates_to", description="ana ruiz joined")
    second = seen.link("team", "plan", "relates_to")
    third = seen.link("plan", "team", "references")
    seen.close(second.id, superseded_by=first.id)
    seen.close(first.id, superseded_by=third.id)
    certificate = seen.erase("people/ana ruiz", who="ben", why="she asked")
    assert certificate["complete"], certificate["left_behind"]
    assert first.id in certificate["edges"]
    assert certificate["topics"] == [sha256_text("people/ana ruiz")]
    assert seen.topics() == ["plan", "team"]
    assert seen.beliefs(second.id)[-1].superseded_by == third.id, (
        "the chain skips the edge that went"
    )
    assert "ruiz" not in everything(memory)
    assert memory.store.dangling() == {}
    assert seen.check() == []
    assert seen.add("people/ana ruiz", "someone new").version == 1


def test_summaries_and_syntheses_go_with_what_they_were_made_of(memory: Memory) -> None:
    secret = memory.add("note", SECRET)
    memory.add_many(
        [
            NewState(
                "summary/day",
                f"one note: {SECRET}",
                consolidated_from=(secret.id,),
                consolidation_level=1,
            )
        ]
    )
    day = memory.latest("summary/day")
    assert day is not None
    memory.add_many(
        [
            NewState(
                "summary/week",
                f"a call: {SECRET}",
                consolidated_from=(day.id,),
                consolidation_level=2,
            )
        ]
    )
    memory.add("project", "the project")
    memory.link("project", "note", "relates_to")
    memory.promote("project", "a new week")
    certificate = memory.erase("note", who="ben", why="she asked")
    assert len(certificate["derived"]) == 2
    assert certificate["complete"]
    assert memory.latest("summary/week") is None
    assert [state.content for state in memory.history("project")] == ["the project", "the project"]
    assert SECRET not in everything(memory)


def test_records_of_what_was_erased_say_only_who_and_when(memory: Memory) -> None:
    state = memory.add("note", "one", why=SECRET, who="ana")
    memory.add("note", "two")
    act = memory.audit(state.id)[0].key
    memory.erase([state.id], who="ben", why="she asked")
    note = memory.audit(state.id)[0]
    assert (note.who, note.action, note.why) == ("ana", "add", "")
    with pytest.raises(MemoryRefused, match="was erased"):
        memory.undo(act, who="ben")
    with pytest.raises(UnknownMemory, match="left to erase"):
        memory.erase([state.id], who="ben", why="again")


def test_erasing_wants_a_name_and_a_reason(memory: Memory) -> None:
    memory.add("note", "one")
    with pytest.raises(MemoryRefused, match="state who asks for it and why"):
        memory.erase("note", who="", why="")


def everything(memory: Memory) -> str:
    """All of memory as text, as a search of the rows would read it."""
    names = ("memory_states", "memory_latest", "memory_traces", "memory_edges", "memory_audit")
    return "\n".join(str(batch.to_pylist()) for name in names for batch in memory.store.scan(name))


def test_reasons_that_quote_an_erased_version_go_too(
    memory: Memory, clock: Clock, tmp_path: Path
) -> None:
    memory.add("x", "blocked")
    memory.add("bug", "the bug")
    memory.link("x", "bug", "blocked_by", valid_from=T1)
    clock.at = T2
    done = memory.change("x", f"the bug was fixed, {SECRET}")
    log = tmp_path / "logs" / "turns.jsonl"
    log.parent.mkdir()
    log.write_text(f'{{"said": "the bug was fixed, {SECRET}"}}\n')
    certificate = memory.erase(done.new_state.id, who="ben", why="she asked")
    assert certificate["complete"], certificate
    assert certificate["redacted"] > 0
    assert certificate["masked_files"] == ["logs/turns.jsonl"]
    assert SECRET not in everything(memory)
    assert find_in_files(tmp_path, [SECRET]) == {}


def test_a_short_text_is_searched_byte_by_byte(memory: Memory, tmp_path: Path) -> None:
    state = memory.add("pin", "PIN 4711")
    memory.add("pin", "changed")
    copy = tmp_path / "backups" / "graph.bin"
    copy.parent.mkdir()
    copy.write_bytes(b"\x00PIN 4711\x00")
    certificate = memory.erase(state.id, who="ben", why="asked")
    assert (certificate["files"], certificate["commands"]) == (
        ["backups/graph.bin"],
        ["rm backups/graph.bin"],
    )
    copy.unlink()
    assert find_in_files(tmp_path, ["PIN 4711"]) == {}


def test_a_line_shared_with_a_surviving_version_is_no_leftover(memory: Memory) -> None:
    memory.add("ana", "She lives in Lyon. She likes tea.")
    second = memory.add("ana", "She lives in Lyon. She likes tea. Her code is 99-12.")
    memory.add("ana", "She lives in Lyon. She likes coffee.")
    certificate = memory.erase(second.id, who="ben", why="asked")
    assert certificate["complete"], certificate


def test_many_sentences_are_all_searched(memory: Memory) -> None:
    lines = [f"Secret number {number} stays between us." for number in range(80)]
    memory.add("list", "\n".join(lines))
    copy = memory.add("copy", f"Somebody said: {lines[79]}")
    certificate = memory.erase("list", who="ben", why="asked")
    assert certificate["left_behind"] == {"memory_states": [copy.id]}
    assert certificate["commands"] == [f"hades memory erase {copy.id}"]
    assert memory.erase(copy.id, who="ben", why="asked")["complete"]
