"""Where sentences begin and end, and what of a page is no prose."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import takewhile

import numpy as np

from hades.text.blocks import CODE_SIGN
from hades.text.word_lists import (
    ABBREVIATIONS,
    CONNECTORS,
    FUNCTION_WORDS,
    HONORIFICS,
    word_set,
)
from hades.text.words import (
    CAPITAL,
    DOT,
    LINK,
    QUOTE,
    SINGLE,
    SPACE,
    STOP,
    Tokens,
    match_spans,
)
from models.arrays import Flags
from schemas.ids import Span

# A closing mark, quotes or brackets behind it, then a blank and what may open a sentence.
_END = re.compile(
    r"[.!?…][.!?…]*[\"'”’)\]]*(?=\s+[\"'“‘(\[]*[^\W_a-z]|\s*$|\s*\n)|\n\s*\n|[。！？]+"
)
_ABBREVIATION = re.compile(
    r"(?:mrs?|ms|dr|prof|st|sr|jr|vs|etc|inc|ltd|corp|gen|col|sgt|capt|rev|hon|figs?|eqs?|nos"
    r"|vols?|pp|eds?|al|cf|"
    r"approx|dept|jan|feb|apr|jun|jul|aug|sept?|oct|nov|dec|(?:[a-z]\.)+[a-z])",
    re.IGNORECASE,
)
_LAST_WORD = re.compile(r"[\w.]+$")
_LONGEST_ABBREVIATION = 40  # characters that are looked at


def sentences(text: str) -> list[Span]:
    """Spans [start, end) of the sentences of a text, without the blanks around them; together they
    hold every word.
    """
    return list(each_sentence(text))


def each_sentence(text: str) -> Iterator[Span]:
    """The spans of `sentences` one at a time, for callers that need the first ones only."""
    start = 0
    written = len(text.rstrip())

    for match in _END.finditer(text):
        if (
            text[match.start()] == "."
            and match.end() < written
            and _is_abbreviation(text, start, match.start())
        ):
            continue

        yield from _trim(text, start, match.end())
        start = match.end()

    yield from _trim(text, start, written)


def _trim(text: str, start: int, end: int) -> Iterator[Span]:
    """The span without the blanks around it; nothing where it holds only blanks."""
    span_text = text[start:end]
    if plain := span_text.strip():
        begin = start + len(span_text) - len(span_text.lstrip())
        yield begin, begin + len(plain)


def first_sentence(text: str) -> str:
    """The first sentence of a text; all of it when it has only one."""
    return next((text[begin:end] for begin, end in each_sentence(text)), "")


def _is_abbreviation(text: str, start: int, stop: int) -> bool:
    """Whether the full stop at `stop` belongs to `Dr.`, `e.g.` or the initial `J.`; the sentence
    begins at `start`.
    """
    match = _LAST_WORD.search(text[max(start, stop - _LONGEST_ABBREVIATION) : stop])
    spelled = match.group() if match else ""
    return _ABBREVIATION.fullmatch(spelled) is not None or (
        len(spelled) == 1 and spelled.isupper() and spelled != "I"
    )


def sentence_starts(tokens: Tokens) -> Flags:
    """Which words open a sentence, a line or a quotation after a stop."""
    dot = tokens.parted(DOT) & tokens.parted(SPACE | QUOTE)
    is_short = tokens.among(ABBREVIATIONS) | (
        (tokens.shape & (SINGLE | CAPITAL)) == (SINGLE | CAPITAL)
    )
    starts: Flags = tokens.parted(STOP) | (dot & ~np.append(False, is_short)[:-1])
    return starts


def join_to_last(tokens: Tokens, starts: Flags) -> Flags:
    """Which words may continue a name that the word before began."""
    joined: Flags = ~tokens.parted(~np.uint16(SPACE | LINK | DOT)) & ~starts
    return joined


def fragments(tokens: Tokens, starts: Flags) -> Flags:
    """Which words, taken alone, are only a piece of a longer capitalised name: Peter in "Peter
    Andreas Thiel".
    """
    joined = join_to_last(tokens, starts)
    capital = tokens.written(CAPITAL) & ~tokens.among(FUNCTION_WORDS)
    piece = np.zeros(len(tokens), np.bool_)

    if len(tokens) < 2:
        return piece

    continued = capital[1:] & joined[1:]
    piece[:-1] |= continued
    bridged = joined[1:-1] & tokens.among(CONNECTORS)[1:-1] & continued[1:]
    piece[:-2] |= bridged
    title = starts | tokens.among(HONORIFICS)
    piece[1:] |= capital[:-1] & joined[1:] & ~title[:-1]
    return piece


_ITEM = re.compile(r"[ \t]*(?:[-*+•]|\d{1,3}[.)]|>)[ \t]+")
_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})[ \t]*(\S*)")
_DIRECTIVE = re.compile(r"\s*(?:\.\. ([\w:-]+)|code-block|sourcecode)::")
_NO_LINE = re.compile(
    r"\s*(?:\.\. _[^\n]*:|:[\w-]+:(?!`)|>>> |\$ )"
)  # a label, an option, a console
_CODE_DIRECTIVES = re.compile(
    r"code|code-block|sourcecode|parsed-literal|literalinclude|doctest|testcode|prompt|highlight"
)
_CODE_LINE = re.compile(
    r"\s*(?:[\[(]?\{|import \w|from [\w.]+ import |(?:async )?def \w+\(|class \w+[:(]"
    r"|(?:for|while|if|with) .*:\s*$|return\b"
    r"|[\w.\[\]\"']+ ?[-+|]?= ?\S|[a-z_][\w.]*\(\S.*\)\s*$)|.*[{\[(]\s*$"
)
_SPOKEN_CODE = re.compile(r"[\w.-]+(?:\(\))?|[A-Za-z][\w-]*(?: [A-Za-z][\w-]*){1,2}")
_KEYWORD = re.compile(
    r"(?:await|async|import|from|def|class|return|raise|yield|lambda|del|assert|const|let|var"
    r"|new)\s"
)
_CALL = re.compile(r"[A-Za-z_][\w.]*(?=\([^()]*\)$)")
_LINK = re.compile(r"\s<[^<>]+>$")  # behind the words of a link or of a role
_INLINE_CODE = re.compile(r"(?<!`)(`{1,2})(?=[^\s`])((?:(?!\'\')[^`\n]){1,120}?)(?<=[^\s`])\1(?!`)")
_REST = r"[^\s<>\"'`)\]]*[^\s<>\"'`)\].,;:!?]"
_ADDRESS = re.compile(
    rf"\b[a-z][a-z0-9+.-]*://{_REST}|\bwww\.{_REST}"
    r"|[\w.+-]+@[\w-]+(?:\.[\w-]+)+(?::[\w./-]+)?"  # of mail, of a repository
    r"|(?<![\w.])(?:~|\.{1,2})?/[\w.@~+%-]+(?:/[\w.@~+%-]*)*"  # a path from the root or from here
    r"|(?<![\w/])[\w.@~+-]+(?:/[\w.@~+-]+){2,}/?|(?<![\w/])[\w.@-]+/[\w@-]+\.[a-z]{1,5}\b"
    rf"|(?<![\w.])[\w-]+(?:\.[\w-]+)*\.(?:com|org|net|io|dev|edu|gov)\b(?:/{_REST})?/?"
    r"|:[\w:+.-]+:(?=`)|\s<[^<>`\n]+>(?=`)|\]\([^()\s]*(?:\s+\"[^\"\n]*\")?\)|</?[A-Za-z][^<>\n]*>"
)


def code_spans(text: str) -> list[Span]:
    """Spans of a text that are code: blocks, lines, and code inside lines.

    Code inside a line stays where it reads as a name: an identifier, also of a call, or a few words
    such as `CREATE TABLE`.
    """
    spans = list(_code_lines(text))
    for match in _INLINE_CODE.finditer(text):
        if not _is_spoken(match[2]):
            call = _CALL.match(match[2])
            if call:
                start = match.start(2) + call.end()
            else:
                start = match.start()

            spans.append((start, match.end()))

    return spans


def address_spans(text: str) -> list[Span]:
    """Spans of a text that are addresses, paths, targets of links or marks of a role."""
    return match_spans(_ADDRESS, text)


def _is_spoken(code: str) -> bool:
    is_name = _SPOKEN_CODE.fullmatch(code) is not None and _KEYWORD.match(code) is None
    return is_name or _LINK.search(code) is not None


def _code_lines(text: str) -> Iterator[Span]:
    """Lines inside fences, lines below a directive of code or a `::`, and indented lines that look
    like code.
    """
    lines = text.splitlines(keepends=True)
    fences = list(filter(None, map(_FENCE.match, lines)))
    in_fence = len(fences) % 2 == 1 and not fences[0][2]  # the text begins inside a block
    begin = 0
    prose_indent = 0
    is_literal = False
    after_blank = True
    block_indent = -1

    for place, line in enumerate(lines):
        end = begin + len(line)
        content = line.strip()
        indent = len(line.expandtabs(4)) - len(line.expandtabs(4).lstrip())

        if _FENCE.match(line):
            in_fence = not in_fence
            block_indent = -1
            yield begin, end
        elif in_fence:
            yield begin, end
        elif content:
            if block_indent >= 0 and indent < block_indent:
                block_indent = -1

            if block_indent < 0 and after_blank:
                is_code = _is_code(
                    lines[place:],
                    indent - prose_indent,
                    is_literal,
                )
                block_indent = indent if is_code else -1

            if block_indent >= 0 or _NO_LINE.match(line):
                yield begin, end
            else:
                directive = _DIRECTIVE.match(line)
                if directive:
                    yield begin, begin + directive.end()

                begins_code = directive and _CODE_DIRECTIVES.fullmatch(directive[1] or "code")
                if directive:
                    is_literal = bool(begins_code)
                else:
                    is_literal = content.endswith("::")

                prose_indent = indent
                if _ITEM.match(line):
                    prose_indent += 2
                elif directive and not is_literal:
                    prose_indent += 4

        after_blank = not content
        begin = end


def _is_code(
    lines: Sequence[str],
    indent: int,
    is_literal: bool,
) -> bool:
    """Whether the lines up to the next blank one are code; `indent` is how far they stand to the
    right of the prose.
    """
    if is_literal and indent > 0:
        return True

    block = list(takewhile(str.strip, lines))
    if indent >= 4 and CODE_SIGN.search("".join(block)):
        return True

    return 2 * sum(_CODE_LINE.match(line) is not None for line in block) > len(block)


_DOCSTRING = re.compile(r'"""(.*?)"""|\'\'\'(.*?)\'\'\'', re.DOTALL)
# What ends the first paragraph: a blank line, a field, an example, a directive or a rule.
_PARAGRAPH_END = re.compile(r"\n[ \t]*(?:\n|:|@|>>>|\.\. |-{3,}|={3,})")
_LEAST_WORDS = 4


def documentation_sentences(code: str) -> list[Span]:
    """Spans of the whole sentences in the first paragraph of the first docstring of a unit."""
    docstring = _DOCSTRING.search(code)
    if docstring is None:
        return []

    start, end = docstring.span(docstring.lastindex or 0)
    body = code[start:end].rstrip()
    offset = start + len(body) - len(body.lstrip())
    paragraph = body.lstrip()
    stop = _PARAGRAPH_END.search(paragraph)
    spans = sentences(paragraph[: stop.start()] if stop else paragraph)
    return [
        (offset + first, offset + last)
        for first, last in spans
        if paragraph[last - 1] in ".!?" and len(paragraph[first:last].split()) >= _LEAST_WORDS
    ]


# Which words a text is about; small and fixed, so that the same texts give the same words
# everywhere.
_WORD = re.compile(r"[^\W_]+")
_EMPTY = """
    a an and are as at be been but by for from had has have in is it its no not now of on or so than
    that the their then there these they this to was we were which will with
"""
_WITHOUT_MEANING = word_set(_EMPTY)


def words_of(text: str) -> frozenset[str]:
    """The words that carry meaning, in small letters."""
    return frozenset(map(str.casefold, _WORD.findall(text))) - _WITHOUT_MEANING


def topic_words(topic: str) -> frozenset[str]:
    """The words of a topic's own name: what stands after its last slash."""
    return words_of(topic.rpartition("/")[2]) or words_of(topic)


def names_topic(text: str, topic: str) -> bool:
    """Whether a text speaks of a topic: it holds every word of its name."""
    name_words = topic_words(topic)
    return bool(name_words) and name_words <= words_of(text)


def sentences_of(text: str) -> list[str]:
    """The sentences of a text, without blanks around them."""
    stripped: list[str] = []
    for line in text.splitlines():
        stripped += [line[start:end] for start, end in sentences(line)]

    return stripped


def day(moment: datetime | None) -> str:
    """A moment as people write it: the day, with the time where it is not midnight."""
    if moment is None:
        return "always"

    is_midnight = (moment.hour, moment.minute, moment.second) == (0, 0, 0)
    if is_midnight:
        return f"{moment:%Y-%m-%d}"

    return f"{moment:%Y-%m-%d %H:%M}"
