"""Only what holds is shown, promoted and repeated: nothing that was undone, expired or said in
another way already.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from hades.memory.history.rows import MemoryRefused, UnknownMemory
from hades.memory.memory import Memory
from hades.memory.upkeep.learn import count_accesses
from hades.providers.hashing import HashingEmbedder
from hades.providers.tokens import MiniLmTokenizer
from hades.settings.tree import Settings
from hades.surfaces.capabilities.memory_states import latest, trace
from hades.surfaces.cli.doctor import _check_store
from hades.wiring import open_hades
from schemas.ids import Mask
from tests.unit.hades.memory.kept import T1, Clock

DAY = timedelta(days=1)
STATUS = "what is the current status of engine q?"


@pytest.fixture
def engine(memory: Memory, tmp_path: Path) -> Memory:
    memory.embedder, memory.tokenizer, memory.home = HashingEmbedder(), MiniLmTokenizer(), tmp_path
    memory.add("eng/q", "Engine q is fast.")
    return memory


@pytest.mark.parametrize("ending", ["undone", "expired"])
def test_a_neighbour_that_holds_no_more_is_not_shown(
    engine: Memory, clock: Clock, ending: str
) -> None:
    until = clock.at + DAY if ending == "expired" else None
    rumour = engine.add("rumor/r", "Rumour: engine q explodes.", valid_until=until)
    engine.add("rumor/source", "A tabloid wrote about boats.")
    engine.link("rumor/r", "eng/q", "relates_to")
    engine.link("rumor/source", "rumor/r", "causes")
    assert "explodes" in engine.retrieve_within_budget(STATUS, 2_000).text
    known = engine.now()
    clock.at += 2 * DAY
    if ending == "undone":
        engine.undo(engine.audit(rumour.id)[0].key, who="ana")
    context = engine.retrieve_within_budget(STATUS, 2_000)
    assert "explodes" not in context.text
    assert "tabloid" not in context.text, "nothing is reached through what does not hold"
    assert [
        one
        for match in engine.graph_enhanced_retrieval("engine q").matches
        for one in match.related_states
    ] == []
    assert (
        "explodes" in engine.retrieve_within_budget(STATUS, 2_000, mask=Mask(known_at=known)).text
    )
    engine.promote("eng/q", "weekly")
    assert rumour.id not in engine.latest("eng/q").metadata["made_from"]


def test_a_neighbour_whose_linked_version_was_undone_is_shown_as_it_is_now(engine: Memory) -> None:
    engine.add("part/p", "Part p fits.")
    wrong = engine.add("part/p", "Part p melts.")
    engine.link("part/p", "eng/q", "relates_to")
    engine.undo(engine.audit(wrong.id)[0].key, who="ana")
    text = engine.retrieve_within_budget(STATUS, 2_000).text
    assert "melts" not in text
    assert "fits" in text


@pytest.mark.parametrize("ending", ["undone", "expired"])
def test_what_holds_no_more_is_not_promoted(memory: Memory, clock: Clock, ending: str) -> None:
    until = clock.at + DAY if ending == "expired" else None
    state = memory.add("shop/x", "Discount is 20 percent.", valid_until=until)
    clock.at += 2 * DAY
    if ending == "undone":
        memory.undo(memory.audit(state.id)[0].key, who="ana")
    with pytest.raises(MemoryRefused, match="nothing holds of 'shop/x'"):
        memory.promote("shop/x", "weekly")
    assert memory.latest("shop/x") is None


def test_promotions_carry_a_relation_over_instead_of_repeating_it(
    engine: Memory, clock: Clock
) -> None:
    engine.add("part/p", "Part p belongs to engine q.")
    engine.add("test/t", "A test of engine q.")
    first = engine.link("part/p", "eng/q", "relates_to", strength=0.7, description="fits")
    engine.link("eng/q", "test/t", "relates_to")
    before = engine.search("engine q fast")[0].strength
    acts = []
    for number in range(8):
        clock.at += DAY
        acts.append(engine.promote("eng/q", f"week {number}").act)
    carried = {
        (edge.source[-8:], edge.target[-8:], edge.strength) for edge in engine.edges("eng/q")
    }
    assert carried == {("00000001", "00000009", 0.7), ("00000009", "00000001", 1.0)}
    text = engine.retrieve_within_budget(STATUS, 4_000).text
    assert text.count("part/p --relates_to--> eng/q") == 1
    found = engine.graph_enhanced_retrieval("part p belongs", matches=1).matches[0]
    assert [one.state.topic for one in found.related_states].count("eng/q") == 1
    assert engine.search("engine q fast")[0].strength <= before + 0.01
    for act in reversed(acts):
        engine.undo(act, who="ana")
    assert first.id in {edge.id for edge in engine.edges("eng/q")}
    assert engine.check() == []


def test_a_link_can_be_undone_after_its_closing_was(memory: Memory, clock: Clock) -> None:
    for name in ("a", "b"):
        memory.add(name, f"about {name}")
    edge = memory.link("a", "b", "blocked_by", valid_from=T1)
    linked = memory.audit(edge.id)[-1].key
    memory.close(edge.id)
    memory.undo(memory.audit(edge.id)[-1].key, who="ana")
    changed = memory.change("a", "b is gone").act
    memory.undo(changed, who="ana")
    memory.link("a", "b", "blocked_by", valid_from=T1, description="in other words")
    worded = memory.audit(edge.id)[-1].key
    with pytest.raises(MemoryRefused, match="undo what came later first"):
        memory.undo(linked, who="ana")
    memory.undo(worded, who="ana")
    memory.undo(linked, who="ana")
    assert memory.edges("a", everything=True) == []


def test_readings_are_not_lost_when_the_store_cannot_be_written(
    engine: Memory, monkeypatch
) -> None:
    engine.log_accesses([engine.latest("eng/q").id])

    def fail(*_: object, **__: object) -> None:
        raise OSError("no room")

    with monkeypatch.context() as patched:
        patched.setattr(type(engine.store), "transaction", fail)
        with pytest.raises(OSError, match="no room"):
            count_accesses(engine)
    engine.log_accesses([engine.latest("eng/q").id])
    assert count_accesses(engine)["reads"] == 2
    assert count_accesses(engine)["reads"] == 0


def test_a_name_in_a_reason_or_a_log_is_erased_with_its_topic(
    engine: Memory, tmp_path: Path
) -> None:
    engine.add("person/anna", "Anna lives in Rome.")
    engine.add("note/n", "A note.", why="person/anna told us")
    log = tmp_path / "logs" / "audit_rw.jsonl"
    log.parent.mkdir(exist_ok=True)
    log.write_text(
        '{"path": "/v1/memory/person/anna/promote"}\n{"path": "/v1/memory/person%2Fanna/trace"}\n'
    )
    certificate = engine.erase("person/anna", who="ben", why="she asked")
    assert certificate["complete"], (certificate["left_behind"], certificate["files"])
    assert certificate["masked_files"] == ["logs/audit_rw.jsonl"]
    assert "anna" not in log.read_text()
    assert len(log.read_text().splitlines()) == 2


def test_words_that_a_longer_sentence_of_the_topic_repeats_are_no_leftover(memory: Memory) -> None:
    first = memory.add("ann", "Ann lives in Rome")
    memory.add("ann", "Ann lives in Rome and works at Acme")
    assert memory.erase(first.id, who="ben", why="asked")["complete"]


def test_a_night_gives_memory_vectors_of_the_model_in_use(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path / "home", embedder="hashing")
    with open_hades(settings) as hades:
        hades.memory.add("eng/q", "Engine q is fast.")
        Memory(hades.store).add("eng/r", "Engine r is slow.")
    assert [
        check.status for check in _check_store(settings, {}, False) if check.name == "vectors"
    ] == ["warn"]
    with open_hades(settings) as hades:
        hades.build()
        assert all(one.semantic is not None for one in hades.memory.search("engine r"))
    assert [check for check in _check_store(settings, {}, False) if check.name == "vectors"] == []


def test_a_command_tells_an_expired_topic_from_an_unknown_one(engine: Memory, clock: Clock) -> None:
    engine.add("shop/x", "Discount is 20 percent.", valid_until=clock.at + DAY)
    clock.at += 2 * DAY
    called = SimpleNamespace(memory=engine, who="ana")
    for topic, told in (
        ("shop/x", "nothing holds of 'shop/x'"),
        ("shop/y", "memory holds no topic 'shop/y'"),
    ):
        with pytest.raises(UnknownMemory, match=told):
            latest.function(called, topic=topic)
    assert trace.function(called, topic="shop/x")["id"] == engine.trace("shop/x").key
