"""How good the graph that serves is, and whether it got worse."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from prefect import flow
from pydantic import Field

from tasks import policies
from tasks.build import evaluate_graph


@flow(name="evaluate", **policies.BUILD)
def evaluate(
    questions: Annotated[
        Path | None, Field(description="file of rows with question and gold; empty: questions.jsonl in HADES_HOME")
    ] = None,
    recipes: Annotated[str | None, Field(description="recipes, separated by commas; empty: the usual ones")] = None,
) -> dict[str, Any]:
    """Ask the serving snapshot a file of questions; fails when recall fell beyond what the questions' spread explains.

    Args:
        questions: file of rows with question and gold; empty: questions.jsonl in HADES_HOME
        recipes: recipes, separated by commas; empty: the usual ones
    """
    return evaluate_graph(questions, recipes)
