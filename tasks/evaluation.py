"""Evaluation of the serving graph as a task: worse recall than in the last run stops the flow."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hades.evaluation.build import Workbench
from hades.evaluation.ladder import rungs
from hades.evaluation.serving import evaluate_serving
from hades.providers.tokens import MiniLmTokenizer
from hades.settings import load_settings
from hades.wiring import open_hades
from tasks import artifacts, policies
from tasks.context import build_context
from tasks.unit import unit

RECIPES = "auto,auto/by-hand,hipporag,hirag_pathrag"  # the first two decide which ranking serves


@unit("evaluate serving graph", policies.HEAVY)
def evaluate_graph(questions: Path | None, recipes: str | None) -> dict[str, Any]:
    """Ask the serving snapshot, compare with the last run that held; raises when recall fell below its interval."""
    result = evaluate_serving(load_settings().home, _open_bench, questions, rungs(recipes, RECIPES))
    artifacts.table("evaluation", result.rows, "recall of the serving snapshot")
    for alert in result.alerts:
        artifacts.event(alert.event, "evaluation", subject=alert.sentence, page=str(result.page))
    return result.require().report


@contextmanager
def _open_bench() -> Iterator[Workbench]:
    settings = load_settings()
    with build_context("evaluate") as context, open_hades(settings) as hades:
        tokenizer = MiniLmTokenizer()
        yield Workbench(context, hades.ingest, hades.embedder, tokenizer, settings.hirag_pathrag, settings.hipporag)
