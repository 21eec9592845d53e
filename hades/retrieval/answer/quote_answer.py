"""An answer without a language model: the blocks of the best passages that answer, whole and as
Markdown.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby

import numpy as np

from hades.ports.services import Embedder
from hades.retrieval.core.words import Floats, content_words, short_title, words
from hades.retrieval.features.sentences import root
from hades.text.blocks import Block, BlockKind, join_rows, read_blocks, strip_marks
from hades.text.sentences import documentation_sentences, sentences
from schemas.answer import AnswerSentence, AnswerSource

MAX_WORDS, MAX_CODE_LINES = 120, 24  # what a person reads at a glance
MAX_SECTIONS = 4  # that an answer quotes from
MAX_SENTENCES = 3
_OTHERS = (
    40  # words that are left for other sources than the first where one of them adds something
)
_LEAST_WORDS = 5  # of a block of another section
_LEAST_LINES = 4  # of code: fewer say nothing
_LONG = 70  # words that are shown of a block for which there is no room
_READ = 60  # statements that are embedded; each costs about 8 ms on one core
_LONGEST, _SHORTEST = 400, 12  # characters of a sentence that can stand alone
_SAME = 0.7  # share of words above which two sentences say the same
_SCORE, _PLACE = 0.4, 0.1  # what the score of a source is worth, and its rank
_RELATIVE = 0.5  # a further sentence fits at least this well, compared with the first
_FURTHER = 0.4  # and one that is shown only because there is room
_FIRST = (
    0.1  # what it is worth that a sentence begins its source: there texts say what they are about
)
_NEXT = 0.5  # what it is worth that a sentence chosen before names the title of its source
_BLOCK = (
    0.9  # a row of a table or code beside a sentence that fits as well: the sentence reads better
)
# the end of a block of code that began in the passage before: output more often than an answer
_REST = 0.6
_LIST_MARK = re.compile(r"^\s*(?:-|\d+[.)])\s+")
_BAR = re.compile(r"(?<!\\)\|")  # between two cells of a row
_NEAR = 0.4  # cosine from which a sentence may answer without a word of the question


@dataclass(frozen=True)
class _Statement:
    """A sentence, row or block of code that may answer; `block` is its place among the blocks of
    its source.
    """

    number: int
    rank: int  # of the best passage of its section
    score: float  # of that passage
    block: int
    text: str  # as Markdown
    text_roots: frozenset[str]  # of its words
    title: frozenset[str]  # of the words of its source's title, without what stands in brackets
    roots: frozenset[str]  # of its words and all words of title and headings
    worth: float
    is_first: bool


def quote_blocks(
    question: str,
    sources: Sequence[AnswerSource],
    embedder: Embedder | None,
) -> tuple[AnswerSentence, ...]:
    """The blocks that answer, best source first and each source in reading order; empty when
    nothing fits.
    """
    pages: dict[int, _Page] = {}

    first: dict[tuple[str, ...], AnswerSource] = {}  # a section is as good as its best passage
    for source in sources:
        if source.kind == "passage":
            if source.headings:
                section = (source.document, *source.headings)
            else:
                section = (source.id,)

            pages[source.number] = _Page(source, first.setdefault(section, source))

    _lend_heads(pages.values())
    statements = list(chain.from_iterable(page.statements for page in pages.values()))[:_READ]
    if not statements:
        return ()

    fit = _Fit(question, statements, embedder)
    chosen = [statements[index] for index in _choose(fit)]
    if not chosen:
        return ()

    first_scores = fit.scores(()).tolist()
    scores: dict[int, dict[int, float]] = {}
    for statement, score in zip(statements, first_scores, strict=True):
        page_scores = scores.setdefault(statement.number, {})
        page_scores[statement.block] = max(score, page_scores.get(statement.block, score))

    best = pages[chosen[0].number]
    room = _Room(MAX_WORDS, MAX_CODE_LINES)
    if {statement.number for statement in chosen[1:]} - {chosen[0].number}:
        reserve = _OTHERS
    else:
        reserve = 0

    room.words -= reserve
    best.take(chosen, fit.question_roots, room)
    best.fill(
        scores[best.source.number],
        fit.question_roots,
        room,
    )
    room.words += reserve
    shown = [best]
    below = next((page for page in pages.values() if page.is_below(best)), None)

    if below and room.words > MAX_WORDS - _OTHERS:
        below.fill(
            scores.get(below.source.number, {}),
            fit.question_roots,
            room,
        )
        shown.append(below)

    for statement in chosen[1:]:
        page = pages[statement.number]
        page.take([statement], fit.question_roots, room)
        shown += [page] if page.is_shown and page not in shown else []

    for statement in _rank_further(statements, first_scores):
        page = pages[statement.number]
        if page in shown or len(shown) < MAX_SECTIONS:
            page.add(statement, fit.question_roots, room)
            shown += [page] if page.is_shown and page not in shown else []

    marks = [statement.text for statement in chosen]
    default_of = frozenset[str]()
    if "default" in fit.question_roots and not _ASKS_OTHERWISE.match(question):
        default_of = fit.question_roots - _DEFAULT_ROOTS

    return tuple(
        chain.from_iterable(
            page.sentences(
                marks,
                fit.question_roots,
                default_of,
            )
            for page in _by_section(shown)
        )
    )


def _lend_heads(pages: Collection[_Page]) -> None:
    """Give rows that were cut off from their table the heading that another passage of the section
    has, where it has as many columns.
    """
    heads: dict[tuple[object, ...], str] = {}
    for page in pages:
        for block in page.blocks:
            if block.head:
                heads.setdefault((page.section, _columns(block.head)), block.head)

    for page in pages:
        for place, block in enumerate(page.blocks):
            head = heads.get((page.section, _columns(block.markdown)))
            if block.kind is BlockKind.ROW and not block.head and head:
                page.blocks[place] = replace(block, head=head)


def _columns(line: str) -> int:
    return len(_split_cells(line.partition("\n")[0]))


def _by_section(pages: Sequence[_Page]) -> list[_Page]:
    """The pages with those of one section together, sections in the order of their first."""
    sections: dict[tuple[str, ...], list[_Page]] = {}
    for page in pages:
        sections.setdefault(page.section, []).append(page)

    return list(chain.from_iterable(sections.values()))


def _rank_further(
    statements: Sequence[_Statement],
    scores: Sequence[float],
) -> Iterator[_Statement]:
    """The statements that fit well enough to be shown where there is room, best first."""
    least = _FURTHER * max(scores)
    for place in sorted(range(len(statements)), key=lambda place: -scores[place]):
        if scores[place] > least:
            yield statements[place]


def quote_opening(sources: Sequence[AnswerSource]) -> tuple[AnswerSentence, ...]:
    """The first blocks of the best passage that has some."""
    for source in sources:
        if source.kind == "passage":
            page = _Page(source, source)
            page.fill(
                {},
                frozenset(),
                _Room(MAX_WORDS, MAX_CODE_LINES),
            )
            if opening := tuple(page.sentences((), frozenset())):
                return opening

    return ()


def _choose(fit: _Fit) -> list[int]:
    """The best statement, then those that say what is left to say: words of the question that no
    other has, and what a chosen one leads to.

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
        return (
            sum(block.words for block in blocks) <= self.words
            and sum(block.lines for block in blocks) <= self.lines
        )

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
            worth = _REST if is_rest else _BLOCK

            for text in _split(block):
                if not _can_stand_alone(
                    text,
                    block,
                    self.blocks[place + 1 :],
                ):
                    continue

                text_roots = _roots(text)
                yield _Statement(
                    number=self.source.number,
                    rank=self._first.number,
                    score=self._first.score,
                    block=place,
                    text=text,
                    text_roots=text_roots,
                    title=title,
                    roots=text_roots | around,
                    worth=1.0 if is_prose else worth,
                    is_first=is_first and is_prose,
                )
                is_first = is_first and not is_prose

    @property
    def section(self) -> tuple[str, ...]:
        """The document and the headings above it."""
        return (self.source.document, *self.source.headings)

    @property
    def is_shown(self) -> bool:
        """Whether a block of it is."""
        return bool(self._shown)

    def is_below(self, opener: _Page) -> bool:
        """Whether it goes on where a section that only opens it ends: as a section of that
        section.
        """
        above = opener.source.headings
        headings = self.source.headings
        is_part = len(headings) > len(above) and headings[: len(above)] == above
        return bool(above) and is_part and self.source.document == opener.source.document

    def take(
        self,
        chosen: Sequence[_Statement],
        question_roots: frozenset[str],
        room: _Room,
    ) -> None:
        """Show the blocks of the chosen statements with what belongs to them, as far as there is
        room.
        """
        for statement in chosen:
            if statement.number != self.source.number or statement.block in self._shown:
                continue

            for place in self._unit(statement.block):
                self._show(self._cut([place], question_roots, room, statement), room)

    def fill(
        self,
        scores: dict[int, float],
        question_roots: frozenset[str],
        room: _Room,
    ) -> None:
        """Show all of the page where it fits, else its blocks by how well they fit the question."""
        hidden = [place for place in range(len(self.blocks)) if place not in self._shown]
        if not room.holds([self.blocks[place] for place in hidden]):
            hidden.sort(key=lambda place: (-scores.get(place, -1.0), place))

        for place in hidden:
            self._show(self._cut(self._unit(place), question_roots, room), room)

    def add(
        self,
        statement: _Statement,
        question_roots: frozenset[str],
        room: _Room,
    ) -> None:
        """Show the block of a statement with what belongs to it, else alone where that says
        enough.
        """
        block = self.blocks[statement.block]
        if block.kind is BlockKind.CODE or block.words >= _LEAST_WORDS:
            unit = self._unit(statement.block)
            parts = self._cut(unit, question_roots, room, statement)
            if not room.holds(list(parts.values())) and not _announces(block):
                parts = self._cut(unit[:1], question_roots, room, statement)

            self._show(parts, room)

    def _cut(
        self,
        unit: Sequence[int],
        question_roots: frozenset[str],
        room: _Room,
        statement: _Statement | None = None,
    ) -> dict[int, Block]:
        """The blocks of a unit that are not shown yet, code and the block of a statement no longer
        than there is room.
        """
        parts: dict[int, Block] = {}
        for place in unit:
            block = self.blocks[place]
            if block.kind is BlockKind.CODE:
                block = _cut_code(block, question_roots, room.lines)
            elif statement and place == statement.block and block.words > room.words:
                block = _cut_prose(
                    block,
                    statement.text,
                    min(_LONG, room.words),
                )

            if place not in self._shown:
                parts[place] = block

        return parts

    def _unit(self, place: int) -> list[int]:
        """A block with what it cannot stand without: the words before code or a list, the code or
        list after words that announce it.
        """
        blocks = self.blocks
        begin = end = place
        last = len(blocks) - 1

        if blocks[place].kind is BlockKind.ITEM and _is_step(blocks[place]):
            while begin and blocks[begin - 1].kind is BlockKind.ITEM:
                begin -= 1

            while end < last and blocks[end + 1].kind is BlockKind.ITEM:
                end += 1

        if begin and (blocks[begin].kind is BlockKind.CODE or _announces(blocks[begin - 1])):
            begin -= blocks[begin - 1].kind is not BlockKind.CODE
        if end < last and _announces(blocks[end]):
            end += 1

        return sorted(range(begin, end + 1), key=lambda part: part != place)

    def _show(self, parts: dict[int, Block], room: _Room) -> None:
        """Show these blocks if there is room for all."""
        if room.holds(list(parts.values())):
            self._shown.update(parts)
            for block in parts.values():
                room.spend(block)

    def sentences(
        self,
        marks: Sequence[str],
        question_roots: frozenset[str],
        default_of: frozenset[str] = frozenset(),
    ) -> Iterator[AnswerSentence]:
        """What is shown in reading order, before it the default of what the question asks for; the
        first says where it stands, rows of one table are one.
        """
        heading = " › ".join(self.source.headings) or self.source.title or self.source.document
        blocks = list(_outdent([self._cut_announcement(place) for place in sorted(self._shown)]))

        if default_of:
            around = _roots(f"{self.source.title} {' '.join(self.source.headings)}")
            blocks = [*_find_default(blocks, default_of, around), *blocks]

        for head, group in groupby(blocks, key=lambda block: block.head or id(block)):
            rows = list(group)
            if rows[0].kind is BlockKind.ROW:
                hidden = sum(block.head == head for block in self.blocks) - len(rows)
                rows = _finish_table(rows, hidden)

            yield AnswerSentence(
                text=join_rows(rows),
                citations=(self.source.number,),
                quote="\n".join(row.source for row in rows),
                heading=heading,
                kind=rows[0].kind,
                marks=tuple(_marks(rows, marks, question_roots)),
            )
            heading = ""

    def _cut_announcement(self, place: int) -> Block:
        """A shown block, without the sentence that announces what is not shown where the block says
        more.
        """
        block = self._shown[place]
        is_cut_off = block.kind is BlockKind.PARAGRAPH and place + 1 not in self._shown

        if is_cut_off and block.markdown.endswith(":"):
            sentences_before = _split(block)[:-1]
            if sentences_before:
                return replace(block, markdown=f"{' '.join(sentences_before)} …")

        return block


