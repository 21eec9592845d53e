"""Names a single text proposes: capitalised spans, acronyms, quoted titles, code identifiers; and where they stand.

Nothing here looks beyond the text, so the answer can be kept by the text's hash. Whether a proposal becomes a known
name is decided over the whole corpus in `gazetteer`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntFlag

import numpy as np

from hades.ingest.entities.kinds import kind_of
from hades.ingest.entities.terms import MAX_TERM_WORDS, term_spans
from hades.text.arrays import Flags, Longs, running
from hades.text.boundaries import join_to_last, sentence_starts
from hades.text.letters import DOT, QUOTE, STOP
from hades.text.tokens import ALL_CAPS, CAPITAL, CODE_LIKE, DIGIT_FIRST, SINGLE, Tokens, tokenize
from hades.text.word_lists import (
    CALENDAR,
    CONNECTORS,
    FUNCTION_WORDS,
    WEAK_CONNECTORS,
)
from schemas.ids import slug
from schemas.nodes import NameType

N_RULES = 6 + MAX_TERM_WORDS - 1  # that find candidate spans; terms of each length count as one
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
    """Candidate spans of words over many texts: rows [first, last) of the tokens, why, and which rule found each.

    Spans stand in the order of the rules and, within one, in order of place.
    """

    first: Longs
    last: Longs
    mark: Longs
    rule: Longs  # below N_RULES

    def __len__(self) -> int:
        return len(self.first)


@dataclass(frozen=True)
class Candidate:
    """A proposed name with its [start, end) in the text; `key` is its form as an id."""

    name: str
    start: int
    end: int
    kind: NameType
    mark: Mark

    @property
    def key(self) -> str:
        """Lower case with underscores (requirement E6)."""
        return slug(self.name)


def candidates(text: str) -> list[Candidate]:
    """The names and terms one text proposes, in order; longer first where two start together."""
    tokens = tokenize([text])
    spans = candidate_spans(tokens, sentence_starts(tokens))
    begin, end = tokens.start[spans.first], tokens.end[spans.last - 1]
    rows = zip(begin.tolist(), end.tolist(), spans.mark.tolist(), strict=True)
    return [
        Candidate(text[start:stop], start, stop, kind_of(text[start:stop]), Mark(mark))
        for start, stop, mark in sorted(set(rows), key=lambda row: (row[0], -row[1], row[2]))
    ]


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
    rules = np.repeat(np.arange(len(parts)), [len(part[0]) for part in parts])
    rules += np.where(marks == int(Mark.TERM), last - first - 2, 0)
    one = last - first == 1
    code = (tokens.shape[first] & CODE_LIKE) != 0
    named = (marks & int(Mark.NAME)) != 0
    marks |= np.where(one & code & named, int(Mark.CODE), 0)
    marks |= np.where(starts[first] & named, int(Mark.INITIAL), 0)
    return Spans(first, last, marks, rules)


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
