"""Evaluation of what serves, as a task: worse than last time stops the flow, and says so where people look."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from prefect.events import emit_event

from hades.evaluation.build import Workbench
from hades.evaluation.ladder import rungs
from hades.evaluation.regression import RetrievalRegression
from hades.evaluation.serving import evaluate_serving, nothing_to_ask
from hades.providers.tokens import MiniLmTokenizer
from hades.settings import load_settings
from hades.stages.release.alerts import append_alert
from hades.wiring import open_hades
from tasks import artifacts, policies
from tasks.context import build_context
from tasks.unit import progress_here, unit

RECIPES = "hipporag,hirag_pathrag"


@unit("evaluate serving graph", policies.HEAVY)
def evaluate_graph(questions: Path | None, recipes: str | None) -> dict[str, Any]:
    """Ask the serving snapshot, compare with the last run that held; raises when recall fell below its interval."""
    settings = load_settings()
    if skipped := nothing_to_ask(settings.home, questions):
        return skipped
    with build_context("evaluate") as context, open_hades(settings) as hades:
        bench = Workbench(context, hades.ingest, hades.embedder, MiniLmTokenizer(), settings.hirag_pathrag)
        found = evaluate_serving(bench, questions, rungs(recipes, RECIPES), context.open_tracker)
    rows = [{"recipe": name, **row["recall"]} for name, row in found.document["recipes"].items()]
    artifacts.table("evaluation", rows, f"recall on snapshot {found.document['snapshot']}")
    for change in found.alarms:
        _tell("hades.conveyance.fell", "conveyance fell", change.sentence, found.page)
    if found.worse:
        _tell("hades.evaluation.regressed", "retrieval got worse", found.message, found.page)
        raise RetrievalRegression(found.message)
    return {**found.document["dataset"], "page": str(found.page), "changes": found.document["changes"], "recall": rows}


def _tell(event: str, what: str, sentence: str, page: Path) -> None:
    """A line in the log of alerts and, inside a Prefect run, an event that automations can act on."""
    append_alert(load_settings().home, datetime.now(UTC), what, sentence, str(page))
    if progress_here() is None:
        resource = {"prefect.resource.id": "hades.evaluation", "hades.subject": sentence[:200]}
        emit_event(event, resource=resource, payload={"page": str(page), "sentence": sentence})
