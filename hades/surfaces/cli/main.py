"""The command `hades`. Only names and flags here: each body is imported when it runs, so `--help` stays light."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from hades.surfaces.capabilities.registry import CAPABILITIES
from hades.surfaces.cli import build_commands, eval_commands, operation_commands, serve_commands, user_commands
from hades.surfaces.cli import mcp_commands as cli_mcp
from hades.surfaces.cli.commands import add_commands
from hades.surfaces.cli.output import Answer, DebugFlag, JsonFlag, answer_with

app = typer.Typer(
    name="hades",
    help="Documents, papers and code as a knowledge graph that answers with short, cited paths.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class NoPandas:
    """Arrow loads pandas at its first conversion where it finds it: half a second that no answer needs."""

    def find_spec(self, name: str, path: object, target: object = None) -> None:
        """Say that there is none; of other modules, nothing."""
        if name == "pandas":
            raise ModuleNotFoundError("pandas is left out of commands that only ask", name=name)


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


@app.command()
def demo(as_json: JsonFlag = False, debug: DebugFlag = False) -> None:
    """Build a small graph from the standard library and read it back; no key, no network.

    Writes only to `demo/` under HADES_HOME; your own graph is not touched.
    """

    def body() -> Answer:
        from hades.surfaces.cli.demo import run_demo

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
        from hades.surfaces.cli.doctor_views import examine

        return examine(deep=deep)

    answer_with(body, as_json=as_json, debug=debug)


@app.command()
def provision(
    only: Annotated[
        str | None,
        typer.Option(help="memory: a smaller database for memory alone; all: everything, also in a smaller one."),
    ] = None,
    as_json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """Create the collections, indexes and views the catalogue declares; safe to repeat.

    The only command that needs the admin endpoint or credential. A database stays what it was made for unless --only
    says otherwise. With HADES_TENANT it is the tenant's own.
    """
    if only not in (None, "memory", "all"):
        raise typer.BadParameter(f"{only!r} is no part of the catalogue; use memory or all")

    def body() -> Answer:
        from hades.surfaces.cli.store_views import provision_store

        return provision_store(only)

    answer_with(body, as_json=as_json, debug=debug)


@app.command()
def status(as_json: JsonFlag = False, debug: DebugFlag = False) -> None:
    """Count the rows of each collection, what was set aside, and the last runs."""

    def body() -> Answer:
        from hades.surfaces.cli.store_views import show_status

        return show_status()

    answer_with(body, as_json=as_json, debug=debug)


ingest_app = typer.Typer(help="Turn material into nodes, chunks, embeddings and edges; safe to stop and to repeat.")
app.add_typer(ingest_app, name="ingest", no_args_is_help=True)

PhaseOption = Annotated[
    str | None, typer.Option("--phase", help="Run one phase only: nodes, chunks, embeddings or edges.")
]
NoEdgesFlag = Annotated[bool, typer.Option("--no-edges", help="Stop before the edges phase.")]
PHASES = ("nodes", "chunks", "embeddings", "edges")


@ingest_app.command("workspace")
def ingest_workspace(
    path: Annotated[Path, typer.Argument(help="Folder of code; .gitignore is respected.")],
    phase: PhaseOption = None,
    no_edges: NoEdgesFlag = False,
    no_history: Annotated[bool, typer.Option("--no-history", help="Leave out the commits of the repository.")] = False,
    as_json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """Ingest code by its functions and classes, pages and commits. Files that are gone are forgotten."""
    history = not no_history
    _ingest(
        lambda hades, phases: hades.ingest.workspace(path, phases, history=history), phase, no_edges, as_json, debug
    )


@ingest_app.command("documents")
def ingest_documents(
    path: Annotated[
        Path,
        typer.Argument(
            help="Folder or file: Markdown, text, HTML, PDF, Word, slides, sheets, notebooks, mail, subtitles, EPUB."
        ),
    ],
    phase: PhaseOption = None,
    no_edges: NoEdgesFlag = False,
    as_json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """Ingest documents. Files that are gone from the folder are forgotten."""
    _ingest(lambda hades, phases: hades.ingest.documents(path, phases), phase, no_edges, as_json, debug)


@ingest_app.command("arxiv")
def ingest_arxiv(
    papers: Annotated[Path, typer.Argument(help="PAPERS.jsonl[.gz], the public snapshot's form or ours.")],
    citations: Annotated[Path | None, typer.Option(help="Rows of src, dst and n_mentions or context.")] = None,
    code_links: Annotated[Path | None, typer.Option(help="Rows of id and repo.")] = None,
    phase: PhaseOption = None,
    no_edges: NoEdgesFlag = False,
    as_json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """Ingest papers by their metadata, with citations and links to code."""
    _ingest(
        lambda hades, phases: hades.ingest.arxiv(papers, citations, code_links, phases), phase, no_edges, as_json, debug
    )


@ingest_app.command("passages")
def ingest_passages(
    corpus: Annotated[Path, typer.Argument(help="CORPUS.jsonl[.gz]: rows of id, title and text.")],
    triples: Annotated[Path | None, typer.Option(help="Rows of id, entities and triples.")] = None,
    phase: PhaseOption = None,
    no_edges: NoEdgesFlag = False,
    as_json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """Ingest passages, with ready-made triples where there are any."""
    _ingest(lambda hades, phases: hades.ingest.passages(corpus, triples, phases), phase, no_edges, as_json, debug)


@ingest_app.command("conversation")
def ingest_conversation(
    file: Annotated[
        Path, typer.Argument(help="Chat log: JSONL or JSON of messages, a ChatGPT or Claude export, LoCoMo; also .gz.")
    ],
    name: Annotated[str | None, typer.Option(help="Name of the conversation; default: the file's name.")] = None,
    as_json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """Put a conversation into memory, one state a turn, with speaker, time and session; repeat it to add new turns."""

    def body() -> Answer:
        from hades.surfaces.cli.ingest_views import run_conversation

        return run_conversation(file, name)

    answer_with(body, as_json=as_json, debug=debug)


@ingest_app.command("triples")
def ingest_triples(
    max_calls: Annotated[
        int | None, typer.Option(min=1, help="Maximum number of calls; without it only the cost is estimated.")
    ] = None,
    as_json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """Let the language model of HADES_LLM_BASE_URL read facts in the texts; says the cost first, asks once per text."""

    def body() -> Answer:
        from hades.surfaces.cli.ingest_views import run_triples

        return run_triples(max_calls)

    answer_with(body, as_json=as_json, debug=debug)


def _ingest(read: Callable[[Any, Any], Any], phase: str | None, no_edges: bool, as_json: bool, debug: bool) -> None:
    if phase is not None and phase not in PHASES:
        raise typer.BadParameter(f"{phase!r} is not a phase; use one of {', '.join(PHASES)}")

    def body() -> Answer:
        from hades.surfaces.cli.ingest_views import run_ingest

        return run_ingest(read, phase, no_edges)

    answer_with(body, as_json=as_json, debug=debug)


@app.command()
def forget(
    ids: Annotated[list[str], typer.Argument(metavar="DOCUMENT_ID...", help="Ids as they came in, or document keys.")],
    as_json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """Remove documents and every fact that only they support; print a certificate."""

    def body() -> Answer:
        from hades.surfaces.cli.ingest_views import run_forget

        return run_forget(ids)

    answer_with(body, as_json=as_json, debug=debug)


@app.command()
def publish(
    prune: Annotated[int | None, typer.Option(help="Afterwards keep only this number of the newest snapshots.")] = None,
    as_json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """Write the read index from the store and let readers see it at once."""

    def body() -> Answer:
        from hades.surfaces.cli.ingest_views import run_publish

        return run_publish(prune)

    answer_with(body, as_json=as_json, debug=debug)


build_commands.register(app)
eval_commands.register(app)
serve_commands.register(app)
operation_commands.register(app)
cli_mcp.register(app)
user_commands.register(app)


GROUPS = {
    "memory": "Memory through time: versions, edges, and what was known when.",
    "entity": "Correct entities by hand: idempotent, reviewed where it matters, kept by builds, undoable.",
}
add_commands(app, CAPABILITIES, GROUPS)


if __name__ == "__main__":
    main()
