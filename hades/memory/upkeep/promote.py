"""Promotion: a new version made of the current one, the last versions, what it is joined to, and the reason.

With a language model it writes the version; without one the last versions are merged. The reason, what was left out and
contradictions stand in the metadata of the new version, not in its text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from hades.memory.history.edges import NewEdge, draw, edges_around, end, redrawn
from hades.memory.history.rows import NEWEST, MemoryRefused, key_of, state_id, topic_key, topic_of_key
from hades.memory.history.states import Act, NewState, append, by_keys, history, holds, named, pointer_to, states_at
from hades.ports.services import LanguageModel
from hades.ports.store import RowStore
from hades.text.sentences import sentences_of, topic_words, words_of
from schemas.ids import Mask
from schemas.memory import MemoryEdge, MemoryRelation, MemoryState

EDITED = 0.5  # share of a version's statements that the next one repeats when it is an edit of it
_DEFINITE = r"(?:the|our|my|your|his|her|their|its|this|[^\W_]+['’]s)"
_PRESENT = r"(?:is|are|will be|equals|costs)"
_VERBS = (
    "lives in|reports to|is located in|is based in|is married to|is owned by|is assigned to|"
    "is led by|is headed by|is blocked by|belongs to"
)
_FIELD = re.compile(r"^[-*\s]*(?P<key>[^\W\d][^:=]{0,60}?)\s*(?::\s|=\s?)\s*(?P<value>\S.*)$")
_ATTRIBUTE = re.compile(rf"^(?P<key>{_DEFINITE} .{{1,80}}?) (?:now )?{_PRESENT} (?:now )?(?P<value>.+)$", re.I)
_VERB = re.compile(rf"^(?P<key>.{{1,80}}?) (?:now )?(?P<verb>{_VERBS}) (?P<value>.+)$", re.I)
_HOLDER = re.compile(r"^(?P<value>.{1,80}?) is (?:now )?the (?P<key>.+)$", re.I)
_ENDED = re.compile(
    r"\b(?:no longer|not (?P<kept>.{0,80}?)any ?more|stopped|ceased to|ended|does not|do not|did not continue to)\b",
    re.I,
)
_NUMBER = re.compile(r"(?<![\w-])\d+(?:[.,]\d+)*(?![\w-])")  # not the number inside a name: under-17
_YEAR = re.compile(r"\b[12]\d{3}\b")
_TIME_WORDS = """
    any more anymore does doe since until after today yesterday week month year january february march april may june
    july august september october november december monday tuesday wednesday thursday friday saturday sunday
