"""An agent over memory by fixed rules: the same question takes the same steps; groups of topics.

A language model is only asked where one is given to the memory, and then only for what it misses."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hades.memory.history.rows import MemoryRefused, UnknownMemory, topic_key, topic_of_key
from hades.memory.memory import Memory
from hades.memory.recall.context import MAX_TOKENS, Context, strategy_for
from hades.memory.recall.search import MemoryMatch, strength
from hades.memory.upkeep.promote import Promotion
from hades.ports.services import LanguageModel
from hades.text.sentences import words_of
from schemas.ids import Mask
from schemas.memory import MemoryState

MAX_PASSES = 3
DRILL_DOWN_TOKENS = 40_000
_ASKS = re.compile(r"^\s*MORE:\s*(.+?)\s*$", re.MULTILINE)
_MAX_TOKENS = 100
Needs = Callable[[Context], str | None]  # a topic or a summary that is wanted in detail, or nothing
PROMPT = """{context}

Question: {query}
If the context above answers the question, write DONE. If the detail of one topic or summary in it is missing, write
MORE: and its name as it stands in brackets, nothing else.
"""


def retrieve_in_passes(
    memory: Memory,
    query: str,
    needs: Needs | None = None,
    *,
    max_tokens: int = MAX_TOKENS,
    max_passes: int = MAX_PASSES,
    mask: Mask = Mask(),
) -> list[Context]:
    """A context, then closer ones at what `needs`, or the language model, asks for.

    Ends when nothing more is wanted, or known, or allowed.
    """
    if max_passes < 1:
        raise MemoryRefused(f"max_passes is {max_passes}; at least one look is needed")
    needs = needs or (needs_by(memory.language_model) if memory.language_model else lambda _: None)
    contexts = [memory.retrieve_within_budget(query, max_tokens, mask=mask)]
    asked: set[str] = set()
    while len(contexts) < max_passes:
        wanted = needs(contexts[-1])
        if wanted is None or wanted in asked:
            break
        asked.add(wanted)
        room = min(DRILL_DOWN_TOKENS, max_tokens)
        try:
            contexts.append(memory.retrieve_within_budget(query, room, focus=[wanted], mask=mask))
        except UnknownMemory:
            break  # it named something that memory does not hold; what was found stands
    return contexts


def needs_by(model: LanguageModel) -> Needs:
    """Let a language model say what it misses."""

    def needs(context: Context) -> str | None:
        prompt = PROMPT.format(context=context.text, query=context.query)
        said = _ASKS.search(model.complete(prompt, max_tokens=_MAX_TOKENS).text)
        return said[1].strip("[]").split(",")[0].strip() if said else None

    return needs


def process_query(memory: Memory, query: str, max_tokens: int = MAX_TOKENS, *, mask: Mask = Mask()) -> dict[str, Any]:
    """Plan, retrieve in as many looks as are needed, and say which steps came back empty, as JSON."""
    strategy = strategy_for(query)
    wanted = {"latest": True, "related": strategy.related, "summaries": strategy.level > 0, "details": strategy.history}
    steps = [name for name, is_wanted in wanted.items() if is_wanted]
    contexts = retrieve_in_passes(memory, query, max_tokens=max_tokens, mask=mask)
    missing = [step for step in steps if not any(getattr(context, step) for context in contexts)]
    return {
        "intent": strategy.intent,
        "steps": steps,
        "missing": missing,
        "grounded": "latest" not in missing,
        "contexts": [context.as_dict() for context in contexts],
    }


def reconsolidate(memory: Memory, topic: str, *, who: str = "") -> Promotion | None:
    """Recall a topic and, where a neighbour has moved on since, make its next version; nothing is edited in place."""
    state = memory.latest(topic)
    if state is None:
        return None
    recalled = MemoryMatch(state, 1.0, strength(state, memory.now()), state.key, None, 1.0)
    newer = {
        related.since.topic: related.since.content
        for match in memory.enhance([recalled], 1).matches
        for related in match.related_states
        if related.since is not None and related.since.timestamp > state.timestamp
    }
    if not newer:
        return None
    reason = f"since then {', '.join(sorted(newer))} changed"
    said = [f"{name}: {newer[name]}" for name in sorted(newer)]
    return memory.promote(topic, reason, None if memory.language_model else " ".join([state.content, *said]), who=who)


_ROUNDS = 20
_WORDS = 5


def group_topics(memory: Memory, *, mask: Mask = Mask()) -> list[dict[str, Any]]:
    """The groups of two or more topics, largest first, by the edges that are true now or at the mask.

    `edges` counts those inside a group, `strength` is their mean.
    """
    reader = memory.reader(mask)
    weights: dict[str, dict[str, float]] = defaultdict(dict)
    for one in reader.index.topics:
        for bond in reader.bonds(one):  # heaviest first
            weights[one].setdefault(topic_of_key(bond.state), bond.strength)
    members: dict[str, list[str]] = defaultdict(list)
    for topic, label in _propagate(weights).items():
        members[label].append(topic)
    states = {topic_key(state.topic): state for state in reader.current(weights)}
    found = [_group([states[one] for one in some if one in states], weights, states) for some in members.values()]
    return sorted((one for one in found if len(one["topics"]) > 1), key=lambda one: (-len(one["topics"]), one["name"]))


def _propagate(weights: Mapping[str, Mapping[str, float]]) -> dict[str, str]:
    """The label of each topic: the one that its neighbours carry most weight of, until nothing changes.

    Weighted label propagation (Raghavan, Albert, Kumara 2007) in a fixed order: the same edges give the same groups.
    """
    label = {topic: topic for topic in sorted(weights)}
    for _ in range(_ROUNDS):
        changed = False
        for topic in sorted(weights):
            votes: dict[str, float] = defaultdict(float)
            for other, weight in weights[topic].items():
                votes[label[other]] += weight
            best = min(votes, key=lambda one: (-votes[one], one))
            if votes[best] > votes[label[topic]] or (votes[best] == votes[label[topic]] and best < label[topic]):
                label[topic], changed = best, True
        if not changed:
            break
    return label


def _group(
    states: Sequence[MemoryState], weights: Mapping[str, Mapping[str, float]], everything: Mapping[str, MemoryState]
) -> dict[str, Any]:
    keys = {topic_key(state.topic) for state in states}
    inside = [weight for one in keys for other, weight in weights[one].items() if other in keys and one < other]
    return {
        "name": ", ".join(_find_shared_words(states, everything)) or (states[0].topic if states else ""),
        "topics": sorted(state.topic for state in states),
        "edges": len(inside),
        "strength": round(sum(inside) / len(inside), 4) if inside else 0.0,
    }


def _find_shared_words(states: Sequence[MemoryState], everything: Mapping[str, MemoryState]) -> list[str]:
    """The words that most of the group hold and few others do."""
    held = Counter(word for state in states for word in set(words_of(state.content)))
    in_all = Counter(word for state in everything.values() for word in set(words_of(state.content)))
    score = {word: count * math.log1p(len(everything) / in_all[word]) for word, count in held.items() if count > 1}
    return sorted(score, key=lambda word: (-score[word], word))[:_WORDS]
