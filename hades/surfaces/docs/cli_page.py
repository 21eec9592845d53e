"""The command line as a page, read from the commands themselves."""

from __future__ import annotations

import inspect
from typing import Any

import typer

from hades.surfaces.cli.main import whole_app
from hades.surfaces.docs.markdown import NOTICE, code, page, table


def cli_page() -> str:
    """`docs/reference/cli.md`."""
    commands = command_tree()
    lines = [
        NOTICE,
        "# Command line",
        "",
        "Every command takes `--json` (one JSON document on stdout, everything else on stderr) and `--debug` (show the",
        "traceback of an error). Exit 0: done. Exit 1: failed, with a message on stderr that names the thing, the",
        'expectation and the next step; with `--json` also `{"error": {"type": ..., "message": ...}}` on stdout.',
        "Exit 2: bad usage.",
        "",
        *table(("command", "what it does"), ((code(name), _summary(command)) for name, command in commands.items())),
    ]
    for name, command in commands.items():
        lines += ["", f"## `{name}`", "", inspect.cleandoc(command.help or ""), "", *_parameters(command)]
    return page(lines)


def command_tree() -> dict[str, Any]:
    """Every command by its full name, groups opened."""
    found: dict[str, Any] = {}

    def walk(name: str, command: Any) -> None:
        inner = getattr(command, "commands", None)
        if inner is None:
            found[name] = command
        else:
            for child in sorted(inner):
                walk(f"{name} {child}", inner[child])

    walk("hades", typer.main.get_command(whole_app()))
    return found


def _summary(command: Any) -> str:
    return inspect.cleandoc(command.help or "").split("\n\n")[0].replace("\n", " ")


def _parameters(command: Any) -> list[str]:
    rows = []
    for parameter in command.params:
        is_option = parameter.param_type_name == "option"
        name = ", ".join(parameter.opts) if is_option else str(parameter.metavar or parameter.name.upper())
        default = "" if parameter.default in (None, False) else str(parameter.default)
        rows.append((code(name), code(default), getattr(parameter, "help", None) or ""))
    return table(("option", "default", "meaning"), rows)
