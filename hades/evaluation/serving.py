"""The graph that serves, asked a file of questions and compared with the last time; the gate of an alias.

The alias `evaluated` of the weights names the last version that held. A run that got worse does not move it, keeps the
run before as the one to compare with, and raises.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hades.evaluation.build import Workbench
from hades.evaluation.cases import digest, read_cases
from hades.evaluation.ladder import Rung
from hades.evaluation.multihop import Evaluation, measure, middle_of
from hades.evaluation.regression import (
    LAST,
    Change,
    alarms,
    as_rows,
    changes,
    keep_of,
    read_last,
    regressions,
    write_last,
)
from hades.ports.tracking import DATA_HASH, Tracker
from hades.snapshot.open import open_snapshot
from hades.stages.weights.weight_versions import WEIGHTS_MODEL, version_of

EVALUATED = "evaluated"
EXPERIMENT = "hades-evaluation"
QUESTIONS = "questions.jsonl"  # under HADES_HOME, where nobody names another file
DEPTHS = (2, 5, 10)


@dataclass(frozen=True)
class ServingEvaluation:
    """What the serving graph is worth, and how that moved."""

    document: dict[str, Any]
    worse: tuple[Change, ...]
    alarms: tuple[Change, ...]
    page: Path

    @property
    def message(self) -> str:
        """What got worse, and what to do."""
        told = "; ".join(change.sentence for change in self.worse)
        return (
            f"retrieval got worse on snapshot {self.document['snapshot']}: {told}; the alias {EVALUATED!r} stays where "
            f"it was. See {self.page}, go back with `hades rollback`, or accept it by removing "
            f"{self.page.parent / LAST}"
        )


def nothing_to_ask(home: Path, questions: Path | None) -> dict[str, Any] | None:
    """The report of an evaluation without questions: a fresh deployment has no file yet, which is no failure."""
    expected = home / QUESTIONS
    if questions is not None or expected.is_file():
        return None
    why = f"there are no questions to ask: {expected} does not exist; write rows with question and gold there"
    return {"skipped": True, "why": why}


def evaluate_serving(
    bench: Workbench,
    questions: Path | None,
    rungs: Sequence[Rung],
    open_tracker: Callable[[], Tracker],
    ks: Sequence[int] = DEPTHS,
) -> ServingEvaluation:
    """Ask, compare, keep; the alias moves only where nothing got worse. No file: `questions.jsonl` at home."""
    asked = questions or bench.build_context.home / QUESTIONS
    cases, sha256 = read_cases(asked), digest([asked])
    with closing(open_snapshot(bench.build_context.home)) as view:
        found = measure(bench, view, cases, rungs, ks, middle_of(ks))
    folder = bench.build_context.home / "reports" / "evaluation" / sha256[:12]
    now = keep_of(found, sha256)
    moved = changes(now, read_last(folder))
    worse, loud = tuple(regressions(moved)), tuple(alarms(moved))
    data = {"file": str(asked), "questions": len(cases), "sha256": sha256}
    document = {"dataset": data, **found.document, "changes": as_rows(moved), "holds": not worse}
    page = _write(folder, document)
    if not worse:
        write_last(folder, now)
    tracker = open_tracker()
    _log(tracker, document, page)
    _mark(tracker, found, holds=not worse)
    return ServingEvaluation(document, worse, loud, page)


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
