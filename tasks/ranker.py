"""The ranker as a task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hades.stages.ranker.train_ranker import QuestionSet
from hades.stages.stage_calls import train
from tasks import artifacts, policies
from tasks.context import opened_site
from tasks.night import Night
from tasks.unit import unit


@unit("train ranker", policies.HEAVY)
def ranker(night: Night, sets: Sequence[QuestionSet] = ()) -> dict[str, Any]:
    """Fit a ranker to labelled questions and judged answers, and let the gate decide."""
    with opened_site("ranker") as site:
        report = train(site, night.as_of, sets, seconds_left=night.seconds_left())
    rows = [
        {"part": part, "passed": verdict["is_better"], "reason": verdict["reason"]}
        for part, verdict in report.get("verdicts", {}).items()
    ]
    artifacts.table("ranker", rows, report["why"])
    return report
