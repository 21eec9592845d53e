"""The command `hades`, made from what is declared; bodies are imported when they run, so `--help` stays light."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

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


class NoPandas:
    """Keeps Arrow from importing pandas, which it does at its first conversion and which takes half a second."""

    def find_spec(self, name: str, path: object, target: object = None) -> None:
        """Refuse pandas; leave other modules to the other finders."""
        if name == "pandas":
            raise ModuleNotFoundError("Arrow starts without pandas", name=name)


ARROW_ALONE = ("forget", "ingest", "publish", "rollback", "repair", "snapshots")


def main() -> None:
    """Entry point of the console script."""
    if "_HADES_COMPLETE" in os.environ:
        from typer.completion import completion_init  # type: ignore[attr-defined]

        completion_init()
    elif sys.argv[1:2] and (sys.argv[1] in ARROW_ALONE or sys.argv[1:3] == ["run", "nightly"]):
        _start_arrow_alone()
    app(prog_name="hades")


def _start_arrow_alone() -> None:
    """Let Arrow look for pandas while there is none; a library that needs pandas itself may still import it later."""
    finder = NoPandas()
    sys.meta_path.insert(0, finder)
    import pyarrow

    pyarrow.array([None])
    sys.meta_path.remove(finder)


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
