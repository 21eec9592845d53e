"""The program `hades`: its table of commands and its entry point. A command imports what it needs
when it is called.
"""

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

from hades.errors import plain_message


def main() -> None:
    """Entry point of the console script."""
    completion_init()  # the shell asks through the environment which words may follow
    whole_app()(prog_name="hades")


# Every command under its heading of the help, with the modules of `hades.surfaces` that declare it:
# together they import most of the library, so a call imports its own only.
COMMANDS: Mapping[str, Mapping[str, str]] = {
    "Start here": {
        "demo": "cli.ingest",
        "ingest": "cli.ingest",
        "watch": "cli.build",
        "build": "cli.build",
        "query": "capabilities.questions",
        "answer": "capabilities.questions",
        "serve": "cli.serve",
    },
    "Ask": {
        "overview": "capabilities.graph",
        "graph": "capabilities.graph",
        "explain": "capabilities.questions",
        "feedback": "capabilities.questions",
        "queries": "capabilities.questions",
        "standing": "capabilities.graph",
    },
    "Memory": {"memory": "capabilities.memory_states capabilities.memory_recall"},
    "Change what is known": {
        "sources": "cli.sources",
        "entity": "capabilities.graph",
        "forget": "cli.ingest",
        "repair": "cli.build",
    },
    "Nights and snapshots": {
        "run": "cli.build",
        "plan": "cli.plan",
        "apply": "cli.plan",
        "publish": "cli.ingest",
        "snapshots": "capabilities.graph",
        "diff": "capabilities.graph",
        "log": "capabilities.history",
        "tag": "cli.history",
        "blame": "capabilities.history",
        "branch": "cli.history",
        "merge": "cli.history",
        "compare": "capabilities.graph",
        "promote": "capabilities.graph",
        "rollback": "capabilities.graph",
        "discard": "capabilities.graph",
    },
    "Quality": {
        "check": "cli.check",
        "exam": "cli.evaluation",
        "eval": "cli.evaluation cli.evaluation_sets",
        "contracts": "cli.build",
    },
    "Agents and services": {
        "mcp": "cli.serve cli.install_mcp",
        "token": "cli.serve",
    },
    "Operate": {
        "init": "cli.ingest",
        "trust": "cli.trust",
        "doctor": "cli.doctor",
        "status": "cli.serve",
        "provision": "cli.ingest",
        "backup": "cli.build",
        "restore": "cli.build",
        "export": "cli.build",
        "import": "cli.build",
        "completion": "cli.ingest",
    },
}
# Commands that hold others, with what a function's docstring says of the rest.
GROUPS: Mapping[str, str] = {
    "ingest": "Turn material into nodes, chunks, embeddings and edges; safe to stop and to repeat.",
    "sources": "Places elsewhere that are kept in step: buckets, web sites, databases.",
    "memory": "Memory through time: versions, edges, and what was known when.",
    "standing": "Questions that each build asks before it publishes; changed answers with their "
    "causes.",
    "contracts": "Rules that rows must keep: export them to Great Expectations, try new ones on "
    "past builds.",
    "graph": "Look at the published graph: nodes, neighbours, topics.",
    "entity": "Correct entities by hand: idempotent, reviewed where it matters, kept by builds, "
    "undoable.",
    "mcp": "Serve the tools of the Model Context Protocol, or install them in an agent's "
    "configuration.",
    "token": "Tokens for the service on TCP; only their hashes are stored.",
    "eval": "Evaluate retrieval, compared with BM25, dense and hybrid baselines.",
}


@cache
def lines_of_help(module: str) -> dict[str, str]:
    """The first sentence of help of each command of a module, read from its text: nothing is
    imported for it.
    """
    source = (
        Path(__file__).parents[1].joinpath(*module.split(".")).with_suffix(".py").read_text("utf-8")
    )
    declaration = r'^@(?:local_command|capability)\(\s*"(\w+)".*?^    """(.+?[.])(?:"""|\s)'
    sentences = re.findall(
        declaration,
        source,
        re.MULTILINE | re.DOTALL,
    )
    return {name: " ".join(sentence.split()) for name, sentence in sentences}


@cache
def load_command(
    name: str,
    modules: str,
    group_help: str | None,
) -> TyperCommand | TyperGroup:
    """The command or group that these modules declare."""
    from hades.surfaces.cli.parameters import command_of

    declaring = []

    for module in modules.split():
        declaring.append(import_module(f"hades.surfaces.{module}"))

    return command_of(name, declaring, group_help)


class DeferredCommand(TyperCommand):
    """A command or group of which only the line of help is known: parsing its arguments imports
    what declares it.
    """

    def __init__(
        self,
        name: str,
        modules: str,
        heading: str,
        group_help: str | None = None,
    ) -> None:
        super().__init__(
            name,
            short_help=group_help,
            rich_help_panel=heading,
        )
        self._modules = modules
        self._group_help = group_help

    def describe(self) -> None:
        """Look up the line of help."""
        self.short_help = self.short_help or lines_of_help(self._modules)[str(self.name)]

    def load(self) -> TyperCommand | TyperGroup:
        """The command itself, or the group."""
        return load_command(
            str(self.name),
            self._modules,
            self._group_help,
        )

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        """The context of the command itself."""
        return self.load().make_context(*arguments, **options)


class Program(TyperGroup):
    """Every command and group."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        for heading, commands in COMMANDS.items():
            for name, modules in commands.items():
                self.add_command(
                    DeferredCommand(
                        name,
                        modules,
                        heading,
                        GROUPS.get(name),
                    )
                )

    def list_commands(self, ctx: Any) -> list[str]:
        """Every name, for help and completion, which also show what each does."""
        for command in self.commands.values():
            if isinstance(command, DeferredCommand):
                command.describe()

        return super().list_commands(ctx)

    def invoke(self, ctx: Any) -> Any:
        """Run the command; what is wrong with its usage is said in plain words."""
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            error.message = plain_message(error.message)
            raise


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


def _enter_branch(context: typer.Context, name: str | None) -> None:
    """Let the settings of this command be those of a branch."""
    if name is not None:
        context.call_on_close(import_module("hades.settings.load").enter_branch(name))


def root(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Print the version and stop.",
            callback=_version,
            is_eager=True,
        ),
    ] = False,
    quiet: Annotated[
        bool,
        typer.Option(
            "--quiet",
            help="No progress and no report of work done, whichever command follows.",
        ),
    ] = False,
    branch: Annotated[
        str | None,
        typer.Option(
            "--branch",
            help="Work in this branch of the home, as with HADES_BRANCH.",
            callback=_enter_branch,
            metavar="NAME",
        ),
    ] = None,
) -> None:
    """Documents, papers and code as a knowledge graph that answers with short, cited paths."""


if __name__ == "__main__":
    main()
