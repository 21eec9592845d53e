"""The command `hades`, made from what is declared; bodies are imported when they run, so `--help` stays light."""

from __future__ import annotations

from typing import Annotated

import typer
from typer.completion import completion_init  # type: ignore[attr-defined]

from hades.surfaces.capabilities.registry import CAPABILITIES, COMMANDS
from hades.surfaces.cli.commands import add_commands
from hades.surfaces.cli.progress import QUIET

app = typer.Typer(
    name="hades",
    help="Documents, papers and code as a knowledge graph that answers with short, cited paths.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Entry point of the console script."""
    completion_init()  # the shell asks through the environment which words may follow
    app(prog_name="hades")


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"hades {version('hades-graphrag')}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and stop.", callback=_version, is_eager=True)
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", help="No progress and no report of work done, whichever command follows.")
    ] = False,
) -> None:
    """Documents, papers and code as a knowledge graph that answers with short, cited paths."""
    QUIET.set(quiet)


GROUPS = {
    "ingest": "Turn material into nodes, chunks, embeddings and edges; safe to stop and to repeat.",
    "memory": "Memory through time: versions, edges, and what was known when.",
    "token": "Tokens for the service on TCP; only their hashes are stored.",
    "eval": "Evaluate retrieval, compared with BM25, dense and hybrid baselines.",
    "graph": "Look at the published graph: nodes, neighbours, topics.",
    "entity": "Correct entities by hand: idempotent, reviewed where it matters, kept by builds, undoable.",
}
add_commands(app, (*COMMANDS, *CAPABILITIES), GROUPS)


if __name__ == "__main__":
    main()
