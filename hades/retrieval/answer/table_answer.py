"""Questions that mean rows of a table: "which plan has more than 10 seats", "how many regions have
X", "what does plan Y cost".

Such a question is answered by a filter over the rows only where every word of it that carries
meaning is a column, a value, a name of the table, or says what to do with the rows. Anything else
is no question of a table, and nothing is guessed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from statistics import mean
from typing import NamedTuple

from hades.ports.graph import SourceFacts
from hades.retrieval.answer.assemble import place_of
from hades.retrieval.core.words import content_words
from hades.retrieval.core.words import stem as short_stem
from hades.retrieval.ranking.select import base
from hades.text.words import words
from schemas.answer import AnswerSentence, AnswerSource, CitedPassage
from schemas.ids import Span

_MOST_SOURCES = 8
_MOST_NAMED = 20
_MOST_ROWS = 20_000
_ROW = re.compile(r"^- row (\d+): (.+)$", re.MULTILINE)
_PIPES = re.compile(
    r"^\|.+\|[ \t]*\n\|[ :|-]+\|[ \t]*\n((?:\|.*\|[ \t]*(?:\n|\Z))+)",
    re.MULTILINE,
)
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_CELLS = re.compile(r"(?<!\\)\|")
_MARKUP = re.compile(r"[`*]|\[([^\]]*)\]\([^)]*\)")
_DATE = r"\d{4}-\d{2}-\d{2}"
_VALUE = rf"({_DATE}|[$€£]?\d[\d,]*(?:\.\d+)?%?)"
_NUMBER = re.compile(r"[$€£]?(-?\d[\d,]*(?:\.\d+)?)%?")
_COMPARISONS = (
    (">=", r"(?:at least|no (?:less|fewer) than|not (?:less|fewer) than|from)"),
    ("<=", r"(?:at most|no more than|not more than|up to)"),
    (">", r"(?:more than|greater than|higher than|larger than|over|above|after|since)"),
    ("<", r"(?:less than|fewer than|lower than|smaller than|under|below|before)"),
)
_OPERATIONS = (
    ("COUNT", r"\b(?:how many|(?:the )?number of)\b"),
    ("SUM", r"\b(?:(?:the )?(?:total|sum)(?: of)?|altogether)\b"),
    ("AVG", r"\b(?:average|mean)\b"),
    ("MAX", r"\b(?:highest|largest|greatest|biggest|maximum|(?<!at )most|latest)\b"),
    ("MIN", r"\b(?:lowest|smallest|(?<!at )(?<!no )least|fewest|minimum|cheapest|earliest)\b"),
)
_ASKS = re.compile(
    r"\s*(?:which|what|how|who|when|where|list|show|give)\b",
    re.IGNORECASE,
)
_PRICES = ("price", "cost", "fee", "charge", "rate")
_PRICE_ASKED = re.compile(r"\b(?:costs?|price|expensive|cheapest)\b", re.IGNORECASE)
_SAYS_NOTHING = frozenset(
    ("have", "has", "had", "use", "uses", "used", "list", "show", "give", "there", "all")
)


class Row(NamedTuple):
    """A row of a table: its number, its cells by column, and where it stands in the text."""

    number: int
    cells: dict[str, str]
    span: Span


@dataclass(frozen=True)
class Table:
    """Rows below one header; `names` are the words that the table is known by."""

    document: str
    document_id: str
    title: str
    names: frozenset[str]
    columns: tuple[str, ...]
    rows: tuple[Row, ...]


@dataclass
class RowQuery:
    """What a question asks of a table."""

    operation: str = ""
    target: str = ""
    conditions: list[tuple[str, str, str]] = field(default_factory=list)

    def write(self, table: Table) -> str:
        """The query as it is shown, in the words of SQL."""
        target = f'"{self.target}"' if self.target else "*"
        if self.operation:
            selected = f"{self.operation}({target})"
        else:
            selected = target

        where = " AND ".join(
            f"\"{column}\" {sign} '{value}'" for column, sign, value in self.conditions
        )
        return f'SELECT {selected} FROM "{table.document}"' + (f" WHERE {where}" if where else "")


def answer_from_tables(
    question: str,
    passages: Sequence[CitedPassage],
    read: Callable[[Sequence[str]], Sequence[SourceFacts | None]],
) -> tuple[tuple[AnswerSource, ...], tuple[AnswerSentence, ...]]:
    """The rows that a question means, with the query that found them; nothing where it means no
    table of these passages' documents, or more than one.
    """
    if not _ASKS.match(question):
        return (), ()

    documents = list(dict.fromkeys(passage.document_id for passage in passages))
    answers = []
    for source in read(documents):
        for table in tables_of(source) if source is not None else ():
            query = read_query(question, table)
            if query is None:
                answer = None
            else:
                answer = _answer(query, table, passages)

            if answer is not None:
                answers.append(answer)

    return answers[0] if len(answers) == 1 else ((), ())


def tables_of(source: SourceFacts) -> Iterator[Table]:
    """The tables of a document: rows that a sheet was written as, and tables of Markdown."""
    rows: list[Row] = []
    for line in _ROW.finditer(source.text):
        number = int(line[1])
        cells = _named_cells(line[2])
        if rows and number <= rows[-1].number:
            yield _table(source, rows, "")
            rows = []

        rows.append(Row(number, cells, line.span()))

    if rows:
        yield _table(source, rows, "")

    for pipes in _PIPES.finditer(source.text):
        columns = _cells(source.text[pipes.start() : source.text.index("\n", pipes.start())])
        rows = []
        start = pipes.start(1)

        for number, line_text in enumerate(pipes[1].splitlines(), 1):
            cells = dict(zip(columns, _cells(line_text), strict=False))
            rows.append(Row(number, cells, (start, start + len(line_text))))
            start += len(line_text) + 1

        headings = _HEADING.findall(source.text, 0, pipes.start())
        yield _table(
            source,
            rows,
            headings[-1] if headings else "",
        )


def _named_cells(text: str) -> dict[str, str]:
    """The cells of a row of a sheet; none where a cell has no column."""
    cells = dict(part.partition(": ")[::2] for part in text.split(" | "))
    return {column: cell.strip() for column, cell in cells.items() if cell}


def _cells(line: str) -> list[str]:
    return [
        _MARKUP.sub(lambda match: match[1] or "", cell).strip()
        for cell in _CELLS.split(line.strip().strip("|"))
    ]


def _table(
    source: SourceFacts,
    rows: list[Row],
    heading: str,
) -> Table:
    columns: dict[str, None] = {}
    for row in rows:
        columns |= dict.fromkeys(row.cells)

    names = _stems(f"{source.title} {source.origin} {heading}") | {stem("table"), stem("row")}
    named = tuple(column for column in columns if column)
    return Table(
        source.origin,
        source.id,
        source.title,
        names,
        named,
        tuple(rows[:_MOST_ROWS]),
    )


def read_query(question: str, table: Table) -> RowQuery | None:
    """What a question asks of a table; None where some word of it means nothing there."""
    query = RowQuery()
    question = remaining = question.replace("_", " ")

    for name, pattern in _OPERATIONS:
        if not query.operation and re.search(pattern, remaining, re.IGNORECASE):
            query.operation = name
            remaining = re.sub(pattern, " ", remaining, flags=re.IGNORECASE)

    for sign, pattern in _COMPARISONS:
        for match in re.finditer(
            rf"\b{pattern} {_VALUE}",
            remaining,
            re.IGNORECASE,
        ):
            column = _measure_beside(remaining, match.span(), table)
            if column is None:
                return None
            query.conditions.append((column, sign, match[1]))

        remaining = re.sub(
            rf"\b{pattern} {_VALUE}",
            " ",
            remaining,
            flags=re.IGNORECASE,
        )

    remaining = _match_values(query, remaining, table)
    named = _named_columns(question, table)
    limited = {column for column, _, _ in query.conditions}
    free = [column for column in named if column not in limited]

    if not query.operation or query.operation == "COUNT":
        query.target = free[0] if free else ""
    else:
        measures = [column for column in free if _is_measure(table, column)]
        query.target = measures[0] if len(measures) == 1 else ""
        if not query.target:
            return None

    explained = table.names | frozenset(map(stem, _SAYS_NOTHING))
    for column in {*limited, *free}:
        explained = explained | _stems(column)

    if _PRICE_ASKED.search(question) and any(_is_price(column) for column in named):
        explained = explained | _stems(" ".join(_PRICE_ASKED.findall(question)))

    # Of all rows only what is asked of this table by name is counted; rows are listed by a column.
    is_named = bool(_stems(remaining) & table.names)
    is_asked = bool(query.conditions or query.operation) and bool(query.target or query.operation)
    if not query.conditions and query.operation == "COUNT":
        is_asked = is_named
    if is_asked and _stems(remaining) <= explained:
        return query

    return None


def _match_values(
    query: RowQuery,
    remaining: str,
    table: Table,
) -> str:
    """Add the cells that a question names as conditions, the longest first; the question without
    them.
    """
    values: dict[str, tuple[str, str]] = {}
    for row in table.rows:
        for column, cell in row.cells.items():
            if 0 < len(cell) <= 80:
                values.setdefault(cell.casefold(), (column, cell))

    header = _stems(" ".join(table.columns))
    for folded in sorted(
        values,
        key=len,
        reverse=True,
    ):
        column, cell = values[folded]
        if _stems(cell) <= header and not folded[0].isdigit():
            continue

        match = re.search(
            rf"(?<![\w.]){re.escape(cell)}(?![\w]|\.\d)",
            remaining,
            re.IGNORECASE,
        )
        if match is None:
            continue

        if _number(cell) is not None:
            beside = _column_beside(
                remaining,
                match.span(),
                table.columns,
            )
            if beside is None or all(row.cells.get(beside) != cell for row in table.rows):
                continue
            column = beside

        query.conditions.append((column, "=", cell))
        remaining = f"{remaining[: match.start()]} {remaining[match.end() :]}"

    return remaining


def _named_columns(question: str, table: Table) -> list[str]:
    """The columns that a question names, in the order of their first words there."""
    stems = [stem(word) for word in words(question)]
    question_stems = set(stems)

    named = []
    for column in table.columns:
        of_column = _stems(column)
        is_price = _is_price(column) and _PRICE_ASKED.search(question) is not None
        if (of_column and of_column <= question_stems) or is_price:
            places = []
            for part in of_column:
                if part in question_stems:
                    places.append(stems.index(part))

            named.append((min(places, default=len(stems)), column))

    return [column for _, column in sorted(named, key=lambda place: place[0])]


def _measure_beside(
    text: str,
    span: Span,
    table: Table,
) -> str | None:
    measures = []
    for column in table.columns:
        if _is_measure(table, column):
            measures.append(column)

    named = []
    for column in measures:
        if column in _named_columns(text, table):
            named.append(column)

    return _column_beside(text, span, named)


def _column_beside(
    text: str,
    span: Span,
    columns: Sequence[str],
) -> str | None:
    """The column whose name stands nearest to a value; None where it is none or two are as near."""
    distances: list[tuple[int, str]] = []
    before = words(text[: span[0]])[::-1]
    after = words(text[span[1] :])

    for column in columns:
        of_column = _stems(column)
        for side in (before, after):
            places = []
            for place, word in enumerate(side):
                if stem(word) in of_column:
                    places.append(place)

            distances += [(place, column) for place in places[:1]]

    distances.sort(key=lambda distance: distance[0])
    if not distances or (len(distances) > 1 and distances[0][0] == distances[1][0]):
        if distances and distances[0][1] == distances[1][1]:
            return distances[0][1]
        return None

    return distances[0][1]


def _is_price(column: str) -> bool:
    return any(name in column.casefold() for name in _PRICES)


def _is_measure(table: Table, column: str) -> bool:
    """Whether a column holds numbers or dates, a stray cell aside."""
    cells = [row.cells[column] for row in table.rows if row.cells.get(column)]
    return bool(cells) and sum(_number(cell) is not None for cell in cells) >= 0.8 * len(cells)


def _number(cell: str) -> float | None:
    """The number of a cell; of a date, its days as a number that has the same order."""
    if re.fullmatch(_DATE, cell):
        return float(cell.replace("-", ""))

    match = _NUMBER.fullmatch(cell.strip())
    if match is None:
        return None

    return float(match[1].replace(",", ""))


def _holds(row: Row, condition: tuple[str, str, str]) -> bool:
    column, sign, value = condition
    cell = row.cells.get(column, "")
    if sign == "=":
        return cell.casefold() == value.casefold()

    number = _number(cell)
    bound = _number(value)
    if number is None or bound is None:
        return False

    return {
        ">": number > bound,
        "<": number < bound,
        ">=": number >= bound,
        "<=": number <= bound,
    }[sign]


def _answer(
    query: RowQuery,
    table: Table,
    passages: Sequence[CitedPassage],
) -> tuple[tuple[AnswerSource, ...], tuple[AnswerSentence, ...]] | None:
    """The answer in words with the rows it is from; None where the rows do not give one."""
    chosen = []
    for row in table.rows:
        if all(_holds(row, condition) for condition in query.conditions):
            chosen.append(row)

    row_count = len(chosen)
    filled = []
    for row in chosen:
        if row.cells.get(query.target):
            filled.append(row)

    numbers = []
    for row in filled:
        numbers.append((_number(row.cells[query.target]), row))

    if query.operation == "COUNT":
        text = f"{row_count} of {len(table.rows)} rows"
    elif query.operation:
        if not numbers or any(number is None for number, _ in numbers):
            return None
        text, chosen = _aggregate(
            query,
            table,
            [(n, row) for n, row in numbers if n is not None],
        )
    else:
        values = list(dict.fromkeys(row.cells[query.target] for row in filled))
        if not values:
            return None

        if len(values) > _MOST_NAMED:
            more = f" and {len(values) - _MOST_NAMED} more"
        else:
            more = ""

        text = f"{query.target}: {', '.join(values[:_MOST_NAMED])}{more}"

    sources = tuple(_cite(table, chosen[:_MOST_SOURCES], passages))
    numbers_cited = tuple(source.number for source in sources)
    shown = f"Query: {query.write(table)} ({row_count} of {len(table.rows)} rows)"
    return sources, (
        AnswerSentence(text=text, citations=numbers_cited),
        AnswerSentence(text=shown, citations=numbers_cited[:1]),
    )


def _aggregate(
    query: RowQuery,
    table: Table,
    numbers: Sequence[tuple[float, Row]],
) -> tuple[str, list[Row]]:
    rows = [row for _, row in numbers]
    values = [number for number, _ in numbers]
    if query.operation in ("SUM", "AVG"):
        if query.operation == "SUM":
            value = sum(values)
        else:
            value = mean(values)

        name = "total" if query.operation == "SUM" else "average"
        return f"{name} {query.target}: {value:,.10g} over {len(rows)} rows", rows

    if query.operation == "MAX":
        best = max(values)
    else:
        best = min(values)

    rows = []
    for number, row in numbers:
        if number == best:
            rows.append(row)

    label = next(column for column in table.columns if column != query.target)
    names = ", ".join(row.cells.get(label, "") for row in rows[:_MOST_NAMED])
    name = "highest" if query.operation == "MAX" else "lowest"
    return f"{name} {query.target}: {rows[0].cells[query.target]} ({label} {names})", rows


def _cite(
    table: Table,
    rows: Sequence[Row],
    passages: Sequence[CitedPassage],
) -> Iterator[AnswerSource]:
    """Each row as a source, by the passage that holds it where one was found."""
    of_document = [passage for passage in passages if passage.document_id == table.document_id]
    for number, row in enumerate(rows, 1):
        holding = [
            passage
            for passage in of_document
            if passage.span[0] <= row.span[0] and row.span[1] <= passage.span[1]
        ]
        passage = (holding or of_document)[0]
        place = place_of(passage) if holding else ""
        text = " | ".join(f"{column}: {cell}" for column, cell in row.cells.items() if cell)
        yield AnswerSource(
            number=number,
            kind="passage",
            rank=passage.rank,
            id=passage.id,
            document=table.document,
            title=table.title,
            where=", ".join(filter(None, [place, f"row {row.number}"])),
            span=row.span,
            text=text,
            markdown=text,
        )


def stem(word: str) -> str:
    """A word as columns and questions share it."""
    return base(short_stem(word))


def _stems(text: str) -> frozenset[str]:
    return frozenset(map(stem, content_words(text.replace("_", " "))))
