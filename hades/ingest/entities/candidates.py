"""Names that texts propose, and what kind they are."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntFlag

import numpy as np

from hades.text.sentences import fragments, join_to_last, sentence_starts
from hades.text.word_lists import (
    CALENDAR,
    CONNECTORS,
    FUNCTION_WORDS,
    GIVEN_NAMES,
    HONORIFICS,
    IS_A_CUES,
    METHOD_CUES,
    NAME_CUES,
    TERM_BREAKERS,
    WEAK_CONNECTORS,
)
from hades.text.words import (
    ALL_CAPS,
    CAPITAL,
    CLOSE,
    CODE_LIKE,
    DIGIT_FIRST,
    DOT,
    LINK,
    OPEN,
    QUOTE,
    SINGLE,
    SPACE,
    STOP,
    Flags,
    Hashes,
    Longs,
    Tokens,
    fold_letters,
    running,
    span_hashes,
    tokenize,
)
from schemas.nodes import EntityType, NameType

# What kind of thing a name is, guessed from cue words: in the name, in its qualifier, in "X is a ...".


_WORD = re.compile(r"[^\W_]+")
_SAYS_WHAT = re.compile(r"\b(?:is|was|are|were)\s+(?:an?|the|one of)\s", re.IGNORECASE)
_CLAUSE_END = re.compile(r"[.;(]|\b(?:who|which|that|by|from|starring|directed|written|located)\b")
_BORN = re.compile(r"\b(?:born|né|née)\b")
_LOOK_AHEAD = 160
_FIRST_WORDS = 8
# Where a word is a cue to several kinds the first of these wins: a "Cup" is an event before it is an organisation.
_BY_CUE = {
    word: kind for kind in (NameType.PRODUCT, NameType.GPE, NameType.ORG, NameType.EVENT) for word in NAME_CUES[kind]
}
_IS_A = {word: kind for kind, words in reversed(IS_A_CUES.items()) for word in words}


def kind_of(name: str) -> NameType:
    """The kind of a name by its own words; CONCEPT when nothing tells."""
    return kind_of_words(tuple(_WORD.findall(fold_letters(name))), name[:1].isupper())


def kind_of_words(words: Sequence[str], is_capital: bool) -> NameType:
    """The kind of a name given as folded words, and whether it is written with a capital."""
    if not words:
        return NameType.CONCEPT
    cue = _BY_CUE.get(words[-1]) or ("of" in words and _BY_CUE.get(words[0]))
    if cue:
        return cue
    if is_capital and len(words) > 1 and (words[0] in GIVEN_NAMES or words[0] in HONORIFICS):
        return NameType.PERSON
    return NameType.CONCEPT


def kind_of_qualifier(qualifier: str) -> NameType | None:
    """The kind a qualifier such as "1987 film" or "footballer, born 1912" states, if it does."""
    words = _WORD.findall(fold_letters(qualifier))
    if "born" in words:
        return NameType.PERSON
    return _first_cue(words[::-1])


def kind_of_page(title: str, opening: str) -> NameType | None:
    """The kind the first sentence of a page gives its subject ("X is a film ..."), if it says so."""
    head = opening[: _LOOK_AHEAD * 2]
    is_a = _SAYS_WHAT.search(head)
    if is_a is None or is_a.start() > _LOOK_AHEAD or not _opens_with(title, head):
        return None
    if _BORN.search(head[: is_a.start()]):
        return NameType.PERSON
    rest = head[is_a.end() : is_a.end() + _LOOK_AHEAD]
    end = _CLAUSE_END.search(rest)
    words = _WORD.findall(fold_letters(rest[: end.start()] if end else rest))
    return _first_cue(_until_preposition(words)[::-1])


def entity_type_of(name: str, kind: NameType) -> EntityType:
    """The traversal's type for a name: a person, a method by its head word, else a concept."""
    if kind is NameType.PERSON:
        return EntityType.PERSON
    if kind is NameType.CONCEPT and " " in name and name.rsplit(None, 1)[-1].lower() in METHOD_CUES:
        return EntityType.METHOD
    return EntityType.CONCEPT


def _first_cue(words: list[str]) -> NameType | None:
    found = (_IS_A.get(word) or _IS_A.get(word.removesuffix("s")) for word in words)
    return next(filter(None, found), None)


def _until_preposition(words: list[str]) -> list[str]:
    for index, word in enumerate(words):
        if index and word in ("of", "in", "for", "at", "on", "to", "with"):
            return words[:index]
    return words


