"""Undo is whole: after undoing acts, last first, memory answers as it did before them, on both axes
of time.
"""

from __future__ import annotations

from datetime import timedelta
from itertools import count

from hypothesis import example, given
from hypothesis import strategies as st

from hades.memory.history.facts import Fact
from hades.memory.memory import Memory
from schemas.ids import Mask
from tests.properties.conftest import writing
from tests.unit.hades.memory.kept import T1, Clock

DAY = timedelta(days=1)
_numbers = count()
actions = st.tuples(
    st.sampled_from(["add", "change", "fact", "promote", "link", "close", "resolve", "redo"]),
    st.integers(0, 1),
    st.integers(-10, 10),
    st.none() | st.integers(1, 8),
)


@example([("fact", 0, 0, None), ("resolve", 1, 0, None)])
@example([("link", 0, -5, None), ("close", 0, 0, None)])
@example([("link", 0, -5, None), ("change", 0, -3, 4), ("promote", 1, 0, None)])
@given(st.lists(actions, min_size=1, max_size=6))
@writing(4)
def test_undoing_everything_restores_every_answer(
    memory: Memory, clock: Clock, done: list[tuple[str, int, int, int | None]]
) -> None:
    clock.at = T1
    prefix = f"example {next(_numbers)}"
    topics = [f"{prefix}/{name}" for name in ("a", "b")]
    for topic in topics:
        memory.add(topic, f"{topic} began", valid_from=T1 - 20 * DAY)
    memory.assert_fact(topics[0], "works_at", f"{prefix}/acme", valid_from=T1)
    taken: list[tuple[str, object]] = []
    for number, action in enumerate(done):
        clock.at += DAY
        before = answers(memory, topics)
        act = take(memory, topics, prefix, action, number)
        if act:
            taken.append((act, before))
    known = memory.now()
    seen_then = answers(memory, topics, known)
    for act, before in reversed(taken):
        clock.at += DAY
        memory.undo(act, who="test")
        assert answers(memory, topics) == before
    assert answers(memory, topics, known) == seen_then
    assert memory.check() == []


def take(
    memory: Memory,
    topics: list[str],
    prefix: str,
    action: tuple[str, int, int, int | None],
    number: int,
) -> str | None:
    """Carry an action out; the id of the act, or None where there was nothing to do."""
    kind, which, day, lasts = action
    at = T1 + day * DAY
    until = at + lasts * DAY if lasts else None
    topic, other = topics[which], topics[1 - which]
    if kind == "add":
        return memory.audit(
            memory.add(topic, f"said {number}", valid_from=at, valid_until=until).key
        )[-1].key
    if kind == "change":
        facts = [Fact("blocked_by", other)] if lasts else []
        return memory.change(topic, f"changed {number}, {other}", facts=facts, at=at).act
    if kind == "fact":
        employer = f"{prefix}/employer {number % 3}"
        return (
            memory.assert_fact(
                topics[0], "works_at", employer, valid_from=at, valid_until=until
            ).act
            or None
        )
    if kind == "promote":
        return memory.promote(topic, f"reason {number}").act
    if kind == "link":
        edge = memory.link(
            topic, other, "relates_to", valid_from=at, valid_until=until, description=f"{number}"
        )
        return memory.audit(edge.id)[-1].key
    if kind == "close":
        edges = [edge for edge in memory.edges(topic) if edge.relationship_type == "relates_to"]
        return memory.audit(memory.close(edges[0].id).id)[-1].key if edges else None
    if kind == "resolve":
        ours = [
            one for one in memory.conflicts(open_only=True) if one.claim["subject"] == topics[0]
        ]
        if ours:
            memory.resolve(ours[0].id, "new" if which else "old", who="test", why="decided")
            return memory.audit(f"conflict_{ours[0].old_edge}")[-1].key
        return None
    added = memory.audit(memory.add(topic, f"said and taken back {number}", valid_from=at).key)[
        -1
    ].key
    undone = memory.undo(added, who="test")["act"]
    return str(
        memory.undo(undone, who="test")["act"]
    )  # said again: undoing this takes it back once more


def answers(memory: Memory, topics: list[str], known: object = None) -> object:
    """What memory says of the topics at several moments, without what only says how it came to be
    known.
    """
    told: list[object] = []
    for day in range(-15, 15, 3):
        for topic in topics:
            moment = T1 + day * DAY
            state = memory.at(topic, moment, known_at=known)  # type: ignore[arg-type]
            edges = memory.edges(topic, mask=Mask(as_of=moment, known_at=known))  # type: ignore[arg-type]
            told.append(state and (state.content, state.valid_from, state.valid_until))
            told.append(
                [
                    (one.id, one.valid_until, one.superseded_by, one.description, one.strength)
                    for one in edges
                ]
            )
    if known is None:
        ours = [one for one in memory.conflicts() if one.claim["subject"] in topics]
        told.append([(one.id, str(one.outcome), one.new_edge) for one in ours])
    return told
