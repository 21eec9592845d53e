"""The stage `exam`: the questions that a corpus supplies, in one Parquet file; asking them of a
graph.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from hades import stage_ledger
from hades.files import sha256_of
from hades.night.columns import Frames
from hades.night.context import BuildContext, NotBuilt, derivation, read_columns
from hades.night.contracts.check import check_frames, require_contracts
from hades.night.contracts.exam import EXAM_CONTRACT
from hades.night.contracts.rule import ContractResult
from hades.night.exam.questions import (
    Corpus,
    Draft,
    ExamPassage,
    ExamQuestion,
    StatedLink,
    write_exam,
)
from hades.night.stage import TEXTS, NightStage, Report, Rows
from hades.ports.graph import DocumentFilter
from hades.ports.services import ProgressReport, silent
from hades.ports.store import RowStore, scan_rows
from hades.retrieval.core.types import AUTO
from hades.retrieval.pipeline import Tools, retrieve
from hades.snapshot.view import GraphView
from models.ranker.infer import auroc
from schemas.ids import node_id
from schemas.nodes import ChunkKind, RelationType
from schemas.plan import Plan, Profile
from schemas.record import JsonObject
from schemas.telemetry import FORGOTTEN, Feedback, ShownResults

EXAM = "exam"  # the stage of the ledger, and the folder under HADES_HOME
FILE = "exam.parquet"
_WAITED_FOR = "somebody waits for this build"
VERSION = 3  # raise it with any change of what is asked
_STRINGS = pa.list_(pa.string())
COLUMNS = pa.schema(
    [
        ("key", pa.string()),
        ("kind", pa.string()),
        ("text", pa.string()),
        ("gold", pa.list_(_STRINGS)),
        ("hidden", _STRINGS),
        ("weight", pa.float64()),
        ("is_held", pa.bool_()),
        ("is_answerable", pa.bool_()),
    ]
)


def build_exam(context: BuildContext) -> JsonObject:
    """Write the exam of what the store holds; skipped where nothing that it is written from has
    changed.
    """
    judged = judged_questions(context.store)
    digest = stage_ledger.digest_of(
        VERSION,
        derivation(context),
        [asdict(draft) for draft in judged],
    )
    last_record = stage_ledger.last_completion(context.store, EXAM)
    path = path_of(context.home)

    if last_record is not None and last_record.digest == digest and path.is_file():
        return {**last_record.report, "skipped": True}

    questions = write_exam(read_corpus(context.store), judged)
    require_contracts([check_exam(questions)])
    # with libraries of file systems, which a night without a change does not need
    import pyarrow.parquet as pq

    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".new")
    rows = pa.Table.from_pylist(
        [asdict(question) for question in questions],
        schema=COLUMNS,
    )
    pq.write_table(rows, partial, compression="zstd")
    partial.replace(path)
    report: JsonObject = {
        "skipped": False,
        "questions": len(questions),
        "held": sum(question.is_held for question in questions),
        "unanswerable": sum(not question.is_answerable for question in questions),
        "kinds": dict(sorted(Counter(question.kind for question in questions).items())),
        "data_hash": sha256_of(path),
    }

    with context.store.bulk(["build_stages"]) as inside:
        stage_ledger.record(
            inside,
            EXAM,
            digest,
            report["data_hash"],
            None,
            report,
        )

    return report


def judged_questions(store: RowStore) -> list[Draft]:
    """Answers of which a passage was called good, by the time they were asked: the question wants
    what was good.
    """
    judged = []
    columns = ["_key", "query", "at", "results", "feedback"]

    for row in scan_rows(store, "query_logs", columns=columns):
        feedback = orjson.loads(row["feedback"])
        if not feedback or row["query"].strip() in ("", FORGOTTEN):
            continue

        good = Feedback.model_validate(feedback).good.passages
        shown = ShownResults.model_validate(orjson.loads(row["results"])).passages
        liked = {passage.id for passage in shown if passage.rank in good} - {FORGOTTEN}

        if 0 < len(liked) < len(shown):
            judged.append((row["at"], row["query"], tuple(sorted(liked))))

    return [Draft("judged", text, (liked,)) for _, text, liked in sorted(judged)]


_CHECKED = pa.schema(
    {
        "_key": pa.string(),
        "text": pa.string(),
        "weight": pa.float64(),
        "answer_known": pa.bool_(),
    }
)


def check_exam(questions: Sequence[ExamQuestion]) -> ContractResult:
    """Check the questions before they are written; nothing is raised for a broken rule."""
    rows = []
    for question in questions:
        is_known = bool(question.gold) or not question.is_answerable
        rows.append(
            {
                **vars(question),
                "_key": question.key,
                "answer_known": is_known,
            }
        )

    table = pa.Table.from_pylist(rows, _CHECKED)
    return check_frames(
        EXAM,
        EXAM_CONTRACT,
        lambda: Frames({"questions": table}),
    )


def read_exam(home: Path) -> list[ExamQuestion]:
    """The exam of a home."""
    questions = []
    for row in read_table(home).to_pylist():
        row |= {
            "gold": tuple(map(tuple, row["gold"])),
            "hidden": tuple(row["hidden"]),
        }
        questions.append(ExamQuestion(**row))

    return questions


def read_table(home: Path) -> pa.Table:
    """The exam of a home as rows."""
    import pyarrow.parquet as pq

    path = path_of(home)

    if not path.is_file():
        raise NotBuilt(f"{path} is not there; `hades build` writes the exam of what was ingested")

    return pq.read_table(path, schema=COLUMNS)


def taken_exam(home: Path) -> JsonObject | None:
    """What came of the exam when `hades exam` asked it last; None where nobody did."""
    path = home / "reports" / "exam.json"
    return orjson.loads(path.read_bytes()) if path.is_file() else None


def path_of(home: Path) -> Path:
    """Where the exam of a home lies."""
    return home / EXAM / FILE


def read_corpus(store: RowStore) -> Corpus:
    """The passages of the store and the citations that its documents state."""
    documents = read_columns(
        store,
        "documents",
        ["_key", "origin", "facts"],
    ).to_pylist()

    origins = {}
    for row in documents:
        origins[node_id("documents", row["_key"])] = row["origin"]

    columns = ["_key", "document", "title", "headings", "text", "kind", "symbol", "span"]
    chunks = read_columns(store, "doc_chunks", columns).to_pylist()

    passages = []
    for row in chunks:
        passages.append(_passage(row, origins.get(row["document"], "")))

    return Corpus(passages, list(chain.from_iterable(map(_links_of, documents))))


def _passage(row: Mapping[str, Any], origin: str) -> ExamPassage:
    return ExamPassage(
        id=node_id("doc_chunks", row["_key"]),
        document=row["document"],
        origin=origin,
        title=row["title"],
        headings=tuple(row["headings"]),
        text=row["text"],
        kind=ChunkKind(row["kind"]),
        symbol=row["symbol"],
        start=row["span"][0],
    )


def _links_of(document: Mapping[str, Any]) -> Iterator[StatedLink]:
    """The links that a document states in sentences of its own, to documents of the corpus."""
    if '"context":"' not in document["facts"]:
        return

    for link in orjson.loads(document["facts"]).get("links", ()):
        if link["context"] and not link["external"]:
            yield StatedLink(
                document=node_id("documents", document["_key"]),
                target=link["target"],
                sentences=tuple(link["context"].splitlines()),
                section=link.get("section", ""),
                is_reference=link["relation"] == RelationType.REFERS_TO,
            )


def _describe(report: Report) -> str:
    counts = "{questions} questions, {held} held out, {unanswerable} without an answer"
    if "questions" in report:
        return counts.format_map(report)
    return str(report["why"])


STAGE = NightStage(
    EXAM,
    "write exam",
    lambda context, ingest, night: (
        build_exam(context) if night.learns else {"skipped": True, "why": _WAITED_FOR}
    ),
    _describe,
    reads=(*TEXTS, "query_logs"),
    writes=(EXAM,),
    needs=("edges",),
    figures=("questions", "held", "unanswerable", "kinds"),
    rows="kinds",
    is_light=True,
)


# The exam asked of a published graph by the default, and what came of it.
DEPTH = 5
WORST = 10  # questions that are shown
PLAN = Plan(profile=Profile.ONLINE)  # that of a user's turn
# An exam stands still in time, so that its figures can be had again.
_MOMENT = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class ExamAnswer:
    """What was found for a question: ids of passages, best first, and how sure the answer is."""

    question: ExamQuestion
    passage_ids: tuple[str, ...]
    confidence: float

    def recall(self, depth: int) -> float:
        """Share of the parts of the gold that are among the first passages."""
        first = set(self.passage_ids[:depth])
        return float(np.mean([bool(first.intersection(part)) for part in self.question.gold]))

    @property
    def place(self) -> int | None:
        """Where the first passage that serves stands; None where none does."""
        gold = set(chain.from_iterable(self.question.gold))
        for place, passage_id in enumerate(self.passage_ids, 1):
            if passage_id in gold:
                return place

        return None

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
    patient = replace(
        tools,
        clock=lambda: 0.0,
        memory=None,
    )

    answers = []
    for number, question in enumerate(questions, 1):
        if question.hidden:
            only = DocumentFilter(without=question.hidden)
        else:
            only = None

        answer = retrieve(
            view,
            question.text,
            patient,
            at=_MOMENT,
            recipe=recipe,
            plan=PLAN,
            only=only,
            anyway=True,
        )
        passage_ids = tuple(passage.id for passage in answer.passages)
        answers.append(
            ExamAnswer(
                question,
                passage_ids,
                answer.confidence or 0.0,
            )
        )
        progress("exam", number, len(questions))

    return answers


def grade_exam(answers: Sequence[ExamAnswer]) -> JsonObject:
    """The figures of an exam as JSON: by kind, of all, and the questions that were answered
    worst.
    """
    answerable: list[ExamAnswer] = []
    unsure: list[float] = []

    by_kind: dict[str, list[ExamAnswer]] = {}
    for answer in answers:
        if answer.question.is_answerable:
            answerable.append(answer)
            by_kind.setdefault(answer.question.kind, []).append(answer)
        else:
            unsure.append(answer.confidence)

    sure = [answer.confidence for answer in answerable]
    return {
        "questions": len(answers),
        "unanswerable": len(unsure),
        "score": _figures(answerable),
        "kinds": {kind: _figures(by_kind[kind]) for kind in sorted(by_kind)},
        "auroc": round(auroc(np.array(sure), np.array(unsure)), 4) if unsure else None,
        "worst": _worst(answerable),
    }


def _worst(answers: Sequence[ExamAnswer]) -> Rows:
    """The questions that were answered worst, with what they want and what was found."""
    by_quality = sorted(
        answers,
        key=lambda answer: (answer.recall(DEPTH), answer.reciprocal_rank, answer.question.key),
    )

    worst = []
    for answer in by_quality[:WORST]:
        if answer.place != 1:
            question = {
                "kind": answer.question.kind,
                "question": answer.question.text,
            }
            wanted = {
                "wanted": answer.question.gold[0][0],
                "place": answer.place,
            }
            worst.append(
                {
                    **question,
                    **wanted,
                    "found": list(answer.passage_ids[:DEPTH]),
                }
            )

    return worst


def name_wanted(view: GraphView, graded: Report) -> JsonObject:
    """The figures with the place of what each of the worst questions wants, for people."""
    numbers = view.number([question["wanted"] for question in graded["worst"]])

    places: dict[str, str] = {}
    for passage in view.passages(numbers[numbers >= 0]):
        places[passage.id] = " › ".join([passage.document, *passage.headings])

    worst = []
    for question in graded["worst"]:
        wanted = question["wanted"]
        worst.append(
            {
                **question,
                "where": places.get(wanted, wanted),
            }
        )

    return {**graded, "worst": worst}


def _figures(answers: Sequence[ExamAnswer]) -> Mapping[str, float]:
    """Means over questions, each as much as its kind counts."""
    if not answers:
        return {"questions": 0}

    rows = []
    weights = []
    for answer in answers:
        rows.append((answer.recall(1), answer.recall(DEPTH), answer.reciprocal_rank))
        weights.append(answer.question.weight)

    means = (
        np.average(
            rows,
            axis=0,
            weights=weights,
        )
        .round(4)
        .tolist()
    )
    names = ("recall@1", f"recall@{DEPTH}", "mrr")
    return {
        "questions": len(answers),
        **dict(zip(names, means, strict=True)),
    }
