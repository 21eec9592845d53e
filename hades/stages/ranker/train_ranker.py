"""The stage `ranker`: questions are asked again, exported and checked; a ranker is fitted, and the gate decides.

A ranker that is refused is registered all the same, with the reason, and nothing that serves changes. One that passes
is champion, and serves with the next snapshot.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from hades.build_state import ledger
from hades.ports.view import GraphView
from hades.retrieval.ranking.learned_ranker import first_net
from hades.retrieval.turn.pipeline import Tools
from hades.retrieval.walks.second_hop import ReachState
from hades.snapshot.open import open_snapshot
from hades.snapshot.ranker_part import graph_of
from hades.stages.build_context import BuildContext
from hades.stages.contracts.check_contract import require_contracts
from hades.stages.contracts.ranker import check_export
from hades.stages.ranker import ranker_registry as registry
from hades.stages.ranker.fit_ranker import Fit, Material, RankerRules, fit_ranker
from hades.stages.ranker.ranker_data import EXPORT, QuestionCandidates, RankerExport, write_export
from hades.stages.ranker.ranker_gate import LEAST_QUESTIONS, Quality, Verdict, decide, quality
from hades.stages.ranker.ranker_questions import (
    LabelledQuestion,
    describe_shortage,
    judge_questions,
    read_questions,
)
from hades.stages.ranker.ranker_report import confusion_of, draw
from hades.stages.ranker.replay_questions import SEARCHED, WALKED, ReplayedQuestion, offline, rank_by, replay
from models.ranker.calibrate import expected_calibration_error
from models.ranker.dataset import hold_out
from models.ranker.infer import RankerModel

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
    questions = _questions(context, sets)
    count = sum(len(own) for _, _, own in questions)
    if count < LEAST_QUESTIONS:
        return _skip(describe_shortage(count))
    with ExitStack() as opened:
        views = {home: opened.enter_context(closing(open_snapshot(home))) for _, home, _ in questions}
        digest = ledger.digest_of(
            [[name, _basis(context, views[home], home), [_plain(one) for one in own]] for name, home, own in questions],
            asdict(rules),
        )
        done = ledger.complete(context.store, STAGE)
        if done is not None and done.digest == digest:
            return {**done.report, **_skip("nothing that a ranker learns from has changed")}
        materials = [
            Material(name, views[home], replay(views[home], tools, own, context.progress))
            for name, home, own in questions
        ]
        exported = _export(context, materials, rules)
        require_contracts(check_export(exported.folder))
        fit = fit_ranker(materials, context.model, exported.data_hash, rules, context.progress)
        report = _register(context, materials, fit, exported, as_of)
    with context.store.bulk(["build_stages"]) as inside:
        ledger.record(inside, ledger.StageCompletion(STAGE, digest, "", as_of, report))
    return report


def _basis(context: BuildContext, view: GraphView, home: Path) -> str:
    """What a graph is learned from, so that it is not learned from twice.

    Of this graph it is what the night has built, not the snapshot that serves meanwhile: that one is always a night
    older, and a night after which nothing changed must find nothing to do.
    """
    if home != context.home:
        return view.info.snapshot
    built = [ledger.complete(context.store, stage) for stage in (ledger.HIERARCHY, ledger.WEIGHTS, ledger.BRIDGES)]
    return ledger.digest_of([one.generation if one is not None else "" for one in built])


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


def _register(
    context: BuildContext, materials: Sequence[Material], fit: Fit, exported: RankerExport, as_of: datetime
) -> dict[str, Any]:
    """Judge, log, and promote where the gate allows it."""
    tracker = context.open_tracker()
    champion = registry.champion_of(tracker)
    verdicts = judge_fit(materials, fit, None if champion is None else champion[1])
    passed = [part for part, verdict in verdicts.items() if verdict.is_better]
    model = prune(fit.model, verdicts) if passed else fit.model
    unseen = fit.unseen
    error = expected_calibration_error(unseen.chances, unseen.right)
    confusion = confusion_of(unseen.best, unseen.answerable, model.doubt)
    said = "; ".join(f"{part}: {verdict.reason}" for part, verdict in verdicts.items())
    version = registry.log_ranker(
        tracker,
        model,
        params={"questions": len(fit.cases), "heads": ",".join(model.signature["columns"]), "doubt": model.doubt},
        metrics={"calibration_error": error, **_metrics(verdicts)},
        draw=lambda folder: draw(folder, fit.curves, unseen.chances, unseen.right, confusion),
        verdict=said[:2000],
    )
    generation = registry.promote_ranker(context.store, context.home, tracker, version, as_of) if passed else ""
    return {
        "skipped": False,
        "why": said,
        "version": version,
        "is_champion": bool(passed),
        "generation": generation,
        "data_hash": exported.data_hash,
        "rows": exported.rows,
        "questions": len(fit.cases),
        "calibration_error": round(error, 4),
        "confusion": confusion.tolist(),
        "verdicts": {part: verdict.as_dict() for part, verdict in verdicts.items()},
    }


def _questions(context: BuildContext, sets: Sequence[QuestionSet]) -> list[tuple[str, Path, list[LabelledQuestion]]]:
    """Name, home and questions of each graph; judged answers are this graph's own."""
    found = [(one.name, one.home or context.home, read_questions(one.questions)) for one in sets]
    judged = judge_questions(context.store)
    own = next((place for place, (_, home, _) in enumerate(found) if home == context.home), None)
    if judged and own is None:
        found.append((HOME, context.home, judged))
    elif judged and own is not None:
        found[own][2].extend(judged)
    return found


def _export(context: BuildContext, materials: Sequence[Material], rules: RankerRules) -> RankerExport:
    graphs = {one.name: (one.view, graph_of(one.view, context.model)) for one in materials}
    cases = [(one, case) for one in materials for case in one.asked]
    times = [case.asked.at for _, case in cases]
    held = hold_out([case.asked.text for _, case in cases], times, rules.held)
    offered = [
        _make_candidates(material, case, bool(is_held) and at is not None)
        for (material, case), is_held, at in zip(cases, held, times, strict=True)
    ]
    return write_export(context.home / "ranker" / EXPORT, graphs, offered)


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
