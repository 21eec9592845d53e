"""An agent over memory by fixed rules: the same question takes the same steps; groups of topics.

A language model is only asked where one is given to the memory, and then only for what it misses.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter

from hades.memory.history.rows import MemoryRefused, UnknownMemory, topic_key, topic_of_key
from hades.memory.memory import Memory
from hades.memory.recall.context import MAX_TOKENS, Context, strategy_for
from hades.memory.recall.search import MemoryMatch, strength
from hades.memory.upkeep.promote import Promotion
from hades.ports.services import LanguageModel
from hades.text.sentences import words_of
from schemas.ids import Mask
from schemas.memory import MemoryState
from schemas.record import JsonObject

MAX_PASSES = 3
DRILL_DOWN_TOKENS = 40_000
_MORE = re.compile(r"^\s*MORE:\s*(.+?)\s*$", re.MULTILINE)
_MAX_TOKENS = 100
Needs = Callable[[Context], str | None]  # a topic or a summary that is wanted in detail, or nothing
PROMPT = """{context}

Question: {query}
If the context above answers the question, write DONE. If the detail of one topic or
summary in it is missing, write MORE: and its name as it stands in brackets, nothing else.
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
    if needs is None and memory.language_model is not None:
        needs = needs_by(memory.language_model)

    contexts = [
        memory.retrieve_within_budget(
            query,
            max_tokens,
            mask=mask,
        )
    ]
    looked_into: set[str] = set()
    while needs is not None and len(contexts) < max_passes:
        topic = needs(contexts[-1])
        if topic is None or topic in looked_into:
            break

        looked_into.add(topic)
        room = min(DRILL_DOWN_TOKENS, max_tokens)
        try:
            contexts.append(
                memory.retrieve_within_budget(
                    query,
                    room,
                    focus=[topic],
                    mask=mask,
                )
            )
        except UnknownMemory:
            break  # it named something that memory does not hold; what was found stands

    return contexts


def needs_by(model: LanguageModel) -> Needs:
    """Let a language model say what it misses."""

    def needs(context: Context) -> str | None:
        prompt = PROMPT.format(context=context.text, query=context.query)
        request = _MORE.search(model.complete(prompt, max_tokens=_MAX_TOKENS).text)
        if request is None:
            return None

        return request[1].strip("[]").split(",")[0].strip()

    return needs


def process_query(
    memory: Memory,
    query: str,
    max_tokens: int = MAX_TOKENS,
    *,
    mask: Mask = Mask(),
) -> JsonObject:
    """Plan, retrieve in as many passes as are needed, report the empty steps; as JSON."""
    strategy = strategy_for(query)
    is_planned = {
        "latest": True,
        "related": strategy.related,
        "summaries": strategy.level > 0,
        "details": strategy.history,
    }

    steps = [step for step, planned in is_planned.items() if planned]

    contexts = retrieve_in_passes(
        memory,
        query,
        max_tokens=max_tokens,
        mask=mask,
    )
    missing = []
    for step in steps:
        if not any(map(attrgetter(step), contexts)):
            missing.append(step)

    return {
        "intent": strategy.intent,
        "steps": steps,
        "missing": missing,
        "grounded": "latest" not in missing,
        "contexts": [context.as_dict() for context in contexts],
    }


def reconsolidate(
    memory: Memory,
    topic: str,
    *,
    who: str = "",
) -> Promotion | None:
    """Recall a topic; where a neighbour changed since, write its next version."""
    state = memory.latest(topic)
    if state is None:
        return None

    recalled = MemoryMatch(
        state=state,
        similarity=1.0,
        strength=strength(state, memory.now()),
        matched=state.key,
        semantic=None,
        lexical=1.0,
    )
    newer: dict[str, str] = {}
    for related in memory.enhance([recalled], 1).matches[0].related_states:
        since = related.since
        if since is not None and since.timestamp > state.timestamp:
            newer[since.topic] = since.content

    if not newer:
        return None

    reason = f"since then {', '.join(sorted(newer))} changed"
    if memory.language_model:
        return memory.promote(topic, reason, who=who)

    news = [f"{name}: {newer[name]}" for name in sorted(newer)]
    return memory.promote(
        topic,
        reason,
        " ".join([state.content, *news]),
        who=who,
    )


_ROUNDS = 20
_NAME_WORDS = 5


def group_topics(memory: Memory, *, mask: Mask = Mask()) -> list[JsonObject]:
    """The groups of two or more topics, largest first, by the edges that are true now or at the
    mask.

    `edges` counts those inside a group, `strength` is their mean.
    """
    reader = memory.reader(mask)
    weights: dict[str, dict[str, float]] = defaultdict(dict)

    for topic in reader.index.topics:
        if not reader.holds(topic):  # its edges lead to topics that hold, none leads back to it
            continue

        for bond in reader.bonds(topic):  # heaviest first
            weights[topic].setdefault(topic_of_key(bond.state), bond.strength)

    members: dict[str, list[str]] = defaultdict(list)
    for topic, label in _propagate_labels(weights).items():
        members[label].append(topic)

    states = {topic_key(state.topic): state for state in reader.current(weights)}
    groups = []
    for topics in members.values():
        if len(topics) > 1:
            groups.append(_describe_group(topics, weights, states))

    return sorted(
        groups,
        key=lambda group: (-len(group["topics"]), group["name"]),
    )


def _propagate_labels(weights: Mapping[str, Mapping[str, float]]) -> dict[str, str]:
    """The label of each topic: the one that its neighbours carry most weight of, until nothing
    changes.

    Weighted label propagation (Raghavan, Albert, Kumara 2007) in a fixed order: the same edges give
    the same groups.
    """
    labels = {topic: topic for topic in sorted(weights)}
    for _ in range(_ROUNDS):
        changed = False
        for topic in sorted(weights):
            votes: dict[str, float] = defaultdict(float)
            for neighbour, weight in weights[topic].items():
                votes[labels[neighbour]] += weight

            best = min(votes, key=lambda candidate: (-votes[candidate], candidate))
            current = labels[topic]
            if (-votes[best], best) < (-votes[current], current):
                labels[topic] = best
                changed = True

        if not changed:
            break

    return labels


def _describe_group(
    members: Sequence[str],
    weights: Mapping[str, Mapping[str, float]],
    states: Mapping[str, MemoryState],
) -> JsonObject:
    """The group of some topics, given by their keys; `states` are those of all grouped topics."""
    own_states = [states[topic] for topic in members]

    inside: list[float] = []
    for topic in members:
        for neighbour, weight in weights[topic].items():
            if neighbour in members and topic < neighbour:  # each edge once
                inside.append(weight)

    shared_words = ", ".join(_find_shared_words(own_states, states))
    return {
        "name": shared_words or own_states[0].topic,
        "topics": sorted(state.topic for state in own_states),
        "edges": len(inside),
        "strength": round(sum(inside) / max(1, len(inside)), 4),
    }


def _find_shared_words(
    states: Sequence[MemoryState],
    everything: Mapping[str, MemoryState],
) -> list[str]:
    """The words that most of the group hold and few others do."""
    in_all = _count_states_by_word(everything.values())

    scores: dict[str, float] = {}
    for word, count in _count_states_by_word(states).items():
        if count > 1:
            scores[word] = count * math.log1p(len(everything) / in_all[word])

    return sorted(scores, key=lambda word: (-scores[word], word))[:_NAME_WORDS]


def _count_states_by_word(states: Iterable[MemoryState]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for state in states:
        counts.update(words_of(state.content))

    return counts