def _opens_with(title: str, head: str) -> bool:
    """Whether the page begins with its subject, so that "is a" speaks of it and not of something else."""
    opening = _WORD.findall(fold_letters(head[:_LOOK_AHEAD]))[:_FIRST_WORDS]
    return not set(opening).isdisjoint(_WORD.findall(fold_letters(title)))


# Noun phrases in lower case: "machine learning", "support vector machine", "Markov chain". A light chunker: a term
# is two to four words that hang together, none of them a function word, a common verb or an adverb, the last one
# able to be a noun by its ending. Which terms are known is decided by `known_names.py`, from in how many texts
# and how much more than by chance the words meet.


MAX_TERM_WORDS = 4
_SHORTEST = 3
_NOT_LAST = ("ed", "ly", "ous", "ful", "ive", "ible", "able", "ical", "less", "ize", "ise")
_LAST_ANYWAY = frozenset(
    ("adjective", "archive", "bed", "exercise", "feed", "need", "noise", "premise", "seed", "speed")
)


def term_spans(tokens: Tokens, starts: Flags) -> tuple[Longs, Longs]:
    """Every run of two to four words that could be a term, as rows [first, last) of the tokens."""
    inner, final = _inner_words(tokens, starts), _final_words(tokens)
    follows = ((tokens.gap & ~np.uint16(SPACE | LINK)) == 0) & ~starts
    firsts: list[Longs] = []
    lasts: list[Longs] = []
    run = np.flatnonzero(inner)
    for size in range(2, MAX_TERM_WORDS + 1):
        run = run[run + size <= len(tokens)]
        tail = run + size - 1
        alive = inner[tail] & follows[tail]
        run, tail = run[alive], tail[alive]
        ended = final[tail]
        firsts.append(run[ended])
        lasts.append(tail[ended] + 1)
    return np.concatenate(firsts), np.concatenate(lasts)


def _inner_words(tokens: Tokens, starts: Flags) -> Flags:
    """Words that may stand in a term; a capital is allowed inside a sentence, where it is no accident of position."""
    shape = tokens.shape
    plain = tokens.where(_may_be_inside)
    capital = (shape & CAPITAL) != 0
    allowed: Flags = plain & ((shape & (DIGIT_FIRST | CODE_LIKE)) == 0) & ~(capital & starts)
    return allowed


def _final_words(tokens: Tokens) -> Flags:
    """Words that may end a term: written in lower case, with the ending of a noun."""
    final: Flags = tokens.where(_may_be_last) & ((tokens.shape & (CAPITAL | ALL_CAPS)) == 0)
    return final


def _may_be_inside(word: str) -> bool:
    return (
        len(word) >= _SHORTEST
        and word not in FUNCTION_WORDS
        and word not in TERM_BREAKERS
        and not word.endswith("ly")
        and not word.isdigit()
    )


def _may_be_last(word: str) -> bool:
    return len(word) > _SHORTEST and (not word.endswith(_NOT_LAST) or word in _LAST_ANYWAY)


# Names a single text proposes: capitalised spans, acronyms, quoted titles, code identifiers; and where they stand.
# Nothing here looks beyond the text. Whether a proposal becomes a known name is decided over the whole corpus in
# `known_names.py`.


_MAX_CONNECTORS = 3
_MAX_NAME_WORDS = 8


class Mark(IntFlag):
    """What made a span a candidate."""

    NAME = 1
    CODE = 2
    QUOTED = 4
    TERM = 8
    INITIAL = 16  # at the start of a sentence, where a capital proves nothing
    DEFINED = 32  # explained by the text as an acronym or its long form
    JOINED = 64  # across a connector that may as well join two names


@dataclass(frozen=True)
class Spans:
    """Candidate spans of words over many texts: rows [first, last) of the tokens, and why."""

    first: Longs
    last: Longs
    mark: Longs


def candidate_spans(tokens: Tokens, starts: Flags) -> Spans:
    """Every candidate span of every text, names before terms; `starts` are the words that open sentences."""
    joined = join_to_last(tokens, starts)
    terms = term_spans(tokens, starts)
    parts = [
        *_name_spans(tokens, starts, joined),
        _quote_spans(tokens),
        _find_dotted_spans(tokens),
        (terms[0], terms[1], int(Mark.TERM)),
    ]
    first = np.concatenate([part[0] for part in parts]).astype(np.int64)
    last = np.concatenate([part[1] for part in parts]).astype(np.int64)
    marks = np.concatenate([np.full(len(part[0]), part[2], dtype=np.int64) for part in parts])
    one = last - first == 1
    code = (tokens.shape[first] & CODE_LIKE) != 0
    named = (marks & int(Mark.NAME)) != 0
    marks |= np.where(one & code & named, int(Mark.CODE), 0)
    marks |= np.where(starts[first] & named, int(Mark.INITIAL), 0)
    return Spans(first, last, marks)


