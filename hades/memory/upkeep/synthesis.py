"""Merging the last versions of a topic into one text without a language model: nothing true is lost.

A statement is a sentence or a line. It leaves the text only when a later version supersedes it, in one of four ways:

- a later statement gives the same attribute another value ("The deadline is May 2." then "The deadline is May 9.");
- a later statement says that it ended ("Ann no longer works at Acme.");
- a later statement differs from it in numbers only, years apart ("Step 3 is done." then "Step 4 is done.");
- the next version repeats at least half of the version before but not this statement: somebody edited it out.

Two values of one attribute inside one version contradict each other. Both stay and are reported.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from hades.text.keywords import sentences_of, words_of

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
_ENDINGS = ("ing", "ed", "es", "s")

Attribute = tuple[str, frozenset[str]]


@dataclass(frozen=True)
class Synthesis:
    """The merged text, what it left out and why, and the contradictions that it keeps."""

    text: str
    superseded: list[str] = field(default_factory=list)
    conflicts: list[tuple[str, str]] = field(default_factory=list)


def merge_versions(contents: Sequence[str]) -> Synthesis:
    """One text out of versions, oldest first; the last one stays as it was written, after what it did not repeat."""
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
    text = "\n".join([*carried, last.strip()]) if "\n" in last else " ".join([*map(_close, carried), last.strip()])
    return Synthesis(text.strip(), left_out, find_conflicts(live))


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
            is_over = bool(words) and any(words <= ending and _is_when(ending - words) for ending in endings)
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


def _is_when(words: frozenset[str]) -> bool:
    """Whether words only say when: an ending that names something else ends something else."""
    return all(word.isdigit() or word in _WHEN for word in words)


def _stems(text: str) -> frozenset[str]:
    """Content words with common endings cut, so that "plays" and "played" are one word."""
    return frozenset(_stem(word) for word in words_of(text))


def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


def _close(statement: str) -> str:
    return statement if statement[-1] in ".!?" else f"{statement}."