def _outdent(blocks: Sequence[Block]) -> Iterator[Block]:
    """The blocks with nested items at the margin where the item above them is not shown: else they
    read as code.
    """
    margin: int | None = None
    for block in blocks:
        indent = len(block.markdown) - len(block.markdown.lstrip())
        if block.kind is not BlockKind.ITEM:
            margin = None
        elif margin is None or indent < margin:
            margin = indent

        yield replace(block, markdown=block.markdown[margin:]) if margin else block


def _shown_blocks(source: AnswerSource) -> Iterator[Block]:
    """The blocks of a source without its headings; of code the first sentences of its
    documentation.
    """
    if source.code:
        spans = documentation_sentences(source.text)
        documentation = " ".join(source.text[slice(*span)] for span in spans)
        if documentation:
            name = source.symbol or source.where
            text = f"`{name}`: {' '.join(documentation.split())}"
            yield Block(BlockKind.PARAGRAPH, text, documentation)

        return

    heading_texts = {source.title, *source.headings}
    for block in read_blocks(source.text, source.begins_in_code):
        if block.kind is BlockKind.HEADING or block.markdown in heading_texts:
            continue

        if block.kind is BlockKind.CODE and (options := list(_options(block))):
            yield from options
            continue

        first_line, _, below = block.source.partition("\n")
        # A word processor does not mark its headings.
        if below and " ".join(first_line.split()) in heading_texts:
            block = next(iter(read_blocks(below)), block)

        is_long = block.kind is BlockKind.ROW and len(block.markdown) > _LONGEST
        yield from _cells(block) if is_long and block.head else [block]


