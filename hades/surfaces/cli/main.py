"""The command `hades`, made from what is declared.

Bodies are imported when they run, so `--help` stays light, and a command that is named reads no other declaration.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence
from functools import cache
from typing import Annotated

import typer
from typer.completion import completion_init  # type: ignore[attr-defined]

from hades.surfaces.capabilities.capability import Capability, LocalCommand
from hades.surfaces.capabilities.registry import declared_under
from hades.surfaces.cli.commands import add_commands
from hades.surfaces.cli.progress import QUIET

GROUPS = {
    "ingest": "Turn material into nodes, chunks, embeddings and edges; safe to stop and to repeat.",
    "memory": "Memory through time: versions, edges, and what was known when.",
    "token": "Tokens for the service on TCP; only their hashes are stored.",
    "eval": "Evaluate retrieval, compared with BM25, dense and hybrid baselines.",
    "graph": "Look at the published graph: nodes, neighbours, topics.",
    "entity": "Correct entities by hand: idempotent, reviewed where it matters, kept by builds, undoable.",
}


def main() -> None:
    """Entry point of the console script."""
    completion_init()  # the shell asks through the environment which words may follow
    word = next((one for one in sys.argv[1:] if not one.startswith("-")), None)  # none when the shell asks
    declared = declared_under(word)
    if all(isinstance(one, Capability) for one in declared):
        from hades.settings.quiet import multiply_in_one_thread

        multiply_in_one_thread()
    try:
        make_app(declared)(prog_name="hades")
    finally:
        gc.freeze()  # the end of the process looks for garbage among all that is left: a seventh of a question's time


@cache
def whole_app() -> typer.Typer:
    """Every command, for documentation and tests."""
    return make_app(declared_under(None))


def make_app(declared: Sequence[Capability | LocalCommand]) -> typer.Typer:
    """The command line of these declarations."""
    app = typer.Typer(
        name="hades",
        help="Documents, papers and code as a knowledge graph that answers with short, cited paths.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        callback=root,
    )
    add_commands(app, declared, GROUPS)
    return app


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"hades {version('hades-graphrag')}")
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
    QUIET.set(quiet)


if __name__ == "__main__":
    main()
