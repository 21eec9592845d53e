"""One task for each stage of the night, made from the list in `hades/stages/night.py`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hades.stages.night import NIGHT, Night, Stage
from hades.stages.ranker.train_ranker import QuestionSet
from hades.stages.run_stage import run_stage, tell_stage
from hades.stages.stage_calls import train
from hades.stages.stage_tables import table_of
from hades.wiring import open_hades
from tasks import artifacts, policies
from tasks.artifacts import progress_of
from tasks.context import build_context
from tasks.unit import Unit, unit


def _task_of(stage: Stage) -> Unit[dict[str, Any]]:
    @unit(stage.title, policies.of_stage(is_light=stage.is_light))
    def run(night: Night) -> dict[str, Any]:
        with open_hades(progress=progress_of(stage.name)) as hades:
            report = run_stage(stage, hades.build_context, hades.ingest, night)
        artifacts.table(stage.name, *table_of(stage.name, report))
        return report

    return run


STAGE_TASKS: dict[str, Unit[dict[str, Any]]] = {stage.name: _task_of(stage) for stage in NIGHT}


@unit("tell lineage", policies.LOCAL)
def tell_lineage(night: Night, stage: str) -> None:
    """Lineage of a stage that ran as a flow of its own."""
    with build_context(stage) as context:
        tell_stage(stage, context, night)


@unit("train ranker", policies.HEAVY)
def train_on(night: Night, sets: Sequence[QuestionSet]) -> dict[str, Any]:
    """Fit a ranker to these labelled questions and to judged answers."""
    with build_context("ranker") as context:
        report = train(context, night.as_of, sets, seconds_left=night.seconds_left())
    artifacts.table("ranker", *table_of("ranker", report))
    return report
