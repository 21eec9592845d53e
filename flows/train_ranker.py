"""The ranker alone: questions asked, contract, fit, gate; a champion is published at once."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from hades.night.stage import begin
from tasks.build import release_if, train_on
from tasks.unit import build_flow


@build_flow("train_ranker")
def train_ranker(
    questions: Path | None = None,
    as_of: datetime | None = None,
    keep: Annotated[int, Field(ge=1)] = 7,
) -> dict[str, Any]:
    """Fit the default ranking to the corpus' own exam and to labelled questions; a better one
    serves.

    Args:
        questions: questions with their gold, JSON lines; empty: questions.jsonl of HADES_HOME
        as_of: the moment the build stands at; empty: today
        keep: how many of the newest snapshots and weights to keep
    """
    night = begin(as_of, keep=keep)
    report = train_on(night, questions)
    return {
        "ranker": report,
        "released": release_if(report["is_champion"], night),
    }
