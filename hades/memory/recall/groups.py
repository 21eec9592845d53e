"""Groups of topics that belong together: communities of the memory graph, named by the words they share.

Weighted label propagation (Raghavan, Albert, Kumara 2007) in a fixed order: the same edges give the same groups.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from hades.memory.history.names import EDGES, key_of, topic_key, topic_of_key
from hades.memory.service import Memory
from hades.ports.store import Term
from hades.text.keywords import words_of
from schemas.intervals import Mask, is_visible
from schemas.memory import MemoryRelation, MemoryState

_ROUNDS = 20
_WORDS = 5
_COLUMNS = ("_from", "_to", "strength", "valid_from", "valid_until", "recorded_at", "retracted_at")


@dataclass(frozen=True)
class TopicGroup:
    """Topics that edges join more to each other than to the rest."""

    name: str
    topics: tuple[str, ...]
    edges: int
    strength: float  # mean strength of the edges inside

    def as_dict(self) -> dict[str, Any]:
        """The group as JSON."""
        return asdict(self)


def group_topics(memory: Memory, *, mask: Mask = Mask()) -> list[TopicGroup]:
    """The groups of two or more topics, largest first, by the edges that are true now or at the mask."""
    reader = memory.reader(mask)
    weights: dict[str, dict[str, float]] = defaultdict(dict)
    where = [Term("relationship_type", "!=", MemoryRelation.EVOLVES_TO)]
    for batch in memory.store.scan(EDGES, where=where, columns=_COLUMNS):
        for row in batch.to_pylist():
            times = row["valid_from"], row["valid_until"], row["recorded_at"], row["retracted_at"]
            one, other = (topic_of_key(key_of(row[end])) for end in ("_from", "_to"))
            if one != other and is_visible(reader.edges, *times):
                strength = max(weights[one].get(other, 0.0), float(row["strength"]))
                weights[one][other] = weights[other][one] = strength
    members: dict[str, list[str]] = defaultdict(list)
    for topic, label in _propagate(weights).items():
        members[label].append(topic)
    states = {topic_key(state.topic): state for state in reader.current(weights)}
    found = [_group([states[one] for one in some if one in states], weights, states) for some in members.values()]
    return sorted((one for one in found if len(one.topics) > 1), key=lambda one: (-len(one.topics), one.name))


def _propagate(weights: Mapping[str, Mapping[str, float]]) -> dict[str, str]:
    """The label of each topic: the one that its neighbours carry most weight of, until nothing changes."""
    label = {topic: topic for topic in sorted(weights)}
    for _ in range(_ROUNDS):
        changed = False
        for topic in sorted(weights):
            votes: Counter[str] = Counter()
            for other, weight in weights[topic].items():
                votes[label[other]] += weight  # type: ignore[assignment]
            best = min(votes, key=lambda one: (-votes[one], one))
            if votes[best] > votes[label[topic]] or (votes[best] == votes[label[topic]] and best < label[topic]):
                label[topic], changed = best, True
        if not changed:
            break
    return label


def _group(
    states: Sequence[MemoryState], weights: Mapping[str, Mapping[str, float]], everything: Mapping[str, MemoryState]
) -> TopicGroup:
    keys = {topic_key(state.topic) for state in states}
    inside = [weight for one in keys for other, weight in weights[one].items() if other in keys and one < other]
    return TopicGroup(
        ", ".join(_find_shared_words(states, everything)) or (states[0].topic if states else ""),
        tuple(sorted(state.topic for state in states)),
        len(inside),
        round(sum(inside) / len(inside), 4) if inside else 0.0,
    )


def _find_shared_words(states: Sequence[MemoryState], everything: Mapping[str, MemoryState]) -> list[str]:
    """The words that most of the group hold and few others do."""
    held = Counter(word for state in states for word in set(words_of(state.content)))
    in_all = Counter(word for state in everything.values() for word in set(words_of(state.content)))
    score = {word: count * math.log1p(len(everything) / in_all[word]) for word, count in held.items() if count > 1}
    return sorted(score, key=lambda word: (-score[word], word))[:_WORDS]