_LEAST_OPTIONS = 3  # that make a block of code a usage message
_OPTION = re.compile(r"(?P<margin>\s*)(?P<name>--?[A-Za-z].*?)(?:\s{2,}(?P<says>\S.*))?")


def _options(listing: Block) -> Iterator[Block]:
    """What stands before the options of a usage message, and each option with its description."""
    opening, *lines, closing = listing.markdown.split("\n")
    matches = [_OPTION.fullmatch(line) for line in lines]
    starts = [place for place, match in enumerate(matches) if match]

    if len(starts) < _LEAST_OPTIONS:
        return

    usage = "\n".join(lines[: starts[0]])
    if usage.strip():
        yield Block(
            BlockKind.CODE,
            "\n".join([opening, usage.strip("\n"), closing]),
            usage,
        )

    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        match = matches[start]
        assert match is not None
        parts = [match["says"] or ""]

        for line in lines[start + 1 : end]:
            if line.strip() and not line.startswith(f"{match['margin']} "):
                break
            parts.append(line.strip())

        name = " ".join(match["name"].split())
        text = f"`{name}`: {' '.join(filter(None, parts))}".rstrip(": ")
        yield Block(
            BlockKind.TERM,
            text,
            "\n".join(lines[start : start + len(parts)]),
        )


