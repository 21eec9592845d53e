"""The commands `hades eval multihop|citations|memory|bridges|code` of a checkout."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Literal

import typer
from rich.table import Table

from benchmarks.evaluation.arxiv import ArxivFiles
from benchmarks.evaluation.bridges import evaluate_bridges
from benchmarks.evaluation.citations import evaluate_citations
from benchmarks.evaluation.code import CodeGraph, OpenGraph, evaluate_code, evaluate_functions
from benchmarks.evaluation.conversations import merge, prepare
from benchmarks.evaluation.ladder import rungs
from benchmarks.evaluation.multihop import DEFAULT, evaluate_multihop
from benchmarks.evaluation.picture import draw
from benchmarks.evaluation.workbench import Workbench
from hades.errors import HadesError
from hades.evaluation.rankers import read_recipes
from hades.ingest.phases import IngestContext
from hades.ports.services import silent
from hades.providers.tokens import MiniLmTokenizer
from hades.retrieval.core.types import AUTO
from hades.retrieval.pipeline import Tools
from hades.settings.load import load_settings
from hades.settings.tree import Settings
from hades.surfaces.cli.evaluation import (
    HomeOption,
    OutOption,
    figures_table,
    open_separate,
    results_folder,
    save_results,
    saved_answer,
)
from hades.surfaces.cli.output import (
    Answer,
    argument,
    list_records,
    local_command,
    option,
    show_progress,
)
from hades.wiring import open_embedder, open_written_store

RecipesOption = Annotated[
    str | None,
    option(
        "Recipes, separated by commas; `ladder` for all of them, each also with one part left out."
    ),
]
DepthsOption = Annotated[
    str, option("Depths at which recall is measured, separated by commas.", "-k")
]
PapersOption = Annotated[
    Path | None, option("Rows of id, title and abstract; by default HADES_DATA/arxiv.")
]
CitationsOption = Annotated[
    Path | None, option("Rows of src and dst; by default HADES_DATA/arxiv.")
]
CodeLinksOption = Annotated[
    Path | None, option("Rows of id and repo; by default HADES_DATA/arxiv.")
]
SeedOption = Annotated[int, option("Seed of the sample.", min=0)]
MEMORY_RUNGS = "auto,auto/online,memory,hipporag,hirag_pathrag,nexus"
BRIDGE_RUNGS = "vector,graphrag,hirag,pathrag,hirag_pathrag"


@local_command("eval multihop")
def run_multihop(
    corpus: Annotated[Path, option("Rows of id, title and text.")],
    questions: Annotated[Path, option("Rows of question and gold (ids of the corpus).")],
    recipes: RecipesOption = None,
    home: HomeOption = None,
    out: OutOption = None,
    k: DepthsOption = "2,5,10",
    triples: Annotated[Path | None, option("Rows of id, entities and triples.")] = None,
    published: Annotated[
        Path | None,
        option("Rows of question, ground_truth and what other systems retrieved, by title."),
    ] = None,
) -> Answer:
    """Build a graph of a corpus, ask every question, and compare recall with the baselines."""
    chosen_rungs = rungs(recipes, DEFAULT)
    ks = read_depths(k)
    with workbench(home) as bench:
        evaluation = evaluate_multihop(
            bench,
            corpus,
            questions,
            triples=triples,
            published=published,
            rungs=chosen_rungs,
            ks=ks,
        )
    return _rank_answer(evaluation.document, "multihop", ks, out)


@local_command("eval citations")
def run_citations(
    recipes: RecipesOption = None,
    home: HomeOption = None,
    out: OutOption = None,
    k: DepthsOption = "2,5,10",
    papers: PapersOption = None,
    citations: CitationsOption = None,
    code_links: CodeLinksOption = None,
    seed: SeedOption = 1,
    contexts: Annotated[
        Path | None, option("Rows of src, dst and context; by default HADES_DATA/arxiv.")
    ] = None,
    sample: Annotated[int, option("Number of sentences to ask.", min=1)] = 500,
    ask: Annotated[
        Literal["sentence", "paper"],
        option("sentence: the sentence alone; paper: also the title of the citing paper."),
    ] = "sentence",
) -> Answer:
    """Ask each citation sentence for the paper it cites; the citations asked for are left out of
    the graph.
    """
    chosen_rungs = rungs(recipes, DEFAULT)
    ks = read_depths(k)
    files = _arxiv_files(
        papers=papers, citations=citations, contexts=contexts, code_links=code_links
    )
    with workbench(home) as bench:
        evaluation = evaluate_citations(
            bench, files, rungs=chosen_rungs, ks=ks, sample=sample, seed=seed, ask=ask
        )
    return _rank_answer(evaluation.document, "citations", ks, out)


@local_command("eval memory")
def run_memory(
    folder: Annotated[
        Path,
        argument(
            "Folder of turns, sessions and qa, or of passages and questions (all as .jsonl.gz).",
            "FOLDER",
        ),
    ],
    recipes: RecipesOption = None,
    home: HomeOption = None,
    out: OutOption = None,
    k: DepthsOption = "2,5,10",
) -> Answer:
    """Ask about what was said in long conversations, or about paragraphs of dated articles."""
    chosen_rungs = rungs(recipes, MEMORY_RUNGS)
    ks = read_depths(k)
    evaluations = []
    with tempfile.TemporaryDirectory(prefix="hades-memory-") as scratch:
        for corpus_part in prepare(folder, Path(scratch)):
            with workbench(None if home is None else home / corpus_part.name) as bench:
                evaluation = evaluate_multihop(
                    bench, corpus_part.corpus, corpus_part.questions, rungs=chosen_rungs, ks=ks
                )
            evaluations.append((corpus_part, evaluation))
        document = merge(evaluations, ks)
    return _rank_answer(document, "memory", ks, out)


@local_command("eval bridges")
def run_bridges(
    recipes: RecipesOption = None,
    home: HomeOption = None,
    out: OutOption = None,
    papers: PapersOption = None,
    citations: CitationsOption = None,
    code_links: CodeLinksOption = None,
    seed: SeedOption = 1,
    pairs: Annotated[int, option("Number of pairs to ask.", min=1)] = 500,
    hops: Annotated[
        int, option("Maximum number of edges in a path.", "-L", "--hops", min=1, max=5)
    ] = 4,
    paths: Annotated[
        int, option("Maximum number of paths in an answer.", "-M", "--paths", min=1)
    ] = 6,
    ask: Annotated[
        Literal["pair", "title"],
        option("pair: the question names both ends; title: only the paper."),
    ] = "pair",
) -> Answer:
    """Search the path from a paper to its repository, with the edge between them and without it."""
    chosen_rungs = rungs(recipes, BRIDGE_RUNGS)
    files = _arxiv_files(papers=papers, citations=citations, code_links=code_links)
    with workbench(home) as bench:
        document, true_pairs = evaluate_bridges(
            bench,
            files,
            rungs=chosen_rungs,
            pairs=pairs,
            seed=seed,
            hops=hops,
            paths=paths,
            ask=ask,
        )
    folder = results_folder("bridges", document, out)
    truth = folder / "pairs.jsonl"
    truth.write_text("".join(json.dumps(pair) + "\n" for pair in true_pairs), encoding="utf-8")
    figures = {}
    for name, settings in document["recipes"].items():
        for setting, row in settings.items():
            for figure, value in row.items():
                if isinstance(value, int | float):
                    figures[f"{name}.{setting}.{figure}"] = float(value)
    saved = save_results("bridges", document, folder, figures, [truth])
    return Answer(document, (_bridge_table(document), saved))


def read_depths(text: str) -> tuple[int, ...]:
    """Ranks at which recall is measured, from text such as 2,5,10."""
    try:
        depths = tuple(sorted({int(part) for part in text.split(",")}))
    except ValueError:
        depths = ()
    if not depths or depths[0] < 1:
        raise typer.BadParameter(
            f"{text!r} is not a list of depths; write positive numbers such as 2,5,10",
            param_hint="-k",
        )
    return depths


@contextmanager
def workbench(home: Path | None) -> Iterator[Workbench]:
    """The graph of a separate home, to be built and asked."""
    with open_separate(home) as (hades, settings):
        tools = Tools(MiniLmTokenizer(), hades.embedder, settings.hirag_pathrag, settings.hipporag)
        yield Workbench(hades.build_context, hades.ingest, tools)


def _arxiv_files(**files: Path | None) -> ArxivFiles:
    """The given files; the others from the arxiv folder of HADES_DATA."""
    folder = load_settings().data / "arxiv"
    file_names = {
        "papers": "papers.jsonl.gz",
        "citations": "citations.jsonl.gz",
        "contexts": "citation_contexts.jsonl.gz",
        "code_links": "github_mentions.jsonl.gz",
    }
    return ArxivFiles(
        **{name: files.get(name) or folder / file for name, file in file_names.items()}
    )


def _rank_answer(
    document: dict[str, Any], kind: str, ks: Sequence[int], out: Path | None
) -> Answer:
    folder = results_folder(kind, document, out)
    pictures = draw(document, folder / "recall.svg", document["compared_at"])
    figures = {}
    for name, row in document["recipes"].items():
        metric = name.replace("+", " ")  # the registry allows no plus in a name
        for k in ks:
            figures[f"{metric}.recall_at_{k}"] = row["recall"][str(k)]
    lines = [save_results(kind, document, folder, figures, pictures), *document["notes"]]
    if published := document.get("published"):
        shares = ", ".join(
            f"{name} {row['share']:.3f}" for name, row in published["all_evidence"].items()
        )
        lines.insert(
            0,
            f"all evidence among the first {published['k']} of {published['questions']} published "
            f"questions: {shares}",
        )
    for name, row in document.get("abstention", {}).items():
        lines.append(_describe_abstention(name, row))
    return Answer(document, (_recall_table(document, ks), *lines))


def _describe_abstention(name: str, row: Mapping[str, Any]) -> str:
    """One line on how far the confidence of a recipe can be trusted."""
    sentence = (
        f"{name}: {100 * row['wrong_abstention']:.1f}% of {row['answerable']} answerable "
        "questions abstain"
    )
    if "auroc" not in row:
        return sentence
    share = f"{100 * row['abstained']:.1f}% of {row['unanswerable']} unanswerable ones"
    return f"{sentence}, {share}; AUROC of the confidence {row['auroc']:.3f}"


def _recall_table(document: dict[str, Any], ks: Sequence[int]) -> Table:
    dataset = document["dataset"]
    title = (
        f"{dataset['questions']:,} questions over {dataset['passages']:,} passages; built in "
        f"{document['build']['seconds']} s"
    )
    recall = " ".join(f"R@{k}=recall.{k}%" for k in ks)
    all_gold = " ".join(f"all@{k}=all_gold.{k}%" for k in ks)
    costs = "reads=reads.mean p50_ms=ms.p50 p95_ms=ms.p95"
    return figures_table(document, f"{recall} {all_gold} MRR=mrr {costs} p=against.p", title)


def _bridge_table(document: Mapping[str, Any]) -> Table:
    dataset = document["dataset"]
    title = (
        f"{dataset['pairs']:,} pairs of paper and repository, {dataset['still_joined']:,} of them "
        "joined another way too"
    )
    rows = []
    for recipe, settings in document["recipes"].items():
        for setting, row in settings.items():
            rows.append({"recipe": recipe, "own_edge": setting, **row})
    columns = (
        "recipe own_edge discovery still_joined recall precision purity coherence mean_hops "
        "expected"
    )
    return list_records(rows, f"{columns} p50_ms=ms_p50 p95_ms=ms_p95", title)


@local_command("eval code")
def run_code(
    recipes: RecipesOption = None,
    home: HomeOption = None,
    out: OutOption = None,
    repo: Annotated[
        Path | None, option("A git repository, or a folder with the repositories of the cases.")
    ] = None,
    cases: Annotated[
        Path | None, option("Rows of id, repo, commit, question, gold (paths) and gold_symbols.")
    ] = None,
    at: Annotated[str | None, option("Ask every case at this commit instead of its own.")] = None,
    limit: Annotated[
        int | None, option("Maximum number of cases, spread evenly over the file.", min=1)
    ] = None,
    files: Annotated[Path | None, option("Single functions: rows of id, name and text.")] = None,
    questions: Annotated[
        Path | None, option("Rows of id, question and gold (ids of functions).")
    ] = None,
    dense: Annotated[
        bool, option("Also run the baselines that embed every function; slow.", "--dense")
    ] = False,
) -> Answer:
    """Find the files and functions that an issue is about, at its own commit; or the function that
    answers a question.

    Give --repo and --cases for issues, or --files and --questions for single functions.
    """
    if (repo is None or cases is None) == (files is None or questions is None):
        raise typer.BadParameter("give --repo and --cases, or --files and --questions")
    names = read_recipes(recipes)
    settings = load_settings()
    if home is not None:
        settings = settings.model_copy(update={"home": home})
    with show_progress() as progress:
        options: Any = {"limit": limit, "progress": progress or silent}
        if files is not None and questions is not None:
            # There is no graph that another recipe could walk.
            unfit = [name for name in names if name != AUTO]
            if unfit:
                raise HadesError(
                    f"recipe {unfit[0]!r} does not rank single functions; expected {AUTO!r}, the "
                    "default"
                )
            document = evaluate_functions(files, questions, open_embedder(settings), **options)
        elif repo is not None and cases is not None:
            options |= {
                "open_graph": _graph_opener(settings, home),
                "embedder": open_embedder(settings) if dense else None,
            }
            document = evaluate_code(
                repo, cases, MiniLmTokenizer(), at=at, recipes=names, **options
            )
    title = f"{document['dataset']['questions']:,} questions in {document['build']['seconds']} s"
    one_file = (
        "one_file_Acc@1=one_file.file_acc.1% @5=one_file.file_acc.5% @10=one_file.file_acc.10%"
    )
    all_files = (
        "all_Acc@5=file_acc.5% R@5=file_recall.5% R@10=file_recall.10% symbol_Acc@10=symbol_acc.10%"
    )
    view = figures_table(
        {"recipes": document["recipes"]}, f"{one_file} {all_files} MRR=mrr p50_ms=ms.p50", title
    )
    return saved_answer("code", document, view, out)


def _graph_opener(settings: Settings, kept_folder: Path | None) -> OpenGraph:
    """An empty graph for each repository, in the folder that was given or in one that is removed at
    the end.
    """

    @contextmanager
    def opened(repo: str) -> Iterator[CodeGraph]:
        with TemporaryDirectory() if kept_folder is None else nullcontext(kept_folder) as folder:
            home = Path(folder) / "code" / (repo.replace("/", "+") or "repository")
            with closing(open_written_store(settings.model_copy(update={"home": home}))) as store:
                context = IngestContext(
                    store, open_embedder(settings), MiniLmTokenizer(), home / "cache"
                )
                yield CodeGraph(context, home, settings.hirag_pathrag, settings.hipporag)

    return opened
