"""Eval."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rich.table import Table
from rich.text import Text

from hades.errors import HadesError
from hades.evaluation.bridges import BridgeEvaluation, evaluate_bridges
from hades.evaluation.cases import ArxivFiles
from hades.evaluation.code import AUTO, OpenGraph, evaluate_code, evaluate_functions
from hades.evaluation.code_data import CodeGraph
from hades.evaluation.metrics import draw
from hades.evaluation.rankers import Workbench, rungs
from hades.evaluation.serving import EXPERIMENT
from hades.evaluation.text_sets import DEFAULT, evaluate_citations, evaluate_multihop, merge, prepare
from hades.ingest.phases import IngestContext
from hades.ports.services import DATA_HASH, silent
from hades.providers.tokens import MiniLmTokenizer
from hades.retrieval.core.types import NAMES_OF_RECIPES
from hades.settings.load import load_settings
from hades.settings.tree import Settings
from hades.surfaces.capabilities.local_commands import read_depths
from hades.surfaces.cli.output import Answer, show_progress
from hades.wiring import model_cache, open_build_context, open_embedder, open_hades, open_tracker, open_written_store

# The bodies of `hades eval`.


MEMORY_RUNGS = "auto,auto/online,memory,hipporag,hirag_pathrag,nexus"
BRIDGE_RUNGS = "vector,graphrag,hirag,pathrag,hirag_pathrag"


def run_multihop(
    corpus: Path,
    questions: Path,
    triples: Path | None,
    published: Path | None,
    recipes: str | None,
    k: str,
    home: Path | None,
    out: Path | None,
) -> Answer:
    """Ask the questions of a corpus in a graph of it."""
    chosen, ks = rungs(recipes, DEFAULT), read_depths(k)
    with workbench(home) as bench:
        found = evaluate_multihop(bench, corpus, questions, triples=triples, published=published, rungs=chosen, ks=ks)
    return _rank_answer(found.document, "multihop", ks, out)


def run_citations(
    papers: Path | None,
    citations: Path | None,
    contexts: Path | None,
    code_links: Path | None,
    sample: int,
    seed: int,
    ask: str,
    recipes: str | None,
    k: str,
    home: Path | None,
    out: Path | None,
) -> Answer:
    """Ask citation sentences for the papers they cite."""
    chosen, ks = rungs(recipes, DEFAULT), read_depths(k)
    files = _arxiv(papers=papers, citations=citations, contexts=contexts, code_links=code_links)
    with workbench(home) as bench:
        found = evaluate_citations(bench, files, rungs=chosen, ks=ks, sample=sample, seed=seed, ask=ask)
    return _rank_answer(found.document, "citations", ks, out)


def run_memory(folder: Path, recipes: str | None, k: str, home: Path | None, out: Path | None) -> Answer:
    """Evaluate each conversation in a home of its own and add up the results."""
    chosen, ks = rungs(recipes, MEMORY_RUNGS), read_depths(k)
    parts = []
    with tempfile.TemporaryDirectory(prefix="hades-memory-") as scratch:
        for told in prepare(folder, Path(scratch)):
            with workbench(None if home is None else home / told.name) as bench:
                found = evaluate_multihop(
                    bench, told.corpus, told.questions, rungs=chosen, ks=ks, unanswerable=told.unanswerable
                )
            parts.append((told, found))
        document = merge(parts, ks)
    return _rank_answer(document, "memory", ks, out)


def run_bridges(
    papers: Path | None,
    citations: Path | None,
    code_links: Path | None,
    pairs: int,
    seed: int,
    hops: int,
    paths: int,
    ask: str,
    recipes: str | None,
    home: Path | None,
    out: Path | None,
) -> Answer:
    """Search the paths between papers and repositories; the pairs are saved with the figures."""
    chosen = rungs(recipes, BRIDGE_RUNGS)
    files = _arxiv(papers=papers, citations=citations, code_links=code_links)
    with workbench(home) as bench:
        found = evaluate_bridges(bench, files, rungs=chosen, pairs=pairs, seed=seed, hops=hops, paths=paths, ask=ask)
    folder = _folder("bridges", found.document, out)
    truth = folder / "pairs.jsonl"
    truth.write_text("".join(json.dumps(pair) + "\n" for pair in found.pairs), encoding="utf-8")
    figures = {
        f"{name}.{setting}.{figure}": float(value)
        for name, settings in found.document["recipes"].items()
        for setting, row in settings.items()
        for figure, value in row.items()
        if isinstance(value, int | float)
    }
    _save("bridges", found.document, folder, figures, [truth])
    return Answer(found.document, (_bridge_table(found), Text(f"saved in {folder}")))


@contextmanager
def workbench(home: Path | None) -> Iterator[Workbench]:
    """A separate home, named or temporary; the graph of HADES_HOME is not touched."""
    settings = load_settings()
    with tempfile.TemporaryDirectory(prefix="hades-eval-") as scratch, show_progress() as progress:
        _share_models(settings, Path(scratch))
        own = settings.model_copy(update={"home": home or Path(scratch), "store": "sqlite", "view": "snapshot"})
        with open_hades(own, progress=progress) as hades, open_build_context(own, progress=progress) as context:
            tokenizer = MiniLmTokenizer()
            yield Workbench(context, hades.ingest, hades.embedder, tokenizer, settings.hirag_pathrag, settings.hipporag)


def _share_models(settings: Settings, scratch: Path) -> None:
    """Let a temporary home use the exported model of this home."""
    shared = model_cache(settings).resolve()
    shared.mkdir(parents=True, exist_ok=True)
    (scratch / "cache").mkdir()
    (scratch / "cache" / "models").symlink_to(shared, target_is_directory=True)


def _arxiv(**files: Path | None) -> ArxivFiles:
    """The given files; the others from the arxiv folder of HADES_DATA."""
    folder = load_settings().data / "arxiv"
    usual = {
        "papers": "papers.jsonl.gz",
        "citations": "citations.jsonl.gz",
        "contexts": "citation_contexts.jsonl.gz",
        "code_links": "github_mentions.jsonl.gz",
    }
    return ArxivFiles(**{name: files.get(name) or folder / file for name, file in usual.items()})


def _rank_answer(document: dict[str, Any], kind: str, ks: Sequence[int], out: Path | None) -> Answer:
    folder = _folder(kind, document, out)
    pictures = draw(document, folder / "recall.svg", document["compared_at"])
    figures = {
        f"{name.replace('+', ' ')}.recall_at_{k}": row["recall"][str(k)]  # the registry allows no plus in a name
        for name, row in document["recipes"].items()
        for k in ks
    }
    _save(kind, document, folder, figures, pictures)
    told = [Text(f"saved in {folder}"), *(Text(note) for note in document["notes"])]
    for name, row in document.get("abstention", {}).items():
        told.append(Text(_describe_abstention(name, row)))
    if "published" in document:
        told.insert(0, Text(_publish(document["published"])))
    return Answer(document, (_table(document, ks), *told))


def _describe_abstention(name: str, row: Mapping[str, Any]) -> str:
    """One line on how far the confidence of a recipe can be trusted."""
    told = f"{name}: {100 * row['wrong_abstention']:.1f}% of {row['answerable']} answerable questions abstain"
    if "auroc" not in row:
        return told
    share = f"{100 * row['abstained']:.1f}% of {row['unanswerable']} unanswerable ones"
    return f"{told}, {share}; AUROC of the confidence {row['auroc']:.3f}"


def _folder(kind: str, document: Mapping[str, Any], out: Path | None) -> Path:
    folder = out or load_settings().home / "reports" / f"eval-{kind}-{document['dataset']['sha256'][:12]}"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _save(
    kind: str, document: dict[str, Any], folder: Path, figures: Mapping[str, float], files: Sequence[Path]
) -> None:
    """Write the results to files, and log them as a run of the registry."""
    body = json.dumps(document, indent=1, sort_keys=True) + "\n"
    results = folder / "results.json"
    results.write_text(body, encoding="utf-8")
    open_tracker(load_settings()).log_run(
        experiment=EXPERIMENT,
        name=f"{kind} {document['dataset']['sha256'][:8]}",
        params={"model": document["model"], "snapshot": document["snapshot"], **document["dataset"]},
        metrics=dict(figures),
        artifacts=[results, *files],
        tags={"kind": kind, DATA_HASH: hashlib.sha256(body.encode()).hexdigest()},
    )


def _table(document: dict[str, Any], ks: Sequence[int]) -> Table:
    data = document["dataset"]
    title = (
        f"{data['questions']:,} questions over {data['passages']:,} passages; built in {document['build']['seconds']} s"
    )
    table = _columns(
        title, "recipe", *(f"R@{k}" for k in ks), *(f"all@{k}" for k in ks), "MRR", "reads", "p50 ms", "p95 ms", "p"
    )
    for name, row in document["recipes"].items():
        figures = [100 * row["recall"][str(k)] for k in ks] + [100 * row["all_gold"][str(k)] for k in ks]
        p = f"{row['against']['p']:.4f}" if "against" in row else ""
        costs = (f"{row['reads']['mean']:.0f}", f"{row['ms']['p50']:.1f}", f"{row['ms']['p95']:.1f}")
        table.add_row(name, *(f"{value:.1f}" for value in figures), f"{row['mrr']:.3f}", *costs, p)
    return table


def _bridge_table(found: BridgeEvaluation) -> Table:
    data = found.document["dataset"]
    title = f"{data['pairs']:,} pairs of paper and repository, {data['still_joined']:,} of them joined another way too"
    names = ("discovery", "still_joined", "recall", "precision", "purity", "coherence", "mean_hops", "expected")
    table = _columns(title, "recipe", "own edge", *(name.replace("_", " ") for name in names), "p50 ms", "p95 ms")
    for recipe, settings in found.document["recipes"].items():
        for setting, row in settings.items():
            figures = ("" if row[name] is None else f"{row[name]:.3f}" for name in names)
            table.add_row(recipe, setting, *figures, f"{row['ms_p50']:.1f}", f"{row['ms_p95']:.1f}")
    return table


def _columns(title: str, first: str, *others: str) -> Table:
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    table.add_column(first)
    for heading in others:
        table.add_column(heading, justify="right")
    return table


def _publish(section: Mapping[str, Any]) -> str:
    shares = ", ".join(f"{name} {row['share']:.3f}" for name, row in section["all_evidence"].items())
    return f"all evidence among the first {section['k']} of {section['questions']} published questions: {shares}"


# The bodies of `hades eval code`.


def run_code(
    repo: Path | None,
    cases: Path | None,
    at: str | None,
    limit: int | None,
    files: Path | None,
    questions: Path | None,
    recipes: str | None,
    home: Path | None,
    dense: bool,
    out: Path | None,
) -> Answer:
    """Ask for the files of issues, or for single functions; the request holds one of the two forms."""
    names = _read_recipes(recipes)
    settings = load_settings()
    if home is not None:
        settings = settings.model_copy(update={"home": home})
    with show_progress() as progress:
        shown = progress or silent
        if repo is not None and cases is not None:
            embedder = open_embedder(settings) if dense else None
            document = evaluate_code(
                repo,
                cases,
                MiniLmTokenizer(),
                at=at,
                limit=limit,
                recipes=names,
                open_graph=_graphs(settings, home),
                embedder=embedder,
                progress=shown,
            )
        else:
            assert files is not None
            assert questions is not None
            _only_auto(names)
            document = evaluate_functions(files, questions, open_embedder(settings), limit=limit, progress=shown)
    return _answer(document, out)


def _read_recipes(recipes: str | None) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(name.strip() for name in (recipes or AUTO).split(",") if name.strip()))
    wrong = [name for name in names if name not in NAMES_OF_RECIPES]
    if wrong:
        raise HadesError(f"no recipe is called {wrong[0]!r}; use one of {', '.join(NAMES_OF_RECIPES)}")
    return names


def _graphs(settings: Settings, kept: Path | None) -> OpenGraph:
    """An empty graph for each repository, in the folder that was given or in one that is removed at the end."""

    @contextmanager
    def opened(repo: str) -> Iterator[CodeGraph]:
        with TemporaryDirectory() if kept is None else nullcontext(kept) as folder:
            home = Path(folder) / "code" / (repo.replace("/", "+") or "repository")
            with closing(open_written_store(settings.model_copy(update={"home": home}))) as store:
                context = IngestContext(store, open_embedder(settings), MiniLmTokenizer(), home / "cache")
                yield CodeGraph(context, home, settings.hirag_pathrag, settings.hipporag)

    return opened


def _only_auto(recipes: Sequence[str]) -> None:
    """Single functions are no workspace: there is no graph that another recipe could walk."""
    wrong = [name for name in recipes if name != AUTO]
    if wrong:
        raise HadesError(f"recipe {wrong[0]!r} does not rank single functions; expected {AUTO!r}, which is the default")


def _answer(document: dict[str, Any], out: Path | None) -> Answer:
    folder = out or load_settings().home / "reports" / f"eval-code-{document['dataset']['sha256'][:12]}"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "results.json").write_text(json.dumps(document, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return Answer(document, (_code_table(document), Text(f"saved in {folder}")))


def _code_table(document: Mapping[str, Any]) -> Table:
    data, build = document["dataset"], document["build"]
    table = Table(title=f"{data['questions']:,} questions in {build['seconds']} s", title_justify="left", box=None)
    for heading in (
        "recipe",
        "one file Acc@1",
        "@5",
        "@10",
        "all Acc@5",
        "R@5",
        "R@10",
        "symbol Acc@10",
        "MRR",
        "p50 ms",
    ):
        table.add_column(heading, justify="left" if heading == "recipe" else "right")
    for name, row in document["recipes"].items():
        one = row["one_file"]["file_acc"]
        figures = [
            one["1"],
            one["5"],
            one["10"],
            row["file_acc"]["5"],
            row["file_recall"]["5"],
            row["file_recall"]["10"],
        ]
        figures += [row["symbol_acc"]["10"], row["mrr"]]
        table.add_row(name, *(f"{100 * value:.1f}" for value in figures), f"{row['ms']['p50']:.1f}")
    return table
