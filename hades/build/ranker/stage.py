"""Train, compare, promote."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hades import build_state
from hades.build.columns import Frames, with_columns
from hades.build.context import BuildContext
from hades.build.contracts.check import check_frames, require_contracts
from hades.build.contracts.outputs import RANKER_CONTRACT
from hades.build.contracts.rule import ContractResult
from hades.build.ranker.default import carry_line, learn_from_exam
from hades.build.ranker.fit import Fit, Material, RankerRules, fit_ranker
from hades.build.ranker.questions import (
    EXPORT,
    HELD,
    LEAST_QUESTIONS,
    QUESTIONS,
    SEARCHED,
    WALKED,
    LabelledQuestion,
    Quality,
    QuestionCandidates,
    ReplayedQuestion,
    Verdict,
    decide,
    describe_shortage,
    export_tables,
    judge_questions,
    offline,
    quality,
    rank_by,
    read_questions,
    replay,
    too_few_judgements,
    write_export,
)
from hades.build.registry import champion_of, log_ranker, promote_ranker
from hades.build.stage import EDGES, Night, Report, Stage, Table
from hades.ingest.ingest import Ingest
from hades.retrieval.features.passages import ReachState
from hades.retrieval.pipeline import Tools
from hades.retrieval.ranking.judge import first_net
from hades.snapshot.manifest import served
from hades.snapshot.open import open_snapshot
from hades.snapshot.view import GraphView
from hades.snapshot.write_graph import graph_of
from models.ranker.infer import BINS, Curve, RankerModel, expected_calibration_error, hold_out

if TYPE_CHECKING:
    from matplotlib.figure import Figure


# The gate before a ranker is fitted: every rule of what was exported.


def check_export(tables: Mapping[str, pa.Table]) -> ContractResult:
    """Check the tables of an export; nothing is raised for a broken rule."""
    return check_frames("ranker", RANKER_CONTRACT, lambda: _frames(tables))


def _frames(tables: Mapping[str, pa.Table]) -> Frames:
    graphs, questions, preferences = (tables[name] for name in ("graphs", "questions", "preferences"))
    numbers = questions.column("question").cast(pa.string())
    pair = [preferences.column("question").cast(pa.string()), *preferences.select(["better", "worse"]).columns]
    return Frames(
        {
            "graphs": graphs.append_column("_key", graphs.column("graph")),
            "questions": with_columns(questions.append_column("_key", numbers), is_in_time=_in_time(questions)),
            "preferences": preferences.append_column("_key", pc.binary_join_element_wise(*pair, " ")),
        }
    )


def _in_time(questions: pa.Table) -> NDArray[np.bool_]:
    """Which questions are where their time says: of logged ones none is fitted that is later than one held out."""
    at = pc.cast(questions.column("at"), pa.int64()).fill_null(-1).to_numpy()
    held = pc.equal(questions.column("split"), HELD).to_numpy(zero_copy_only=False)
    timed = at >= 0
    in_time: NDArray[np.bool_] = ~(timed & held) | (at >= at[timed & ~held].max(initial=-1))
    return in_time


# Pictures of a fitted ranker, logged with its run: curves, calibration, and when it abstains.


Floats = NDArray[np.float64]
CURVES, CALIBRATION, CONFUSION = "curves.png", "calibration.png", "confusion.png"


def draw(
    folder: Path, curves: Mapping[str, Curve], chances: Floats, right: Floats, confusion: NDArray[np.int64]
) -> list[Path]:
    """Three pictures; the same figures draw the same bytes."""
    return [
        _curves(folder / CURVES, curves),
        _calibration(folder / CALIBRATION, chances, right),
        _confusion(folder / CONFUSION, confusion),
    ]


def confusion_of(best: Floats, answerable: NDArray[np.bool_], doubt: float) -> NDArray[np.int64]:
    """(2, 2): rows can and cannot be answered, columns were answered and not."""
    answered = best >= doubt
    cells = [[(own & said).sum() for said in (answered, ~answered)] for own in (answerable, ~answerable)]
    return np.array(cells, np.int64)


def _curves(path: Path, curves: Mapping[str, Curve]) -> Path:
    figure = _figure(12.0, 4.0)
    panels = np.atleast_1d(figure.subplots(1, max(1, len(curves)))).ravel()
    for panel, (name, curve) in zip(panels, curves.items(), strict=False):
        panel.plot(curve.fitted, label="fitted")
        panel.plot(curve.held, label="held out")
        panel.set_title(name)
    panels[0].legend()
    return _save(figure, path)


def _calibration(path: Path, chances: Floats, right: Floats) -> Path:
    from sklearn.calibration import calibration_curve

    figure = _figure(5.0, 5.0)
    panel: Any = figure.subplots()
    came_true, said = calibration_curve(right, chances, n_bins=BINS)
    panel.plot([0, 1], [0, 1], color="#999999")
    panel.plot(said, came_true, marker="o")
    panel.set_xlabel("confidence")
    panel.set_ylabel("share that was right")
    return _save(figure, path)


def _confusion(path: Path, cells: NDArray[np.int64]) -> Path:
    figure = _figure(4.5, 4.0)
    panel: Any = figure.subplots()
    panel.imshow(cells, cmap="Blues")
    for row, column in np.ndindex(cells.shape):
        panel.text(column, row, str(cells[row, column]), ha="center", va="center")
    panel.set_xticks([0, 1], ["answered", "abstained"])
    panel.set_yticks([0, 1], ["can be", "cannot be"])
    return _save(figure, path)


def _figure(width: float, height: float) -> Figure:
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height))


def _save(figure: Figure, path: Path) -> Path:
    figure.savefig(path, dpi=100, metadata={"Software": None})
    return path


# The stage `ranker`: questions are asked again, exported and checked; a ranker is fitted, and the gate decides. A
# ranker that is refused is registered all the same, with the reason, and nothing that serves changes. One that
# passes is champion, and serves with the next snapshot.


STAGE = "ranker_training"  # of the ledger: what the last training saw
HEADS_OF = {SEARCHED: ("reach", "again", "read", "sure"), WALKED: ("walk",), "paths": ("path",)}
HOME = "this graph"


@dataclass(frozen=True)
class QuestionSet:
    """A file of questions with their gold, and the home of the published graph that they are asked of; None: this."""

    questions: Path
    home: Path | None = None

    @property
    def name(self) -> str:
        """What the set is called in figures."""
        return HOME if self.home is None else self.home.name


def train_ranker(
    context: BuildContext,
    tools: Tools,
    sets: Sequence[QuestionSet],
    as_of: datetime,
    rules: RankerRules = RankerRules(),
) -> dict[str, Any]:
    """Fit a ranker to files of questions and to judged answers, and let it serve if it is better; what came of it."""
    questions = _training_questions(context, sets)
    count = sum(len(own) for _, _, own in questions)
    if count < LEAST_QUESTIONS:
        return _skip(describe_shortage(count))
    with ExitStack() as opened:
        views = {home: opened.enter_context(closing(open_snapshot(home))) for _, home, _ in questions}
        digest = build_state.digest_of(
            [[name, _basis(context, views[home], home), [_plain(one) for one in own]] for name, home, own in questions],
            asdict(rules),
        )
        done = build_state.complete(context.store, STAGE)
        if done is not None and done.digest == digest:
            return {**done.report, **_skip("nothing that a ranker learns from has changed")}
        materials = [
            Material(name, views[home], replay(views[home], tools, own, context.progress))
            for name, home, own in questions
        ]
        tables = _export(context, materials, rules)
        require_contracts([check_export(tables)])
        data_hash = write_export(context.home / "ranker" / EXPORT, tables)
        fit = fit_ranker(materials, context.model, data_hash, rules, context.progress)
        exported = {"data_hash": data_hash, "rows": {name: table.num_rows for name, table in tables.items()}}
        report = {**_register(context, materials, fit, as_of), **exported}
    with context.store.bulk(["build_stages"]) as inside:
        build_state.record(inside, build_state.StageCompletion(STAGE, digest, "", as_of, report))
    return report


def _basis(context: BuildContext, view: GraphView, home: Path) -> str:
    """What a graph is learned from, so that it is not learned from twice.

    Of this graph it is what the night has built, not the snapshot that serves meanwhile: that one is always a night
    older, and a night after which nothing changed must find nothing to do.
    """
    if home != context.home:
        return view.info.snapshot
    built = [
        build_state.complete(context.store, stage)
        for stage in (build_state.HIERARCHY, build_state.WEIGHTS, build_state.BRIDGES)
    ]
    return build_state.digest_of([one.generation if one is not None else "" for one in built])


def judge_fit(materials: Sequence[Material], fit: Fit, champion: RankerModel | None) -> dict[str, Verdict]:
    """The verdict on each part of a ranker, by what it makes of questions that it has not seen."""
    scored = [place for place, case in enumerate(fit.cases) if case.gold]
    gold, sets = [fit.cases[place].gold for place in scored], [fit.sets[place] for place in scored]
    theirs = rank_by(champion, [(one.view, one.asked) for one in materials]) if champion is not None else None
    verdicts: dict[str, Verdict] = {}
    for recipe in (SEARCHED, WALKED):
        own = quality([fit.unseen.rankings[recipe][place] for place in scored], gold)
        rivals = {"weights by hand": quality([fit.cases[place].by_hand[recipe] for place in scored], gold)}
        if theirs is not None:
            rivals["the champion"] = quality([theirs[recipe][place] for place in scored], gold)
        error = expected_calibration_error(fit.unseen.chances, fit.unseen.right) if recipe == SEARCHED else None
        verdicts[recipe] = decide(own, rivals, sets, error)
    told = [place for place in range(len(fit.cases)) if fit.unseen.paths[place] is not None]
    ranks = np.array([fit.unseen.paths[place] for place in told], np.float64).reshape(-1, 2)
    learned, by_hand = (Quality(ranks[:, side], ranks[:, side]) for side in (0, 1))
    verdicts["paths"] = decide(learned, {"weights by hand": by_hand}, [fit.sets[place] for place in told])
    return verdicts


def prune(model: RankerModel, verdicts: dict[str, Verdict]) -> RankerModel:
    """The model without the heads that did not earn their place."""
    dropped = {head for part, heads in HEADS_OF.items() if not verdicts[part].is_better for head in heads}
    arrays = {name: one for name, one in model.arrays.items() if name.partition(".")[0] not in dropped}
    columns = {name: one for name, one in model.signature["columns"].items() if name not in dropped}
    return RankerModel({**model.signature, "columns": columns}, arrays)


def _register(context: BuildContext, materials: Sequence[Material], fit: Fit, as_of: datetime) -> dict[str, Any]:
    """Judge, log, and promote where the gate allows it."""
    tracker = context.open_tracker()
    champion = champion_of(tracker)
    verdicts = judge_fit(materials, fit, None if champion is None else champion[1])
    passed = [part for part, verdict in verdicts.items() if verdict.is_better]
    fitted = prune(fit.model, verdicts) if passed else fit.model
    model = carry_line(fitted, None if champion is None else champion[1])
    unseen = fit.unseen
    error = expected_calibration_error(unseen.chances, unseen.right)
    confusion = confusion_of(unseen.best, unseen.answerable, model.doubt)
    said = "; ".join(f"{part}: {verdict.reason}" for part, verdict in verdicts.items())
    version = log_ranker(
        tracker,
        model,
        params={"questions": len(fit.cases), "heads": ",".join(model.signature["columns"]), "doubt": model.doubt},
        metrics={"calibration_error": error, **_metrics(verdicts)},
        draw=lambda folder: draw(folder, fit.curves, unseen.chances, unseen.right, confusion),
        verdict=said[:2000],
        questions=str(context.home / "ranker" / EXPORT),
    )
    generation = promote_ranker(context.store, context.home, tracker, version, as_of) if passed else ""
    return {
        "skipped": False,
        "why": said,
        "version": version,
        "is_champion": bool(passed),
        "generation": generation,
        "questions": len(fit.cases),
        "calibration_error": round(error, 4),
        "confusion": confusion.tolist(),
        "verdicts": {part: asdict(verdict) for part, verdict in verdicts.items()},
    }


def _training_questions(
    context: BuildContext, sets: Sequence[QuestionSet]
) -> list[tuple[str, Path, list[LabelledQuestion]]]:
    """Name, home and questions of each graph; judged answers are this graph's own."""
    found = [(one.name, one.home or context.home, read_questions(one.questions)) for one in sets]
    judged = judge_questions(context.store)
    own = next((place for place, (_, home, _) in enumerate(found) if home == context.home), None)
    if judged and own is None:
        found.append((HOME, context.home, judged))
    elif judged and own is not None:
        found[own][2].extend(judged)
    return found


