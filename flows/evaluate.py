"""How good the graph that serves is, and whether it got worse."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tasks import policies
from tasks.build import evaluate_or_ask
from tasks.unit import graph_flow


@graph_flow("evaluate", policies.BUILD)
def evaluate(
    questions: Path | None = None,
    recipes: str | None = None,
) -> dict[str, Any]:
    """Ask the serving snapshot a file of questions; fails when recall fell beyond what the
    questions' spread explains.

    Args:
        questions: file of rows with question and gold; empty: questions.jsonl in HADES_HOME
        recipes: recipes, separated by commas; empty: the usual ones
    """
    return evaluate_or_ask(questions, recipes)
