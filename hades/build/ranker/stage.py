"""The stage `ranker`: what a home's own questions teach about the default ranking; fitted, judged and registered.

Questions that quote their answer are not learned from: they share more words with it than people's questions do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hades import build_state
from hades.build.columns import Frames
from hades.build.context import BuildContext
from hades.build.contracts.check import check_frames, require_contracts
from hades.build.contracts.outputs import RANKER_CONTRACT
from hades.build.contracts.rule import ContractResult
from hades.build.exam.questions import QUOTATIONS, ExamQuestion
from hades.build.exam.stage import build_exam, check_exam, path_of, read_exam, take_exam
from hades.build.ranker.questions import (
    LABELLED,
    QUESTIONS,
    Quality,
    Verdict,
    decide,
    place_questions,
    quality,
    read_questions,
)
from hades.build.registry import RANKER, log_ranker, promote_ranker
from hades.build.stage import EDGES, Night, Stage
from hades.ingest.ingest import Ingest
from hades.ports.services import ProgressReport, silent
from hades.retrieval.core.metered_view import MeteredView
from hades.retrieval.core.types import Question
from hades.retrieval.features.passages import Columns
from hades.retrieval.pipeline import Tools
from hades.retrieval.ranking.default_ranking import standard
from hades.retrieval.ranking.judge import Judge
from hades.snapshot.open import open_former
from hades.snapshot.view import GraphView
from hades.snapshot.write_graph import graph_of
from models.arrays import Flags, Floats
from models.ranker.infer import (
    COLUMNS,
    FORMAT,
    SIGNALS,
    AskedNodes,
    BadModel,
    Graph,
    RankerModel,
    StateRules,
    node_states,
)
from models.rankings import LEAST_OWN, Choice, fit_line, fit_margin

Layers = Mapping[str, NDArray[np.float32]]
STAGE = "ranker_training"  # of the ledger: what the last training saw
LEAST_QUESTIONS = 60  # that the default found candidates with vectors for; a third of them is held out
RANKER_SECONDS = 300  # what training takes at most on a graph of a size to be expected
_OWN = frozenset({"judged", LABELLED})  # kinds of people's own questions


def train(
    context: BuildContext,
    as_of: datetime,
    questions: Path | None = None,
    *,
    seconds_left: float | None = None,
    rules: StateRules = StateRules(),
) -> dict[str, Any]:
    """Fit the default ranking to the exam and to labelled questions, asked of what serves; a better one serves.

    Where no file is named the one under HADES_HOME is taken, if it is there. It is left for another night when the time
    box is nearly spent: what serves goes on serving.
    """
    if seconds_left is not None and seconds_left < RANKER_SECONDS:
        return _skip(f"{seconds_left:.0f} s of the time box are left, too few to train")
    view = open_former(context.home)
    if context.open_tools is None or view is None:
        return _skip("nothing is published that questions could be asked of")
    exam, own = build_exam(context), context.home / QUESTIONS
    file = questions or (own if own.is_file() else None)
    labelled = [] if file is None else read_questions(file)
    data_hash = build_state.digest_of(exam["data_hash"], labelled)
    digest = build_state.digest_of(data_hash, context.model, asdict(rules), FORMAT, SIGNALS)
    done = build_state.complete(context.store, STAGE)
    if done is not None and done.digest == digest:
        return {**done.report, **_skip("nothing that a ranker learns from has changed")}
    told = [one for one in read_exam(context.home) if one.kind not in QUOTATIONS]
    known = sum(one.is_answerable for one in told) + len(labelled)
    if known < LEAST_QUESTIONS:
        return _skip(_shortage(known))
    with closing(view):
        placed = place_questions(view, labelled)
        require_contracts([check_exam(placed)])
        recorded = record_turns(view, context.open_tools(), [*told, *placed], context.progress)
        if (known := sum(one.question.is_answerable for one in recorded)) < LEAST_QUESTIONS:
            return _skip(_shortage(known))
        fit = fit_ranker(context, view, recorded, rules, data_hash)
    report = _register(context, fit, [path_of(context.home), *([] if file is None else [file])], as_of)
    with context.store.bulk(["build_stages"]) as inside:
        build_state.record(inside, STAGE, digest, "", as_of, report)
    return report


@dataclass(frozen=True)
class RecordedTurn:
    """A question, its vector, and what the shipped ranking had to choose from; the column `state` is still empty.

    `margin` is what spoke for answering by the shipped rule, `signals` what it saw: None where code leads, and it is
    not asked.
    """

    question: ExamQuestion
    vector: NDArray[np.float32]
    nodes: NDArray[np.int64]
    choice: Choice
    margin: float = 0.0
    signals: Floats | None = None

    @property
    def is_found(self) -> bool:
        """Whether a passage that serves was there to choose."""
        return bool(self.choice.gold.any())


class _Recorder(Judge):
    """Ranks by the shipped weights and remembers what they ranked, and by what they answered."""

    def __init__(self) -> None:
        self.vector = np.zeros(0, np.float32)
        self.seen: list[tuple[NDArray[np.int64], Floats, Columns]] = []
        self.doubt: tuple[float, Floats | None] = (0.0, None)

    def open(self, view: MeteredView, question: Question) -> Judge:
        """The judge of one question."""
        self.vector = np.asarray(question.vector, np.float32)
        return self

    def adjust(self, nodes: Sequence[int], worth: Floats, columns: Callable[[], Columns]) -> Floats:
        self.seen.append((np.array(nodes, np.int64), worth, columns()))
        return worth

    def margin(self, shipped: float, signals: Floats) -> float:
        self.doubt = shipped, signals
        return shipped


def record_turns(
    view: GraphView, tools: Tools, questions: Sequence[ExamQuestion], progress: ProgressReport = silent
) -> list[RecordedTurn]:
    """What the shipped ranking had to choose from for each question; those without vectors or passages stay out."""
    recorder = _Recorder()
    recording = replace(tools, judge=recorder.open)
    found = []
    for number, question in enumerate(questions, 1):
        recorder.seen.clear()
        recorder.doubt = 0.0, None
        take_exam(view, recording, [question])
        progress("exam", number, len(questions))
        for nodes, worth, columns in recorder.seen[-1:]:
            gold = np.array([[one in part for one in view.ids(nodes)] for part in question.gold], np.bool_)
            table = np.column_stack([columns[name] for name in COLUMNS])
            choice = Choice(standard(worth), table, gold, question.weight)
            found.append(RecordedTurn(question, recorder.vector, nodes, choice, *recorder.doubt))
    return found


@dataclass(frozen=True)
class Part:
    """A line or a rule of abstention that was fitted, the verdict on it, and its figures on unseen questions."""

    arrays: Layers
    verdict: Verdict
    figures: Mapping[str, float]


@dataclass(frozen=True)
class Fit:
    """A fitted ranker: of what was fitted, what passed; where nothing did, all of it, for the record."""

    model: RankerModel
    verdict: Verdict
    counts: Mapping[str, int]
    figures: Mapping[str, float]


def fit_ranker(
    context: BuildContext, view: GraphView, recorded: Sequence[RecordedTurn], rules: StateRules, data_hash: str
) -> Fit:
    """Fit to what teaches, and judge by what is held out: the ranking and the abstention each for itself."""
    serving = _serving(context)
    asked = [one for one in recorded if one.question.is_answerable]
    ranking = _fit_ranking(context, view, asked, rules, serving)
    parts = {"ranking": ranking, "abstention": fit_abstention(recorded, serving)}
    passed = [name for name, part in parts.items() if part.verdict["is_better"]]
    arrays = {} if serving is None or not passed else dict(serving.arrays)
    for name in passed or parts:
        replaced = {one for one in arrays if (one == "abstain") is (name == "abstention")}
        arrays = {one: values for one, values in arrays.items() if one not in replaced} | dict(parts[name].arrays)
    arrays.setdefault("line", np.zeros(len(COLUMNS), np.float32))
    signature = {"format": FORMAT, "columns": list(COLUMNS), "model": context.model, "data_hash": data_hash}
    signature["state"] = arrays["tower"].shape[1] if "tower" in arrays else 1
    verdict = {
        "is_better": bool(passed),
        "reason": "; ".join(f"{name} {part.verdict['reason']}" for name, part in parts.items()),
        "figures": {name: part.verdict["figures"] for name, part in parts.items()},
    }
    held = sum(one.question.is_held for one in asked)
    figures = {name: value for part in parts.values() for name, value in part.figures.items()}
    return Fit(RankerModel(signature, arrays), verdict, {"questions": len(asked) - held, "held": held}, figures)


def _fit_ranking(
    context: BuildContext,
    view: GraphView,
    asked: Sequence[RecordedTurn],
    rules: StateRules,
    serving: RankerModel | None,
) -> Part:
    """The line beside the shipped weights, and where people's own questions are known the states of nodes."""
    is_held = np.array([one.question.is_held for one in asked], np.bool_)
    fits_states = sum(one.question.kind in _OWN for one in asked) >= LEAST_OWN and bool(find_spec("torch_geometric"))
    graph = graph_of(view, context.model) if fits_states or (serving is not None and serving.has_states) else None
    layers: Layers = {}
    choices = [one.choice for one in asked]
    if fits_states and graph is not None:
        require_contracts([check_graph(graph)])
        layers, choices = fit_likeness(graph, asked, is_held, rules, context.progress)
    line = fit_line([choices[row] for row in np.flatnonzero(~is_held).tolist()], len(COLUMNS))
    held = np.flatnonzero(is_held).tolist()
    gold = [asked[row].choice.parts for row in held]
    ours, shipped = (quality([choices[row].ranking(one) for row in held], gold) for one in (line, 0.0 * line))
    rivals = {"the shipped weights": shipped}
    if serving is not None:
        seen = _with_likeness(serving, graph, [asked[row] for row in held])
        before = serving.arrays["line"].astype(np.float64)
        rivals["what serves"] = quality([one.ranking(before) for one in seen], gold)
    verdict = decide(ours, rivals, [_set_of(asked[row]) for row in held])
    return Part({**layers, "line": line.astype(np.float32)}, verdict, _means(ours, shipped))