def _export(context: BuildContext, materials: Sequence[Material], rules: RankerRules) -> dict[str, pa.Table]:
    graphs = {one.name: graph_of(one.view, context.model) for one in materials}
    cases = [(one, case) for one in materials for case in one.asked]
    times = [case.asked.at for _, case in cases]
    held = hold_out([case.asked.text for _, case in cases], times, rules.held)
    offered = [
        _make_candidates(material, case, bool(is_held) and at is not None)
        for (material, case), is_held, at in zip(cases, held, times, strict=True)
    ]
    return export_tables(graphs, offered)


def _make_candidates(material: Material, case: ReplayedQuestion, is_held: bool) -> QuestionCandidates:
    net = first_net(offline(material.view), case.question, case.found, ReachState())
    read = material.view.passages(net.nodes)
    wanted = np.array([case.asked.wants(one.id, one.document) for one in read], np.bool_)
    counts = np.array([case.asked.compares(one.id) for one in read], np.bool_)
    return QuestionCandidates(case.asked, material.name, is_held, [one.id for one in read], wanted, counts)


def _metrics(verdicts: dict[str, Verdict]) -> dict[str, float]:
    """Gains over each rival, by part and measure, under names that a registry takes."""
    return {
        f"{part}.{measure}.{rival.replace(' ', '_')}": float(figures[measure]["mean"])
        for part, verdict in verdicts.items()
        for rival, figures in verdict.figures.items()
        for measure in ("mrr", "recall")
    }


