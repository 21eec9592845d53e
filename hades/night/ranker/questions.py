"""Labelled questions to learn from, and the gate that a newly fitted ranker must pass."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hades.errors import HadesError
from hades.ingest.sources.files import Unusable
from hades.ingest.sources.passages import read_rows
from hades.night.columns import kind_numbers
from hades.night.exam.questions import KINDS, Draft, ExamQuestion
from hades.ports.graph import Kind
from hades.snapshot.view import GraphView
from models.ranker.infer import difference, recall_at, reciprocal_rank
from schemas.ids import sha256_text

QUESTIONS = "questions.jsonl"  # under HADES_HOME, where nobody names another file
LABELLED = "labelled"  # the kind of a question from such a file
Labelled = tuple[str, list[str]]  # a question and its gold documents, by the corpus' ids


class BadQuestions(HadesError):
    """Questions that a ranker cannot learn from."""


def read_questions(path: Path) -> list[Labelled]:
    """Rows of `question` and `gold`, JSON lines, plain or gzip; a question that stands there twice
    counts once.
    """
    if not path.is_file():
        raise BadQuestions(
            f"{path} is not there; name a file of questions with their gold (JSON lines)"
        )

    gold_by_question: dict[str, list[str]] = {}
    for number, row in read_rows(path):
        if isinstance(row, Unusable) or not row.get("question") or not row.get("gold"):
            raise BadQuestions(
                f"{path} line {number}: a row needs `question` and a non-empty `gold`"
            )

        gold_by_question[str(row["question"])] = [str(document) for document in row["gold"]]

    if not gold_by_question:
        raise BadQuestions(f"{path} holds no question")

    return list(gold_by_question.items())


def place_questions(
    view: GraphView,
    labelled: Sequence[Labelled],
) -> list[ExamQuestion]:
    """Labelled questions with the passages of their gold documents, and each again with these
    hidden.

    What this graph does not hold cannot be asked.
    """
    if not labelled:
        return []

    passages: dict[str, list[str]] = defaultdict(list)
    for passage in view.passages(kind_numbers(view.info.nodes, Kind.CHUNK.value)):
        passages[passage.document].append(passage.id)

    placed = []
    for text, gold in labelled:
        parts = tuple(tuple(passages[document]) for document in gold)
        if all(parts):
            draft = Draft(LABELLED, text, parts)
            key = sha256_text(f"{LABELLED} {text}")
            question = ExamQuestion.of_draft(draft, key, KINDS["judged"])
            placed += [question, question.without(chain.from_iterable(parts))]

    return placed


# Whether a challenger may serve: better than the shipped weights and than what serves, beyond
# chance, and worse nowhere. Judged are questions that it has not seen. The quality of a ranking is
# the mean of reciprocal rank and recall at 5, that of abstention how often it is right. The mean
# difference must be a point at least and its 95% interval above zero: less is within what an exam
# says about people's questions by chance. No set may lose more than a point.
# By measure a value a question; `quality` is the mean of the measures.
Quality = Mapping[str, NDArray[np.float64]]
# Whether it `is_better` and may serve, the `reason`, and the `figures` that say so.
Verdict = dict[str, Any]
DEPTH = 5
POINT = 0.01
LEAST_QUESTIONS = 20


def quality(
    rankings: Sequence[Sequence[str]],
    gold: Sequence[frozenset[str]],
) -> Quality:
    """The figures of rankings."""
    pairs = list(zip(rankings, gold, strict=True))
    mrr = np.array([reciprocal_rank(ranking, question_gold) for ranking, question_gold in pairs])
    recall = np.array(
        [recall_at(ranking, question_gold, DEPTH) for ranking, question_gold in pairs]
    )
    return {
        "quality": (mrr + recall) / 2.0,
        "mrr": mrr,
        "recall": recall,
    }


def decide(
    challenger: Quality,
    rivals: Mapping[str, Quality],
    sets: Sequence[str],
) -> Verdict:
    """Compare a challenger with each rival, of which the shipped weights are one."""
    figures = {}
    for name, rival in rivals.items():
        figures[name] = _figures(challenger, rival, sets)

    refusal = next(_refusals(figures, sets), "")
    return {
        "is_better": not refusal,
        "reason": refusal or f"better than {' and '.join(rivals)}",
        "figures": figures,
    }


def _refusals(figures: Mapping[str, Any], sets: Sequence[str]) -> Iterator[str]:
    """Why a challenger may not serve."""
    if len(sets) < LEAST_QUESTIONS:
        yield f"{len(sets)} questions tell nothing; {LEAST_QUESTIONS} are needed"

    for name, figure in figures.items():
        gained = figure["quality"]["mean"]
        low = figure["quality"]["low"]
        if low <= 0.0:
            yield f"not better than {name}: {_signed(gained)}, interval from {_signed(low)}"
        elif gained < POINT:
            yield (
                f"hardly better than {name}: {_signed(gained)}, and less than a point is not "
                "worth a change"
            )

        for question_set, changes in figure["sets"].items():
            for measure, change in changes.items():
                if measure != "questions" and change < -POINT:
                    yield f"worse than {name} on {question_set}: {measure} {_signed(change)}"


def _signed(value: float) -> str:
    return f"{value:+.4f}" if round(value, 4) else "0.0000"


def _figures(
    ours: Quality,
    rival: Quality,
    sets: Sequence[str],
) -> dict[str, Any]:
    """The mean difference of each measure with its interval, and the differences by set."""
    differences = {name: ours[name] - rival[name] for name in ours if name != "quality"}

    by_set: dict[str, dict[str, float]] = {}
    for name in dict.fromkeys(sets):
        in_set = np.array(sets) == name
        means = {}
        for measure, row in differences.items():
            means[measure] = float(row[in_set].mean())

        by_set[name] = {
            "questions": int(in_set.sum()),
            **means,
        }

    figures = {}
    for measure in ours:
        figures[measure] = asdict(difference(ours[measure], rival[measure], sets))

    return {**figures, "sets": by_set}