def _cells(row: Block) -> Iterator[Block]:
    """The cells of a row that is too long to read as one, each under the names of its row and its
    column.
    """
    columns, cells, sources = map(_split_cells, (row.head, row.markdown, row.source))
    for column, cell, source in list(zip(columns, cells, sources, strict=False))[1:]:
        if cell:
            name = ", ".join(filter(None, map(strip_marks, (cells[0], column))))
            yield Block(BlockKind.TERM, f"**{name}**: {cell}", source)


def _split_cells(line: str) -> list[str]:
    return [cell.strip() for cell in _BAR.split(line)[1:]]


def _split(block: Block) -> list[str]:
    """The sentences of a block, without the mark of a list; a row and code are one."""
    if block.kind in (BlockKind.ROW, BlockKind.CODE):
        return [block.markdown]

    text = _LIST_MARK.sub("", block.markdown)
    return [text[start:end] for start, end in sentences(text)]


def _can_stand_alone(
    text: str,
    block: Block,
    following: Sequence[Block],
) -> bool:
    """Whether a text is neither a scrap nor a page, holds words, and announces nothing but code."""
    if block.kind is BlockKind.CODE:
        return any(map(str.isalpha, text))

    is_announced = not text.endswith(":") or (
        block.kind is BlockKind.ITEM and following[:1] and following[0].lines
    )
    return bool(_SHORTEST <= len(text) <= _LONGEST and is_announced and any(map(str.isalpha, text)))


