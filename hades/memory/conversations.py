"""Conversations in memory: one topic a turn, so that each can be cited, corrected and erased by itself.

The topic is `conversation/NAME/SESSION/NUMBER`. A turn holds since it was said; its speaker, session and place stand in
the metadata, and an edge `follows` leads to the turn before. Reading a log again writes only new and changed turns.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from hades.memory.conversation_files import Turn, read_conversation
from hades.memory.history.edges import NewEdge
from hades.memory.history.names import NEWEST, topic_key
from hades.memory.history.states import NewState
from hades.memory.service import Memory
from schemas.intervals import Mask
from schemas.memory import MemoryEdgeKind

PREFIX = "conversation/"
FOLLOWS = "follows"
_RUN = 1_000  # turns written in one transaction
_LONGEST_PART = 120


@dataclass(frozen=True)
class ConversationReport:
    """What reading a chat log did."""

    file: str
    prefix: str
    sessions: int
    turns: int
    added: int
    changed: int
    unchanged: int
    skipped: int  # turns without text

    def as_dict(self) -> dict[str, Any]:
        """The report as JSON."""
        return asdict(self)


def ingest_conversation(memory: Memory, path: Path, name: str | None = None, *, who: str = "") -> ConversationReport:
    """Put the turns of a chat log into memory; safe to repeat with a longer log."""
    turns = read_conversation(path)
    spoken = [turn for turn in turns if turn.text]
    prefix = f"{PREFIX}{_part(name or path.name.split('.')[0])}/"
    topics = [f"{prefix}{_part(turn.session)}/{turn.number:05d}" for turn in spoken]
    known = _known(memory, topics)
    fresh = [(topic, turn) for topic, turn in zip(topics, spoken, strict=True) if known.get(topic) != _content(turn)]
    for start in range(0, len(fresh), _RUN):
        some = fresh[start : start + _RUN]
        memory.add_many([_state(topic, turn, path) for topic, turn in some], who=who, why=f"read from {path.name}")
    _link(memory, topics, {topic for topic, _ in fresh if topic not in known}, who)
    added = sum(topic not in known for topic, _ in fresh)
    return ConversationReport(
        str(path),
        prefix,
        len({turn.session for turn in turns}),
        len(turns),
        added,
        len(fresh) - added,
        len(spoken) - len(fresh),
        len(turns) - len(spoken),
    )


def _known(memory: Memory, topics: Sequence[str]) -> dict[str, str]:
    """What memory holds of turns, also of those that a wrong clock dated in the future."""
    reader = memory.reader(Mask(as_of=NEWEST))
    return {state.topic: state.content for state in reader.current([topic_key(topic) for topic in topics])}


def _state(topic: str, turn: Turn, path: Path) -> NewState:
    metadata = {"speaker": turn.speaker, "session": turn.session, "turn": turn.id, "source": path.name}
    return NewState(topic, _content(turn), ("conversation", turn.speaker), metadata=metadata, valid_from=turn.at)


def _content(turn: Turn) -> str:
    return f"{turn.speaker}: {turn.text}"


def _link(memory: Memory, topics: Sequence[str], added: set[str], who: str) -> None:
    """Join each new turn to the one before it in its session."""
    pairs = [
        (topic, before)
        for before, topic in pairwise(topics)
        if topic in added and topic.rpartition("/")[0] == before.rpartition("/")[0]
    ]
    for start in range(0, len(pairs), _RUN):
        some = pairs[start : start + _RUN]
        edges = [NewEdge(topic, before, FOLLOWS, MemoryEdgeKind.TEMPORAL) for topic, before in some]
        memory.link_many(edges, who=who, why="turns of one session")


def _part(name: str) -> str:
    """A name as one part of a topic."""
    plain = re.sub(r"[\s/\x00-\x1f]+", "_", name.strip()).strip("_")
    return plain[:_LONGEST_PART] or "conversation"
