"""Evaluate the serving graph with a file of questions and compare with the last run.

The alias `evaluated` of the weights names the last version that held. A run that got worse does not move it; the run
before stays the one to compare with.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from hades.evaluation.build import Workbench
from hades.evaluation.cases import digest, read_cases
from hades.evaluation.ladder import Rung
from hades.evaluation.multihop import Evaluation, measure, middle_of
from hades.evaluation.ranking_gate import choose_ranking
from hades.evaluation.regression import (
    LAST,
    Change,
    RetrievalRegression,
    alarms,
    as_rows,
    changes,
    keep_of,
    read_last,
    regressions,
    write_last,
)
from hades.ports.clock import utc_now
from hades.ports.tracking import DATA_HASH, Tracker
from hades.retrieval.ranking.fitted_files import fusion_model
from hades.retrieval.ranking.served_fusion import write_choice
from hades.snapshot.open import open_snapshot
from hades.stages.release.alerts import append_alert
from hades.stages.weights.weight_versions import WEIGHTS_MODEL, version_of

EVALUATED = "evaluated"
EXPERIMENT = "hades-evaluation"
QUESTIONS = "questions.jsonl"  # under HADES_HOME, where nobody names another file
DEPTHS = (2, 5, 10)


@dataclass(frozen=True)
class Alert:
    """Something a person should look at: the name of the event, a title, a sentence."""

    event: str
    title: str
    sentence: str


@dataclass(frozen=True)
class ServingEvaluation:
    """The recall of the serving graph, and how it changed; without a file of questions, why it was skipped."""

    report: dict[str, Any]
    document: dict[str, Any] | None = None
    worse: tuple[Change, ...] = ()
    falls: tuple[Change, ...] = ()  # of conveyance; they do not stop the flow
    page: Path | None = None

    @property
    def rows(self) -> list[dict[str, Any]]:
        """A row for each recipe with its recall."""
        return list(self.report.get("recall", ()))

    @property
    def message(self) -> str:
        """What got worse, and what to do."""
        assert self.document is not None
        assert self.page is not None
        sentences = "; ".join(change.sentence for change in self.worse)
        return (
            f"retrieval got worse on snapshot {self.document['snapshot']}: {sentences}; the alias {EVALUATED!r} stays "
            f"where it was. See {self.page}, roll back with `hades rollback`, or accept it by removing "
            f"{self.page.parent / LAST}"
        )

    @property
    def alerts(self) -> list[Alert]:
        """One for each fall of conveyance, and one when retrieval got worse."""
        falls = [Alert("hades.conveyance.fell", "conveyance fell", change.sentence) for change in self.falls]
        worse = [Alert("hades.evaluation.regressed", "retrieval got worse", self.message)] if self.worse else []
        return falls + worse

    def require(self) -> Self:
        """Raise `RetrievalRegression` when retrieval got worse."""
        if self.worse:
            raise RetrievalRegression(self.message)
        return self


def evaluate_serving(
    home: Path,
    open_bench: Callable[[], AbstractContextManager[Workbench]],
    questions: Path | None,
    rungs: Sequence[Rung],
    ks: Sequence[int] = DEPTHS,
) -> ServingEvaluation:
    """Ask the serving graph and compare with the last run that held; the alias moves only where nothing got worse.

    Without a file of questions, `questions.jsonl` of the home is asked. A new deployment has none yet: that is no
    failure, and nothing is opened.
    """
    expected = questions or home / QUESTIONS
    if questions is None and not expected.is_file():
        why = f"there are no questions to ask: {expected} does not exist; write rows with question and gold there"
        return ServingEvaluation({"skipped": True, "why": why})
    with open_bench() as bench:
        result = _evaluate(bench, expected, rungs, ks)
    for alert in result.alerts:
        append_alert(home, utc_now(), alert.title, alert.sentence, str(result.page))
    return result


def _evaluate(bench: Workbench, questions: Path, rungs: Sequence[Rung], ks: Sequence[int]) -> ServingEvaluation:
    cases, sha256 = read_cases(questions), digest([questions])
    with closing(open_snapshot(bench.build_context.home)) as view:
        found = measure(bench, view, cases, rungs, ks, middle_of(ks))
    folder = bench.build_context.home / "reports" / "evaluation" / sha256[:12]
    now = keep_of(found, sha256)
    moved = changes(now, read_last(folder))
    worse = tuple(regressions(moved))
    data = {"file": str(questions), "questions": len(cases), "sha256": sha256}
    choice = choose_ranking(found.scores, fusion_model(), sha256)
    if choice is not None:
        write_choice(bench.build_context.home, choice)
    ranking = asdict(choice) if choice is not None else None
    document = {"dataset": data, **found.document, "changes": as_rows(moved), "holds": not worse, "ranking": ranking}
    page = _write(folder, document)
    if not worse:
        write_last(folder, now)
    tracker = bench.build_context.open_tracker()
    _log(tracker, document, page)
    _mark(tracker, found, holds=not worse)
    recall = [{"recipe": name, **row["recall"]} for name, row in document["recipes"].items()]
    report = {**data, "page": str(page), "changes": document["changes"], "recall": recall, "ranking": ranking}
    return ServingEvaluation(report, document, worse, tuple(alarms(moved)), page)


def _write(folder: Path, document: dict[str, Any]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{document['snapshot']}.json"
    path.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return path


def _log(tracker: Tracker, document: dict[str, Any], page: Path) -> None:
    metrics = {
        f"{name}.recall_at_{k}": one for name, row in document["recipes"].items() for k, one in row["recall"].items()
    }
    tracker.log_run(
        EXPERIMENT,
        f"serving {document['snapshot']}",
        params={"snapshot": document["snapshot"], "model": document["model"], **document["dataset"]},
        metrics=metrics,
        artifacts=[page],
        tags={"kind": "serving", DATA_HASH: digest([page])},
    )


def _mark(tracker: Tracker, found: Evaluation, *, holds: bool) -> None:
    """Say of the weights that serve in this snapshot whether they held; none where no version was registered."""
    version = version_of(tracker, str(found.document["snapshot"]))
    if version is not None:
        tracker.tag(WEIGHTS_MODEL, version, {"evaluation": "held" if holds else "regressed"})
        if holds:
            tracker.set_alias(WEIGHTS_MODEL, EVALUATED, version)
