"""The ranker alone: export, contract, fit, gate; a champion is published at once."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from hades.build.ranker.stage import QuestionSet
from hades.build.stage import begin
from tasks.build import release_if, train_on
from tasks.unit import build_flow


@build_flow("train_ranker")
def train_ranker(
    questions: Path | None = None,
    also: list[QuestionSet] | None = None,
    as_of: datetime | None = None,
    keep: Annotated[int, Field(ge=1)] = 7,
) -> dict[str, Any]:
    """Fit the default ranking to the exam, other recipes to labelled questions; better ones serve.

    Args:
        questions: questions with their gold, JSON lines; empty: questions.jsonl of HADES_HOME
        also: more of them, each with the home of its published graph
        as_of: the moment the build stands at; empty: today
        keep: how many of the newest snapshots and weights to keep
    """
    night = begin(as_of, keep=keep)
    own = [QuestionSet(questions)] if questions is not None else []
    report = train_on(night, [*own, *(also or [])])
    return {"ranker": report, "released": release_if(report.get("is_champion", False), night)}
