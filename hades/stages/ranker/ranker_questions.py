"""Questions to learn ranking from: files of questions with their gold documents, and judged answers of `query_logs`."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import orjson

from hades.errors import HadesError
from hades.ports.store import RowStore
from hades.stages.ranker.ranker_gate import LEAST_QUESTIONS
from schemas.telemetry import Feedback, ShownResults

FILE, FEEDBACK = "file", "feedback"
QUESTIONS = "questions.jsonl"  # under HADES_HOME, where nobody names another file


class BadQuestions(HadesError):
    """Questions that a ranker cannot learn from."""


@dataclass(frozen=True)
class LabelledQuestion:
    """A question and what was preferred: gold documents by the corpus' ids, or passages that somebody judged.

    `shown` are the passages that were shown, with the chance that each stood where it stood: what was not shown was
    not passed over. `at` is when it was asked, in seconds since 1970; None for a file's.
    """

    text: str
    gold: frozenset[str] = frozenset()
    good: frozenset[str] = frozenset()
    shown: Mapping[str, float] = field(default_factory=dict)
    at: float | None = None
    source: str = FILE

    def wants(self, passage: str, document: str) -> bool:
        """Whether this passage was preferred."""
        return passage in self.good or document in self.gold

    def compares(self, passage: str) -> bool:
        """Whether this passage may count as passed over: everything for a file, what was shown for an answer."""
        return not self.shown or passage in self.shown

    @property
    def weight(self) -> float:
        """What it counts: the rarer its good passages stood where they did, the more, within bounds."""
        chances = [self.shown[one] for one in self.good if one in self.shown]
        return min(10.0, sum(1.0 / max(0.1, one) for one in chances) / len(chances)) if chances else 1.0


def read_questions(path: Path) -> list[LabelledQuestion]:
    """Rows of `question` and `gold`, JSON lines, plain or gzip."""
    if not path.is_file():
        raise BadQuestions(f"{path} is not there; name a file of questions with their gold (JSON lines)")
    body = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    found = []
    for number, line in enumerate(body.decode("utf-8").splitlines(), 1):
        row = json.loads(line) if line.strip() else {}
        if not row.get("question") or not row.get("gold"):
            raise BadQuestions(f"{path} line {number}: a row needs `question` and a non-empty `gold`")
        found.append(LabelledQuestion(str(row["question"]), gold=frozenset(str(one) for one in row["gold"])))
    if not found:
        raise BadQuestions(f"{path} holds no question")
    return found


def too_few_judgements(store: RowStore) -> str:
    """Why judged answers alone do not suffice to learn from; empty when they do."""
    count = len(judge_questions(store))
    return describe_shortage(count) if count < LEAST_QUESTIONS else ""


def describe_shortage(count: int) -> str:
    """That this number of questions is too small."""
    return f"{count} questions are known; {LEAST_QUESTIONS} are needed to learn from"


def judge_questions(store: RowStore) -> list[LabelledQuestion]:
    """Answers of which a passage was called good, by the time they were asked."""
    columns = ["_key", "query", "at", "results", "feedback"]
    found = []
    for batch in store.scan("query_logs", columns=columns):
        for row in batch.to_pylist():
            feedback = orjson.loads(row["feedback"])
            if not feedback or not row["query"].strip():
                continue
            good = set(Feedback.model_validate(feedback).good.passages)
            passages = ShownResults.model_validate(orjson.loads(row["results"])).passages
            liked = frozenset(one.id for one in passages if one.rank in good)
            if liked and len(liked) < len(passages):
                chances = {one.id: one.propensity for one in passages}
                at = row["at"].timestamp()
                found.append(LabelledQuestion(row["query"], good=liked, shown=chances, at=at, source=FEEDBACK))
    return sorted(found, key=lambda one: (one.at or 0.0, one.text))
