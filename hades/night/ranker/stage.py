"""The stage `ranker`: what a home's own questions teach about the default ranking; fitted, judged
and registered.

Questions that quote their answer are not learned from: they share more words with it than people's
questions do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hades import ranker_files, stage_ledger
from hades.ingest.ingest import Ingest
from hades.night.columns import Frames
from hades.night.context import BuildContext
from hades.night.contracts.check import check_frames, require_contracts
from hades.night.contracts.exam import RANKER_CONTRACT
from hades.night.contracts.rule import ContractResult
from hades.night.exam.questions import QUOTATIONS, ExamQuestion
from hades.night.exam.stage import build_exam, check_exam, path_of, read_exam, take_exam
from hades.night.model_versions import PASSED, RANKER, REFUSED, log_ranker, promote_ranker
from hades.night.ranker.questions import (
    LABELLED,
    QUESTIONS,
    Quality,
    Verdict,
    decide,
    place_questions,
    quality,
    read_questions,
)
from hades.night.stage import EDGES, Night, NightStage
from hades.ports.services import ProgressReport, silent
from hades.retrieval.core.metered_view import MeteredView
from hades.retrieval.core.types import Question
from hades.retrieval.features.leading import standard
from hades.retrieval.features.passages import Columns
from hades.retrieval.pipeline import Tools
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
LEDGER_KEY = "ranker_training"  # of the ledger: what the last training saw
LEAST_QUESTIONS = (
    60  # that the default found candidates with vectors for; a third of them is held out
)
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
    """Fit the default ranking to the exam and to labelled questions, asked of what serves; a better
    one serves.

    Where no file is named the one under HADES_HOME is taken, if it is there. It is left for another
    night when the time box is nearly spent: what serves goes on serving.
    """
    if seconds_left is not None and seconds_left < RANKER_SECONDS:
        return _skip(f"{seconds_left:.0f} s of the time box are left, too few to train")

    view = open_former(context.home)
    if context.open_tools is None or view is None:
        return _skip("nothing is published that questions could be asked of")

    exam = build_exam(context)
    default_file = context.home / QUESTIONS
    if questions is None and default_file.is_file():
        questions = default_file

    if questions is None:
        labelled = []
    else:
        labelled = read_questions(questions)

    data_hash = stage_ledger.digest_of(exam["data_hash"], labelled)
    digest = stage_ledger.digest_of(
        data_hash,
        context.model,
        asdict(rules),
        FORMAT,
        SIGNALS,
    )
    last_record = stage_ledger.last_completion(context.store, LEDGER_KEY)

    if last_record is not None and last_record.digest == digest:
        return {
            **last_record.report,
            **_skip("nothing that a ranker learns from has changed"),
        }

    exam_questions = []
    for question in read_exam(context.home):
        if question.kind not in QUOTATIONS:
            exam_questions.append(question)

    question_count = sum(question.is_answerable for question in exam_questions) + len(labelled)
    if question_count < LEAST_QUESTIONS:
        return _skip(_shortage(question_count))

    with closing(view):
        labelled_questions = place_questions(view, labelled)
        require_contracts([check_exam(labelled_questions)])
        turns = record_turns(
            view,
            context.open_tools(),
            [*exam_questions, *labelled_questions],
            context.progress,
        )
        question_count = sum(turn.question.is_answerable for turn in turns)

        if question_count < LEAST_QUESTIONS:
            return _skip(_shortage(question_count))

        fit = fit_ranker(
            context,
            view,
            turns,
            replace(rules, device=context.device),
            data_hash,
        )

    files = [path_of(context.home)]
    if questions is not None:
        files.append(questions)

    report = _register(context, fit, files, as_of)
    with context.store.bulk(["build_stages"]) as inside:
        stage_ledger.record(
            inside,
            LEDGER_KEY,
            digest,
            "",
            as_of,
            report,
        )

    return report


@dataclass(frozen=True)
class RecordedTurn:
    """A question, its vector, and what the shipped ranking had to choose from; the column `state`
    is still empty.

    `margin` is what spoke for answering by the shipped rule, `signals` what it saw: None where code
    leads, and it is not asked.
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
        self.rankings: list[tuple[NDArray[np.int64], Floats, Columns]] = []
        self.doubt: tuple[float, Floats | None] = (0.0, None)

    def open(self, view: MeteredView, question: Question) -> Judge:
        """The judge of one question."""
        vector = () if question.vector is None else question.vector
        self.vector = np.asarray(vector, np.float32)
        return self

    def adjust(
        self,
        nodes: Sequence[int],
        worth: Floats,
        columns: Callable[[], Columns],
    ) -> Floats:
        self.rankings.append((np.array(nodes, np.int64), worth, columns()))
        return worth

    def margin(self, shipped: float, signals: Floats) -> float:
        self.doubt = shipped, signals
        return shipped