def fit_abstention(recorded: Sequence[RecordedTurn], serving: RankerModel | None) -> Part:
    """When not to answer, beside the shipped rule.

    It is fitted to questions whose answer was found and to those whose answer was hidden, and judged by how many of
    both it decides rightly. An answer that was there and not found teaches nothing: to abstain would be no mistake.
    """
    known = [one for one in recorded if one.signals is not None and (one.is_found or not one.question.is_answerable)]
    taught, held = ([one for one in known if one.question.is_held is is_held] for is_held in (False, True))
    if len({one.question.is_answerable for one in taught}) < 2:
        return Part({}, {"is_better": False, "reason": "not fitted: too few questions", "figures": {}}, {})
    rule = fit_margin(*_margins(taught))
    shipped, signals, is_answerable, _ = _margins(held)

    def decided(learned: Floats) -> Quality:
        """Of every question, whether it is rightly answered or not."""
        right = ((shipped + signals @ learned >= 0.0) == is_answerable).astype(np.float64)
        return {"quality": right, "decided": right}

    ours, before = decided(rule), decided(0.0 * rule)
    rivals = {"the shipped rule": before}
    if serving is not None and "abstain" in serving.arrays:
        rivals["what serves"] = decided(serving.arrays["abstain"].astype(np.float64))
    sets = [f"{_set_of(one)}, {'answerable' if one.question.is_answerable else 'not answerable'}" for one in held]
    return Part({"abstain": rule.astype(np.float32)}, decide(ours, rivals, sets), _means(ours, before))


