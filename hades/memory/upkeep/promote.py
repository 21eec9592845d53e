"""Promotion: a new version made of the current one, the last versions, what it is joined to, and
the reason.

With a language model it writes the version; without one the last versions are merged. The reason,
what was left out and contradictions stand in the metadata of the new version, not in its text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from hades.memory.history.edges import NewEdge, draw, edges_around, end, redrawn
from hades.memory.history.rows import (
    NEWEST,
    MemoryRefused,
    key_of,
    state_id,
    topic_key,
    topic_of_key,
)
from hades.memory.history.states import (
    Act,
    NewState,
    append,
    by_keys,
    history,
    holds,
    named,
    pointer_to,
    states_at,
)
from hades.ports.services import LanguageModel
from hades.ports.store import RowStore
from hades.text.sentences import sentences_of, topic_words, words_of
from schemas.ids import Mask
from schemas.memory import MemoryEdge, MemoryRelation, MemoryState
from schemas.record import JsonObject

EDITED = 0.5  # share of a version's statements that the next one repeats when it is an edit of it
_DEFINITE = r"(?:the|our|my|your|his|her|their|its|this|[^\W_]+['’]s)"
_PRESENT = r"(?:is|are|will be|equals|costs)"
_VERBS = (
    "lives in|reports to|is located in|is based in|is married to|is owned by|is assigned to|"
    "is led by|is headed by|is blocked by|belongs to"
)
_FIELD = re.compile(r"^[-*\s]*(?P<key>[^\W\d][^:=]{0,60}?)\s*(?::\s|=\s?)\s*(?P<value>\S.*)$")
_ATTRIBUTE = re.compile(
    rf"^(?P<key>{_DEFINITE} .{{1,80}}?) (?:now )?{_PRESENT} (?:now )?(?P<value>.+)$",
    re.I,
)
_VERB = re.compile(
    rf"^(?P<key>.{{1,80}}?) (?:now )?(?P<verb>{_VERBS}) (?P<value>.+)$",
    re.I,
)
_HOLDER = re.compile(r"^(?P<value>.{1,80}?) is (?:now )?the (?P<key>.+)$", re.I)
_ATTRIBUTE_FORMS = (
    ("field", _FIELD),
    ("verb", _VERB),
    ("attribute", _ATTRIBUTE),
    ("holder", _HOLDER),
)
_ENDED = re.compile(
    r"\b(?:no longer|not (?P<kept>.{0,80}?)any ?more|stopped|ceased to|ended|does not|do not|did "
    r"not continue to)\b",
    re.I,
)
# Not the number inside a name: under-17.
_NUMBER = re.compile(r"(?<![\w-])\d+(?:[.,]\d+)*(?![\w-])")
_YEAR = re.compile(r"\b[12]\d{3}\b")
_TIME_WORDS = """
    any more anymore does doe since until after today yesterday week month year january february
    march april may june july august september october november december monday tuesday wednesday
    thursday friday saturday sunday