def record_turns(
    view: GraphView,
    tools: Tools,
    questions: Sequence[ExamQuestion],
    progress: ProgressReport = silent,
) -> list[RecordedTurn]:
    """What the shipped ranking had to choose from for each question; those without vectors or
    passages stay out.
    """
    recorder = _Recorder()
    recording = replace(tools, judge=recorder.open)

    turns = []
    for number, question in enumerate(questions, 1):
        recorder.rankings.clear()
        recorder.vector = np.zeros(0, np.float32)
        recorder.doubt = 0.0, None
        take_exam(view, recording, [question])
        progress("exam", number, len(questions))

        if not len(recorder.vector):
            continue

        for nodes, worth, columns in recorder.rankings[-1:]:
            node_ids = view.ids(nodes)
            gold = np.zeros((len(question.gold), len(nodes)), np.bool_)
            for row, part in enumerate(question.gold):
                gold[row] = [node_id in part for node_id in node_ids]

            table = np.column_stack([columns[name] for name in COLUMNS])
            choice = Choice(
                standard(worth),
                table,
                gold,
                question.weight,
            )
            turns.append(
                RecordedTurn(
                    question,
                    recorder.vector,
                    nodes,
                    choice,
                    *recorder.doubt,
                )
            )

    return turns


@dataclass(frozen=True)
class Part:
    """A line or a rule of abstention that was fitted, the verdict on it, and its figures on unseen
    questions.
    """

    arrays: Layers
    verdict: Verdict
    figures: Mapping[str, float]


@dataclass(frozen=True)
class Fit:
    """A fitted ranker: of what was fitted, what passed; where nothing did, all of it, for the
    record.
    """

    model: RankerModel
    verdict: Verdict
    counts: Mapping[str, int]
    figures: Mapping[str, float]


def fit_ranker(
    context: BuildContext,
    view: GraphView,
    recorded: Sequence[RecordedTurn],
    rules: StateRules,
    data_hash: str,
) -> Fit:
    """Fit to what teaches, and judge by what is held out: the ranking and the abstention each for
    itself.
    """
    serving = _serving(context)

    answerable = []
    for turn in recorded:
        if turn.question.is_answerable:
            answerable.append(turn)

    ranking = _fit_ranking(
        context,
        view,
        answerable,
        rules,
        serving,
    )
    abstention = fit_abstention(recorded, serving)
    parts = {
        "ranking": ranking,
        "abstention": abstention,
    }
    passed = [name for name, part in parts.items() if part.verdict["is_better"]]

    if serving is None or not passed:
        arrays = {}
    else:
        arrays = dict(serving.arrays)

    for name in passed or parts:
        is_abstention = name == "abstention"
        unchanged = {}
        for layer, values in arrays.items():
            if (layer == "abstain") is not is_abstention:
                unchanged[layer] = values

        arrays = {**unchanged, **parts[name].arrays}

    arrays.setdefault("line", np.zeros(len(COLUMNS), np.float32))
    signature = {
        "format": FORMAT,
        "columns": list(COLUMNS),
        "model": context.model,
        "data_hash": data_hash,
        "state": arrays["tower"].shape[1] if "tower" in arrays else 1,
    }
    reasons = (f"{name} {part.verdict['reason']}" for name, part in parts.items())
    verdict = {
        "is_better": bool(passed),
        "reason": "; ".join(reasons),
        "figures": {name: part.verdict["figures"] for name, part in parts.items()},
    }
    held_count = sum(turn.question.is_held for turn in answerable)
    counts = {
        "questions": len(answerable) - held_count,
        "held": held_count,
    }
    figures = {
        **ranking.figures,
        **abstention.figures,
    }
    return Fit(
        RankerModel(signature, arrays),
        verdict,
        counts,
        figures,
    )


def _fit_ranking(
    context: BuildContext,
    view: GraphView,
    turns: Sequence[RecordedTurn],
    rules: StateRules,
    serving: RankerModel | None,
) -> Part:
    """The line beside the shipped weights, and where people's own questions are known the states of
    nodes.
    """
    is_held = np.array([turn.question.is_held for turn in turns], np.bool_)
    own_count = sum(turn.question.kind in _OWN for turn in turns)
    fits_states = own_count >= LEAST_OWN and find_spec("torch_geometric") is not None
    graph = None

    if fits_states or (serving is not None and serving.has_states):
        graph = graph_of(view, context.model)

    layers: Layers = {}
    choices = [turn.choice for turn in turns]
    if fits_states and graph is not None:
        require_contracts([check_graph(graph)])
        layers, choices = fit_likeness(
            graph,
            turns,
            is_held,
            rules,
            context.progress,
        )

    line = fit_line(
        [choices[row] for row in np.flatnonzero(~is_held).tolist()],
        len(COLUMNS),
    )
    held_rows = np.flatnonzero(is_held).tolist()
    held_turns = [turns[row] for row in held_rows]
    gold = [turn.choice.parts for turn in held_turns]

    def measure(judged: Sequence[Choice], weights: Floats) -> Quality:
        return quality([choice.ranking(weights) for choice in judged], gold)

    held_choices = [choices[row] for row in held_rows]
    ours = measure(held_choices, line)
    shipped = measure(held_choices, 0.0 * line)
    rivals = {"the shipped weights": shipped}

    if serving is not None:
        rival_choices = _with_likeness(serving, graph, held_turns)
        rivals["what serves"] = measure(rival_choices, serving.arrays["line"].astype(np.float64))

    verdict = decide(ours, rivals, list(map(_set_of, held_turns)))
    return Part(
        {
            **layers,
            "line": line.astype(np.float32),
        },
        verdict,
        _means(ours, shipped),
    )


