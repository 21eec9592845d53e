"""Labelled questions to learn from, and the gate that a newly fitted ranker must pass."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hades.build.columns import kind_numbers
from hades.build.exam.questions import HELD_EVERY, KINDS, ExamQuestion
from hades.errors import HadesError
from hades.ingest.sources.files import Unusable
from hades.ingest.sources.passages import read_rows
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
    """Rows of `question` and `gold`, JSON lines, plain or gzip; a question that stands there twice counts once."""
    if not path.is_file():
        raise BadQuestions(f"{path} is not there; name a file of questions with their gold (JSON lines)")
    found: dict[str, list[str]] = {}
    for number, row in read_rows(path):
        if isinstance(row, Unusable) or not row.get("question") or not row.get("gold"):
            raise BadQuestions(f"{path} line {number}: a row needs `question` and a non-empty `gold`")
        found[str(row["question"])] = [str(one) for one in row["gold"]]
    if not found:
        raise BadQuestions(f"{path} holds no question")
    return list(found.items())


def place_questions(view: GraphView, labelled: Sequence[Labelled]) -> list[ExamQuestion]:
    """Labelled questions with the passages of their gold documents, and each again with these hidden.

    What this graph does not hold cannot be asked.
    """
    passages: dict[str, list[str]] = defaultdict(list)
    for one in view.passages(kind_numbers(view.info.nodes, Kind.CHUNK.value)) if labelled else ():
        passages[one.document].append(one.id)
    placed = []
    for text, gold in labelled:
        key = sha256_text(f"{LABELLED} {text}")
        parts = tuple(tuple(passages[document]) for document in gold)
        is_held = int(key[:8], 16) % HELD_EVERY == 0
        if all(parts):
            asked = ExamQuestion(LABELLED, text, parts, key=key, weight=KINDS["judged"], is_held=is_held)
            hidden = tuple(dict.fromkeys(each for part in parts for each in part))
            lacking = replace(asked, key=sha256_text(f"without {key}"), hidden=hidden, is_answerable=False)
            placed += [asked, lacking]
    return placed


# Whether a challenger may serve: better than the shipped weights and than what serves, beyond chance, and worse
# nowhere. Judged are questions that it has not seen. The quality of a ranking is the mean of reciprocal rank and recall
# at 5, that of abstention how often it is right. The mean difference must be a point at least and its 95% interval
# above zero: less is within what an exam says about people's questions by chance. No set may lose more than a point.
Quality = Mapping[str, NDArray[np.float64]]  # by measure a value a question; `quality` is the mean of the measures
Verdict = dict[str, Any]  # whether it `is_better` and may serve, the `reason`, and the `figures` that say so
DEPTH = 5
POINT = 0.01
LEAST_QUESTIONS = 20


def quality(rankings: Sequence[Sequence[str]], gold: Sequence[frozenset[str]]) -> Quality:
    """The figures of rankings."""
    pairs = list(zip(rankings, gold, strict=True))
    mrr = np.array([reciprocal_rank(ranking, own) for ranking, own in pairs])
    recall = np.array([recall_at(ranking, own, DEPTH) for ranking, own in pairs])
    return {"quality": (mrr + recall) / 2.0, "mrr": mrr, "recall": recall}


def decide(challenger: Quality, rivals: Mapping[str, Quality], sets: Sequence[str]) -> Verdict:
    """Compare a challenger with each rival, of which the shipped weights are one."""
    figures = {name: _figures(challenger, rival, sets) for name, rival in rivals.items()}
    refusal = next(_refusals(figures, sets), "")
    return {"is_better": not refusal, "reason": refusal or f"better than {' and '.join(rivals)}", "figures": figures}


def _refusals(figures: Mapping[str, Any], sets: Sequence[str]) -> Iterator[str]:
    """Why a challenger may not serve."""
    if len(sets) < LEAST_QUESTIONS:
        yield f"{len(sets)} questions tell nothing; {LEAST_QUESTIONS} are needed"
    for name, one in figures.items():
        gained, low = one["quality"]["mean"], one["quality"]["low"]
        if low <= 0.0:
            yield f"not better than {name}: {_signed(gained)}, interval from {_signed(low)}"
        elif gained < POINT:
            yield f"hardly better than {name}: {_signed(gained)}, and less than a point is not worth a change"
        for own, lost in one["sets"].items():
            for measure, by in lost.items():
                if measure != "questions" and by < -POINT:
                    yield f"worse than {name} on {own}: {measure} {_signed(by)}"


def _signed(value: float) -> str:
    return f"{value:+.4f}" if round(value, 4) else "0.0000"


def _figures(ours: Quality, theirs: Quality, sets: Sequence[str]) -> dict[str, Any]:
    rows = {name: np.array(sets) == name for name in dict.fromkeys(sets)}
    return {
        **{measure: asdict(difference(ours[measure], theirs[measure], sets)) for measure in ours},
        "sets": {
            name: {"questions": int(own.sum())}
            | {one: float((ours[one] - theirs[one])[own].mean()) for one in ours if one != "quality"}
            for name, own in rows.items()
        },
    }