def _margins(recorded: Sequence[RecordedTurn]) -> tuple[Floats, Floats, Flags, Flags]:
    """Shipped margins (n,), signals (n, signals), which have an answer, and which are of people."""
    signals = np.array([one.signals for one in recorded], np.float64).reshape(-1, len(SIGNALS))
    is_answerable = np.array([one.question.is_answerable for one in recorded], np.bool_)
    is_own = np.array([one.question.kind in _OWN for one in recorded], np.bool_)
    return np.array([one.margin for one in recorded], np.float64), signals, is_answerable, is_own


def _set_of(one: RecordedTurn) -> str:
    return LABELLED if one.question.kind in _OWN else "exam"


def _means(ours: Quality, shipped: Quality) -> dict[str, float]:
    """Means of the measures, and what they were before."""
    both = {name: ours[name] for name in ours} | {f"{name}_before": values for name, values in shipped.items()}
    return {
        name: round(float(values.mean()), 4)
        for name, values in both.items()
        if len(values) and not name.startswith("quality")
    }


def fit_likeness(
    graph: Graph, recorded: Sequence[RecordedTurn], is_held: Flags, rules: StateRules, progress: ProgressReport
) -> tuple[Layers, list[Choice]]:
    """The layers of GraphSAGE that serve, and every choice with the likeness of states by layers that have not seen it.

    What teaches is halved: the states of each half are of a network that was fitted to the other one.
    """
    from models.ranker.fit import fit_states  # the door to torch

    half = np.array([int(one.question.key[16:24], 16) % 2 == 1 for one in recorded], np.bool_)
    layers: Layers = {}
    choices = [one.choice for one in recorded]
    for seen, unseen in ((~is_held & half, ~is_held & ~half), (~is_held & ~half, ~is_held & half), (~is_held, is_held)):
        taught = [one for one, is_seen in zip(recorded, seen.tolist(), strict=True) if is_seen]
        layers, _ = fit_states(graph, list(_asked_nodes(taught)), rules, progress)
        rows = np.flatnonzero(unseen).tolist()
        likened = _with_likeness(RankerModel({}, layers), graph, [recorded[row] for row in rows])
        for row, choice in zip(rows, likened, strict=True):
            choices[row] = choice
    return layers, choices