def _name_spans(tokens: Tokens, starts: Flags, joined: Flags) -> list[tuple[Longs, Longs, int]]:
    """Maximal runs of capitalised words across connectors, and their parts where a weak one may join two names."""
    shape = tokens.shape
    function = tokens.among(FUNCTION_WORDS)
    capital = ((shape & (CAPITAL | CODE_LIKE)) != 0) & ~(function & ((shape & ALL_CAPS) == 0))
    strong = tokens.among(CONNECTORS)
    bridge = joined & (strong | tokens.among(WEAK_CONNECTORS) | (function & ((shape & CAPITAL) != 0)))
    number = ((shape & DIGIT_FIRST) != 0) & joined
    number[1:] &= capital[:-1]
    heads = np.flatnonzero(capital | number)
    linked, weak = _links(heads, bridge, strong, joined)
    first, last, single = _segments(heads, linked, linked & ~weak)
    # A run that opens a sentence is also proposed without its first word: "Director John Huston".
    opening = starts[first] & single
    part_first, part_last, whole = _segments(heads, linked & ~weak, linked)
    spans = [
        (first[single], last[single], int(Mark.NAME)),
        (first[~single], last[~single], int(Mark.NAME | Mark.JOINED)),
        (first[opening] + 1, last[opening], int(Mark.NAME)),
        (part_first[~whole], part_last[~whole], int(Mark.NAME)),
    ]
    dull = tokens.among(CALENDAR) | ((shape & (DIGIT_FIRST | SINGLE)) != 0)
    return [(*_worth(first, last, dull, capital), mark) for first, last, mark in spans]


def _links(heads: Longs, bridge: Flags, strong: Flags, joined: Flags) -> tuple[Flags, Flags]:
    """Whether each head is one name with the head before it, and whether only a weak connector says so."""
    blocked = running(~bridge)
    feeble = running(~strong)
    before, here = heads[:-1], heads[1:]
    linked = np.zeros(len(heads), dtype=np.bool_)
    weak = np.zeros(len(heads), dtype=np.bool_)
    between = blocked[here] - blocked[before + 1]
    linked[1:] = (between == 0) & joined[here] & (here - before - 1 <= _MAX_CONNECTORS)
    weak[1:] = (feeble[here] - feeble[before + 1]) > 0
    return linked, weak


def _segments(heads: Longs, linked: Flags, other: Flags) -> tuple[Longs, Longs, Flags]:
    """The first and past-the-last word of each run of linked heads, and whether the other links make the same run."""
    edge = np.ones(min(1, len(heads)), dtype=np.bool_)
    opens = np.flatnonzero(~linked)
    closes = np.flatnonzero(np.concatenate([~linked[1:], edge]))
    steps = running(other)
    inner = steps[closes + 1] - steps[opens + 1] == closes - opens
    ends = np.concatenate([~other[1:], edge])
    return heads[opens], heads[closes] + 1, ~other[opens] & ends[closes] & inner


def _worth(first: Longs, last: Longs, dull: Flags, capital: Flags) -> tuple[Longs, Longs]:
    """The spans that begin with a capital, are not too long, and are not all dates, numbers and single letters."""
    size = last - first
    keep = (size > 0) & (size <= _MAX_NAME_WORDS)
    first, last = first[keep], last[keep]
    lively = running(~dull)
    good = (lively[last] > lively[first]) & capital[first]
    return first[good], last[good]


def _quote_spans(tokens: Tokens) -> tuple[Longs, Longs, int]:
    """What stands between two quotation marks, when it begins with a capital and is short enough for a title."""
    marks = np.flatnonzero((tokens.gap & QUOTE) != 0)
    first, last = marks[:-1], marks[1:]
    stops = running((tokens.gap & STOP) != 0)
    short = (last - first <= _MAX_NAME_WORDS) & (stops[last] - stops[np.minimum(first + 1, len(tokens))] == 0)
    capital = (tokens.shape[first] & CAPITAL) != 0
    alone = (last - first == 1) & tokens.among(FUNCTION_WORDS)[first]
    good = short & capital & ~alone & (tokens.text[first] == tokens.text[last])
    return first[good], last[good], int(Mark.QUOTED | Mark.NAME)