"""
_WHEN = frozenset(_TIME_WORDS.split())
_ENDING = re.compile(r"(?<=...)(?:ing|ed|es|s)$")
Attribute = tuple[str, frozenset[str]]
Contradiction = tuple[str, str]  # two statements


def merge_versions(contents: Sequence[str]) -> tuple[str, list[str], list[Contradiction]]:
    """One text out of versions, oldest first; the last one stays as it was written, after what it
    did not repeat.

    A statement is a sentence or a line. It is left out only when a later version supersedes it, in
    one of four ways: a later statement gives the same attribute another value ("The deadline is May
    2." then "The deadline is May 9."); one says that it ended ("Ann no longer works at Acme."); one
    differs from it in numbers only, years apart ("Step 3 is done." then "Step 4 is done."); or the
    next version repeats at least half of the version before but not this statement: somebody edited
    it out. With the text come what it leaves out, and the contradictions that it keeps: two values
    of one attribute inside one version.
    """
    live: list[str] = []
    left_out: list[str] = []

    previous: list[str] = []
    for content in contents:
        statements = list(dict.fromkeys(sentences_of(content)))
        repeated = set(previous) & set(statements)
        if previous and len(repeated) >= EDITED * len(previous):
            edited_out = set(previous) - repeated
            left_out += [statement for statement in live if statement in edited_out]
            live = [statement for statement in live if statement not in edited_out]

        older = []
        for statement in live:
            if statement not in statements:
                older.append(statement)

        superseded = find_superseded(older, statements)
        left_out += superseded
        live = [statement for statement in older if statement not in superseded] + statements
        previous = statements

    last = contents[-1] if contents else ""
    last_statements = set(sentences_of(last))

    carried = []
    for statement in live:
        if statement not in last_statements:
            carried.append(statement)

    if "\n" not in last:
        carried = [
            statement if statement[-1] in ".!?" else f"{statement}." for statement in carried
        ]

    text = ("\n" if "\n" in last else " ").join([*carried, last.strip()])
    return text.strip(), left_out, find_conflicts(live)


def find_superseded(older: Sequence[str], newer: Sequence[str]) -> list[str]:
    """Statements of an earlier version that statements of a later one make untrue."""
    values = dict(filter(None, map(_attribute_of, newer)))
    ended = [statement for statement in newer if _ENDED.search(statement)]
    ended_words = [_stems(_without_ending(statement)) for statement in ended]
    asserted_words = [_stems(statement) for statement in newer if statement not in ended]
    counts = set(filter(None, map(_without_numbers, newer)))

    superseded = []
    for statement in older:
        attribute = _attribute_of(statement)
        is_changed = attribute is not None and values.get(*attribute) != attribute[1]
        if _ENDED.search(statement):
            is_over = _stems(_without_ending(statement)) in asserted_words
        else:
            is_over = _is_among_ended(_stems(statement), ended_words)

        if is_changed or is_over or _without_numbers(statement) in counts:
            superseded.append(statement)

    return superseded


def _is_among_ended(
    words: frozenset[str],
    ended_words: Sequence[frozenset[str]],
) -> bool:
    """Whether one of the ended statements says these words and, besides, only when."""
    for ended in ended_words:
        says_when = all(word.isdigit() or word in _WHEN for word in ended - words)
        if words and words <= ended and says_when:
            return True

    return False


def _without_numbers(statement: str) -> str | None:
    """A statement that counts, with `#` for its numbers; None where it has no number or a year."""
    if _YEAR.search(statement) or not _NUMBER.search(statement):
        return None
    return _NUMBER.sub("#", statement)


def find_conflicts(
    statements: Iterable[str],
    against: Iterable[str] = (),
) -> list[Contradiction]:
    """Pairs that give one attribute two values: among the statements, and between them and
    others.
    """
    first: dict[Attribute, tuple[str, frozenset[str]]] = {}

    conflicts: dict[Contradiction, None] = {}
    for statement in statements:
        if pair := _attribute_of(statement):
            attribute, value = pair
            earlier, known = first.setdefault(attribute, (statement, value))
            if known != value:
                conflicts[earlier, statement] = None

    for opposing in against:
        if pair := _attribute_of(opposing):
            attribute, value = pair
            earlier, known = first.get(attribute, ("", value))
            if known != value:
                conflicts[earlier, opposing] = None

    return list(conflicts)


def _attribute_of(statement: str) -> tuple[Attribute, frozenset[str]] | None:
    """What a statement gives a single value to, and the value, as words; None where other values
    can hold beside it.
    """
    text = statement.strip().rstrip(".!?")
    if _ENDED.search(text) or "?" in statement:
        return None

    for kind, pattern in _ATTRIBUTE_FORMS:
        match = pattern.match(text)
        if match:
            parts = match.groupdict()
            key = words_of(parts["key"])
            value = words_of(parts["value"])
            verb = parts.get("verb", "").casefold()

            if key and value:
                return ((f"{kind} {verb}", key), value)

            return None

    return None


def _without_ending(statement: str) -> str:
    """A statement of an end as the statement that it ends."""
    match = _ENDED.search(statement)
    assert match is not None
    return statement[: match.start()] + (match["kept"] or " ") + statement[match.end() :]


def _stems(text: str) -> frozenset[str]:
    """Content words with common endings cut, so that "plays" and "played" are one word."""
    return frozenset(_ENDING.sub("", word, count=1) for word in words_of(text))


HISTORY = 5
# Metadata that each promotion replaces.
MADE_BY_PROMOTION = ("reason", "made_from", "superseded", "conflicts")
NEIGHBOURS = (str(MemoryRelation.RELATES_TO), str(MemoryRelation.CAUSES))
SHARED_WORDS = 0.1  # of the smaller text: below it, the new version has left the neighbour behind
_MOST_RELATED = 20
_MAX_TOKENS = 600
PROMPT = """Write the next state of what is known about a topic, in plain sentences, using only
what stands below.
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
    # The last ones that are in force, in the order in which they began; ends with `current`.
    history: list[MemoryState]
    related: list[MemoryState]


@dataclass(frozen=True)
class Promotion:
    """The new version, the neighbours it kept, and the contradictions that it holds."""

    state: MemoryState
    edges: list[MemoryEdge]
    act: str = ""
    conflicts: list[Contradiction] = field(default_factory=list)


def grounds_of(
    rows: RowStore,
    topic: str,
    now: datetime,
) -> Grounds:
    """The current version, the last ones before it, and the current version of what they are joined
    to.
    """
    name = named(rows, topic, now).topic
    holding = states_at(rows, [topic_key(name)], Mask(), now)

    if not holding:
        raise MemoryRefused(
            f"nothing holds of {name!r}: it expired or was undone; add what is true now instead"
        )

    current = holding[0]
    mask = Mask(as_of=now, known_at=NEWEST)
    edges = edges_around(
        rows,
        current.topic,
        mask,
        types=NEIGHBOURS,
    )
    ends = {key_of(edge.source) for edge in edges} | {key_of(edge.target) for edge in edges}
    topics = {state.topic for state in by_keys(rows, sorted(ends))} - {current.topic}
    neighbours = states_at(rows, map(topic_key, topics), Mask(), now)
    neighbours.sort(key=lambda state: state.topic)
    pointer = pointer_to(rows, current.topic)
    count = pointer.version if pointer else 0
    last_versions = _last_in_force(rows, current, mask)
    return Grounds(
        current,
        count,
        last_versions,
        neighbours[:_MOST_RELATED],
    )


def draft_version(
    grounds: Grounds,
    reason: str,
    model: LanguageModel | None,
    content: str | None = None,
) -> tuple[str, JsonObject]:
    """The text of the next version, and what its metadata says of how it was made.

    The content given, else written by the language model, else merged from the last versions.
    """
    if content:
        return content, {"reason": reason}

    if model is not None:
        versions = []
        for state in grounds.history:
            versions.append(f"- v{state.version}: {state.content}")

        related = [f"- {state.topic}: {state.content}" for state in grounds.related]
        prompt = PROMPT.format(
            topic=grounds.current.topic,
            reason=reason,
            current=grounds.current.content,
            history="\n".join(versions),
            related="\n".join(related) or "- none",
        )
        text = model.complete(prompt, max_tokens=_MAX_TOKENS).text.strip()

        if text:
            used = [*grounds.history, *grounds.related]
            return text, {
                "reason": reason,
                "made_from": _state_keys(used),
            }

    return _draft_by_merging(grounds, reason)


def _draft_by_merging(grounds: Grounds, reason: str) -> tuple[str, JsonObject]:
    contents = [state.content for state in grounds.history]
    text, superseded, conflicts_within = merge_versions(contents)
    statements = sentences_of(text)
    sources = list(grounds.history)
    conflicts = list(conflicts_within)

    for state in grounds.related:
        pairs = find_conflicts(statements, sentences_of(state.content))
        if not set(pairs) <= set(conflicts_within):
            sources.append(state)
            conflicts += pairs

    conflicts = list(dict.fromkeys(conflicts))
    metadata: JsonObject = {
        "reason": reason,
        "made_from": _state_keys(sources),
    }
    if superseded:
        metadata["superseded"] = superseded
    if conflicts:
        metadata["conflicts"] = [list(pair) for pair in conflicts]

    return text, metadata


def promote_topic(
    rows: RowStore,
    grounds: Grounds,
    new: NewState,
    act: Act,
) -> Promotion:
    """Write the version and keep the neighbours it still speaks of."""
    state = append(rows, [new], act)[0]
    mask = Mask(as_of=act.at, known_at=NEWEST)
    active = edges_around(
        rows,
        state.topic,
        mask,
        types=[MemoryRelation.RELATES_TO],
    )

    drawn: list[MemoryEdge] = []
    for related in grounds.related:
        if should_maintain_connection(related, state):
            drawn += _carry_over(rows, active, state, related, act)

    conflicts = []
    for first, second in new.metadata.get("conflicts", ()):
        conflicts.append((first, second))

    return Promotion(state, drawn, act.key, conflicts)


def _carry_over(
    rows: RowStore,
    active: Sequence[MemoryEdge],
    state: MemoryState,
    related: MemoryState,
    act: Act,
) -> list[MemoryEdge]:
    """The relation to a neighbour drawn at the new version, each way that it had, in place of the
    edges before.
    """
    own_id = state_id(state.key)
    related_id = state_id(related.key)

    drawn = []
    for source, target in ((own_id, related_id), (related_id, own_id)):
        replaced = [edge for edge in active if _joins(edge, source, target)]
        if replaced:
            drawn.append(
                draw(
                    rows,
                    redrawn(
                        replaced[-1],
                        source=source,
                        target=target,
                    ),
                    act,
                )
            )
            for edge in replaced:
                end(
                    rows,
                    edge.id,
                    act,
                    at=act.at,
                    superseded_by=drawn[-1].id,
                )

    if not drawn:
        description = f"kept from version {state.version - 1}"
        new = NewEdge(
            own_id,
            related_id,
            MemoryRelation.RELATES_TO,
            description=description,
        )
        drawn.append(draw(rows, new, act))

    return drawn


def _joins(edge: MemoryEdge, source: str, target: str) -> bool:
    """Whether an edge leads from the topic of one state to that of the other."""
    topics = (topic_of_key(edge.source), topic_of_key(edge.target))
    return topics == (topic_of_key(source), topic_of_key(target))


def should_maintain_connection(related: MemoryState, state: MemoryState) -> bool:
    """Whether a new version still speaks of a neighbour: it names it, or shares a tenth of the
    smaller one's words.
    """
    words = words_of(state.content)
    related_words = words_of(related.content)
    name_words = topic_words(related.topic)

    if name_words and name_words <= words:
        return True

    smaller = max(1, min(len(words), len(related_words)))
    return len(words & related_words) >= SHARED_WORDS * smaller


def _last_in_force(
    rows: RowStore,
    current: MemoryState,
    mask: Mask,
) -> list[MemoryState]:
    """The last versions up to the current one that hold still: no correction of the past, nothing
    that expired.
    """
    earlier = []
    for version in history(
        rows,
        current.topic,
        limit=HISTORY,
        mask=Mask(known_at=NEWEST),
    ):
        if holds(version, mask) and _beginning(version) < _beginning(current):
            earlier.append(version)

    return [*sorted(earlier, key=_beginning), current]


def _beginning(state: MemoryState) -> tuple[datetime, int]:
    return state.valid_from or state.timestamp, state.version


def _state_keys(states: Sequence[MemoryState]) -> list[str]:
    return list(dict.fromkeys(state.key for state in states))
