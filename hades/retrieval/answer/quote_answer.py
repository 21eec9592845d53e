"""An answer without a language model: the blocks of the best passages that answer, whole and as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np

from hades.ports.services import Embedder
from hades.retrieval.core.words import Floats, content_words, short_title, words
from hades.retrieval.features.sentences import root
from hades.text.blocks import Block, BlockKind, join_rows, read_blocks, strip_marks
from hades.text.sentences import documentation_sentences, sentences
from schemas.answer import AnswerSentence, AnswerSource

MAX_WORDS, MAX_CODE_LINES = 120, 15  # what a person reads at a glance
MAX_SENTENCES = 3
_OTHERS = 40  # words that are left for other sources than the first where one of them adds something
_LEAST_LINES = 4  # of code: fewer say nothing
_LONG = 70  # words that are shown of a block for which there is no room
_READ = 60  # statements that are embedded; each costs about 8 ms on one core
_LONGEST, _SHORTEST = 400, 12  # characters of a sentence that can stand alone
_SAME = 0.7  # share of words above which two sentences say the same
_SCORE, _PLACE = 0.4, 0.1  # what the score of a source is worth, and its rank
_RELATIVE = 0.5  # a further sentence fits at least this well, compared with the first
_FIRST = 0.1  # what it is worth that a sentence begins its source: there texts say what they are about
_NEXT = 0.5  # what it is worth that a sentence chosen before names the title of its source
_BLOCK = 0.9  # a row of a table or code beside a sentence that fits as well: the sentence reads better
_REST = 0.6  # the end of a block of code that began in the passage before: output more often than an answer
_LIST_MARK = re.compile(r"^\s*(?:-|\d+[.)])\s+")
_BAR = re.compile(r"(?<!\\)\|")  # between two cells of a row
_NEAR = 0.4  # cosine from which a sentence may answer without a word of the question


@dataclass(frozen=True)
class _Statement:
    """A sentence, row or block of code that may answer; `block` is its place among the blocks of its source."""

    number: int
    rank: int  # of the best passage of its section
    score: float  # of that passage
    block: int
    text: str  # as Markdown
    own: frozenset[str]  # roots of its words
    title: frozenset[str]  # of the words of its source's title, without what stands in brackets
    roots: frozenset[str]  # of its words and all words of title and headings
    worth: float
    is_first: bool


def quote_blocks(
    question: str, sources: Sequence[AnswerSource], embedder: Embedder | None
) -> tuple[AnswerSentence, ...]:
    """The blocks that answer, best source first and each source in reading order; empty when nothing fits."""
    pages: dict[int, _Page] = {}
    first: dict[tuple[str, ...], AnswerSource] = {}  # a section is as good as its best passage
    for source in sources:
        if source.kind == "passage":
            section = (source.document, *source.headings) if source.headings else (source.id,)
            pages[source.number] = _Page(source, first.setdefault(section, source))
    statements = [one for page in pages.values() for one in page.statements][:_READ]
    if not statements:
        return ()
    fit = _Fit(question, statements, embedder)
    chosen = [statements[index] for index in _choose(fit)]
    if not chosen:
        return ()
    room = _Room(MAX_WORDS, MAX_CODE_LINES)
    best = pages[chosen[0].number]
    other = next((pages[one.number] for one in chosen if one.number != best.source.number), None)
    room.words -= _OTHERS if other else 0
    scores: dict[int, dict[int, float]] = {}
    for one, score in zip(statements, fit.scores(()).tolist(), strict=True):
        own = scores.setdefault(one.number, {})
        own[one.block] = max(score, own.get(one.block, score))
    best.take(chosen, fit.wanted, room)
    best.fill(scores[best.source.number], fit.wanted, room)
    room.words += _OTHERS if other else 0
    below = next((page for page in pages.values() if page.is_below(best)), None)
    if below and room.words > MAX_WORDS - _OTHERS:
        other = below
        other.fill(scores.get(other.source.number, {}), fit.wanted, room)
    elif other:
        other.take(chosen, fit.wanted, room)
    marks = [one.text for one in chosen]
    return tuple(one for page in (best, other) if page for one in page.sentences(marks, fit.wanted))


def _choose(fit: _Fit) -> list[int]:
    """The best statement, then those that say what is left to say: words of the question that no other has, and what
    a chosen one leads to.

    So both halves of a question that is answered in two steps find their sentence.
    """
    chosen: list[int] = []
    enough = 0.0
    while len(chosen) < MAX_SENTENCES:
        scores = fit.scores([fit.statements[index] for index in chosen])
        best = int(np.argmax(scores))
        if scores[best] <= enough:
            break
        if not chosen:
            enough = _RELATIVE * float(scores[best])
        chosen.append(best)
    return chosen


@dataclass
class _Room:
    """Words and lines of code that may still be shown."""

    words: int
    lines: int

    def holds(self, blocks: Sequence[Block]) -> bool:
        return sum(one.words for one in blocks) <= self.words and sum(one.lines for one in blocks) <= self.lines

    def spend(self, block: Block) -> None:
        self.words -= block.words
        self.lines -= block.lines


class _Page:
    """The blocks of one source and which of them are shown."""

    def __init__(self, source: AnswerSource, first: AnswerSource) -> None:
        self.source = source
        self._first = first  # of its section
        self.blocks = list(_shown_blocks(source))
        self.statements = list(self._statements())
        self._shown: dict[int, Block] = {}

    def _statements(self) -> Iterator[_Statement]:
        title = _roots(short_title(self.source.title))
        around = _roots(f"{self.source.title} {' '.join(self.source.headings)}")
        is_first = True
        for place, block in enumerate(self.blocks):
            is_prose = block.kind not in (BlockKind.ROW, BlockKind.CODE)
            is_rest = block.kind is BlockKind.CODE and self.source.begins_in_code and not place
            worth = 1.0 if is_prose else _REST if is_rest else _BLOCK
            for text in _split(block):
                if _can_stand_alone(text, block, self.blocks[place + 1 :]):
                    own = _roots(text)
                    yield _Statement(
                        self.source.number, self._first.number, self._first.score, place, text, own, title,
                        own | around, worth, is_first and is_prose,
                    )  # fmt: skip
                    is_first = is_first and not is_prose

    def is_below(self, other: _Page) -> bool:
        """Whether it goes on where a section that only opens it ends: as a section of that section."""
        above = other.source.headings
        is_part = len(self.source.headings) > len(above) and self.source.headings[: len(above)] == above
        return bool(above) and is_part and self.source.document == other.source.document

    def take(self, chosen: Sequence[_Statement], wanted: frozenset[str], room: _Room) -> None:
        """Show the blocks of the chosen statements with what belongs to them, as far as there is room."""
        for statement in chosen:
            if statement.number == self.source.number and statement.block not in self._shown:
                for place in self._unit(statement.block):
                    block = self.blocks[place]
                    if block.kind is BlockKind.CODE:
                        block = _cut_code(block, wanted, room.lines)
                    elif place == statement.block and block.words > room.words:
                        block = _cut_prose(block, statement.text, min(_LONG, room.words))
                    if place not in self._shown and room.holds([block]):
                        self._show(place, block, room)

    def fill(self, scores: dict[int, float], wanted: frozenset[str], room: _Room) -> None:
        """Show all of the page where it fits, else its blocks by how well they fit the question."""
        left = [place for place in range(len(self.blocks)) if place not in self._shown]
        if not room.holds([self.blocks[place] for place in left]):
            left.sort(key=lambda place: (-scores.get(place, -1.0), place))
        for place in left:
            unit = {one: self.blocks[one] for one in self._unit(place) if one not in self._shown}
            for one, block in unit.items():
                if block.kind is BlockKind.CODE:
                    unit[one] = _cut_code(block, wanted, room.lines)
            if room.holds(list(unit.values())):
                for one, block in unit.items():
                    self._show(one, block, room)

    def _unit(self, place: int) -> list[int]:
        """A block with what it cannot stand without: the words before code or a list, the code or list after words
        that announce it.
        """
        blocks = self.blocks
        begin = end = place
        if blocks[place].kind is BlockKind.ITEM:
            while begin and blocks[begin - 1].kind is BlockKind.ITEM and _is_step(blocks[place]):
                begin -= 1
            while end + 1 < len(blocks) and blocks[end + 1].kind is BlockKind.ITEM and _is_step(blocks[place]):
                end += 1
        if begin and (blocks[begin].kind is BlockKind.CODE or _announces(blocks[begin - 1])):
            begin -= blocks[begin - 1].kind is not BlockKind.CODE
        if end + 1 < len(blocks) and _announces(blocks[end]):
            end += 1
        return sorted(range(begin, end + 1), key=lambda one: one != place)

    def _show(self, place: int, block: Block, room: _Room) -> None:
        self._shown[place] = block
        room.spend(block)

    def sentences(self, marks: Sequence[str], wanted: frozenset[str]) -> Iterator[AnswerSentence]:
        """What is shown in reading order; the first says where it stands, rows of one table are one."""
        heading = " › ".join(self.source.headings) or self.source.title or self.source.document
        blocks = list(_outdent([self._cut_announcement(place) for place in sorted(self._shown)]))
        if "default" in wanted:
            blocks = [*_find_default([one for one in blocks if any(mark in one.markdown for mark in marks)]), *blocks]
        for _, group in groupby(blocks, key=lambda one: one.head or id(one)):
            rows = list(group)
            yield AnswerSentence(
                text=join_rows(rows),
                citations=(self.source.number,),
                quote="\n".join(one.source for one in rows),
                heading=heading,
                kind=rows[0].kind,
                marks=tuple(_marks(rows, marks, wanted)),
            )
            heading = ""

    def _cut_announcement(self, place: int) -> Block:
        """A shown block, without the sentence that announces what is not shown where the block says more."""
        block = self._shown[place]
        said = _split(block)[:-1] if block.kind is BlockKind.PARAGRAPH and place + 1 not in self._shown else []
        return replace(block, markdown=f"{' '.join(said)} …") if said and block.markdown.endswith(":") else block


def _outdent(blocks: Sequence[Block]) -> Iterator[Block]:
    """The blocks with nested items at the margin where the item above them is not shown: else they read as code."""
    margin: int | None = None
    for block in blocks:
        indent = len(block.markdown) - len(block.markdown.lstrip())
        margin = None if block.kind is not BlockKind.ITEM else indent if margin is None else min(margin, indent)
        yield replace(block, markdown=block.markdown[margin:]) if margin else block


def _shown_blocks(source: AnswerSource) -> Iterator[Block]:
    """The blocks of a source without its headings; of code the first sentences of its documentation."""
    if source.code:
        spans = documentation_sentences(source.text)
        said = " ".join(source.text[slice(*one)] for one in spans)
        if said:
            yield Block(BlockKind.PARAGRAPH, f"`{source.symbol or source.where}`: {' '.join(said.split())}", said)
        return
    named = {source.title, *source.headings}
    for block in read_blocks(source.text, source.begins_in_code):
        if block.kind is not BlockKind.HEADING and block.markdown not in named:
            lines = block.source.split("\n")
            if len(lines) > 1 and " ".join(lines[0].split()) in named:  # a word processor does not mark its headings
                block = next((one for one in read_blocks("\n".join(lines[1:]))), block)
            is_long = block.kind is BlockKind.ROW and len(block.markdown) > _LONGEST
            yield from _cells(block) if is_long and block.head else [block]


def _cells(row: Block) -> Iterator[Block]:
    """The cells of a row that is too long to read as one, each under the names of its row and its column."""
    columns, said, written = (
        [one.strip() for one in _BAR.split(line)[1:]] for line in (row.head, row.markdown, row.source)
    )
    for column, cell, source in list(zip(columns, said, written, strict=False))[1:]:
        if cell:
            name = ", ".join(filter(None, map(strip_marks, (said[0], column))))
            yield Block(BlockKind.TERM, f"**{name}**: {cell}", source)


def _split(block: Block) -> list[str]:
    """The sentences of a block, without the mark of a list; a row and code are one."""
    if block.kind in (BlockKind.ROW, BlockKind.CODE):
        return [block.markdown]
    text = _LIST_MARK.sub("", block.markdown)
    return [text[start:end] for start, end in sentences(text)]


def _can_stand_alone(text: str, block: Block, following: Sequence[Block]) -> bool:
    """Whether a text is neither a scrap nor a page, holds words, and announces nothing but code."""
    if block.kind is BlockKind.CODE:
        return any(map(str.isalpha, text))
    is_announced = not text.endswith(":") or (block.kind is BlockKind.ITEM and following[:1] and following[0].lines)
    return bool(_SHORTEST <= len(text) <= _LONGEST and is_announced and any(map(str.isalpha, text)))


def _announces(block: Block) -> bool:
    return block.kind is not BlockKind.CODE and block.markdown.endswith((":", "...", "…"))


def _is_step(block: Block) -> bool:
    return block.markdown.lstrip()[:1].isdigit()


def _cut_code(block: Block, wanted: frozenset[str], most: int) -> Block:
    """At most `most` lines of code, around the line that holds most words of the question."""
    opening, *lines, closing = block.markdown.split("\n")
    if len(lines) <= most or most < _LEAST_LINES:
        return block
    best = max(range(len(lines)), key=lambda line: (len(_roots(lines[line]) & wanted), -line))
    first = 0 if best < most - 1 else min(best - 1, len(lines) - most + 1)
    last = first + most - (1 if first == 0 or first + most > len(lines) else 2)
    cut = [*(["…"] if first else []), *lines[first:last], *(["…"] if last < len(lines) else [])]
    return replace(block, markdown="\n".join([opening, *cut, closing]))


def _cut_prose(block: Block, statement: str, most: int) -> Block:
    """The sentences around a statement, at most `most` words; the statement is always among them."""
    parts = _split(block)
    begin = parts.index(statement)
    end = begin + 1
    while begin or end < len(parts):
        wider = (begin, end + 1) if end < len(parts) else (begin - 1, end)
        if sum(len(one.split()) for one in parts[slice(*wider)]) > most:
            break
        begin, end = wider
    cut = " ".join(parts[begin:end])
    return replace(block, markdown=("… " if begin else "") + cut + (" …" if end < len(parts) else ""))


_DEFAULT = re.compile(
    r"\bdefaults?(?: value)?(?: is| are| to| of|:|=)+ ?"
    r"(`[^`]+`|\"[^\"]+\"|'[^']+'|-?\d[\d,.]*\d(?: \w+)?|\d(?: \w+)?|True|False|None)",
    re.IGNORECASE,
)


def _find_default(blocks: Sequence[Block]) -> Iterator[Block]:
    """The value that the blocks name as a default, in a line of its own."""
    for block in blocks:
        if found := _DEFAULT.search(block.markdown):
            yield Block(BlockKind.TERM, f"**Default**: {found[1]}", block.source)
            return


def _marks(blocks: Sequence[Block], chosen: Sequence[str], wanted: frozenset[str]) -> Iterator[str]:
    """The chosen sentences that stand in the blocks, and of code the line that holds most words of the question."""
    for block in blocks:
        if block.kind is BlockKind.CODE:
            most = max(block.markdown.split("\n")[1:-1], key=lambda line: len(_roots(line) & wanted))
            if _roots(most) & wanted:
                yield most.strip()
        else:
            yield from (one for one in chosen if one in block.markdown)


class _Fit:
    """How well each statement fits the question, beside those that were chosen already."""

    def __init__(self, question: str, statements: Sequence[_Statement], embedder: Embedder | None) -> None:
        self.statements = statements
        asked = list(dict.fromkeys(map(root, content_words(question)))) or list(map(root, words(question)))
        self.wanted = frozenset(asked)
        self._rarity = {
            word: float(np.log((len(statements) + 1) / (0.5 + sum(word in one.roots for one in statements))))
            for word in asked
        }
        self._worth = np.array([one.worth for one in statements])
        self._place = np.array([_SCORE * one.score + _PLACE / one.rank + _FIRST * one.is_first for one in statements])
        self._near: Floats | None = None
        if embedder is not None:
            vectors = embedder.embed([question, *(strip_marks(one.text) for one in statements)])
            self._near = (vectors[1:] @ vectors[0]).astype(np.float64)

    def scores(self, chosen: Sequence[_Statement]) -> Floats:
        """The fit of each statement; -1 for one that does not answer or says what a chosen one says."""
        said = frozenset[str]().union(*(one.roots for one in chosen))
        own = frozenset[str]().union(*(one.own for one in chosen))
        numbers = {one.number for one in chosen}
        leads = np.array([one.number not in numbers and self._is_named(one, own) for one in self.statements])
        lexical = self._lexical(self.wanted - said)
        if self._near is None:
            fit, is_fit = self._worth * (lexical + self._place), lexical > 0.0
        else:
            fit = self._worth * (0.5 * lexical + 0.5 * self._near + self._place)
            is_fit = (self._lexical(self.wanted) > 0.0) | (self._near >= _NEAR)
        is_new = np.array([all(_overlap(one, other) < _SAME for other in chosen) for one in self.statements])
        return np.where((is_fit | leads) & is_new, fit + _NEXT * leads, -1.0)

    def _lexical(self, wanted: frozenset[str]) -> Floats:
        """The share of the wanted words that each statement holds, rare ones counting more."""
        total = sum(self._rarity[word] for word in wanted) or 1.0
        return np.array([sum(self._rarity[word] for word in wanted & one.roots) / total for one in self.statements])

    def _is_named(self, statement: _Statement, said: frozenset[str]) -> bool:
        """Whether what was said names the title of a statement's source, and the question did not."""
        title = statement.title
        return bool(title) and title <= said and not title <= self._rarity.keys()


def _roots(text: str) -> frozenset[str]:
    """Of the words of a text, and of the words in its identifiers."""
    spelled = words(text)
    return frozenset(root(part) for word in spelled for part in (word, *word.split("_")) if part)


def _overlap(one: _Statement, other: _Statement) -> float:
    return len(one.roots & other.roots) / max(1, min(len(one.roots), len(other.roots)))
