"""Promotion: a new version made of the current one, the last versions, what it is joined to, and the reason.

With a language model it writes the version; without one `synthesis` merges the last versions. The reason, what was left
out and contradictions stand in the metadata of the new version, not in its text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from hades.memory.history.audit import Act
from hades.memory.history.current import holds, named
from hades.memory.history.edges import NewEdge, draw
from hades.memory.history.edges_around import edges_around
from hades.memory.history.names import NEWEST, key_of, state_id
from hades.memory.history.states import NewState, append, by_keys, pointer_to
from hades.memory.history.traces import history
from hades.memory.upkeep.synthesis import find_conflicts, merge_versions
from hades.ports.store import RowStore
from hades.ports.text import LanguageModel
from hades.text.keywords import sentences_of, topic_words, words_of
from schemas.intervals import Mask
from schemas.memory import MemoryEdge, MemoryRelation, MemoryState

HISTORY = 5
MADE_BY_PROMOTION = ("reason", "made_from", "superseded", "conflicts")  # metadata that each promotion replaces
NEIGHBOURS = (str(MemoryRelation.RELATES_TO), str(MemoryRelation.CAUSES))
SHARED_WORDS = 0.1  # of the smaller text: below it, the new version has left the neighbour behind
_MOST_RELATED = 20
_MAX_TOKENS = 600

PROMPT = """Write the next state of what is known about a topic, in plain sentences, using only what stands below.
Topic: {topic}
Reason for the new state: {reason}
Current state:
{current}
Earlier states, oldest first:
{history}
Related states:
{related}
New state:"""


@dataclass(frozen=True)
class Grounds:
    """What a new version is made of."""

    current: MemoryState
    count: int  # versions there were
    history: list[MemoryState]  # the last ones that are in force, in the order in which they began; ends with `current`
    related: list[MemoryState]


@dataclass(frozen=True)
class Draft:
    """The text of a new version and what its metadata says of how it was made."""

    text: str
    metadata: dict[str, Any]


@dataclass(frozen=True)
class Promotion:
    """The new version, the neighbours it kept, and the contradictions that it holds."""

    state: MemoryState
    edges: list[MemoryEdge]
    act: str = ""
    conflicts: list[tuple[str, str]] = field(default_factory=list)


def grounds_of(rows: RowStore, topic: str, now: datetime) -> Grounds:
    """The current version, the last ones before it, and the current version of what they are joined to."""
    current = named(rows, topic, now)
    mask = Mask(as_of=now, known_at=NEWEST)
    ends = {
        end
        for edge in edges_around(rows, current.topic, mask, types=NEIGHBOURS)
        for end in (key_of(edge.source), key_of(edge.target))
    }
    topics = sorted({state.topic for state in by_keys(rows, sorted(ends))} - {current.topic})
    pointer = pointer_to(rows, current.topic)
    related = [named(rows, name, now) for name in topics[:_MOST_RELATED]]
    return Grounds(current, pointer.version if pointer else 0, _last_in_force(rows, current, mask), related)


def draft_version(grounds: Grounds, reason: str, model: LanguageModel | None) -> Draft:
    """The next version, written by the language model or merged from the last versions."""
    if model is not None:
        prompt = PROMPT.format(
            topic=grounds.current.topic,
            reason=reason,
            current=grounds.current.content,
            history="\n".join(f"- v{state.version}: {state.content}" for state in grounds.history) or "- none",
            related="\n".join(f"- {state.topic}: {state.content}" for state in grounds.related) or "- none",
        )
        text = model.complete(prompt, max_tokens=_MAX_TOKENS).text.strip()
        if text:
            used = [*grounds.history, *grounds.related]
            return Draft(text, {"reason": reason, "made_from": _keys(used)})
    return _merge(grounds, reason)


def _merge(grounds: Grounds, reason: str) -> Draft:
    merged = merge_versions([state.content for state in grounds.history])
    ours = sentences_of(merged.text)
    against = {state.key: find_conflicts(ours, sentences_of(state.content)) for state in grounds.related}
    own = merged.conflicts
    opposed = [state for state in grounds.related if [pair for pair in against[state.key] if pair not in own]]
    conflicts = list(dict.fromkeys([*own, *(pair for state in opposed for pair in against[state.key])]))
    metadata: dict[str, Any] = {"reason": reason, "made_from": _keys([*grounds.history, *opposed])}
    if merged.superseded:
        metadata["superseded"] = merged.superseded
    if conflicts:
        metadata["conflicts"] = [list(pair) for pair in conflicts]
    return Draft(merged.text, metadata)


def promote_topic(rows: RowStore, grounds: Grounds, new: NewState, act: Act) -> Promotion:
    """Write the version and keep the neighbours it still speaks of."""
    state = append(rows, [new], act)[0]
    drawn = [
        draw(
            rows,
            NewEdge(
                state_id(state.key),
                state_id(related.key),
                MemoryRelation.RELATES_TO,
                description=f"kept from version {grounds.current.version}",
            ),
            act,
        )
        for related in grounds.related
        if should_maintain_connection(related, state)
    ]
    conflicts = [(first, second) for first, second in new.metadata.get("conflicts", ())]
    return Promotion(state, drawn, act.key, conflicts)


def should_maintain_connection(related: MemoryState, state: MemoryState) -> bool:
    """Whether a new version still speaks of a neighbour: it names it, or shares a tenth of the smaller one's words."""
    ours, theirs = words_of(state.content), words_of(related.content)
    named_there = topic_words(related.topic)
    if named_there and named_there <= ours:
        return True
    return len(ours & theirs) >= SHARED_WORDS * max(1, min(len(ours), len(theirs)))


def _last_in_force(rows: RowStore, current: MemoryState, mask: Mask) -> list[MemoryState]:
    """The last versions up to the current one that hold still: no correction of the past, nothing that expired."""
    seen = [one for one in history(rows, current.topic, limit=HISTORY, mask=Mask(known_at=NEWEST)) if holds(one, mask)]
    before = [one for one in seen if _begins(one) <= _begins(current) and one.key != current.key]
    return [*sorted(before, key=_begins), current]


def _begins(state: MemoryState) -> tuple[datetime, int]:
    return state.valid_from or state.timestamp, state.version


def _keys(states: Sequence[MemoryState]) -> list[str]:
    return list(dict.fromkeys(state.key for state in states))
