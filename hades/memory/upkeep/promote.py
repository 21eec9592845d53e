"""Promotion: a new version made of the current one, what led to it, what it is joined to, and the reason.

With a language model it writes the version; without one the sentences are picked, in a fixed order.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from hades.memory.history.audit import Act
from hades.memory.history.current import named
from hades.memory.history.edges import NewEdge, draw
from hades.memory.history.edges_around import edges_around
from hades.memory.history.names import NEWEST, key_of, state_id
from hades.memory.history.states import NewState, append, by_keys, pointer_to
from hades.memory.history.traces import history
from hades.ports.store import RowStore
from hades.ports.text import LanguageModel
from hades.text.keywords import sentences_of, topic_words, words_of
from schemas.intervals import Mask
from schemas.memory import MemoryEdge, MemoryRelation, MemoryState

HISTORY = 5
NEIGHBOURS = (str(MemoryRelation.RELATES_TO), str(MemoryRelation.CAUSES))
SHARED_WORDS = 0.1  # of the smaller text: below it, the new version has left the neighbour behind
_MOST_SENTENCES = 8
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
    history: list[MemoryState]
    related: list[MemoryState]

    @property
    def sources(self) -> list[str]:
        """The ids of what a version is made of."""
        return [state.key for state in (self.current, *self.related)]


@dataclass(frozen=True)
class Promotion:
    """The new version and the neighbours it kept."""

    state: MemoryState
    edges: list[MemoryEdge]
    act: str = ""


def grounds_of(rows: RowStore, topic: str, now: datetime) -> Grounds:
    """The current version, the last five, and the current version of what they are joined to."""
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
    before = history(rows, current.topic, limit=HISTORY)
    return Grounds(current, pointer.version if pointer else 0, before, related)


def synthesised(grounds: Grounds, reason: str, model: LanguageModel | None) -> str:
    """The content of the next version."""
    if model is None:
        return picked(grounds, reason)
    prompt = PROMPT.format(
        topic=grounds.current.topic,
        reason=reason,
        current=grounds.current.content,
        history="\n".join(f"- v{state.version}: {state.content}" for state in grounds.history) or "- none",
        related="\n".join(f"- {state.topic}: {state.content}" for state in grounds.related) or "- none",
    )
    return model.complete(prompt, max_tokens=_MAX_TOKENS).text.strip() or picked(grounds, reason)


def picked(grounds: Grounds, reason: str) -> str:
    """The reason, the current sentences, then of each neighbour the sentence that shares most words with them."""
    kept = [_closed(reason), *sentences_of(grounds.current.content)]
    about = words_of(" ".join(kept))
    for state in grounds.related:
        parts = sentences_of(state.content)
        kept += sorted(parts, key=lambda part: (-len(about & words_of(part)), parts.index(part)))[:1]
    return " ".join(list(dict.fromkeys(kept))[:_MOST_SENTENCES])


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
    return Promotion(state, drawn, act.key)


def should_maintain_connection(related: MemoryState, state: MemoryState) -> bool:
    """Whether a new version still speaks of a neighbour: it names it, or shares a tenth of the smaller one's words."""
    ours, theirs = words_of(state.content), words_of(related.content)
    named_there = topic_words(related.topic)
    if named_there and named_there <= ours:
        return True
    return len(ours & theirs) >= SHARED_WORDS * max(1, min(len(ours), len(theirs)))


def _closed(sentence: str) -> str:
    text = sentence.strip()
    return text if not text or text[-1] in ".!?" else f"{text}."
