"""Names that texts propose."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from hades.text.sentences import address_spans, code_spans, fragments, join_to_last, sentence_starts
from hades.text.word_lists import (
    CALENDAR,
    CONNECTORS,
    FUNCTION_WORDS,
    TERM_BREAKERS,
    WEAK_CONNECTORS,
    word_set,
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
    Hashes,
    Tokens,
    match_spans,
    running,
    span_hashes,
    tokenize,
)
from models.arrays import Flags, Longs, rows_of
from schemas.ids import Span

# Noun phrases in lower case: "machine learning", "support vector machine", "Markov chain". A light
# chunker: a term is two to four words that hang together, none of them a function word, a common
# verb or an adverb, the last one able to be a noun by its ending. Which terms are known is decided
# by `known_names.py`, from in how many texts and how much more than by chance the words meet.
MAX_TERM_WORDS = 4
_SHORTEST = 3
_NOT_LAST = ("ed", "ly", "ous", "ful", "ive", "ible", "able", "ical", "less", "ize", "ise")
_LAST_ANYWAY = word_set("adjective archive bed exercise feed need noise premise seed speed")


def term_spans(
    tokens: Tokens,
    starts: Flags,
    in_heading: Flags,
) -> tuple[Longs, Longs]:
    """Every run of two to four words that could be a term, as rows [first, last) of the tokens."""
    capital = tokens.written(CAPITAL)
    inner = tokens.where(_may_be_inside) & ~tokens.written(DIGIT_FIRST | CODE_LIKE)
    # Inside a sentence a capital is no accident of position; a heading begins like its sentence.
    inner &= ~(capital & starts & ~in_heading)
    final = tokens.where(_may_be_last) & ~tokens.written(CAPITAL | ALL_CAPS)
    follows = ~tokens.parted(~np.uint16(SPACE | LINK)) & ~starts
    firsts: list[Longs] = []
    lasts: list[Longs] = []
    run = np.flatnonzero(inner)

    for size in range(2, MAX_TERM_WORDS + 1):
        run = run[run + size <= len(tokens)]
        tail = run + size - 1
        alive = inner[tail] & follows[tail]
        run = run[alive]
        tail = tail[alive]
        ended = final[tail]
        firsts.append(run[ended])
        lasts.append(tail[ended] + 1)

    return np.concatenate(firsts), np.concatenate(lasts)


# What stands before and behind the name of a tool in lower case, and before other nouns.
_TOOL_CUES = word_set("use uses using install installs installing import with via")
_AFTER_TOOL = word_set("to and or for is as")
_DETERMINERS = word_set("a an the this that its your each every any no our their")
_FEWEST_USES = 2


def tool_spans(tokens: Tokens, starts: Flags) -> tuple[Longs, Longs]:
    """Single words in lower case that texts use as the name of a tool, as rows [first, last): "use
    pandas to", "with pandas and", several times, and never with an article.
    """
    size = len(tokens.folded)
    none = np.zeros(min(1, len(tokens)), np.bool_)
    is_close = ~tokens.parted(~np.uint16(SPACE)) & ~starts
    after_cue = np.append(none, tokens.among(_TOOL_CUES)[:-1]) & is_close
    after_article = np.append(none, tokens.among(_DETERMINERS)[:-1]) & is_close
    ends = np.append(~is_close[1:] | tokens.among(_AFTER_TOOL)[1:], ~none)
    uses = np.bincount(tokens.word[after_cue & ends], minlength=size)
    determined = np.bincount(tokens.word[after_article], minlength=size)
    is_tool = (uses >= _FEWEST_USES) & (determined == 0)
    odd = CAPITAL | ALL_CAPS | DIGIT_FIRST | CODE_LIKE
    is_plain = tokens.where(lambda word: _may_be_inside(word) and _may_be_tool(word))
    rows = np.flatnonzero(is_tool[tokens.word] & is_plain & ~tokens.written(odd))
    return rows, rows + 1


def _may_be_tool(word: str) -> bool:
    """Whether a single word has the ending of a name."""
    return _may_be_last(word) and not word.endswith("ing")


def _may_be_inside(word: str) -> bool:
    """Whether a word may stand in a term."""
    return (
        len(word) >= _SHORTEST
        and word not in FUNCTION_WORDS
        and word not in TERM_BREAKERS
        and not word.endswith("ly")
        and not word.isdigit()
    )


def _may_be_last(word: str) -> bool:
    """Whether a word has the ending of a noun."""
    return len(word) > _SHORTEST and (not word.endswith(_NOT_LAST) or word in _LAST_ANYWAY)


# Names a single text proposes: capitalised spans, acronyms, quoted titles, code identifiers; and
# where they stand. Nothing here looks beyond the text. Whether a proposal becomes a known name is
# decided over the whole corpus in
# `known_names.py`.
_MAX_CONNECTORS = 3
_MAX_NAME_WORDS = 8


class Mark:
    """What made a span a candidate, as bits of a plain number."""

    NAME = 1
    CODE = 2
    QUOTED = 4
    TERM = 8
    INITIAL = 16  # at the start of a sentence, where a capital proves nothing
    DEFINED = 32  # explained by the text as an acronym or its long form
    JOINED = 64  # across a connector that may as well join two names
    HEADING = 128  # in the heading of a section


@dataclass(frozen=True)
class Spans:
    """Candidate spans of words over many texts: rows [first, last) of the tokens, and why."""

    first: Longs
    last: Longs
    mark: Longs

    def marked(self, marks: int) -> Flags:
        """Which spans have one of these marks."""
        flags: Flags = (self.mark & marks) != 0
        return flags

    def only(self, rows: Longs) -> Spans:
        """Some of the spans, in this order."""
        return Spans(
            self.first[rows],
            self.last[rows],
            self.mark[rows],
        )


def candidate_spans(
    tokens: Tokens,
    starts: Flags,
    in_heading: Flags,
) -> Spans:
    """Every candidate span of every text, names before terms; `starts` are the words that open
    sentences, `in_heading` those of headings.
    """
    joined = join_to_last(tokens, starts)
    firsts: list[Longs] = []
    lasts: list[Longs] = []

    marks: list[Longs] = []
    for first, last, mark in (
        *_name_spans(tokens, starts, joined),
        (*_quote_spans(tokens), Mark.QUOTED | Mark.NAME),
        (*_find_dotted_spans(tokens), Mark.CODE | Mark.NAME),
        (*term_spans(tokens, starts, in_heading), Mark.TERM),
        (*tool_spans(tokens, starts), Mark.TERM),
    ):
        firsts.append(first)
        lasts.append(last)
        marks.append(np.full(len(first), mark))

    spans = Spans(
        np.concatenate(firsts),
        np.concatenate(lasts),
        np.concatenate(marks),
    )
    is_name = spans.marked(Mark.NAME)
    is_single = spans.last - spans.first == 1
    is_code = is_single & is_name & tokens.written(CODE_LIKE)[spans.first]
    spans.mark[is_code] |= Mark.CODE
    spans.mark[is_name & starts[spans.first]] |= Mark.INITIAL
    spans.mark[in_heading[spans.first]] |= Mark.HEADING
    return spans


def _name_spans(
    tokens: Tokens,
    starts: Flags,
    joined: Flags,
) -> Iterator[tuple[Longs, Longs, int]]:
    """Maximal runs of capitalised words across connectors, and their parts where a weak one may
    join two names.
    """
    function = tokens.among(FUNCTION_WORDS)
    is_capital = tokens.written(CAPITAL)
    capital = tokens.written(CAPITAL | CODE_LIKE) & (~function | tokens.written(ALL_CAPS))
    strong = tokens.among(CONNECTORS)
    bridge = joined & (tokens.among(CONNECTORS | WEAK_CONNECTORS) | (function & is_capital))
    number = tokens.written(DIGIT_FIRST) & joined
    number[1:] &= capital[:-1]
    heads = np.flatnonzero(capital | number)
    linked, weak = _link_heads(heads, bridge, strong, joined)
    first, last, single = _segments(heads, linked, linked & ~weak)
    # A run that opens a sentence is also proposed without its first word: "Director John Huston".
    opening = starts[first] & single
    part_first, part_last, whole = _segments(heads, linked & ~weak, linked)
    is_dull = tokens.among(CALENDAR) | tokens.written(DIGIT_FIRST | SINGLE)

    for run_first, run_last, mark in (
        (first[single], last[single], Mark.NAME),
        (first[~single], last[~single], Mark.NAME | Mark.JOINED),
        (first[opening] + 1, last[opening], Mark.NAME),
        (part_first[~whole], part_last[~whole], Mark.NAME),
    ):
        yield *_select_spans(run_first, run_last, is_dull, capital), mark


def _link_heads(
    heads: Longs,
    bridge: Flags,
    strong: Flags,
    joined: Flags,
) -> tuple[Flags, Flags]:
    """Whether each head is one name with the head before it, and whether only a weak connector says
    so.
    """
    blocked = running(~bridge)
    feeble = running(~strong)
    previous = heads[:-1] + 1
    current = heads[1:]
    linked, weak = np.zeros((2, len(heads)), np.bool_)
    is_bridged = blocked[current] == blocked[previous]
    linked[1:] = is_bridged & joined[current] & (current - previous <= _MAX_CONNECTORS)
    weak[1:] = feeble[current] > feeble[previous]
    return linked, weak


def _segments(
    heads: Longs,
    linked: Flags,
    other_links: Flags,
) -> tuple[Longs, Longs, Flags]:
    """The first and past-the-last word of each run of linked heads, and whether the other links
    make the same run.
    """
    opens = np.flatnonzero(~linked)
    closes = np.flatnonzero(_before(linked))
    steps = running(other_links)
    inner = steps[closes + 1] - steps[opens + 1] == closes - opens
    is_same = ~other_links[opens] & _before(other_links)[closes] & inner
    return heads[opens], heads[closes] + 1, is_same


def _before(linked: Flags) -> Flags:
    """Which places stand before one that is not linked, or at the end."""
    return np.append(~linked, True)[1:]


def _select_spans(
    first: Longs,
    last: Longs,
    is_dull: Flags,
    capital: Flags,
) -> tuple[Longs, Longs]:
    """The spans that begin with a capital, are not too long, and are not all dates, numbers and
    single letters.
    """
    size = last - first
    keep = (size > 0) & (size <= _MAX_NAME_WORDS)
    first = first[keep]
    last = last[keep]
    other_words = running(~is_dull)
    is_name = (other_words[last] > other_words[first]) & capital[first]
    return first[is_name], last[is_name]


def _quote_spans(tokens: Tokens) -> tuple[Longs, Longs]:
    """What stands between two quotation marks, when it begins with a capital and is short enough
    for a title.
    """
    marks = np.flatnonzero(tokens.parted(QUOTE))
    first = marks[:-1]
    last = marks[1:]
    stops = running(tokens.parted(STOP))
    has_stop = stops[last] > stops[np.minimum(first + 1, len(tokens))]
    short = (last - first <= _MAX_NAME_WORDS) & ~has_stop
    capital = tokens.written(CAPITAL)[first]
    alone = (last - first == 1) & tokens.among(FUNCTION_WORDS)[first]
    is_title = short & capital & ~alone & (tokens.text[first] == tokens.text[last])
    return first[is_title], last[is_title]


def _find_dotted_spans(tokens: Tokens) -> tuple[Longs, Longs]:
    """Names of code such as `sklearn.svm.SVC`: words joined by full stops without a space."""
    tied = np.flatnonzero(tokens.gap == DOT)
    plain = ~tokens.written(DIGIT_FIRST | SINGLE)
    tied = tied[plain[tied] & plain[tied - 1]]
    apart = np.diff(tied) > 1
    edge = np.ones(min(1, len(tied)), np.bool_)
    first = tied[np.concatenate([edge, apart])] - 1
    last = tied[np.concatenate([apart, edge])] + 1
    is_short = last - first <= _MAX_NAME_WORDS
    return first[is_short], last[is_short]


# Acronyms that a text itself explains: "support vector machine (SVM)". The letters must be the
# initials of the words before it, small words skipped: the algorithm of Schwartz and Hearst (2003),
# restricted to initials. A definition is the best evidence there is that the long form is a name.
_SKIPPED = word_set("of the and for in on to a an with by de la")
_LONGEST = 8


def find_definitions(tokens: Tokens, starts: Flags) -> tuple[Longs, Longs]:
    """The rows of acronyms in parentheses, and where the words before them begin whose initials
    they are.
    """
    rows = _find_bracketed(tokens)
    sentence = np.maximum.accumulate(np.where(starts, np.arange(len(tokens)), 0))

    explained: list[tuple[int, int]] = []
    for row, begin in rows_of(rows, sentence[rows - 1]):
        letters = tokens.folded[tokens.word[row]]
        if letters.endswith("s") and not tokens.shape[row] & ALL_CAPS:  # a plural
            letters = letters[:-1]

        long_start = _long_form(tokens, row, begin, letters)
        if long_start is not None:
            explained.append((row, long_start))

    short, first = np.array(explained, np.int64).reshape(-1, 2).T
    return short, first


def _find_bracketed(tokens: Tokens) -> Longs:
    """Rows of single words in parentheses that are written as acronyms."""
    if len(tokens) < 2:
        return np.zeros(0, np.int64)

    opened = tokens.parted(OPEN)
    # Whatever stands after the last word of a text closes it.
    is_last = np.append(tokens.text[1:] != tokens.text[:-1], True)
    closed = is_last | np.append(tokens.parted(CLOSE)[1:], True)
    mixed = tokens.written(CODE_LIKE) & tokens.written(CAPITAL)
    acronym = tokens.written(ALL_CAPS) | mixed
    size = tokens.end - tokens.start
    opened[0] = False
    return np.flatnonzero(opened & closed & acronym & (size >= 2) & (size <= _LONGEST))


def _long_form(
    tokens: Tokens,
    row: int,
    begin: int,
    letters: str,
) -> int | None:
    """The row where the long form begins, letters read backwards against the words; None when they
    do not fit.
    """
    position = len(letters) - 1
    for word_row in range(row - 1, max(begin, row - 1 - 2 * len(letters)) - 1, -1):
        word = tokens.folded[tokens.word[word_row]]
        if word[0] == letters[position]:
            position -= 1
            if position < 0:
                return word_row if row - word_row > 1 else None
        elif word not in _SKIPPED:
            return None

    return None


@dataclass(frozen=True)
class TextReadings:
    """Some texts in order: their words, and the names that their prose proposes with those of
    explained acronyms.
    """

    n_texts: int
    tokens: Tokens  # without those of addresses and paths
    # The other words stand in code: known names are found there, but none is proposed.
    is_prose: Flags
    starts: Flags  # words that open a sentence
    pieces: Flags  # words that, taken alone, are only part of a name
    spans: Spans
    identity: Hashes  # of each span
    # rows of explained acronyms; `spans` ends with what they stand for, then with the acronyms
    acronyms: Longs


def read_texts(texts: Sequence[str]) -> TextReadings:
    """What each text says by itself."""
    tokens = tokenize(texts)
    tokens = tokens.only(~_find_words(tokens, texts, address_spans))
    is_prose = ~_find_words(tokens, texts, code_spans)
    starts = sentence_starts(tokens)
    prose = tokens.only(is_prose)
    rows = np.flatnonzero(is_prose)
    spans, short = _prose_spans(prose, texts, rows)
    return TextReadings(
        n_texts=len(texts),
        tokens=tokens,
        is_prose=is_prose,
        starts=starts,
        pieces=fragments(tokens, starts),
        spans=spans,
        identity=span_hashes(tokens, spans.first, spans.last),
        acronyms=short,
    )


_HEADING = re.compile(r"^#{1,6} +\S[^\n]*", re.MULTILINE)


def _prose_spans(
    prose: Tokens,
    texts: Sequence[str],
    rows: Longs,
) -> tuple[Spans, Longs]:
    """The candidates of words of prose and the acronyms that these explain, as `rows` of all words;
    what code interrupts is left out.
    """
    starts = sentence_starts(prose)
    in_heading = _find_words(
        prose,
        texts,
        lambda text: match_spans(_HEADING, text),
    )
    spans = candidate_spans(prose, starts, in_heading)
    first = rows[spans.first]
    last = rows[spans.last - 1] + 1
    whole = np.flatnonzero(last - first == spans.last - spans.first)
    acronyms, explaining = find_definitions(prose, starts)
    short = rows[acronyms]
    long = rows[explaining]
    is_whole = short - long == acronyms - explaining
    short = short[is_whole]
    long = long[is_whole]
    defined = np.full(2 * len(short), Mark.NAME | Mark.DEFINED)
    all_spans = Spans(
        np.concatenate([first[whole], long, short]),
        np.concatenate([last[whole], short, short + 1]),
        np.concatenate([spans.mark[whole], defined]),
    )
    return all_spans, short


def _find_words(
    tokens: Tokens,
    texts: Sequence[str],
    spans_of: Callable[[str], list[Span]],
) -> Flags:
    """Which words stand in such spans of their texts."""
    is_inside = np.zeros(len(tokens), np.bool_)
    begins = np.searchsorted(tokens.text, np.arange(len(texts) + 1))

    for number, text in enumerate(texts):
        rows = slice(begins[number], begins[number + 1])
        for begin, end in spans_of(text):
            first, last = np.searchsorted(tokens.start[rows], [begin, end])
            is_inside[rows][first:last] = True

    return is_inside
