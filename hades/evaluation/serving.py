"""The serving graph against the last run."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import numpy as np

from hades.errors import HadesError
from hades.evaluation.cases import Row, digest, read_each
from hades.evaluation.figures import mean_of
from hades.evaluation.rankers import PLAN, SHOWN, Bench, CachingEmbedder, ask, baseline_searches
from hades.files import write_whole
from hades.night.context import BuildContext
from hades.night.model_versions import WEIGHTS_MODEL, version_of
from hades.night.release.publish import append_alert
from hades.ports.graph import Passage
from hades.ports.services import DATA_HASH, Dataset, ProgressReport, RunRecord, Tracker, utc_now
from hades.retrieval.pipeline import Tools
from hades.snapshot.open import open_snapshot
from models.ranker.infer import difference, recall_at
from schemas.answer import CitedPassage
from schemas.record import JsonObject

LAST = "last.json"
LEAST_DROP = 0.1  # of the conveyance: below a tenth it is the machine's mood


class RetrievalRegression(HadesError):
    """Retrieval that got worse than it was."""


@dataclass(frozen=True)
class StoredRun:
    """A run as the next one is compared with it: a value a question, by recipe."""

    snapshot: str
    questions: str
    k: int
    recall: dict[str, list[float]]
    conveyance: dict[str, list[float]] = field(default_factory=dict)


@dataclass(frozen=True)
class Change:
    """How one figure of one recipe moved: mean difference and its interval over questions."""

    recipe: str
    figure: str
    before: float
    now: float
    difference: float
    low: float
    high: float

    @property
    def is_worse(self) -> bool:
        """Whether the whole interval lies below zero."""
        return self.high < 0.0

    @property
    def sentence(self) -> str:
        """For people."""
        spread = f"[{self.low:+.4f}, {self.high:+.4f}]"
        return (
            f"{self.recipe}: {self.figure} {self.before:.4f} -> {self.now:.4f} "
            f"({self.difference:+.4f}, 95% {spread})"
        )


def changes(now: StoredRun, previous: StoredRun | None) -> list[Change]:
    """Recall and conveyance of every recipe that both runs asked the same questions; none without a
    run before.
    """
    if previous is None or (previous.questions, previous.k) != (now.questions, now.k):
        return []

    moved = []
    figures = {
        f"recall@{now.k}": (now.recall, previous.recall),
        "conveyance": (now.conveyance, previous.conveyance),
    }
    for figure, (ours, previous_values) in figures.items():
        for recipe in sorted(ours.keys() & previous_values.keys()):
            new = np.array(ours[recipe], np.float64)
            old = np.array(previous_values[recipe], np.float64)
            if len(new) != len(old):
                continue

            gain = difference(new, old)
            change = Change(
                recipe,
                figure,
                before=float(old.mean()),
                now=float(new.mean()),
                difference=gain.mean,
                low=gain.low,
                high=gain.high,
            )
            moved.append(change)

    return moved


def regressions(changes: Sequence[Change]) -> list[Change]:
    """Those that must stop the line: recall below the interval."""
    return [change for change in changes if change.figure.startswith("recall") and change.is_worse]


def alarms(changes: Sequence[Change]) -> list[Change]:
    """Those that somebody should look at: conveyance below the interval, and by more than a
    tenth.
    """
    return [
        change
        for change in changes
        if change.figure == "conveyance"
        and change.is_worse
        and change.difference < -LEAST_DROP * change.before
    ]


def read_last(folder: Path) -> StoredRun | None:
    """The last run that held, if there was one."""
    path = folder / LAST
    if path.is_file():
        return StoredRun(**json.loads(path.read_text("utf-8")))

    return None


def write_last(folder: Path, last_run: StoredRun) -> Path:
    """Let the next run be compared with this one; all of the file is there or none."""
    return write_whole(folder / LAST, json.dumps(asdict(last_run), sort_keys=True))


# Evaluate the serving graph with a file of questions and compare with the last run. The alias
# `evaluated` of the weights names the last version that held. A run that got worse does not move
# it; the run before stays the one to compare with.
EVALUATED = "evaluated"
EXPERIMENT = "hades-evaluation"
QUESTIONS = "questions.jsonl"  # under HADES_HOME, where nobody names another file
DEPTHS = (2, 5, 10)
COMPARED_AT = 5


def evaluate_serving(
    home: Path,
    open_graph: Callable[[], AbstractContextManager[tuple[BuildContext, Tools]]],
    questions: Path | None,
    recipes: Sequence[str],
    accepts: bool = False,
) -> JsonObject:
    """Ask the serving graph and compare with the last run that held; the alias moves only where
    nothing got worse.

    Without a file of questions, `questions.jsonl` of the home is asked. A new deployment has none
    yet: that is no failure, and nothing is opened. `accepts` compares with nothing: what is found
    is what later runs compare with. In the report `problem` says what got worse; a fall of
    conveyance is only among the `alerts`.
    """
    expected = questions or home / QUESTIONS
    if questions is None and not expected.is_file():
        why = (
            f"there are no questions to ask: {expected} does not exist; write rows with question "
            "and gold there"
        )
        return {"skipped": True, "why": why}

    with open_graph() as (context, tools):
        report = _evaluate(
            context,
            tools,
            expected,
            recipes,
            accepts,
        )

    for alert in report["alerts"]:
        append_alert(
            home,
            utc_now(),
            alert["title"],
            alert["sentence"],
            report["page"],
        )

    return report


def require_held(report: JsonObject) -> JsonObject:
    """The report, unless retrieval got worse."""
    if problem := report.get("problem"):
        raise RetrievalRegression(problem)
    return report


def _evaluate(
    context: BuildContext,
    tools: Tools,
    questions: Path,
    recipes: Sequence[str],
    accepts: bool,
) -> JsonObject:
    texts, gold = zip(*read_gold(questions), strict=True)
    sha256 = digest([questions])
    folder = context.home / "reports" / "evaluation" / sha256[:12]
    assert tools.embedder is not None
    embedder = CachingEmbedder(tools.embedder)
    embedder.learn(texts)

    with closing(open_snapshot(context.home)) as view:
        bench = Bench(view, replace(tools, embedder=embedder))
        turns = _ask(bench, texts, recipes, context.progress)
        snapshot = view.info.snapshot

    now = _keep(snapshot, sha256, turns, gold)
    moved = changes(now, None if accepts else read_last(folder))
    worse = regressions(moved)
    dataset = {
        "file": str(questions),
        "questions": len(gold),
        "sha256": sha256,
    }
    document: JsonObject = {
        "dataset": dataset,
        "snapshot": snapshot,
        "model": embedder.model.tag,
        "recipes": {name: _figures(rows, gold) for name, rows in turns.items()},
        "changes": [
            {
                **asdict(change),
                "is_worse": change.is_worse,
            }
            for change in moved
        ],
        "holds": not worse,
    }
    body = json.dumps(document, indent=1, sort_keys=True) + "\n"
    page = write_whole(folder / f"{snapshot}.json", body)

    if not worse:
        write_last(folder, now)

    tracker = context.open_tracker()
    recall = []
    for name, row in document["recipes"].items():
        recall.append({"recipe": name, **row["recall"]})

    _log(tracker, document, page, recall)
    # Of the weights that serve; none where none was registered.
    version = version_of(tracker, snapshot)
    if version is not None:
        tracker.tag(
            WEIGHTS_MODEL,
            version,
            {"evaluation": "regressed" if worse else "held"},
        )
        if not worse:
            tracker.set_alias(WEIGHTS_MODEL, EVALUATED, version)

    sentences = "; ".join(change.sentence for change in worse)
    problem = (
        f"retrieval got worse on snapshot {snapshot}: {sentences}; the alias "
        f"{EVALUATED!r} stays where it "
        f"was. See {page}, roll back with `hades rollback`, or accept it by removing "
        f"{folder / LAST}"
    )

    alerts = []
    for change in alarms(moved):
        event = {
            "event": "hades.conveyance.fell",
            "title": "conveyance fell",
        }
        alerts.append({**event, "sentence": change.sentence})

    if worse:
        event = {
            "event": "hades.evaluation.regressed",
            "title": "retrieval got worse",
        }
        alerts.append({**event, "sentence": problem})
    else:
        problem = ""

    figures = {
        "page": str(page),
        "changes": document["changes"],
        "recall": recall,
    }
    return {
        **dataset,
        **figures,
        "problem": problem,
        "alerts": alerts,
    }


def read_gold(path: Path) -> list[tuple[str, frozenset[str]]]:
    """Questions with the ids that answer them; rows of an empty gold are left out."""

    def read(row: Row, _: str) -> tuple[str, frozenset[str]]:
        return str(row["question"]), frozenset(map(str, row["gold"]))

    return read_each(
        path,
        read,
        ("question", "gold"),
        "`question` and `gold`, a list of ids",
    )


@dataclass(frozen=True)
class _Turn:
    """The documents that answered a question, best first, and the conveyance of the answer, which
    a baseline has not.
    """

    documents: tuple[str, ...]
    conveyance: float | None = None


def _ask(
    bench: Bench,
    questions: Sequence[str],
    recipes: Sequence[str],
    progress: ProgressReport,
) -> dict[str, list[_Turn]]:
    """Every question, asked of every baseline and recipe; a recipe is asked once before, so that it
    does not pay for warming up.
    """
    turns: dict[str, list[_Turn]] = {}
    for name, search in baseline_searches(bench).items():
        turns[name] = []
        for question in questions:
            passages = bench.view.passages(search(question, "")[:SHOWN])
            turns[name].append(_Turn(_documents_of(passages)))

    for recipe in recipes:
        turns[recipe] = []
        ask(bench, recipe, PLAN, questions[0])
        for number, question in enumerate(questions, 1):
            answer, _ = ask(bench, recipe, PLAN, question)
            conveyance = None if answer.conveyance is None else answer.conveyance.value
            turns[recipe].append(_Turn(_documents_of(answer.passages), conveyance))
            progress(recipe, number, len(questions))

    return turns


def _documents_of(passages: Iterable[Passage | CitedPassage]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(passage.document for passage in passages))


def _recalls(
    turns: Sequence[_Turn],
    gold: Sequence[frozenset[str]],
    k: int,
) -> list[float]:
    recalls = []
    for turn, ids in zip(turns, gold, strict=True):
        recalls.append(recall_at(turn.documents, ids, k))

    return recalls


def _figures(turns: Sequence[_Turn], gold: Sequence[frozenset[str]]) -> JsonObject:
    recall = {}
    for k in DEPTHS:
        recall[str(k)] = mean_of(_recalls(turns, gold, k))

    values = _conveyances(turns)
    if values:
        return {
            "recall": recall,
            "conveyance": mean_of(values),
        }

    return {"recall": recall}


def _conveyances(turns: Sequence[_Turn]) -> list[float]:
    conveyances = []
    for turn in turns:
        if turn.conveyance is not None:
            conveyances.append(turn.conveyance)

    return conveyances


def _keep(
    snapshot: str,
    questions: str,
    turns: Mapping[str, Sequence[_Turn]],
    gold: Sequence[frozenset[str]],
) -> StoredRun:
    """What the next run needs of this one."""
    recall = {}
    for name, rows in turns.items():
        recall[name] = _recalls(rows, gold, COMPARED_AT)

    conveyance = {}
    for name, rows in turns.items():
        if values := _conveyances(rows):
            conveyance[name] = values

    return StoredRun(
        snapshot,
        questions,
        COMPARED_AT,
        recall,
        conveyance,
    )


def _log(
    tracker: Tracker,
    document: JsonObject,
    page: Path,
    recall: list[JsonObject],
) -> None:
    dataset = document["dataset"]
    metrics = {}
    for name, row in document["recipes"].items():
        for k, share in row["recall"].items():
            metrics[f"{name}.recall_at_{k}"] = share

    record = RunRecord(
        f"serving {document['snapshot']}",
        params={
            "snapshot": document["snapshot"],
            "model": document["model"],
            **document["dataset"],
        },
        metrics=metrics,
        artifacts=[page],
        tables={
            "recall": recall,
            "changes": document["changes"],
        },
        inputs=[
            Dataset(
                "questions",
                dataset["sha256"],
                dataset["file"],
                dataset["questions"],
            )
        ],
        tags={
            "kind": "serving",
            DATA_HASH: digest([page]),
        },
    )
    tracker.log_run(EXPERIMENT, record)