def _plain(one: LabelledQuestion) -> dict[str, Any]:
    plain = asdict(replace(one, shown={}))
    return {**plain, "gold": sorted(one.gold), "good": sorted(one.good), "shown": dict(sorted(one.shown.items()))}


def _skip(why: str) -> dict[str, Any]:
    return {"skipped": True, "why": why}


RANKER_SECONDS = 300  # what training takes at most on a graph of a size to be expected


def train(
    context: BuildContext, as_of: datetime, sets: Sequence[QuestionSet] = (), *, seconds_left: float | None = None
) -> dict[str, Any]:
    """The default ranking from the exam, and a ranker from labelled questions, asked of the graph that serves now.

    Without sets the file of questions under HADES_HOME is one, where there is one. It is left for another night when
    the time box is nearly spent: what serves goes on serving.
    """
    if seconds_left is not None and seconds_left < RANKER_SECONDS:
        return _skip(f"{seconds_left:.0f} s of the time box are left, too few to train")
    if context.open_tools is None or not served(context.home):
        return _skip("nothing is published that questions could be asked of")
    tools = context.open_tools()
    learned = learn_from_exam(context, tools, as_of)
    own = context.home / QUESTIONS
    if not sets and not own.is_file() and (why := too_few_judgements(context.store)):
        return {**learned, "why": f"{learned['why']}; {why}"}
    chosen = list(sets) or ([QuestionSet(own)] if own.is_file() else [])
    report = train_ranker(context, tools, chosen, as_of)
    is_champion = bool(learned["is_champion"] or report.get("is_champion"))
    return {**report, "default": learned, "is_champion": is_champion, "why": f"{learned['why']}; {report['why']}"}


def _list_verdicts(report: Report) -> Table:
    rows = [
        {"part": part, "passed": verdict["is_better"], "reason": verdict["reason"]}
        for part, verdict in report.get("verdicts", {}).items()
    ]
    return rows, report["why"]


def _train_at_night(context: BuildContext, ingest: Ingest, night: Night) -> dict[str, Any]:
    if not night.learns:
        return _skip("somebody waits for this build; the next night trains")
    return train(context, night.as_of, seconds_left=night.seconds_left())


NIGHT_STAGE = Stage(
    "ranker",
    "train ranker",
    _train_at_night,
    lambda report: str(report["why"]),
    _list_verdicts,
    reads=("query_logs", *EDGES),
    writes=("ranker",),
    needs=("exam",),
)
