"""The command `hades`, made from what is declared; bodies are imported when they run, so `--help` stays light."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from hades.surfaces.capabilities.registry import CAPABILITIES, COMMANDS
from hades.surfaces.cli.commands import add_commands

app = typer.Typer(
    name="hades",
    help="Documents, papers and code as a knowledge graph that answers with short, cited paths.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class NoPandas:
    """Keeps Arrow from importing pandas, which it does at its first conversion and which takes half a second."""

    def find_spec(self, name: str, path: object, target: object = None) -> None:
        """Refuse pandas; leave other modules to the other finders."""
        if name == "pandas":
            raise ModuleNotFoundError("commands that ask do not load pandas", name=name)


WITHOUT_PANDAS = ("query", "answer", "explain", "feedback", "queries", "status")


def main() -> None:
    """Entry point of the console script."""
    if sys.argv[1:2] and sys.argv[1] in WITHOUT_PANDAS:
        sys.meta_path.insert(0, NoPandas())
    app()


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
) -> None:
    """Documents, papers and code as a knowledge graph that answers with short, cited paths."""


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
