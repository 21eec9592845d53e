"""`hades eval`: only names and flags; bodies are imported when they run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hades.surfaces.cli.output import Answer, DebugFlag, JsonFlag, answer_with

app = typer.Typer(help="Evaluate retrieval, compared with BM25, dense and hybrid baselines.")

KOption = Annotated[str, typer.Option("-k", help="Depths, separated by commas.")]
RecipesOption = Annotated[
    str | None,
    typer.Option(help="Recipes, separated by commas; `ladder` for every one, and each with a part taken out."),
]
HomeOption = Annotated[
    Path | None, typer.Option(help="Build here and keep it, so that a second run need not embed again.")
]
OutOption = Annotated[Path | None, typer.Option(help="Write the results and the picture into this folder.")]
PapersOption = Annotated[Path | None, typer.Option(help="Rows of id, title and abstract; default: HADES_DATA/arxiv.")]
CitationsOption = Annotated[Path | None, typer.Option(help="Rows of src and dst; default: HADES_DATA/arxiv.")]
LinksOption = Annotated[Path | None, typer.Option(help="Rows of id and repo; default: HADES_DATA/arxiv.")]
SeedOption = Annotated[int, typer.Option(help="Which sample is drawn.")]


def register(root: typer.Typer) -> None:
    """Add the commands."""
    root.add_typer(app, name="eval", no_args_is_help=True)


@app.command("multihop")
def multihop(
    corpus: Annotated[Path, typer.Option(help="Rows of id, title and text.")],
    questions: Annotated[Path, typer.Option(help="Rows of question and gold (ids of the corpus).")],
    triples: Annotated[Path | None, typer.Option(help="Rows of id, entities and triples.")] = None,
    published: Annotated[
        Path | None, typer.Option(help="Rows of question, ground_truth and what other systems retrieved, by title.")
    ] = None,
    recipes: RecipesOption = None,
    k: KOption = "2,5,10",
    home: HomeOption = None,
    out: OutOption = None,
    as_json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """Build a graph of a corpus, ask every question, and print recall beside the baselines."""
    depths = _depths(k)

    def body() -> Answer:
        from hades.surfaces.cli.eval_views import run_multihop

        return run_multihop(corpus, questions, triples, published, recipes, depths, home, out)

    answer_with(body, as_json=as_json, debug=debug)


@app.command("citations")
def citations(
    papers: PapersOption = None,
    citations: CitationsOption = None,
    contexts: Annotated[
        Path | None, typer.Option(help="Rows of src, dst and context; default: HADES_DATA/arxiv.")
    ] = None,
    code_links: LinksOption = None,
    sample: Annotated[int, typer.Option(min=1, help="Sentences that are asked.")] = 500,
    seed: SeedOption = 1,
    ask: Annotated[str, typer.Option(help="sentence: that alone; paper: with the citing paper's title.")] = "sentence",
    recipes: RecipesOption = None,
    k: KOption = "2,5,10",
    home: HomeOption = None,
    out: OutOption = None,
    as_json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """Ask citation sentences for the paper they cite, in a graph without the citations that are asked for."""
    depths = _depths(k)
    _one_of(ask, "sentence", "paper")
    files = {"papers": papers, "citations": citations, "contexts": contexts, "code_links": code_links}

    def body() -> Answer:
        from hades.surfaces.cli.eval_views import run_citations

        return run_citations(files, sample, seed, ask, recipes, depths, home, out)

    answer_with(body, as_json=as_json, debug=debug)


@app.command("bridges")
def bridges(
    papers: PapersOption = None,
    citations: CitationsOption = None,
    code_links: LinksOption = None,
    pairs: Annotated[int, typer.Option(min=1, help="Pairs that are asked.")] = 500,
    seed: SeedOption = 1,
    hops: Annotated[int, typer.Option("-L", "--hops", min=1, max=5, help="Edges of the longest path.")] = 4,
    paths: Annotated[int, typer.Option("-M", "--paths", min=1, help="Paths of an answer.")] = 6,
    ask: Annotated[str, typer.Option(help="pair: the question names both ends; title: only the paper.")] = "pair",
    recipes: RecipesOption = None,
    home: HomeOption = None,
    out: OutOption = None,
    as_json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """Look for the way from a paper to its repository, with the edge between them there, and with it withheld."""
    _one_of(ask, "pair", "title")
    files = {"papers": papers, "citations": citations, "code_links": code_links}

    def body() -> Answer:
        from hades.surfaces.cli.eval_views import run_bridges

        return run_bridges(files, pairs, seed, hops, paths, ask, recipes, home, out)

    answer_with(body, as_json=as_json, debug=debug)


@app.command("memory")
def memory(
    folder: Annotated[
        Path, typer.Argument(help="Folder of turns, sessions and qa, or of passages and questions (.jsonl.gz).")
    ],
    recipes: RecipesOption = None,
    k: KOption = "2,5,10",
    home: HomeOption = None,
    out: OutOption = None,
    as_json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """Ask for what was said in long conversations, or for paragraphs of dated articles."""
    depths = _depths(k)

    def body() -> Answer:
        from hades.surfaces.cli.eval_views import run_memory

        return run_memory(folder, recipes, depths, home, out)

    answer_with(body, as_json=as_json, debug=debug)


@app.command("code")
def code(
    repo: Annotated[
        Path | None, typer.Option(help="A git repository, or a folder that holds those that the cases name.")
    ] = None,
    cases: Annotated[
        Path | None, typer.Option(help="Rows of id, repo, commit, question, gold (paths) and gold_symbols.")
    ] = None,
    at: Annotated[str | None, typer.Option(help="Ask every case at this commit instead of its own.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Ask only this many cases, spread over the file.")] = None,
    files: Annotated[Path | None, typer.Option(help="Single functions: rows of id, name and text.")] = None,
    questions: Annotated[Path | None, typer.Option(help="Rows of id, question and gold (ids of functions).")] = None,
    recipes: RecipesOption = None,
    home: HomeOption = None,
    dense: Annotated[bool, typer.Option(help="Also run the baselines that embed every function; slow.")] = False,
    out: OutOption = None,
    as_json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """Which file and function an issue is about, at its own commit; or which single function a question wants."""
    if (repo is None or cases is None) == (files is None or questions is None):
        raise typer.BadParameter("give --repo and --cases, or --files and --questions")

    def body() -> Answer:
        from hades.surfaces.cli.eval_code_views import run_cases, run_functions

        if repo is not None and cases is not None:
            return run_cases(repo, cases, at, limit, recipes, home, dense, out)
        assert files is not None
        assert questions is not None
        return run_functions(files, questions, limit, recipes, home, out)

    answer_with(body, as_json=as_json, debug=debug)


def _one_of(given: str, *known: str) -> None:
    if given not in known:
        raise typer.BadParameter(f"{given!r} is no way to ask; use {' or '.join(known)}")


def _depths(text: str) -> tuple[int, ...]:
    try:
        found = tuple(sorted({int(part) for part in text.split(",")}))
    except ValueError:
        found = ()
    if not found or found[0] < 1:
        raise typer.BadParameter(f"{text!r} are no depths; write them as 2,5,10")
    return found
