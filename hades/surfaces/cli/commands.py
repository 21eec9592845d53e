"""The program `hades`: its table of commands and its entry point. A command imports what it needs when it is called."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.completion import completion_init  # type: ignore[attr-defined]
from typer.core import TyperCommand, TyperGroup


def main() -> None:
    """Entry point of the console script."""
    completion_init()  # the shell asks through the environment which words may follow
    whole_app()(prog_name="hades")


# Commands by the modules of `hades.surfaces` that declare them: together they import most of the library, so a call
# imports its own only.
COMMANDS: Mapping[str, str] = {
    "capabilities.questions": "query answer explain feedback queries",
    "capabilities.graph": "overview compare snapshots rollback promote discard",
    "cli.ingest": "forget publish init completion demo provision",
    "cli.build": "build run repair watch backup restore export import",
    "cli.serve": "serve status",
    "cli.evaluation": "exam",
    "cli.doctor": "doctor",
}
GROUPS: Mapping[str, tuple[str, str]] = {
    "ingest": ("cli.ingest", "Turn material into nodes, chunks, embeddings and edges; safe to stop and to repeat."),
    "memory": (
        "capabilities.memory_states capabilities.memory_recall",
        "Memory through time: versions, edges, and what was known when.",
    ),
    "standing": (
        "capabilities.graph",
        "Questions that each build asks before it publishes; changed answers with their causes.",
    ),
    "contracts": (
        "cli.build",
        "Rules that rows must keep: export them to Great Expectations, try new ones on past builds.",
    ),
    "graph": ("capabilities.graph", "Look at the published graph: nodes, neighbours, topics."),
    "entity": (
        "capabilities.graph",
        "Correct entities by hand: idempotent, reviewed where it matters, kept by builds, undoable.",
    ),
    "mcp": ("cli.serve", "Serve the tools of the Model Context Protocol, or install them in an agent's configuration."),
    "token": ("cli.serve", "Tokens for the service on TCP; only their hashes are stored."),
    "eval": ("cli.evaluation", "Evaluate retrieval, compared with BM25, dense and hybrid baselines."),
}


@cache
def lines_of_help(module: str) -> dict[str, str]:
    """The first line of help of each command of a module, read from its text: nothing is imported for it."""
    source = Path(__file__).parents[1].joinpath(*module.split(".")).with_suffix(".py").read_text("utf-8")
    declared = r'^@(?:local_command|capability)\(\s*"(\w+)".*?^    """(.+?)(?:"""|$)'
    return dict(re.findall(declared, source, re.MULTILINE | re.DOTALL))


class DeferredCommand(TyperCommand):
    """A command or group of which only the line of help is known: parsing its arguments imports what declares it."""

    def __init__(self, name: str, modules: str, group_help: str | None = None) -> None:
        super().__init__(name, short_help=group_help)
        self._modules, self._group_help = modules, group_help

    def describe(self) -> None:
        """Look up the line of help."""
        self.short_help = self.short_help or lines_of_help(self._modules)[str(self.name)]

    def load(self) -> TyperCommand | TyperGroup:
        """The command itself, or the group."""
        from hades.surfaces.cli.parameters import command_of

        modules = [import_module(f"hades.surfaces.{name}") for name in self._modules.split()]
        return command_of(str(self.name), modules, self._group_help)

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        """The context of the command itself."""
        return self.load().make_context(*arguments, **options)


class Program(TyperGroup):
    """Every command and group."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        for modules, names in COMMANDS.items():
            for name in names.split():
                self.add_command(DeferredCommand(name, modules))
        for name, (modules, summary) in GROUPS.items():
            self.add_command(DeferredCommand(name, modules, summary))

    def list_commands(self, ctx: Any) -> list[str]:
        """Every name, for help and completion, which also show what each does."""
        for command in self.commands.values():
            if isinstance(command, DeferredCommand):
                command.describe()
        return super().list_commands(ctx)


@cache
def whole_app() -> typer.Typer:
    """Every command."""
    return typer.Typer(
        name="hades",
        cls=Program,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        callback=root,
    )


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"hades {version_of('hades-graphrag')}")
        raise typer.Exit


def root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and stop.", callback=_version, is_eager=True)
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", help="No progress and no report of work done, whichever command follows.")
    ] = False,
) -> None:
    """Documents, papers and code as a knowledge graph that answers with short, cited paths."""


if __name__ == "__main__":
    main()
