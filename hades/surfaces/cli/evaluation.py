"""The commands `hades eval` and `hades exam`."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from rich.console import RenderableType
from rich.table import Table

from hades.api import Hades
from hades.evaluation.folder import evaluate_folder
from hades.evaluation.rankers import read_recipes
from hades.evaluation.serving import EXPERIMENT
from hades.files import sha256_of, write_whole
from hades.ingest.sources.files import SourceError
from hades.night.exam.stage import DEPTH as EXAM_DEPTH
from hades.night.exam.stage import build_exam, grade_exam, name_wanted, read_exam, take_exam
from hades.night.report import write_exam_page
from hades.night.watch import source_kind_of
from hades.ports.services import DATA_HASH, Dataset, RunRecord
from hades.retrieval.core.types import AUTO
from hades.settings.load import load_settings
from hades.settings.tree import Settings
from hades.snapshot.open import open_snapshot
from hades.surfaces.cli.output import (
    Answer,
    argument,
    list_records,
    local_command,
    option,
    show_progress,
)
from hades.wiring import (
    hold_build,
    model_cache,
    open_hades,
    open_tracker,
)
from schemas.record import JsonObject

HomeOption = Annotated[
    Path | None,
    option("Build in this folder and keep it, so that a second run does not embed again."),
]
OutOption = Annotated[Path | None, option("Folder for the results and the chart.")]


@local_command("eval folder")
def run_folder(
    folder: Annotated[
        Path,
        argument(
            "Folder of documents or code, read as `hades watch` reads it.",
            "DIR",
        ),
    ],
    questions: Annotated[
        Path, option("Rows of question, gold (objects with file and heading) and answer.")
    ],
    recipes: Annotated[str | None, option("Recipes, separated by commas; by default auto.")] = None,
    home: HomeOption = None,
    out: OutOption = None,
) -> Answer:
    """Read a folder, ask what its readers would ask, and say how often the section that answers is
    found.
    """
    if not folder.is_dir():
        raise SourceError(f"{folder} is not a folder; expected one of documents or code")

    names = read_recipes(recipes)
    with open_separate(home) as (hades, _):
        refresh = partial(
            hades.refresh_folder,
            folder,
            source_kind_of(folder),
        )
        progress = hades.build_context.progress
        document = evaluate_folder(
            folder,
            questions,
            refresh,
            lambda: hades.answers,
            recipes=names,
            progress=progress,
        )

    build_figures = document["build"]
    question_count = f"{document['dataset']['questions']:,} questions"
    title = (
        f"{question_count}; first answer after {build_figures['first_answer_seconds']} s, built in "
        f"{build_figures['seconds']} s"
    )
    columns = "R@1=recall.1% R@3=recall.3% R@5=recall.5% MRR=mrr file@1=file.1% file@5=file.5%"
    answers = "passages=answer_in_passages% in_text=answer_in_text% abstained_wrongly%"

    if any("auroc" in row for row in document["recipes"].values()):
        answers += " abstained_rightly% auroc"

    return saved_answer(
        "folder",
        document,
        figures_table(
            document,
            f"{columns} {answers}",
            title,
        ),
        out,
    )


def figures_table(
    document: Mapping[str, Any],
    columns: str,
    title: str,
) -> Table:
    """A row of figures for each baseline and recipe."""
    rows = document.get("baselines", {}) | document["recipes"]
    return list_records(
        [{"recipe": name, **row} for name, row in rows.items()],
        f"recipe {columns}",
        title,
    )


@local_command("exam", "RW")
def run_exam(recipe: Annotated[str, option("Recipe that answers.")] = AUTO) -> Answer:
    """Ask the published graph the questions that its own documents supply, and show the score and
    the worst ones.

    Nobody wrote these questions: a heading asks for its section, a link for its target, a
    definition for its subject.
    """
    read_recipes(recipe)
    with (
        show_progress() as progress,
        hold_build("hades exam"),
        open_hades(progress=progress) as hades,
    ):
        context = hades.build_context
        assert context.open_tools is not None
        exam = build_exam(context)

        with closing(open_snapshot(hades.home)) as view:
            answers = take_exam(
                view,
                context.open_tools(),
                read_exam(hades.home),
                context.progress,
                recipe,
            )
            graded = name_wanted(view, grade_exam(answers))
            document = {
                "snapshot": view.info.snapshot,
                "exam": exam["data_hash"],
                **graded,
            }

        page = write_exam_page(hades.home / "reports" / "exam.html", document)
        write_whole(page.with_suffix(".json"), json.dumps(document, indent=1) + "\n")

    return Answer({**document, "page": str(page)}, (*_show_exam(document), str(page)))


def _show_exam(document: Mapping[str, Any]) -> Iterator[RenderableType]:
    kinds = {
        **document["kinds"],
        "all": document["score"],
    }
    columns = f"kind questions R@1=recall@1% R@{EXAM_DEPTH}=recall@{EXAM_DEPTH}% MRR=mrr"
    rows = [{"kind": kind, **row} for kind, row in kinds.items()]
    yield list_records(
        rows,
        columns,
        f"the exam of {document['snapshot']}",
    )

    if document["auroc"] is not None:
        yield (
            f"confidence, answerable against {document['unanswerable']} unanswerable: AUROC "
            f"{document['auroc']:.3f}"
        )

    worst = []
    for question in document["worst"]:
        worst.append(
            {
                **question,
                "place": question["place"] or "not found",
            }
        )

    if worst:
        yield list_records(
            worst,
            "kind question wanted=where place",
            "the worst questions",
        )
    else:
        yield ""


@contextmanager
def open_separate(home: Path | None) -> Iterator[tuple[Hades, Settings]]:
    """A separate home, named or temporary; the graph of HADES_HOME is not touched."""
    settings = load_settings()
    with tempfile.TemporaryDirectory(prefix="hades-eval-") as scratch, show_progress() as progress:
        models = model_cache(settings).resolve()
        models.mkdir(parents=True, exist_ok=True)
        cache = Path(scratch) / "cache"
        cache.mkdir()
        # Models that this home exported serve there too.
        (cache / "models").symlink_to(models, target_is_directory=True)
        separate = settings.model_copy(
            update={
                "home": home or Path(scratch),
                "store": "sqlite",
                "view": "snapshot",
            }
        )

        with open_hades(separate, progress=progress) as hades:
            yield hades, settings


def results_folder(
    kind: str,
    document: Mapping[str, Any],
    out: Path | None,
) -> Path:
    folder = (
        out
        or load_settings().home / "reports" / f"eval-{kind}-{document['dataset']['sha256'][:12]}"
    )
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def save_results(
    kind: str,
    document: JsonObject,
    folder: Path,
    figures: Mapping[str, float] = {},
    files: Sequence[Path] = (),
) -> str:
    """Write the results to a file; those with figures are also a run of the registry. Says where
    they are.
    """
    results = write_whole(
        folder / "results.json",
        json.dumps(document, indent=1, sort_keys=True) + "\n",
    )
    sentence = f"saved in {folder}"

    if not figures:
        return sentence

    dataset = document["dataset"]
    record = RunRecord(
        f"{kind} {dataset['sha256'][:8]}",
        params={
            "model": document["model"],
            "snapshot": document["snapshot"],
            **dataset,
        },
        metrics=dict(figures),
        artifacts=[results, *files],
        tables={"figures": [{"figure": name, "value": value} for name, value in figures.items()]},
        inputs=[
            Dataset(
                kind,
                dataset["sha256"],
                str(folder),
                dataset.get("questions"),
            )
        ],
        tags={
            "kind": kind,
            DATA_HASH: sha256_of(results),
        },
    )
    open_tracker(load_settings()).log_run(EXPERIMENT, record)
    return sentence


def saved_answer(
    kind: str,
    document: JsonObject,
    view: Table,
    out: Path | None,
) -> Answer:
    saved = save_results(
        kind,
        document,
        results_folder(kind, document, out),
    )
    return Answer(document, (view, saved))
