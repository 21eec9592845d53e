"""The default ranking learned from the exam: what this corpus adds to the shipped weights, where the gate allows it.

Questions taken from passages share more words with them than people's questions do. What that teaches in any corpus is
known (`models/fitted/exam.json`) and taken off first: what is left is of this corpus."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hades import build_state
from hades.build.context import BuildContext
from hades.build.exam.questions import ExamQuestion
from hades.build.exam.stage import build_exam, path_of, read_exam, take_exam
from hades.build.ranker.questions import decide, quality
from hades.build.registry import RANKER, log_ranker, promote_ranker
from hades.ports.graph import Numbers
from hades.ports.services import ProgressReport, silent
from hades.retrieval.core.words import fitted_file
from hades.retrieval.features.passages import Columns
from hades.retrieval.pipeline import Tools
from hades.retrieval.ranking.default_ranking import standard
from hades.retrieval.ranking.judge import Judge
from hades.snapshot.open import open_snapshot
from hades.snapshot.view import GraphView
from models.ranker.infer import DEFAULT, FORMAT, HEADS, VERSION, RankerModel
from models.rankings import Choice, fit_line

STAGE = "default_training"  # of the ledger: which exam was learned from last
LEAST_QUESTIONS = 60  # that the default found candidates with vectors for
HEAD = "default"
_NEUTRAL = {"judged"}  # people's own questions
Floats = NDArray[np.float64]


def learn_from_exam(context: BuildContext, tools: Tools, as_of: datetime) -> dict[str, Any]:
    """Fit the line of the default ranking to the exam, and let it serve if it is better on the part held out."""
    exam = build_exam(context)
    digest = build_state.digest_of(exam["data_hash"], context.model)
    done = build_state.complete(context.store, STAGE)
    if done is not None and done.digest == digest:
        return {**done.report, "skipped": True, "is_champion": False, "why": "the exam has not changed"}
    if exam["questions"] < LEAST_QUESTIONS:
        return _skip(exam["questions"])
    questions = [one for one in read_exam(context.home) if one.is_answerable]
    with closing(open_snapshot(context.home)) as view:
        choices = record_choices(view, tools, questions, context.progress)
    if len(choices) < LEAST_QUESTIONS:
        return _skip(len(choices))
    report = _register(context, choices, exam["data_hash"], as_of)
    with context.store.bulk(["build_stages"]) as inside:
        build_state.record(inside, build_state.StageCompletion(STAGE, digest, "", as_of, report))
    return report


def record_choices(
    view: GraphView,
    tools: Tools,
    questions: Sequence[ExamQuestion],
    progress: ProgressReport = silent,
    bias: Mapping[str, float] | None = None,
) -> list[tuple[ExamQuestion, Choice]]:
    """What the shipped ranking had to choose from for each question; questions without vectors stay out.

    `bias` is what such questions teach in any corpus; the shipped one where none is given.
    """
    recorder = _Recorder()
    recording = replace(tools, judge=lambda view, question: recorder)
    usual = np.array([(fitted_file("exam")["bias"] if bias is None else bias)[name] for name in DEFAULT])
    found: list[tuple[ExamQuestion, Choice]] = []
    for number, question in enumerate(questions, 1):
        recorder.seen.clear()
        take_exam(view, recording, [question])
        progress("exam", number, len(questions))
        for nodes, worth, columns in recorder.seen[-1:]:
            ids = view.ids(nodes)
            gold = np.array([[one in part for one in ids] for part in question.gold], np.bool_)
            table = np.column_stack([columns[name] for name in DEFAULT])
            known = standard(worth) + (0.0 if question.kind in _NEUTRAL else table @ usual)
            found.append((question, Choice(known, table, gold, question.weight)))
    return found


class _Recorder(Judge):
    """Ranks by the shipped weights and remembers what they ranked."""

    def __init__(self) -> None:
        self.seen: list[tuple[Numbers, Floats, Columns]] = []

    def adjust(self, nodes: Sequence[int], worth: Floats, columns: Callable[[], Columns]) -> Floats:
        """See `Judge.adjust`."""
        self.seen.append((np.array(nodes, np.int64), worth, columns()))
        return worth


def _register(
    context: BuildContext, choices: Sequence[tuple[ExamQuestion, Choice]], data_hash: str, as_of: datetime
) -> dict[str, Any]:
    """Fit, judge by what is held out, log, and promote where the gate allows it."""
    tracker = context.open_tracker()
    taught = [one for question, one in choices if not question.is_held]
    held = [one for question, one in choices if question.is_held]
    line = fit_line(taught, len(DEFAULT))
    serving = _serving(context)
    before = None if serving is None else serving.head(HEAD)
    earlier = np.zeros(len(DEFAULT)) if before is None else before.line.astype(np.float64)
    gold = [one.parts for one in held]
    own, theirs = (quality([one.ranking(weights) for one in held], gold) for weights in (line, earlier))
    verdict = decide(own, {"what serves": theirs}, ["exam"] * len(held))
    model = _with_line(context.model, serving, line, data_hash)
    fitted = {name: round(float(value), 4) for name, value in zip(DEFAULT, line, strict=True)}
    figures = {"mrr": float(own.mrr.mean()), "recall": float(own.recall.mean())}
    figures |= {"mrr_before": float(theirs.mrr.mean()), "recall_before": float(theirs.recall.mean())}
    version = log_ranker(
        tracker,
        model,
        params={"questions": len(taught), "held": len(held), **{f"line.{name}": one for name, one in fitted.items()}},
        metrics={f"exam.{name}": one for name, one in figures.items()},
        draw=lambda folder: [path_of(context.home)],
        verdict=f"default: {verdict.reason}",
        questions=str(path_of(context.home)),
    )
    if verdict.is_better:
        promote_ranker(context.store, context.home, tracker, version, as_of)
    return {
        "skipped": False,
        "why": f"default: {verdict.reason}",
        "version": version,
        "is_champion": verdict.is_better,
        "data_hash": data_hash,
        "questions": len(taught),
        "held": len(held),
        "line": fitted,
        "figures": {name: round(one, 4) for name, one in figures.items()},
        "verdicts": {HEAD: asdict(verdict)},
    }


def _serving(context: BuildContext) -> RankerModel | None:
    """The ranker that serves; None where the shipped weights do, at first or again."""
    done = build_state.complete(context.store, RANKER)
    return build_state.kept(context.home, done.generation) if done is not None and done.generation else None


def _with_line(model: str, serving: RankerModel | None, line: Floats, data_hash: str) -> RankerModel:
    """The ranker that serves, or an empty one, with this line."""
    empty = {"format": FORMAT, "features": VERSION, "columns": {}, "model": model, "state": 1, "doubt": 0.0}
    signature = dict(empty if serving is None else serving.signature)
    columns = {**signature["columns"], HEAD: list(HEADS[HEAD])}
    width = len(DEFAULT)
    parts = {
        "mean": np.zeros(width), "scale": np.ones(width), "line": line, "inner": np.zeros((width, 0)),
        "inner_bias": np.zeros(0), "outer": np.zeros(0),
    }  # fmt: skip
    arrays = {f"{HEAD}.{name}": one.astype(np.float32) for name, one in parts.items()}
    kept = {} if serving is None else dict(serving.arrays)
    return RankerModel({**signature, "columns": columns, "data_hash": data_hash}, {**kept, **arrays})


def carry_line(model: RankerModel, serving: RankerModel | None) -> RankerModel:
    """A newly fitted ranker with the line of the one that serves."""
    kept = {} if serving is None else {name: one for name, one in serving.arrays.items() if name.startswith(f"{HEAD}.")}
    if not kept:
        return model
    columns = {**model.signature["columns"], HEAD: list(HEADS[HEAD])}
    return RankerModel({**model.signature, "columns": columns}, {**model.arrays, **kept})


def _skip(count: int) -> dict[str, Any]:
    why = f"default: the exam has {count} questions; {LEAST_QUESTIONS} are needed to learn from"
    return {"skipped": True, "is_champion": False, "why": why}
