"""The stage `exam`: the questions that a corpus supplies, in one Parquet file; asking them of a graph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from hades import build_state
from hades.build.columns import Frames
from hades.build.context import BuildContext, NotBuilt, derivation, read_columns
from hades.build.contracts.check import check_frames, require_contracts
from hades.build.contracts.outputs import EXAM_CONTRACT
from hades.build.contracts.rule import ContractResult
from hades.build.exam.questions import Corpus, Draft, ExamPassage, ExamQuestion, StatedLink, write_exam
from hades.build.stage import TEXTS, Report, Stage
from hades.files import sha256_of
from hades.ports.graph import DocumentFilter
from hades.ports.services import ProgressReport, silent
from hades.ports.store import RowStore, scan_rows
from hades.retrieval.core.types import AUTO
from hades.retrieval.pipeline import Tools, retrieve
from hades.snapshot.view import GraphView
from models.ranker.infer import auroc
from schemas.ids import node_id
from schemas.nodes import ChunkKind
from schemas.plan import Plan, Profile
from schemas.telemetry import Feedback, ShownResults

EXAM = "exam"  # the stage of the ledger, and the folder under HADES_HOME
FILE = "exam.parquet"
_WAITED_FOR = "somebody waits for this build"
VERSION = 2  # raise it with any change of what is asked
_STRINGS = pa.list_(pa.string())
COLUMNS = pa.schema(
    [
        ("key", pa.string()), ("kind", pa.string()), ("text", pa.string()), ("gold", pa.list_(_STRINGS)),
        ("hidden", _STRINGS), ("weight", pa.float64()), ("is_held", pa.bool_()), ("is_answerable", pa.bool_()),
    ]
)  # fmt: skip


def build_exam(context: BuildContext) -> dict[str, Any]:
    """Write the exam of what the store holds; skipped where nothing that it is written from has changed."""
    judged = judged_questions(context.store)
    digest = build_state.digest_of(VERSION, derivation(context), [asdict(one) for one in judged])
    done, path = build_state.complete(context.store, EXAM), path_of(context.home)
    if done is not None and done.digest == digest and path.is_file():
        return {**done.report, "skipped": True}
    questions = write_exam(read_corpus(context.store), judged)
    require_contracts([check_exam(questions)])
    import pyarrow.parquet as pq  # with libraries of file systems, which a night without a change does not need

    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".new")
    rows = pa.Table.from_pylist([asdict(one) for one in questions], schema=COLUMNS)
    pq.write_table(rows, partial, compression="zstd")
    partial.replace(path)
    report: dict[str, Any] = {
        "skipped": False,
        "questions": len(questions),
        "held": sum(one.is_held for one in questions),
        "unanswerable": sum(not one.is_answerable for one in questions),
        "kinds": dict(sorted(Counter(one.kind for one in questions).items())),
        "data_hash": sha256_of(path),
    }
    with context.store.bulk(["build_stages"]) as inside:
        build_state.record(inside, EXAM, digest, report["data_hash"], None, report)
    return report


def judged_questions(store: RowStore) -> list[Draft]:
    """Answers of which a passage was called good, by the time they were asked: the question wants what was good."""
    found = []
    for row in scan_rows(store, "query_logs", columns=["_key", "query", "at", "results", "feedback"]):
        feedback = orjson.loads(row["feedback"])
        if feedback and row["query"].strip():
            good = set(Feedback.model_validate(feedback).good.passages)
            shown = ShownResults.model_validate(orjson.loads(row["results"])).passages
            liked = tuple(sorted({one.id for one in shown if one.rank in good}))
            if 0 < len(liked) < len(shown):
                found.append((row["at"], row["query"], liked))
    return [Draft("judged", text, (liked,)) for _, text, liked in sorted(found)]


def check_exam(questions: Sequence[ExamQuestion]) -> ContractResult:
    """Check the questions before they are written; nothing is raised for a broken rule."""
    columns = {
        "_key": pa.array([one.key for one in questions], pa.string()),
        "text": pa.array([one.text for one in questions], pa.string()),
        "weight": pa.array([one.weight for one in questions], pa.float64()),
        "answer_known": pa.array([bool(one.gold) or not one.is_answerable for one in questions], pa.bool_()),
    }
    return check_frames(EXAM, EXAM_CONTRACT, lambda: Frames({"questions": pa.table(columns)}))


def read_exam(home: Path) -> list[ExamQuestion]:
    """The exam of a home."""
    return [
        ExamQuestion(**{**row, "gold": tuple(map(tuple, row["gold"])), "hidden": tuple(row["hidden"])})
        for row in read_table(home).to_pylist()
    ]


def read_table(home: Path) -> pa.Table:
    """The exam of a home as rows."""
    import pyarrow.parquet as pq

    path = path_of(home)
    if not path.is_file():
        raise NotBuilt(f"{path} is not there; `hades build` writes the exam of what was ingested")
    return pq.read_table(path, schema=COLUMNS)


def taken_exam(home: Path) -> dict[str, Any] | None:
    """What came of the exam when `hades exam` asked it last; None where nobody did."""
    path = home / "reports" / "exam.json"
    return orjson.loads(path.read_bytes()) if path.is_file() else None


def path_of(home: Path) -> Path:
    """Where the exam of a home lies."""
    return home / EXAM / FILE


def read_corpus(store: RowStore) -> Corpus:
    """The passages of the store and the citations that its documents state."""
    documents = read_columns(store, "documents", ["_key", "origin", "facts"]).to_pylist()
    origins = {node_id("documents", row["_key"]): row["origin"] for row in documents}
    columns = ["_key", "document", "title", "headings", "text", "kind", "symbol", "span"]
    passages = [
        ExamPassage(
            node_id("doc_chunks", row["_key"]),
            row["document"],
            origins.get(row["document"], ""),
            row["title"],
            tuple(row["headings"]),
            row["text"],
            ChunkKind(row["kind"]),
            row["symbol"],
            row["span"][0],
        )
        for row in read_columns(store, "doc_chunks", columns).to_pylist()
    ]
    links = [
        StatedLink(node_id("documents", row["_key"]), link["target"], tuple(link["context"].splitlines()))
        for row in documents
        if '"context":"' in row["facts"]
        for link in orjson.loads(row["facts"]).get("links", ())
        if link["context"] and not link["external"]
    ]
    return Corpus(passages, links)


def _describe(report: Report) -> str:
    counts = "{questions} questions, {held} held out, {unanswerable} without an answer"
    return counts.format_map(report) if "questions" in report else str(report["why"])


STAGE = Stage(
    EXAM,
    "write exam",
    lambda context, ingest, night: build_exam(context) if night.learns else {"skipped": True, "why": _WAITED_FOR},
    _describe,
    reads=(*TEXTS, "query_logs"),
    writes=(EXAM,),
    needs=("edges",),
    rows="kinds",
    is_light=True,
)


# The exam asked of a published graph by the default, and what came of it.
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
    def place(self) -> int | None:
        """Where the first passage that serves stands; None where none does."""
        gold = {one for part in self.question.gold for one in part}
        return next((place for place, one in enumerate(self.found, 1) if one in gold), None)

    @property
    def reciprocal_rank(self) -> float:
        """1 over that place; 0 where there is none."""
        return 1.0 / self.place if self.place else 0.0


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
            | {"place": one.place, "found": list(one.found[:DEPTH])}
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