def _asked_nodes(recorded: Sequence[RecordedTurn]) -> Iterator[AskedNodes]:
    """Those of which some candidates were wanted and others not, for the states of nodes."""
    for one in recorded:
        good = np.asarray(one.choice.gold.any(axis=0), np.float32)
        if 0 < good.sum() < len(good):
            yield one.vector, one.nodes, good


def _with_likeness(model: RankerModel, graph: Graph | None, recorded: Sequence[RecordedTurn]) -> list[Choice]:
    """The choices with the column `state` of a model; as they are where it has no states."""
    if not model.has_states or graph is None:
        return [one.choice for one in recorded]
    states, choices = node_states(model, graph.features, graph.starts, graph.targets), []
    for one in recorded:
        columns = one.choice.columns.copy()
        near = states[one.nodes].astype(np.float32) @ model.question_state(one.vector)
        columns[:, COLUMNS.index("state")] = standard(near.astype(np.float64))
        choices.append(replace(one.choice, columns=columns))
    return choices


def _register(context: BuildContext, fit: Fit, artifacts: Sequence[Path], as_of: datetime) -> dict[str, Any]:
    """Log a fitted ranker, and promote it where the gate allows it."""
    tracker, verdict = context.open_tracker(), fit.verdict
    arrays = fit.model.arrays
    line = {name: round(float(one), 4) for name, one in zip(COLUMNS, arrays["line"], strict=True)}
    rule = {name: round(float(one), 4) for name, one in zip(SIGNALS, arrays.get("abstain", ()), strict=False)}
    params = {**fit.counts, "has_states": fit.model.has_states, **{f"line.{name}": one for name, one in line.items()}}
    params |= {f"abstain.{name}": one for name, one in rule.items()}
    version = log_ranker(tracker, fit.model, params, fit.figures, artifacts, verdict["reason"])
    if verdict["is_better"]:
        promote_ranker(context.store, context.home, tracker, version, as_of)
    return {
        "skipped": False,
        "why": verdict["reason"],
        "version": version,
        "is_champion": verdict["is_better"],
        "data_hash": fit.model.signature["data_hash"],
        "has_states": fit.model.has_states,
        **fit.counts,
        "line": line,
        "abstain": rule,
        "figures": dict(fit.figures),
        "verdict": verdict,
    }


def check_graph(graph: Graph) -> ContractResult:
    """Check what states are fitted to; nothing is raised for a broken rule."""
    is_finite = bool(np.isfinite(graph.features).all())
    rows = pa.table({"_key": ["this graph"], "nodes": [len(graph)], "features_finite": [is_finite]})
    return check_frames(RANKER, RANKER_CONTRACT, lambda: Frames({"graphs": rows}))


def _serving(context: BuildContext) -> RankerModel | None:
    """The ranker that serves; None where the shipped weights do: none was promoted, or this version cannot use it."""
    done = build_state.complete(context.store, RANKER)
    if done is None or not done.generation:
        return None
    try:
        return build_state.kept(context.home, done.generation)
    except BadModel:
        return None


def _shortage(count: int) -> str:
    return f"{count} questions are known; {LEAST_QUESTIONS} are needed to learn from"


def _skip(why: str) -> dict[str, Any]:
    return {"skipped": True, "is_champion": False, "why": why}


def _train_at_night(context: BuildContext, ingest: Ingest, night: Night) -> dict[str, Any]:
    if not night.learns:
        return _skip("somebody waits for this build; the next night trains")
    return train(context, night.as_of, seconds_left=night.seconds_left())


NIGHT_STAGE = Stage(
    "ranker",
    "train ranker",
    _train_at_night,
    lambda report: str(report["why"]),
    reads=("query_logs", *EDGES),
    writes=("ranker",),
    needs=("exam",),
)
