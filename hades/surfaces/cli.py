"""The command `hades`. Only names and flags here: each body is imported when it runs, so `--help` stays light."""

from __future__ import annotations

from typing import Annotated

import typer

from hades.surfaces.output import Answer, DebugFlag, JsonFlag, answer_with

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


@app.command()
def demo(as_json: JsonFlag = False, debug: DebugFlag = False) -> None:
    """Build a small graph from the standard library and read it back; no key, no network.

    Writes only to `demo/` under HADES_HOME; your own graph is not touched.
    """

    def body() -> Answer:
        from hades.surfaces.cli_demo import run_demo

        return run_demo()

    answer_with(body, as_json=as_json, debug=debug)


@app.command()
def doctor(
    deep: Annotated[bool, typer.Option("--deep", help="Also read the whole store and check every page.")] = False,
    as_json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """Say what is there and what is wrong: versions, settings, disk, store, model, snapshot.

    Exit code 1 when a line says `fail`; each such line names the next step. Changes nothing.
    """

    def body() -> Answer:
        from hades.surfaces.cli_doctor import examine

        return examine(deep=deep)

    answer_with(body, as_json=as_json, debug=debug)


@app.command()
def provision(as_json: JsonFlag = False, debug: DebugFlag = False) -> None:
    """Create the collections, indexes and views the catalogue declares; safe to repeat.

    The only command that needs the admin endpoint or credential.
    """

    def body() -> Answer:
        from hades.surfaces.cli_store import provision_store

        return provision_store()

    answer_with(body, as_json=as_json, debug=debug)


@app.command()
def status(as_json: JsonFlag = False, debug: DebugFlag = False) -> None:
    """Count the rows of each collection, what was set aside, and the last runs."""

    def body() -> Answer:
        from hades.surfaces.cli_store import show_status

        return show_status()

    answer_with(body, as_json=as_json, debug=debug)


if __name__ == "__main__":
    main()