def _announces(block: Block) -> bool:
    return block.kind is not BlockKind.CODE and block.markdown.endswith((":", "...", "…"))


def _is_step(block: Block) -> bool:
    return block.markdown.lstrip()[:1].isdigit()


def _cut_code(
    block: Block,
    question_roots: frozenset[str],
    most: int,
) -> Block:
    """At most `most` lines of code, around the line that holds most words of the question."""
    opening, *lines, closing = block.markdown.split("\n")
    if len(lines) <= most or most < _LEAST_LINES:
        return block

    best = _best_line(lines, question_roots)
    if best < most - 1:
        first = 0
    else:
        first = min(best - 1, len(lines) - most + 1)

    last = first + most - (1 if first == 0 or first + most > len(lines) else 2)
    cut = lines[first:last]
    if first:
        cut.insert(0, "…")
    if last < len(lines):
        cut.append("…")

    return replace(block, markdown="\n".join([opening, *cut, closing]))


def _best_line(lines: Sequence[str], question_roots: frozenset[str]) -> int:
    """The place of the line that holds most words of the question, the first of several."""
    counts = [len(_roots(line) & question_roots) for line in lines]
    return counts.index(max(counts))


def _cut_prose(block: Block, statement: str, most: int) -> Block:
    """The sentences around a statement, at most `most` words; the statement is always among
    them.
    """
    parts = _split(block)
    begin = parts.index(statement)
    end = begin + 1

    while begin or end < len(parts):
        if end < len(parts):
            wider = (begin, end + 1)
        else:
            wider = (begin - 1, end)

        if sum(len(part.split()) for part in parts[slice(*wider)]) > most:
            break
        begin, end = wider

    cut = parts[begin:end]
    if begin:
        cut.insert(0, "…")
    if end < len(parts):
        cut.append("…")

    return replace(block, markdown=" ".join(cut))


_DEFAULT = re.compile(
    r"\bdefaults?(?: value)?(?: is| are| to| of|:|=)+ ?"
    r"(`[^`]+`|\"[^\"]+\"|'[^']+'|-?\d[\d,.]*\d(?: \w+)?|\d(?: \w+)?|True|False|None)",
    re.IGNORECASE,
)


# Questions that speak of a default and do not ask for its value.
_ASKS_OTHERWISE = re.compile(
    r"\W*(?:how (?:do|does|did|can|could|should|to|is|are)|why|where|when|who|can|should)\b",
    re.IGNORECASE,
)
_DEFAULT_ROOTS = frozenset(map(root, ("default", "value", "setting", "number")))


def _find_default(
    blocks: Sequence[Block],
    things: frozenset[str],
    around: frozenset[str],
) -> Iterator[Block]:
    """The value that a clause or a row names as the default of these things, in a line of its own;
    `around` are the words of the headings above.
    """
    for block in blocks:
        for clause, value in _read_defaults(block):
            named = _roots(clause)
            if things & named and things <= named | around:
                yield Block(
                    BlockKind.TERM,
                    f"**Default**: {value}",
                    block.source,
                )
                return


def _read_defaults(block: Block) -> Iterator[tuple[str, str]]:
    """What a block says that there are defaults of, each with its value."""
    if block.kind is BlockKind.ROW:
        columns = _split_cells(block.head.partition("\n")[0])
        cells = _split_cells(block.markdown)
        for column, cell in zip(columns, cells, strict=False):
            if column.casefold() == "default" and cell:
                yield cells[0], cell

    for sentence in _split(block):
        begin = 0
        for match in _DEFAULT.finditer(sentence):
            yield sentence[begin : match.end()], match[1]
            begin = match.end()


def _finish_table(rows: Sequence[Block], hidden: int) -> list[Block]:
    """Rows as they can be read: one whose table has no heading as a term, and below the others a
    mark for those that are not shown.
    """
    last = rows[-1]
    if last.head:
        mark = f"| … |{' |' * (len(_split_cells(last.head.partition(chr(10))[0])) - 2)}"
        if hidden:
            return [*rows, replace(last, markdown=mark)]
        return list(rows)

    finished = []
    for row in rows:
        name, *cells = [cell for cell in _split_cells(row.markdown) if cell] or [row.markdown]
        text = f"{name}: {', '.join(cells)}" if cells else name
        finished.append(Block(BlockKind.TERM, text, row.source))

    return finished


