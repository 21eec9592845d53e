"""Labelled questions, replay, export, registry."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
from numpy.typing import NDArray

from hades.errors import HadesError
from hades.ports.services import ProgressReport, silent
from hades.ports.store import RowStore, scan_rows
from hades.retrieval.core.metered_view import MeteredView
from hades.retrieval.core.types import FoundPassage, FoundPath, Question
from hades.retrieval.features.passages import Pool, ReachState
from hades.retrieval.features.sentences import QuestionWords
from hades.retrieval.pipeline import Tools, retrieve
from hades.retrieval.ranking.judge import Judge, LearnedJudge, ranks_of
from hades.snapshot.view import GraphView
from hades.snapshot.write_graph import graph_of
from hades.telemetry.turn import Caps, Turn
from models.ranker.infer import Graph, RankerModel, difference, node_states, recall_at, reciprocal_rank
from schemas.plan import Plan, Profile
from schemas.telemetry import Feedback, ShownResults

# Whether a challenger may serve: better than weights by hand and than the champion, beyond chance, and worse
# nowhere. Judged are questions that it has not seen. The quality of an answer is the mean of reciprocal rank and
# recall at 5. The 95% interval of the mean difference must lie above zero, no set of questions may lose more than a
# point in either, and confidence must mean what it says.


Floats = NDArray[np.float64]
Ranking = Sequence[str]
DEPTH = 5
MOST_LOST = 0.01
MOST_MISCALIBRATED = 0.05
LEAST_QUESTIONS = 20


@dataclass(frozen=True)
class Quality:
    """Figures of one way to rank, a value a question."""

    mrr: Floats
    recall: Floats

    @property
    def both(self) -> Floats:
        """The mean of the two."""
        return (self.mrr + self.recall) / 2.0


@dataclass(frozen=True)
class Verdict:
    """Whether it may serve, why, and the figures that say so."""

    is_better: bool
    reason: str
    figures: Mapping[str, Any]


def quality(rankings: Sequence[Ranking], gold: Sequence[frozenset[str]]) -> Quality:
    """The figures of rankings of documents."""
    pairs = list(zip(rankings, gold, strict=True))
    return Quality(
        np.array([reciprocal_rank(ranking, own) for ranking, own in pairs]),
        np.array([recall_at(ranking, own, DEPTH) for ranking, own in pairs]),
    )


def decide(
    challenger: Quality, rivals: Mapping[str, Quality], sets: Sequence[str], calibration_error: float | None = None
) -> Verdict:
    """Compare a challenger with each rival, of which weights by hand are one."""
    figures = {name: _figures(challenger, rival, sets) for name, rival in rivals.items()}
    if len(sets) < LEAST_QUESTIONS:
        return Verdict(False, f"{len(sets)} questions tell nothing; {LEAST_QUESTIONS} are needed", figures)
    for name, one in figures.items():
        low = one["quality"]["low"]
        if low <= 0.0:
            gained = one["quality"]["mean"]
            return Verdict(False, f"not better than {name}: {_signed(gained)}, interval from {_signed(low)}", figures)
        for own, lost in one["sets"].items():
            for measure in ("mrr", "recall"):
                if lost[measure] < -MOST_LOST:
                    return Verdict(False, f"worse than {name} on {own}: {measure} {_signed(lost[measure])}", figures)
    if calibration_error is not None and calibration_error > MOST_MISCALIBRATED:
        return Verdict(False, f"confidence is off by {calibration_error:.3f}, at most {MOST_MISCALIBRATED}", figures)
    return Verdict(True, f"better than {' and '.join(rivals)}", figures)


def _signed(value: float) -> str:
    return f"{value:+.4f}" if round(value, 4) else "0.0000"


def _figures(ours: Quality, theirs: Quality, sets: Sequence[str]) -> dict[str, Any]:
    names = np.array(sets)
    return {
        "quality": asdict(difference(ours.both, theirs.both, sets)),
        "mrr": asdict(difference(ours.mrr, theirs.mrr, sets)),
        "recall": asdict(difference(ours.recall, theirs.recall, sets)),
        "sets": {
            name: {
                "questions": int((names == name).sum()),
                "mrr": float((ours.mrr - theirs.mrr)[names == name].mean()),
                "recall": float((ours.recall - theirs.recall)[names == name].mean()),
            }
            for name in dict.fromkeys(sets)
        },
    }


# Questions to learn ranking from: files of questions with their gold documents, and judged answers of `query_logs`.


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
    for row in scan_rows(store, "query_logs", columns=columns):
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


# Questions asked again, to be learned from: what the searches, the walks and the paths brought up for each. The
# judge that serves is replaced by one that ranks by hand and remembers what it was given, so a ranker is fitted to
# exactly what it will be asked about.


SEARCHED, WALKED = "hirag_pathrag", "hipporag"  # the recipes whose candidates are learned from
PLAN = Plan(profile=Profile.EVALUATION)
_MOMENT = datetime(2026, 1, 1, tzinfo=UTC)  # a replay stands still in time
_CAPS = Caps(docs_max=100_000, work_max=2_000_000_000, latency_ms=3_600_000)


@dataclass(frozen=True)
class ReplayedQuestion:
    """A question with what was brought up for it, and the documents as they are ranked by hand, by recipe."""

    asked: LabelledQuestion
    question: Question
    found: tuple[FoundPassage, ...]
    m: int
    nodes: tuple[int, ...]
    pool: Pool | None
    want: QuestionWords | None
    paths: tuple[FoundPath, ...]
    texts: tuple[str, ...]
    by_hand: Mapping[str, tuple[str, ...]]
    path_documents: tuple[frozenset[str], ...]
    gold: frozenset[str]


def replay(
    view: GraphView, tools: Tools, questions: Sequence[LabelledQuestion], progress: ProgressReport = silent
) -> list[ReplayedQuestion]:
    """Ask every question by both recipes."""
    asked = []
    for number, question in enumerate(questions, 1):
        asked.append(_replay(view, tools, question))
        progress("replay", number, len(questions))
    return asked


def offline(view: GraphView) -> MeteredView:
    """A view for training: nothing it looks at is rationed."""
    return MeteredView(view, Turn(_CAPS))


class Recorder(Judge):
    """Ranks by hand and remembers what it was given."""

    def __init__(self) -> None:
        self.question: Question | None = None
        self.found: tuple[FoundPassage, ...] = ()
        self.m = 0
        self.walk: tuple[tuple[int, ...], Pool, QuestionWords] | None = None
        self.routes: tuple[FoundPath, ...] = ()
        self.texts: tuple[str, ...] = ()

    def passages(
        self, view: MeteredView, question: Question, found: Sequence[FoundPassage], m: int
    ) -> list[FoundPassage]:
        """See `Judge.passages`."""
        self.question, self.found, self.m = question, tuple(found), m
        return super().passages(view, question, found, m)

    def walked(self, question: Question, nodes: Sequence[int], pool: Pool, want: QuestionWords) -> Floats:
        """See `Judge.walked`."""
        self.question, self.walk = question, (tuple(nodes), pool, want)
        return super().walked(question, nodes, pool, want)

    def paths(
        self, view: MeteredView, question: Question, paths: Sequence[FoundPath], texts: Sequence[str]
    ) -> list[FoundPath]:
        """See `Judge.paths`."""
        self.routes, self.texts = tuple(paths[: len(texts)]), tuple(texts)
        return super().paths(view, question, paths, texts)


def _replay(view: GraphView, tools: Tools, asked: LabelledQuestion) -> ReplayedQuestion:
    by_hand: dict[str, tuple[str, ...]] = {}
    recorder = Recorder()
    remembering = replace(tools, judge=lambda view, question: recorder)
    for recipe in (SEARCHED, WALKED):
        answer = retrieve(view, asked.text, remembering, at=_MOMENT, recipe=recipe, plan=PLAN)
        by_hand[recipe] = tuple(dict.fromkeys(passage.document for passage in answer.passages))
    nodes, pool, want = recorder.walk or ((), None, None)
    documents = tuple(
        frozenset(edge.document for edge in view.edges(np.array(path.edges, np.int64)) if edge.document)
        for path in recorder.routes
    )
    question = recorder.question or Question(asked.text)
    liked = view.number(sorted(asked.good))
    judged = {passage.document for passage in view.passages(liked[liked >= 0])}
    return ReplayedQuestion(
        asked, question, recorder.found, recorder.m, nodes, pool, want, recorder.routes, recorder.texts, by_hand,
        documents, asked.gold | judged,
    )  # fmt: skip


def rank_by(
    model: RankerModel, graphs: Sequence[tuple[GraphView, Sequence[ReplayedQuestion]]]
) -> dict[str, list[tuple[str, ...]]]:
    """What a fitted model makes of the same candidates: documents best first, by recipe, cases one after the other."""
    found: dict[str, list[tuple[str, ...]]] = {SEARCHED: [], WALKED: []}
    for view, cases in graphs:
        graph = graph_of(view, str(model.signature["model"]))
        states = node_states(model, graph.features, graph.starts, graph.targets)
        for case in cases:
            asked = model.question_state(np.asarray(case.question.vector, np.float32))
            judge = LearnedJudge(model, ReachState(states, asked))
            passages = judge.passages(offline(view), case.question, case.found, case.m)
            found[SEARCHED].append(_documents(view, [one.node for one in passages]))
            nodes = list(case.nodes)
            if case.pool is not None and case.want is not None and nodes:
                worth = judge.walked(case.question, nodes, case.pool, case.want)
                nodes = [nodes[place] for place in ranks_of(worth)]
            found[WALKED].append(_documents(view, nodes))
    return found


def _documents(view: GraphView, nodes: Sequence[int]) -> tuple[str, ...]:
    read = view.passages(np.array(nodes, np.int64))
    return tuple(dict.fromkeys(one.document for one in read))


# What a ranker is fitted to, as Arrow files that anything can read: graphs by size and hash, questions with their
# split, and preference pairs. Equal contents give equal bytes, and their hash is the hash of the data that a registered
# ranker carries. A pair keeps the chance that its better side stood where it stood, so that what was rarely seen can
# count more.


EXPORT = "export"
FIT, HELD = "fit", "held"
PAIRS = 20  # of each preferred passage, with the best ranked of those passed over
QUESTIONS_FILE = pa.schema(
    [
        ("question", pa.int64()), ("graph", pa.string()), ("text", pa.string()), ("source", pa.string()),
        ("at", pa.timestamp("us", "UTC")), ("split", pa.string()),
    ]
)  # fmt: skip
PREFERENCES = pa.schema(
    [
        ("question", pa.int64()), ("graph", pa.string()), ("better", pa.string()), ("worse", pa.string()),
        ("propensity", pa.float64()), ("source", pa.string()), ("at", pa.timestamp("us", "UTC")),
    ]
)  # fmt: skip


@dataclass(frozen=True)
class QuestionCandidates:
    """The candidates of one question, best ranked first: ids, and which of them were preferred or passed over."""

    asked: LabelledQuestion
    graph: str
    is_held: bool
    ids: Sequence[str]
    wanted: NDArray[np.bool_]
    counts: NDArray[np.bool_]


def export_tables(graphs: Mapping[str, Graph], offered: Sequence[QuestionCandidates]) -> dict[str, pa.Table]:
    """The tables of an export by name."""
    sizes = [
        {
            "graph": name,
            "nodes": len(graph),
            "is_finite": bool(np.isfinite(graph.features).all()),
            "sha256": hashlib.sha256(graph.features.tobytes() + graph.targets.tobytes()).hexdigest(),
        }
        for name, graph in sorted(graphs.items())
    ]
    return {
        "graphs": pa.Table.from_pylist(sizes),
        "questions": _questions(offered),
        "preferences": _preferences(offered),
    }


def write_export(folder: Path, tables: Mapping[str, pa.Table]) -> str:
    """Write every table, in place of what an earlier export left; the hash of all of them."""
    folder.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256()
    for name, table in tables.items():
        path = folder / f"{name}.arrow"
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _questions(offered: Sequence[QuestionCandidates]) -> pa.Table:
    rows = [
        {
            "question": number,
            "graph": one.graph,
            "text": one.asked.text,
            "source": one.asked.source,
            "at": _moment(one.asked.at),
            "split": HELD if one.is_held else FIT,
        }
        for number, one in enumerate(offered)
    ]
    return pa.Table.from_pylist(rows, schema=QUESTIONS_FILE)


def _preferences(offered: Sequence[QuestionCandidates]) -> pa.Table:
    rows = [
        {
            "question": number,
            "graph": one.graph,
            "better": better,
            "worse": worse,
            "propensity": one.asked.shown.get(better, 1.0),
            "source": one.asked.source,
            "at": _moment(one.asked.at),
        }
        for number, one in enumerate(offered)
        for better, worse in _pairs(one)
    ]
    return pa.Table.from_pylist(rows, schema=PREFERENCES)


def _pairs(offered: QuestionCandidates) -> Iterator[tuple[str, str]]:
    ids = np.array(offered.ids, object)
    passed_over = ids[offered.counts & ~offered.wanted][:PAIRS].tolist()
    for better in ids[offered.wanted].tolist():
        for worse in passed_over:
            yield better, worse


def _moment(at: float | None) -> datetime | None:
    return None if at is None else datetime.fromtimestamp(at, UTC)
