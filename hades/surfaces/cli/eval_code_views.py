"""The bodies of `hades eval code`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from hades.errors import HadesError
from hades.evaluation.code import AUTO, evaluate_code
from hades.evaluation.code_functions import evaluate_functions
from hades.ports.progress import silent
from hades.settings import load_settings
from hades.surfaces.cli.output import Answer
from hades.surfaces.cli.progress import show_progress
from hades.wiring import open_embedder


def run_cases(
    repo: Path,
    cases: Path,
    at: str | None,
    limit: int | None,
    recipes: str | None,
    home: Path | None,
    dense: bool,
    out: Path | None,
) -> Answer:
    """Evaluate, print, keep."""
    _only_auto(recipes)
    embedder = open_embedder(_settings(home)) if dense else None
    with show_progress() as progress:
        document = evaluate_code(repo, cases, at=at, limit=limit, embedder=embedder, progress=progress or silent)
    return _answer(document, out)


def run_functions(
    files: Path, questions: Path, limit: int | None, recipes: str | None, home: Path | None, out: Path | None
) -> Answer:
    """Evaluate, print, keep."""
    _only_auto(recipes)
    with show_progress() as progress:
        document = evaluate_functions(
            files, questions, open_embedder(_settings(home)), limit=limit, progress=progress or silent
        )
    return _answer(document, out)


def _settings(home: Path | None) -> Any:
    settings = load_settings()
    return settings if home is None else settings.model_copy(update={"home": home})


def _only_auto(recipes: str | None) -> None:
    """Other recipes do not search code: the default recipe is the one that does."""
    wrong = [name for name in (recipes or AUTO).split(",") if name.strip() != AUTO]
    if wrong:
        raise HadesError(
            f"recipe {wrong[0]!r} does not rank files and symbols; expected {AUTO!r}, which is the default"
        )


def _answer(document: dict[str, Any], out: Path | None) -> Answer:
    folder = out or load_settings().home / "reports" / f"eval-code-{document['dataset']['sha256'][:12]}"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "results.json").write_text(json.dumps(document, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return Answer(document, (_table(document), Text(f"kept in {folder}")))


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
