"""`hades eval`: only names and flags; bodies are imported when they run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hades.surfaces.output import Answer, DebugFlag, JsonFlag, answer_with

app = typer.Typer(help="How good retrieval is, beside BM25, dense and their fusion, which run always.")

KOption = Annotated[str, typer.Option("-k", help="Depths, separated by commas.")]
HomeOption = Annotated[
    Path | None, typer.Option(help="Build here and keep it, so that a second run need not embed again.")
]
OutOption = Annotated[Path | None, typer.Option(help="Write results.json and recall.svg into this folder.")]


def register(root: typer.Typer) -> None:
    """Add the commands."""
    root.add_typer(app, name="eval", no_args_is_help=True)


@app.command("multihop")
def multihop(
    corpus: Annotated[Path, typer.Option(help="Rows of id, title and text.")],
    questions: Annotated[Path, typer.Option(help="Rows of question and gold (ids of the corpus).")],
    triples: Annotated[Path | None, typer.Option(help="Rows of id, entities and triples.")] = None,
    recipes: Annotated[str | None, typer.Option(help="Recipes, separated by commas; `ladder` for all of them.")] = None,
    k: KOption = "2,5,10",
    home: HomeOption = None,
    out: OutOption = None,
    as_json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """Build a graph of a corpus, ask every question, and print recall beside the baselines."""
    depths = _depths(k)

    def body() -> Answer:
        from hades.surfaces.cli_eval import run_multihop

        return run_multihop(corpus, questions, triples, recipes, depths, home, out)

    answer_with(body, as_json=as_json, debug=debug)


def _depths(text: str) -> tuple[int, ...]:
    try:
        found = tuple(sorted({int(part) for part in text.split(",")}))
    except ValueError:
        found = ()
    if not found or found[0] < 1:
        raise typer.BadParameter(f"{text!r} are no depths; write them as 2,5,10")
    return found