def fit_abstention(
    recorded: Sequence[RecordedTurn],
    serving: RankerModel | None,
) -> Part:
    """When not to answer, beside the shipped rule.

    It is fitted to questions whose answer was found and to those whose answer was hidden, and
    judged by how many of both it decides rightly. An answer that was there and not found teaches
    nothing: to abstain would be no mistake.
    """
    usable_turns = []
    for turn in recorded:
        if turn.signals is not None and (turn.is_found or not turn.question.is_answerable):
            usable_turns.append(turn)

    training_turns = []
    for turn in usable_turns:
        if not turn.question.is_held:
            training_turns.append(turn)

    held_turns = []
    for turn in usable_turns:
        if turn.question.is_held:
            held_turns.append(turn)

    if len({turn.question.is_answerable for turn in training_turns}) < 2:
        reason = "not fitted: too few questions"
        return Part(
            {},
            {
                "is_better": False,
                "reason": reason,
                "figures": {},
            },
            {},
        )

    rule = fit_margin(*_margins(training_turns))
    margins, signals, is_answerable, _ = _margins(held_turns)

    def measure(learned: Floats) -> Quality:
        """Of every question, whether it is rightly answered or not."""
        right = ((margins + signals @ learned >= 0.0) == is_answerable).astype(np.float64)
        return {"quality": right, "decided": right}

    ours = measure(rule)
    shipped = measure(0.0 * rule)
    rivals = {"the shipped rule": shipped}

    if serving is not None and "abstain" in serving.arrays:
        rivals["what serves"] = measure(serving.arrays["abstain"].astype(np.float64))

    sets = []
    for turn in held_turns:
        sets.append(
            f"{_set_of(turn)}, {'answerable' if turn.question.is_answerable else 'not answerable'}"
        )

    verdict = decide(ours, rivals, sets)
    return Part(
        {"abstain": rule.astype(np.float32)},
        verdict,
        _means(ours, shipped),
    )


def _margins(recorded: Sequence[RecordedTurn]) -> tuple[Floats, Floats, Flags, Flags]:
    """Shipped margins (n,), signals (n, signals), which have an answer, and which are of people."""
    signals = np.array([turn.signals for turn in recorded], np.float64).reshape(
        -1,
        len(SIGNALS),
    )
    is_answerable = np.array([turn.question.is_answerable for turn in recorded], np.bool_)
    is_own = np.array([turn.question.kind in _OWN for turn in recorded], np.bool_)
    return np.array([turn.margin for turn in recorded], np.float64), signals, is_answerable, is_own


def _set_of(turn: RecordedTurn) -> str:
    return LABELLED if turn.question.kind in _OWN else "exam"


def _means(ours: Quality, shipped: Quality) -> dict[str, float]:
    """Means of the measures, and what they were before."""
    both = {name: ours[name] for name in ours} | {
        f"{name}_before": values for name, values in shipped.items()
    }

    means = {}
    for name, values in both.items():
        if len(values) and not name.startswith("quality"):
            means[name] = round(float(values.mean()), 4)

    return means


def fit_likeness(
    graph: Graph,
    recorded: Sequence[RecordedTurn],
    is_held: Flags,
    rules: StateRules,
    progress: ProgressReport,
) -> tuple[Layers, list[Choice]]:
    """The layers of GraphSAGE that serve, and every choice with the likeness of states by layers
    that have not seen it.

    What teaches is halved: the states of each half are of a network that was fitted to the other
    one.
    """
    from models.ranker.fit import fit_states  # the door to torch

    half = np.array(
        [int(turn.question.key[16:24], 16) % 2 == 1 for turn in recorded],
        np.bool_,
    )
    layers: Layers = {}
    choices = [turn.choice for turn in recorded]

    for is_seen, unseen in (
        (~is_held & half, ~is_held & ~half),
        (~is_held & ~half, ~is_held & half),
        (~is_held, is_held),
    ):
        training_turns = [
            turn for turn, is_seen in zip(recorded, is_seen.tolist(), strict=True) if is_seen
        ]
        layers, _ = fit_states(
            graph,
            list(_asked_nodes(training_turns)),
            rules,
            progress,
        )
        rows = np.flatnonzero(unseen).tolist()
        likened_choices = _with_likeness(
            RankerModel({}, layers),
            graph,
            [recorded[row] for row in rows],
        )

        for row, choice in zip(rows, likened_choices, strict=True):
            choices[row] = choice

    return layers, choices


