"""The bodies of `hades eval code`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rich.table import Table
from rich.text import Text

from hades.errors import HadesError
from hades.evaluation.code import AUTO, OpenGraph, evaluate_code
from hades.evaluation.code_functions import evaluate_functions
from hades.evaluation.code_graph import CodeGraph
from hades.ingest.phases import IngestContext
from hades.ports.progress import silent
from hades.providers.tokens import MiniLmTokenizer
from hades.retrieval.turn.recipes import NAMES_OF_RECIPES
from hades.settings import Settings, load_settings
from hades.surfaces.cli.output import Answer
from hades.surfaces.cli.progress import show_progress
from hades.wiring import open_embedder, open_written_store


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
    return Answer(document, (_table(document), Text(f"saved in {folder}")))


def _table(document: Mapping[str, Any]) -> Table:
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
