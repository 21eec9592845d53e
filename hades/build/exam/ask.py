"""The exam asked of a published graph by the default, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np

from hades.build.exam.questions import ExamQuestion
from hades.ports.graph import DocumentFilter
from hades.ports.services import ProgressReport, silent
from hades.retrieval.core.types import AUTO
from hades.retrieval.pipeline import Tools, retrieve
from hades.snapshot.view import GraphView
from models.ranker.compare import auroc
from schemas.plan import Plan, Profile

DEPTH = 5
WORST = 10  # questions that are shown
PLAN = Plan(profile=Profile.ONLINE)  # that of a user's turn
_MOMENT = datetime(2026, 1, 1, tzinfo=UTC)  # an exam stands still in time, so that its figures can be had again


@dataclass(frozen=True)
class ExamAnswer:
    """What was found for a question: ids of passages, best first, and how sure the answer is."""

    question: ExamQuestion
    found: tuple[str, ...]
    confidence: float

    def recall(self, depth: int) -> float:
        """Share of the parts of the gold that are among the first passages."""
        first = set(self.found[:depth])
        return float(np.mean([bool(first.intersection(part)) for part in self.question.gold]))

    @property
    def reciprocal_rank(self) -> float:
        """1 over the place of the first passage that serves; 0 where none does."""
        gold = {one for part in self.question.gold for one in part}
        return next((1.0 / place for place, one in enumerate(self.found, 1) if one in gold), 0.0)


def take_exam(
    view: GraphView,
    tools: Tools,
    questions: Sequence[ExamQuestion],
    progress: ProgressReport = silent,
    recipe: str = AUTO,
) -> list[ExamAnswer]:
    """Ask every question with the plan of a user's turn; no clock cuts a turn short."""
    patient = replace(tools, clock=lambda: 0.0, memory=None)
    answers = []
    for number, question in enumerate(questions, 1):
        only = DocumentFilter(without=question.hidden) if question.hidden else None
        answer = retrieve(view, question.text, patient, at=_MOMENT, recipe=recipe, plan=PLAN, only=only, anyway=True)
        found = tuple(one.id for one in answer.passages)
        answers.append(ExamAnswer(question, found, 0.0 if answer.confidence is None else answer.confidence))
        progress("exam", number, len(questions))
    return answers


def grade_exam(answers: Sequence[ExamAnswer]) -> dict[str, Any]:
    """The figures of an exam as JSON: by kind, of all, and the questions that were answered worst."""
    asked = [one for one in answers if one.question.is_answerable]
    kinds = {
        kind: _figures([one for one in asked if one.question.kind == kind])
        for kind in sorted({one.question.kind for one in asked})
    }
    sure, unsure = (
        np.array([one.confidence for one in answers if one.question.is_answerable is wanted], np.float64)
        for wanted in (True, False)
    )
    missed = sorted(asked, key=lambda one: (one.recall(DEPTH), one.reciprocal_rank, one.question.key))[:WORST]
    return {
        "questions": len(answers),
        "unanswerable": len(unsure),
        "score": _figures(asked),
        "kinds": kinds,
        "auroc": round(auroc(sure, unsure), 4) if len(unsure) else None,
        "worst": [
            {"kind": one.question.kind, "question": one.question.text, "wanted": one.question.gold[0][0]}
            | {"found": list(one.found[:DEPTH])}
            for one in missed
            if one.reciprocal_rank < 1.0
        ],
    }


def name_wanted(view: GraphView, graded: Mapping[str, Any]) -> dict[str, Any]:
    """The figures with the place of what each of the worst questions wants, for people."""
    numbers = view.number([one["wanted"] for one in graded["worst"]])
    places = {one.id: " › ".join([one.document, *one.headings]) for one in view.passages(numbers[numbers >= 0])}
    return {**graded, "worst": [{**one, "where": places.get(one["wanted"], one["wanted"])} for one in graded["worst"]]}


def _figures(answers: Sequence[ExamAnswer]) -> Mapping[str, float]:
    """Means over questions, each as much as its kind counts."""
    weights = np.array([one.question.weight for one in answers], np.float64)
    rows = {
        "recall@1": [one.recall(1) for one in answers],
        f"recall@{DEPTH}": [one.recall(DEPTH) for one in answers],
        "mrr": [one.reciprocal_rank for one in answers],
    }
    shares = {name: round(float(np.average(row, weights=weights)), 4) for name, row in rows.items() if len(weights)}
    return {"questions": len(answers), **shares}