def _asked_nodes(recorded: Sequence[RecordedTurn]) -> Iterator[AskedNodes]:
    """Those of which some candidates were wanted and others not, for the states of nodes."""
    for turn in recorded:
        good = np.asarray(turn.choice.gold.any(axis=0), np.float32)
        if 0 < good.sum() < len(good):
            yield turn.vector, turn.nodes, good


def _with_likeness(
    model: RankerModel,
    graph: Graph | None,
    recorded: Sequence[RecordedTurn],
) -> list[Choice]:
    """The choices with the column `state` of a model; as they are where it has no states."""
    if not model.has_states or graph is None:
        return [turn.choice for turn in recorded]

    states = node_states(
        model,
        graph.features,
        graph.starts,
        graph.targets,
    )
    choices = []
    for turn in recorded:
        columns = turn.choice.columns.copy()
        likeness = states[turn.nodes].astype(np.float32) @ model.question_state(turn.vector)
        columns[:, COLUMNS.index("state")] = standard(likeness.astype(np.float64))
        choices.append(replace(turn.choice, columns=columns))

    return choices


def _register(
    context: BuildContext,
    fit: Fit,
    artifacts: Sequence[Path],
    as_of: datetime,
) -> dict[str, Any]:
    """Log a fitted ranker, and promote it where the gate allows it."""
    tracker = context.open_tracker()
    verdict = fit.verdict
    model = fit.model
    line = dict(zip(COLUMNS, _rounded(model.arrays["line"]), strict=True))
    rule = dict(zip(SIGNALS, _rounded(model.arrays.get("abstain", ())), strict=False))
    params: dict[str, Any] = {
        **fit.counts,
        "has_states": model.has_states,
    }
    params |= {f"line.{name}": weight for name, weight in line.items()}
    params |= {f"abstain.{name}": weight for name, weight in rule.items()}
    version = log_ranker(
        tracker,
        model,
        params,
        fit.figures,
        artifacts,
        verdict=verdict["reason"],
        gate=PASSED if verdict["is_better"] else REFUSED,
    )

    if verdict["is_better"]:
        promote_ranker(
            context.store,
            context.home,
            tracker,
            version,
            as_of,
        )

    return {
        "skipped": False,
        "why": verdict["reason"],
        "version": version,
        "is_champion": verdict["is_better"],
        "data_hash": model.signature["data_hash"],
        "has_states": model.has_states,
        **fit.counts,
        "line": line,
        "abstain": rule,
        "figures": dict(fit.figures),
        "verdict": verdict,
    }


def _rounded(weights: Iterable[float]) -> list[float]:
    return [round(float(weight), 4) for weight in weights]


def check_graph(graph: Graph) -> ContractResult:
    """Check what states are fitted to; nothing is raised for a broken rule."""
    is_finite = bool(np.isfinite(graph.features).all())
    rows = pa.table(
        {
            "_key": ["this graph"],
            "nodes": [len(graph)],
            "features_finite": [is_finite],
        }
    )
    return check_frames(
        RANKER,
        RANKER_CONTRACT,
        lambda: Frames({"graphs": rows}),
    )


def _serving(context: BuildContext) -> RankerModel | None:
    """The ranker that serves; None where the shipped weights do: none was promoted, or this version
    cannot use it.
    """
    champion_record = stage_ledger.last_completion(context.store, RANKER)
    if champion_record is None or not champion_record.generation:
        return None

    try:
        return ranker_files.load_ranker(context.home, champion_record.generation)
    except BadModel:
        return None


def _shortage(count: int) -> str:
    return f"{count} questions are known; {LEAST_QUESTIONS} are needed to learn from"


def _skip(why: str) -> dict[str, Any]:
    return {
        "skipped": True,
        "is_champion": False,
        "why": why,
    }


def _train_at_night(
    context: BuildContext,
    ingest: Ingest,
    night: Night,
) -> dict[str, Any]:
    if not night.learns:
        return _skip("somebody waits for this build; the next night trains")
    return train(
        context,
        night.as_of,
        seconds_left=night.seconds_left(),
    )


STAGE = NightStage(
    "ranker",
    "train ranker",
    _train_at_night,
    lambda report: str(report["why"]),
    reads=("query_logs", *EDGES),
    writes=("ranker",),
    needs=("exam",),
    figures=("questions", "held", "figures"),
)
