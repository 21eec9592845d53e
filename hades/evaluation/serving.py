"""The serving graph against the last run."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from hades.build.registry import WEIGHTS_MODEL, version_of
from hades.build.release.publish import append_alert
from hades.errors import HadesError
from hades.evaluation.cases import digest, read_cases
from hades.evaluation.rankers import Rung, Workbench
from hades.evaluation.text_sets import Evaluation, measure, middle_of
from hades.files import write_whole
from hades.ports.services import DATA_HASH, Dataset, RunRecord, Tracker, utc_now
from models.ranker.infer import difference

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
            f"{self.recipe}: {self.figure} {self.before:.4f} -> {self.now:.4f} ({self.difference:+.4f}, 95% {spread})"
        )


def keep_of(found: Evaluation, questions: str) -> StoredRun:
    """What the next run needs of this one."""
    k = int(found.document["compared_at"])
    conveyed = {
        name: [one.conveyance.value for one in scores.rankings if one.conveyance is not None]
        for name, scores in found.scores.items()
    }
    return StoredRun(
        str(found.document["snapshot"]),
        questions,
        k,
        {name: scores.recall[k].tolist() for name, scores in found.scores.items()},
        {name: values for name, values in conveyed.items() if values},
    )


def changes(now: StoredRun, before: StoredRun | None) -> list[Change]:
    """Recall and conveyance of every recipe that both runs asked the same questions; none without a run before."""
    if before is None or (before.questions, before.k) != (now.questions, now.k):
        return []
    found = []
    figures = {f"recall@{now.k}": (now.recall, before.recall), "conveyance": (now.conveyance, before.conveyance)}
    for figure, (ours, theirs) in figures.items():
        for recipe in sorted(ours.keys() & theirs.keys()):
            new, old = np.array(ours[recipe], np.float64), np.array(theirs[recipe], np.float64)
            if len(new) == len(old):
                one = difference(new, old)
                found.append(Change(recipe, figure, float(old.mean()), float(new.mean()), one.mean, one.low, one.high))
    return found


def regressions(found: Sequence[Change]) -> list[Change]:
    """Those that must stop the line: recall below the interval."""
    return [change for change in found if change.figure.startswith("recall") and change.is_worse]


def alarms(found: Sequence[Change]) -> list[Change]:
    """Those that somebody should look at: conveyance below the interval, and by more than a tenth."""
    return [
        change
        for change in found
        if change.figure == "conveyance" and change.is_worse and change.difference < -LEAST_DROP * change.before
    ]


def read_last(folder: Path) -> StoredRun | None:
    """The last run that held, if there was one."""
    path = folder / LAST
    return StoredRun(**json.loads(path.read_text("utf-8"))) if path.is_file() else None


def write_last(folder: Path, kept: StoredRun) -> Path:
    """Let the next run be compared with this one; all of the file is there or none."""
    return write_whole(folder / LAST, json.dumps(asdict(kept), sort_keys=True))


# Evaluate the serving graph with a file of questions and compare with the last run. The alias `evaluated` of the
# weights names the last version that held. A run that got worse does not move it; the run before stays the one to
# compare with.
EVALUATED = "evaluated"
EXPERIMENT = "hades-evaluation"
QUESTIONS = "questions.jsonl"  # under HADES_HOME, where nobody names another file
DEPTHS = (2, 5, 10)


def evaluate_serving(
    home: Path,
    open_bench: Callable[[], AbstractContextManager[Workbench]],
    questions: Path | None,
    rungs: Sequence[Rung],
    accepts: bool = False,
) -> dict[str, Any]:
    """Ask the serving graph and compare with the last run that held; the alias moves only where nothing got worse.

    Without a file of questions, `questions.jsonl` of the home is asked. A new deployment has none yet: that is no
    failure, and nothing is opened. `accepts` compares with nothing: what is found is what later runs compare with. In
    the report `problem` says what got worse; a fall of conveyance is only among the `alerts`.
    """
    expected = questions or home / QUESTIONS
    if questions is None and not expected.is_file():
        why = f"there are no questions to ask: {expected} does not exist; write rows with question and gold there"
        return {"skipped": True, "why": why}
    with open_bench() as bench:
        report = _evaluate(bench, expected, rungs, accepts)
    for alert in report["alerts"]:
        append_alert(home, utc_now(), alert["title"], alert["sentence"], report["page"])
    return report


def require_held(report: dict[str, Any]) -> dict[str, Any]:
    """The report, unless retrieval got worse."""
    if problem := report.get("problem"):
        raise RetrievalRegression(problem)
    return report


def _evaluate(bench: Workbench, questions: Path, rungs: Sequence[Rung], accepts: bool) -> dict[str, Any]:
    cases, sha256 = read_cases(questions), digest([questions])
    found = measure(bench, cases, rungs, DEPTHS, middle_of(DEPTHS))
    folder = bench.build_context.home / "reports" / "evaluation" / sha256[:12]
    now = keep_of(found, sha256)
    moved = changes(now, None if accepts else read_last(folder))
    worse = regressions(moved)
    data = {"file": str(questions), "questions": len(cases), "sha256": sha256}
    document = {
        "dataset": data,
        **found.document,
        "changes": [{**asdict(change), "is_worse": change.is_worse} for change in moved],
        "holds": not worse,
    }
    body = json.dumps(document, indent=1, sort_keys=True) + "\n"
    page = write_whole(folder / f"{document['snapshot']}.json", body)
    if not worse:
        write_last(folder, now)
    tracker = bench.build_context.open_tracker()
    recall = [{"recipe": name, **row["recall"]} for name, row in document["recipes"].items()]
    _log(tracker, document, page, recall)
    version = version_of(
        tracker, str(document["snapshot"])
    )  # of the weights that serve; none where none was registered
    if version is not None:
        tracker.tag(WEIGHTS_MODEL, version, {"evaluation": "regressed" if worse else "held"})
        if not worse:
            tracker.set_alias(WEIGHTS_MODEL, EVALUATED, version)
    sentences = "; ".join(change.sentence for change in worse)
    problem = (
        f"retrieval got worse on snapshot {document['snapshot']}: {sentences}; the alias {EVALUATED!r} stays where it "
        f"was. See {page}, roll back with `hades rollback`, or accept it by removing {folder / LAST}"
    )
    told = [("hades.conveyance.fell", "conveyance fell", change.sentence) for change in alarms(moved)]
    told += [("hades.evaluation.regressed", "retrieval got worse", problem)] if worse else []
    alerts = [{"event": event, "title": title, "sentence": sentence} for event, title, sentence in told]
    found_then = {"page": str(page), "changes": document["changes"], "recall": recall}
    return {**data, **found_then, "problem": problem if worse else "", "alerts": alerts}


def _log(tracker: Tracker, document: dict[str, Any], page: Path, recall: list[dict[str, Any]]) -> None:
    data = document["dataset"]
    metrics = {
        f"{name}.recall_at_{k}": one for name, row in document["recipes"].items() for k, one in row["recall"].items()
    }
    record = RunRecord(
        f"serving {document['snapshot']}",
        params={"snapshot": document["snapshot"], "model": document["model"], **document["dataset"]},
        metrics=metrics,
        artifacts=[page],
        tables={"recall": recall, "changes": document["changes"]},
        inputs=[Dataset("questions", data["sha256"], data["file"], data["questions"])],
        tags={"kind": "serving", DATA_HASH: digest([page])},
    )
    tracker.log_run(EXPERIMENT, record)