"""
_WHEN = frozenset(_TIME_WORDS.split())
_ENDING = re.compile(r"(?<=...)(?:ing|ed|es|s)$")
Attribute = tuple[str, frozenset[str]]


def merge_versions(contents: Sequence[str]) -> tuple[str, list[str], list[tuple[str, str]]]:
    """One text out of versions, oldest first; the last one stays as it was written, after what it did not repeat.

    A statement is a sentence or a line. It is left out only when a later version supersedes it, in one of four ways:
    a later statement gives the same attribute another value ("The deadline is May 2." then "The deadline is May 9.");
    one says that it ended ("Ann no longer works at Acme."); one differs from it in numbers only, years apart ("Step 3
    is done." then "Step 4 is done."); or the next version repeats at least half of the version before but not this
    statement: somebody edited it out. With the text come what it leaves out, and the contradictions that it keeps: two
    values of one attribute inside one version.
    """
    live: list[str] = []
    left_out: list[str] = []
    before: list[str] = []
    for content in contents:
        said = list(dict.fromkeys(sentences_of(content)))
        repeated = set(before) & set(said)
        if before and len(repeated) >= EDITED * len(before):
            edited_out = set(before) - repeated
            left_out += [one for one in live if one in edited_out]
            live = [one for one in live if one not in edited_out]
        gone = find_superseded([one for one in live if one not in said], said)
        left_out += gone
        live = [one for one in live if one not in said and one not in gone] + said
        before = said
    last = contents[-1] if contents else ""
    own = set(sentences_of(last))
    carried = [one for one in live if one not in own]
    if "\n" not in last:
        carried = [one if one[-1] in ".!?" else f"{one}." for one in carried]
    text = ("\n" if "\n" in last else " ").join([*carried, last.strip()])
    return text.strip(), left_out, find_conflicts(live)


def find_superseded(older: Sequence[str], newer: Sequence[str]) -> list[str]:
    """Statements of an earlier version that statements of a later one make untrue."""
    values = {attribute: value for one in newer for attribute, value in _attributes(one)}
    endings = [_stems(_without_ending(one)) for one in newer if _ENDED.search(one)]
    renewed = [_stems(one) for one in newer if not _ENDED.search(one)]
    counted = {_NUMBER.sub("#", one) for one in newer if _NUMBER.search(one) and not _YEAR.search(one)}
    gone = []
    for one in older:
        changed = any(values.get(attribute, value) != value for attribute, value in _attributes(one))
        if _ENDED.search(one):
            is_over = _stems(_without_ending(one)) in renewed
        else:
            words = _stems(one)
            rests = [ending - words for ending in endings if words <= ending]  # that only say when: else another ended
            is_over = bool(words) and any(all(one.isdigit() or one in _WHEN for one in rest) for rest in rests)
        is_count = not _YEAR.search(one) and bool(_NUMBER.search(one)) and _NUMBER.sub("#", one) in counted
        if changed or is_over or is_count:
            gone.append(one)
    return gone


def find_conflicts(statements: Iterable[str], others: Iterable[str] = ()) -> list[tuple[str, str]]:
    """Pairs that give one attribute two values: among the statements, and between them and others."""
    first: dict[Attribute, tuple[str, frozenset[str]]] = {}
    found: list[tuple[str, str]] = []
    for one in statements:
        for attribute, value in _attributes(one):
            said, known = first.setdefault(attribute, (one, value))
            if known != value:
                found.append((said, one))
    for other in others:
        for attribute, value in _attributes(other):
            if attribute in first and first[attribute][1] != value:
                found.append((first[attribute][0], other))
    return list(dict.fromkeys(found))


def _attributes(statement: str) -> list[tuple[Attribute, frozenset[str]]]:
    """What a statement gives a single value to, as words; nothing for one that can hold beside others."""
    text = statement.strip().rstrip(".!?")
    if _ENDED.search(text) or "?" in statement:
        return []
    for kind, pattern in (("field", _FIELD), ("verb", _VERB), ("attribute", _ATTRIBUTE), ("holder", _HOLDER)):
        found = pattern.match(text)
        if found:
            parts = found.groupdict()
            key, value = words_of(parts["key"]), words_of(parts["value"])
            return [((f"{kind} {parts.get('verb', '').casefold()}", key), value)] if key and value else []
    return []


def _without_ending(statement: str) -> str:
    """A statement of an end as the statement that it ends."""
    found = _ENDED.search(statement)
    assert found is not None
    return statement[: found.start()] + (found["kept"] or " ") + statement[found.end() :]


def _stems(text: str) -> frozenset[str]:
    """Content words with common endings cut, so that "plays" and "played" are one word."""
    return frozenset(_ENDING.sub("", word, count=1) for word in words_of(text))


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
class Promotion:
    """The new version, the neighbours it kept, and the contradictions that it holds."""

    state: MemoryState
    edges: list[MemoryEdge]
    act: str = ""
    conflicts: list[tuple[str, str]] = field(default_factory=list)


def grounds_of(rows: RowStore, topic: str, now: datetime) -> Grounds:
    """The current version, the last ones before it, and the current version of what they are joined to."""
    name = named(rows, topic, now).topic
    holding = states_at(rows, [topic_key(name)], Mask(), now)
    if not holding:
        raise MemoryRefused(f"nothing holds of {name!r}: it expired or was undone; add what is true now instead")
    current = holding[0]
    mask = Mask(as_of=now, known_at=NEWEST)
    ends = {
        end
        for edge in edges_around(rows, current.topic, mask, types=NEIGHBOURS)
        for end in (key_of(edge.source), key_of(edge.target))
    }
    topics = sorted({state.topic for state in by_keys(rows, sorted(ends))} - {current.topic})
    pointer = pointer_to(rows, current.topic)
    held = {state.topic: state for state in states_at(rows, map(topic_key, topics), Mask(), now)}
    related = [held[name] for name in topics if name in held][:_MOST_RELATED]
    return Grounds(current, pointer.version if pointer else 0, _last_in_force(rows, current, mask), related)


def draft_version(
    grounds: Grounds, reason: str, model: LanguageModel | None, content: str | None = None
) -> tuple[str, dict[str, Any]]:
    """The text of the next version, and what its metadata says of how it was made.

    The content given, else written by the language model, else merged from the last versions.
    """
    if content:
        return content, {"reason": reason}
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
            return text, {"reason": reason, "made_from": _keys(used)}
    return _merge(grounds, reason)


def _merge(grounds: Grounds, reason: str) -> tuple[str, dict[str, Any]]:
    text, superseded, own = merge_versions([state.content for state in grounds.history])
    ours = sentences_of(text)
    against = {state.key: find_conflicts(ours, sentences_of(state.content)) for state in grounds.related}
    opposed = [state for state in grounds.related if [pair for pair in against[state.key] if pair not in own]]
    conflicts = list(dict.fromkeys([*own, *(pair for state in opposed for pair in against[state.key])]))
    metadata: dict[str, Any] = {"reason": reason, "made_from": _keys([*grounds.history, *opposed])}
    if superseded:
        metadata["superseded"] = superseded
    if conflicts:
        metadata["conflicts"] = [list(pair) for pair in conflicts]
    return text, metadata


def promote_topic(rows: RowStore, grounds: Grounds, new: NewState, act: Act) -> Promotion:
    """Write the version and keep the neighbours it still speaks of."""
    state = append(rows, [new], act)[0]
    mask = Mask(as_of=act.at, known_at=NEWEST)
    active = edges_around(rows, state.topic, mask, types=[MemoryRelation.RELATES_TO])
    drawn = [
        edge
        for related in grounds.related
        if should_maintain_connection(related, state)
        for edge in _carry_over(rows, active, state, related, act)
    ]
    conflicts = [(first, second) for first, second in new.metadata.get("conflicts", ())]
    return Promotion(state, drawn, act.key, conflicts)


def _carry_over(
    rows: RowStore, active: Sequence[MemoryEdge], state: MemoryState, related: MemoryState, act: Act
) -> list[MemoryEdge]:
    """The relation to a neighbour drawn at the new version, each way that it had, in place of the edges before."""
    ours, theirs = state_id(state.key), state_id(related.key)
    outbound = [edge for edge in active if _topics(edge) == (topic_key(state.topic), topic_key(related.topic))]
    inbound = [edge for edge in active if _topics(edge) == (topic_key(related.topic), topic_key(state.topic))]
    if not outbound and not inbound:
        said = f"kept from version {state.version - 1}"
        return [draw(rows, NewEdge(ours, theirs, MemoryRelation.RELATES_TO, description=said), act)]
    drawn = []
    for source, target, before in ((ours, theirs, outbound), (theirs, ours, inbound)):
        if before:
            drawn.append(draw(rows, redrawn(before[-1], source=source, target=target), act))
            for edge in before:
                end(rows, edge.id, act, at=act.at, superseded_by=drawn[-1].id)
    return drawn


def _topics(edge: MemoryEdge) -> tuple[str, str]:
    return topic_of_key(edge.source), topic_of_key(edge.target)


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