def _find_dotted_spans(tokens: Tokens) -> tuple[Longs, Longs, int]:
    """Names of code such as `sklearn.svm.SVC`: words joined by full stops without a space."""
    tied = np.flatnonzero(tokens.gap == DOT)
    plain = (tokens.shape & (DIGIT_FIRST | SINGLE)) == 0
    tied = tied[plain[tied] & plain[tied - 1]]
    apart = np.diff(tied) > 1
    edge = np.ones(min(1, len(tied)), dtype=np.bool_)
    first, last = tied[np.concatenate([edge, apart])] - 1, tied[np.concatenate([apart, edge])] + 1
    good = last - first <= _MAX_NAME_WORDS
    return first[good], last[good], int(Mark.CODE | Mark.NAME)


# Acronyms that a text itself explains: "support vector machine (SVM)". The letters must be the initials of the
# words before it, small words skipped: the algorithm of Schwartz and Hearst (2003), restricted to initials. A
# definition is the best evidence there is that the long form is a name.


_SKIPPED = frozenset(["of", "the", "and", "for", "in", "on", "to", "a", "an", "with", "by", "de", "la"])
_LONGEST = 8


@dataclass(frozen=True)
class Definitions:
    """Where texts explain acronyms: the row of the acronym, and the rows [first, last) of what it stands for."""

    short: Longs
    first: Longs
    last: Longs


def find_definitions(tokens: Tokens, starts: Flags) -> Definitions:
    """Every acronym in parentheses whose letters are the initials of the words before them."""
    rows = _find_bracketed(tokens)
    sentence = np.maximum.accumulate(np.where(starts, np.arange(len(tokens)), 0)) if len(tokens) else rows
    short: list[int] = []
    first: list[int] = []
    for row, begin in zip(rows.tolist(), sentence[np.maximum(rows - 1, 0)].tolist(), strict=True):
        letters = tokens.folded[tokens.word[row]]
        plural = letters.endswith("s") and not tokens.shape[row] & ALL_CAPS
        found = _long_form(tokens, row, begin, letters[:-1] if plural else letters)
        if found is not None:
            short.append(row)
            first.append(found)
    return Definitions(
        np.array(short, dtype=np.int64), np.array(first, dtype=np.int64), np.array(short, dtype=np.int64)
    )


def _find_bracketed(tokens: Tokens) -> Longs:
    """Rows of single words in parentheses that are written as acronyms."""
    if len(tokens) < 2:
        return np.zeros(0, dtype=np.int64)
    opened = (tokens.gap & OPEN) != 0
    closed = np.zeros(len(tokens), dtype=np.bool_)
    closed[:-1] = (tokens.gap[1:] & CLOSE) != 0
    closed[:-1] |= tokens.text[1:] != tokens.text[:-1]  # whatever stands after the last word of a text closes it
    closed[-1] = True
    mixed = ((tokens.shape & CODE_LIKE) != 0) & ((tokens.shape & CAPITAL) != 0)
    acronym = ((tokens.shape & ALL_CAPS) != 0) | mixed
    size = tokens.end - tokens.start
    rows: Longs = np.flatnonzero(opened & closed & acronym & (size >= 2) & (size <= _LONGEST))
    return rows[rows > 0]


def _long_form(tokens: Tokens, row: int, begin: int, letters: str) -> int | None:
    """The row where the long form begins, letters read backwards against the words; None when they do not fit."""
    left = len(letters) - 1
    at = row - 1
    words = 0
    while at >= begin and words <= 2 * len(letters):
        word = tokens.folded[tokens.word[at]]
        if word[0] == letters[left]:
            left -= 1
            if left < 0:
                return at if row - at > 1 else None
        elif word not in _SKIPPED:
            return None
        at -= 1
        words += 1
    return None


# What texts say by themselves, taken together: words, where sentences begin, the names and acronyms they propose.


@dataclass(frozen=True)
class TextReadings:
    """Some texts in order: their words, and the names that they propose with those of explained acronyms."""

    n_texts: int
    tokens: Tokens
    starts: Flags  # words that open a sentence
    pieces: Flags  # words that, taken alone, are only part of a name
    spans: Spans
    identity: Hashes  # of each span
    definitions: Definitions


def read_texts(texts: Sequence[str]) -> TextReadings:
    """What each text says by itself."""
    tokens = tokenize(texts)
    starts = sentence_starts(tokens)
    spans, explained = candidate_spans(tokens, starts), find_definitions(tokens, starts)
    first = np.concatenate([spans.first, explained.first, explained.short])
    last = np.concatenate([spans.last, explained.last, explained.short + 1])
    mark = np.concatenate([spans.mark, np.full(2 * len(explained.short), int(Mark.NAME | Mark.DEFINED))])
    identity = span_hashes(tokens, first, last)
    return TextReadings(
        len(texts), tokens, starts, fragments(tokens, starts), Spans(first, last, mark), identity, explained
    )
