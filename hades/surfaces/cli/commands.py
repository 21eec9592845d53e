"""The program `hades`: its table of commands and its entry point. A command imports what it needs when it is called."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import version as version_of
from typing import Annotated, Any

import typer
from typer.completion import completion_init  # type: ignore[attr-defined]
from typer.core import TyperCommand, TyperGroup

ABOUT = "Documents, papers and code as a knowledge graph that answers with short, cited paths."


def main() -> None:
    """Entry point of the console script."""
    completion_init()  # the shell asks through the environment which words may follow
    whole_app()(prog_name="hades")


# The lines of `hades --help`, known before anything is imported: how the help of each command begins. By the modules of
# `hades.surfaces` that declare the commands: together they import most of the library, so a call imports its own only.
COMMANDS: Mapping[str, Mapping[str, str]] = {
    "capabilities.questions": {
        "query": "Answer a question with cited paths and passages, inside the plan's budget; reasons say what was cut.",
        "answer": "Answer a question in sentences, each with the numbers of the sources that state it.",
        "explain": "Explain why each path was kept, and why a node was not reached.",
        "feedback": "Judge the paths and passages of an answer; builds learn from it.",
        "queries": "Write reports/queries.html: what the logged questions cost, stage by stage, and what was cut.",
    },
    "capabilities.graph": {
        "overview": "Show the corpus at a glance: what it holds, what it speaks of most, and example questions.",
        "compare": "Compare two graphs: which documents, names, edges, weights, topics and answers changed.",
        "snapshots": "List the published graphs and which one serves, newest first.",
        "rollback": "Let an older graph serve again at once, and restore the weights that belong to it.",
        "promote": "Let a snapshot serve that was built and compared, once its files are checked.",
        "discard": "Remove a snapshot that does not serve, with its pins.",
    },
    "cli.ingest": {
        "forget": "Remove documents and every fact that only they support; print a certificate.",
        "publish": "Write the read index from the store and let readers use it at once.",
        "init": "Write hades.yaml after three questions; what is given as an option is not asked.",
        "completion": "Print the completion script of a shell, for example `hades completion bash >> ~/.bashrc`.",
        "demo": "Build a small graph from the standard library and ask it three questions; no key, no network.",
        "provision": "Create the collections, indexes and views of the catalogue; safe to repeat.",
    },
    "cli.build": {
        "build": "Bring the graph up to date and publish it: the nightly build, here and now, without a server.",
        "run": "Run a flow here: without a server, or recorded on the Prefect server of PREFECT_API_URL.",
        "repair": "Recompute what a contract names as damaged: broken rows are removed and rebuilt, then published.",
        "watch": "Keep a folder up to date: ingest, build and publish now and after each change, until Ctrl-C.",
        "backup": "Write the store, the snapshots, the registry and the reports to a folder, each file with its hash.",
        "restore": "Restore HADES_HOME and the store from a backup; every file is checked before anything is changed.",
        "export": "Write memory and graph as text that other tools can read: one file for each collection.",
        "import": "Write the rows of an export into the store; rows with the same key are replaced.",
    },
    "cli.serve": {
        "serve": "Serve REST and the explorer page until stopped; by default read-only on 127.0.0.1.",
        "status": "Count the rows of each collection, what is quarantined, what is stale, and the last runs.",
    },
    "cli.evaluation": {
        "exam": "Ask the published graph the questions that its own documents supply, and show the score and the worst"
    },
    "cli.doctor": {"doctor": "Check versions, settings, disk, store, model and snapshot. Changes nothing."},
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


class DeferredCommand(TyperCommand):
    """A command or group of which only the line of help is known: parsing its arguments imports what declares it."""

    def __init__(self, name: str, modules: str, summary: str, *, is_group: bool) -> None:
        super().__init__(name, short_help=summary)
        self._modules, self._group_help = modules, summary if is_group else None

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
        for modules, lines in COMMANDS.items():
            for name, summary in lines.items():
                self.add_command(DeferredCommand(name, modules, summary, is_group=False))
        for name, (modules, summary) in GROUPS.items():
            self.add_command(DeferredCommand(name, modules, summary, is_group=True))


@cache
def whole_app() -> typer.Typer:
    """Every command."""
    return typer.Typer(
        name="hades",
        cls=Program,
        help=ABOUT,
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