def _marks(
    blocks: Sequence[Block],
    chosen: Sequence[str],
    question_roots: frozenset[str],
) -> Iterator[str]:
    """The chosen sentences that stand in the blocks, and of code the line that holds most words of
    the question.
    """
    for block in blocks:
        if block.kind is BlockKind.CODE:
            lines = block.markdown.split("\n")[1:-1]
            best = lines[_best_line(lines, question_roots)]
            if _roots(best) & question_roots:
                yield best.strip()
        else:
            yield from (sentence for sentence in chosen if sentence in block.markdown)


class _Fit:
    """How well each statement fits the question, beside those that were chosen already."""

    def __init__(
        self,
        question: str,
        statements: Sequence[_Statement],
        embedder: Embedder | None,
    ) -> None:
        self.statements = statements
        question_words = content_words(question) or words(question)
        question_roots = list(dict.fromkeys(map(root, question_words)))
        self.question_roots = frozenset(question_roots)

        self._rarity: dict[str, float] = {}
        for word in question_roots:
            holders = sum(word in statement.roots for statement in statements)
            self._rarity[word] = float(np.log((len(statements) + 1) / (0.5 + holders)))

        self._worth = np.array([statement.worth for statement in statements])
        self._place = np.array(
            [
                _SCORE * statement.score + _PLACE / statement.rank + _FIRST * statement.is_first
                for statement in statements
            ]
        )
        self._near: Floats | None = None

        if embedder is not None:
            texts = [strip_marks(statement.text) for statement in statements]
            vectors = embedder.embed([question, *texts])
            self._near = (vectors[1:] @ vectors[0]).astype(np.float64)

    def scores(self, chosen: Sequence[_Statement]) -> Floats:
        """The fit of each statement; -1 for one that does not answer or says what a chosen one
        says.
        """
        chosen_roots = frozenset[str]().union(*(statement.roots for statement in chosen))
        chosen_text_roots = frozenset[str]().union(*(statement.text_roots for statement in chosen))
        numbers = {statement.number for statement in chosen}
        leads = np.array(
            [
                statement.number not in numbers and self._is_named(statement, chosen_text_roots)
                for statement in self.statements
            ]
        )
        is_new = np.array([_is_new(statement, chosen) for statement in self.statements])
        lexical = self._lexical(self.question_roots - chosen_roots)

        if self._near is None:
            fit = self._worth * (lexical + self._place)
            is_fit = lexical > 0.0
        else:
            fit = self._worth * (0.5 * lexical + 0.5 * self._near + self._place)
            is_fit = (self._lexical(self.question_roots) > 0.0) | (self._near >= _NEAR)

        return np.where(
            (is_fit | leads) & is_new,
            fit + _NEXT * leads,
            -1.0,
        )

    def _lexical(self, roots: frozenset[str]) -> Floats:
        """The share of these roots that each statement holds, rare ones counting more."""
        total = self._sum_rarity(roots) or 1.0

        rarities = []
        for statement in self.statements:
            rarities.append(self._sum_rarity(roots & statement.roots))

        return np.array([rarity / total for rarity in rarities])

    def _sum_rarity(self, roots: frozenset[str]) -> float:
        return sum(self._rarity[word] for word in roots)

    def _is_named(self, statement: _Statement, roots: frozenset[str]) -> bool:
        """Whether these words name the title of the source, and the question does not."""
        title = statement.title
        return bool(title) and title <= roots and not title <= self._rarity.keys()


def _roots(text: str) -> frozenset[str]:
    """Of the words of a text, and of the words in its identifiers."""
    parts: list[str] = []
    for word in words(text):
        parts += [word, *word.split("_")]

    return frozenset(root(part) for part in parts if part)


def _is_new(statement: _Statement, chosen: Sequence[_Statement]) -> bool:
    """Whether a statement says something else than those that were chosen."""
    for picked in chosen:
        shared = len(statement.roots & picked.roots)
        shorter = min(len(statement.roots), len(picked.roots))
        if shared / max(1, shorter) >= _SAME:
            return False

    return True
