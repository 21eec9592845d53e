"""One run against the last on the same questions: what got worse beyond what the questions' spread explains."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from hades.errors import HadesError
from hades.evaluation.metrics import compare
from hades.evaluation.multihop import Evaluation

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
    if before is None or before.questions != now.questions or before.k != now.k:
        return []
    return [
        *_move(f"recall@{now.k}", now.recall, before.recall),
        *_move("conveyance", now.conveyance, before.conveyance),
    ]


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
    folder.mkdir(parents=True, exist_ok=True)
    path, fresh = folder / LAST, folder / f".{LAST}"
    fresh.write_text(json.dumps(asdict(kept), sort_keys=True), encoding="utf-8")
    return fresh.replace(path)


def _move(figure: str, now: Mapping[str, Sequence[float]], before: Mapping[str, Sequence[float]]) -> list[Change]:
    found = []
    for recipe in sorted(now.keys() & before.keys()):
        new, old = np.array(now[recipe], np.float64), np.array(before[recipe], np.float64)
        if len(new) == len(old):
            one = compare(new, old)
            means = (float(old.mean()), float(new.mean()))
            found.append(Change(recipe, figure, *means, one.difference, one.low, one.high))
    return found


def as_rows(found: Sequence[Change]) -> list[dict[str, Any]]:
    """Changes as a table."""
    return [{**asdict(change), "is_worse": change.is_worse} for change in found]
