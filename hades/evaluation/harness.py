"""Runs rankers over questions and sums up: recall, MRR, nDCG, cost, intervals, and against the best baseline."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from hades.evaluation.alpha import estimate_alpha
from hades.evaluation.cases import Case
from hades.evaluation.metrics import (
    Values,
    all_gold_at,
    compare,
    interval,
    ndcg_at,
    recall_at,
    reciprocal_rank,
)
from hades.evaluation.rankings import BASELINES, PLACED, Ranker, Ranking
from hades.ports.progress import Progress, silent

NDCG_DEPTH = 10


@dataclass(frozen=True)
class Scores:
    """One ranker over all questions, in their order."""

    rankings: tuple[Ranking, ...]
    recall: dict[int, Values]
    all_gold: dict[int, Values]
    mrr: Values
    ndcg: Values


def score(cases: Sequence[Case], rankings: Sequence[Ranking], ks: Sequence[int]) -> Scores:
    """The figures of one ranker, a value a question."""
    pairs = [(ranking.documents, case.gold) for ranking, case in zip(rankings, cases, strict=True)]
    return Scores(
        tuple(rankings),
        {k: np.array([recall_at(found, gold, k) for found, gold in pairs]) for k in ks},
        {k: np.array([all_gold_at(found, gold, k) for found, gold in pairs]) for k in ks},
        np.array([reciprocal_rank(found, gold) for found, gold in pairs]),
        np.array([ndcg_at(found, gold, NDCG_DEPTH) for found, gold in pairs]),
    )


def run(
    cases: Sequence[Case], rankers: Mapping[str, Ranker], ks: Sequence[int], progress: Progress = silent
) -> dict[str, Scores]:
    """Every ranker over every question; the first is asked once before, so that no one pays for warming up."""
    found = {}
    for name, rank in rankers.items():
        rank(cases[0])
        rankings = []
        for number, case in enumerate(cases, 1):
            rankings.append(rank(case))
            progress(name, number, len(cases))
        found[name] = score(cases, rankings, ks)
    return found


def summarise(cases: Sequence[Case], scores: Mapping[str, Scores], ks: Sequence[int], middle: int) -> dict[str, Any]:
    """The table as JSON, in the shape that scripts rely on; `middle` is the depth that recipes are compared at."""
    plain = [name for name in (*BASELINES, *PLACED) if name in scores]
    best = max(plain, key=lambda name: scores[name].recall[middle].mean())
    return {
        name: {
            "recall": {str(k): _round(one.recall[k].mean()) for k in ks},
            "all_gold": {str(k): _round(one.all_gold[k].mean()) for k in ks},
            "mrr": _round(one.mrr.mean()),
            "ndcg": {str(NDCG_DEPTH): _round(one.ndcg.mean())},
            "ci95": {f"recall@{k}": [_round(end) for end in interval(one.recall[k])] for k in ks},
            "ms": {"p50": _round(_quantile(one, 0.5)), "p95": _round(_quantile(one, 0.95))},
            "reads": {
                "mean": _round(float(np.mean([ranking.reads for ranking in one.rankings]))),
                "max": max(ranking.reads for ranking in one.rankings),
            },
            "tokens": {"mean": _round(float(np.mean([ranking.tokens for ranking in one.rankings])))},
            "reasons": dict(Counter(reason for ranking in one.rankings for reason in ranking.reasons)),
            **_path_recall(cases, one),
            **_prompt(one),
            **_convey(one),
            "groups": _groups(cases, one, middle),
            **({} if name in plain else {"against": _against(one, scores[best], best, middle)}),
        }
        for name, one in scores.items()
    }


def _against(ours: Scores, theirs: Scores, best: str, k: int) -> dict[str, Any]:
    found = compare(ours.recall[k], theirs.recall[k])
    return {
        "baseline": best,
        f"recall@{k}": _round(found.difference),
        "ci95": [_round(found.low), _round(found.high)],
        "p": round(found.p, 5),
    }


def _groups(cases: Sequence[Case], scores: Scores, k: int) -> dict[str, Any]:
    names = sorted({case.group for case in cases} - {""})
    found = {}
    for name in names:
        rows = np.array([case.group == name for case in cases])
        found[name] = {"questions": int(rows.sum()), f"recall@{k}": _round(scores.recall[k][rows].mean())}
    return found


def alpha_of(scores: Mapping[str, Scores]) -> dict[str, Any]:
    """The exponent of the context factor as these answers have it, beside the one assumed."""
    conveyed = {name: [one.conveyance for one in found.rankings] for name, found in scores.items()}
    return asdict(estimate_alpha({name: found.ndcg.tolist() for name, found in scores.items()}, conveyed))


def _prompt(scores: Scores) -> dict[str, Any]:
    """How good the prompt is: the share of questions whose answer stands in it."""
    known = [ranking.has_answer for ranking in scores.rankings if ranking.has_answer is not None]
    return {"prompt": {"has_answer": _round(float(np.mean(known))), "questions": len(known)}} if known else {}


def _path_recall(cases: Sequence[Case], scores: Scores) -> dict[str, Any]:
    """Share of gold documents on the returned paths or cited by them; nothing for rankers without paths."""
    pairs = [(ranking.on_paths, case.gold) for ranking, case in zip(scores.rankings, cases, strict=True)]
    shares = [len(found & set(gold)) / max(1, len(gold)) for found, gold in pairs if found is not None]
    return {"path_recall": _round(float(np.mean(shares)))} if shares else {}


def _convey(scores: Scores) -> dict[str, Any]:
    values = [ranking.conveyance.value for ranking in scores.rankings if ranking.conveyance is not None]
    return {"conveyance": {"mean": _round(float(np.mean(values)))}} if values else {}


def _quantile(scores: Scores, share: float) -> float:
    return float(np.quantile([ranking.ms for ranking in scores.rankings], share))


def _round(value: float) -> float:
    return round(float(value), 4)
