"""Recall, nDCG, intervals, plots, regression."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.evaluation.cases import Case
from benchmarks.evaluation.rankers import BASELINES, PLACED, Ranker, Ranking
from hades.evaluation.figures import mean_of, percentiles, rounded
from hades.ports.services import ProgressReport, silent
from hades.retrieval.core.conveyance import ALPHA
from models.ranker.infer import (
    SEED,
    auroc,
    difference,
    recall_at,
    reciprocal_rank,
)
from schemas.answer import Conveyance

# The exponent of the context factor, estimated from answers instead of assumed. C = (W * R * H / T)
# * Ctx ** alpha. Two recipes asked the same question differ in their factors; where H is the same
# for both, T cancels between what was conveyed and the formula, and alpha is the slope of the
# differences delta ln(quality / (W * R)) = alpha * delta ln(Ctx) with the quality of a ranking
# (nDCG) standing for what reached the reader (requirement C70).
_SAME = 1e-9


def _logs(quality: float, factors: Conveyance) -> tuple[float, float] | None:
    """ln(quality / (W * R)) and ln(Ctx); None where a factor is 0."""
    if min(quality, factors.what, factors.where, factors.context.value) <= 0.0:
        return None
    return math.log(quality / (factors.what * factors.where)), math.log(factors.context.value)


def estimate_alpha(
    quality: Mapping[str, Sequence[float]], conveyed: Mapping[str, Sequence[Conveyance | None]]
) -> dict[str, Any]:
    """Least squares through the origin over all pairs of recipes on the same question with the same
    H.

    `estimate` is None where no pair of answers differs in its context.
    """
    above = below = 0.0
    pairs = 0
    for first_name, second_name in combinations(sorted(conveyed), 2):
        answers = zip(
            quality[first_name],
            conveyed[first_name],
            quality[second_name],
            conveyed[second_name],
            strict=True,
        )
        for first, first_factors, second, second_factors in answers:
            if (
                first_factors is None
                or second_factors is None
                or abs(first_factors.who - second_factors.who) > _SAME
            ):
                continue
            first_logs, right = _logs(first, first_factors), _logs(second, second_factors)
            if first_logs is None or right is None:
                continue
            gain, context = first_logs[0] - right[0], first_logs[1] - right[1]
            above += gain * context
            below += context * context
            pairs += abs(context) > _SAME
    estimate = round(above / below, 4) if below > _SAME else None
    return {"estimate": estimate, "pairs": pairs, "assumed": ALPHA}


Values = NDArray[np.float64]
RESAMPLES = 10_000


def all_gold_at(ranked: Sequence[str], gold: frozenset[str], k: int) -> float:
    """1 when all of the gold is among the first k, else 0."""
    return float(gold.issubset(ranked[:k]))


def ndcg_at(ranked: Sequence[str], gold: frozenset[str], k: int) -> float:
    """Discounted gain of the first k over the best that could be had."""
    gain = sum(
        1.0 / np.log2(place + 1) for place, document in enumerate(ranked[:k], 1) if document in gold
    )
    best = sum(1.0 / np.log2(place + 1) for place in range(1, min(len(gold), k) + 1))
    return float(gain / best)


def interval(values: Values) -> tuple[float, float]:
    """Bootstrap interval of the mean over questions, at 95%."""
    from scipy import stats  # two seconds to load, and only who evaluates needs it

    if len(values) < 2:
        return float(values.sum()), float(values.sum())
    confidence_interval = stats.bootstrap(
        (values,),
        np.mean,
        n_resamples=RESAMPLES,
        batch=1000,
        method="percentile",
        rng=np.random.default_rng(SEED),
    ).confidence_interval
    return float(confidence_interval.low), float(confidence_interval.high)


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
    recall = {}
    all_gold = {}
    for k in ks:
        recall[k] = np.array([recall_at(documents, gold, k) for documents, gold in pairs])
        all_gold[k] = np.array([all_gold_at(documents, gold, k) for documents, gold in pairs])
    reciprocal_ranks = np.array([reciprocal_rank(documents, gold) for documents, gold in pairs])
    ndcg = np.array([ndcg_at(documents, gold, NDCG_DEPTH) for documents, gold in pairs])
    return Scores(tuple(rankings), recall, all_gold, reciprocal_ranks, ndcg)


def run(
    cases: Sequence[Case],
    rankers: Mapping[str, Ranker],
    ks: Sequence[int],
    progress: ProgressReport = silent,
) -> dict[str, Scores]:
    """Every ranker over every question; the first is asked once before, so that no one pays for
    warming up.
    """
    scores = {}
    for name, rank in rankers.items():
        rank(cases[0])
        rankings = []
        for number, case in enumerate(cases, 1):
            rankings.append(rank(case))
            progress(name, number, len(cases))
        scores[name] = score(cases, rankings, ks)
    return scores


def summarise(
    cases: Sequence[Case], scores: Mapping[str, Scores], ks: Sequence[int], middle: int
) -> dict[str, Any]:
    """The table as JSON, in the shape that scripts rely on; `middle` is the depth that recipes are
    compared at.
    """
    plain = [name for name in (*BASELINES, *PLACED) if name in scores]
    best = max(plain, key=lambda name: scores[name].recall[middle].mean())
    figures = {}
    for name, ranker_scores in scores.items():
        figures[name] = {
            **_figures(ranker_scores, ks),
            **_some_questions(cases, ranker_scores),
            "groups": _groups(cases, ranker_scores, middle),
        }
        if name not in plain:
            figures[name]["against"] = _against(ranker_scores, scores[best], best, middle)
    return figures


def _figures(scores: Scores, ks: Sequence[int]) -> dict[str, Any]:
    """The figures that every ranker has."""
    intervals = {}
    for k in ks:
        intervals[f"recall@{k}"] = [rounded(end) for end in interval(scores.recall[k])]
    rankings = scores.rankings
    reads = [ranking.reads for ranking in rankings]
    return {
        "recall": {str(k): rounded(scores.recall[k].mean()) for k in ks},
        "all_gold": {str(k): rounded(scores.all_gold[k].mean()) for k in ks},
        "mrr": rounded(scores.mrr.mean()),
        "ndcg": {str(NDCG_DEPTH): rounded(scores.ndcg.mean())},
        "ci95": intervals,
        "ms": percentiles([ranking.ms for ranking in rankings]),
        "reads": {"mean": mean_of(reads), "max": max(reads)},
        "tokens": {"mean": mean_of([ranking.tokens for ranking in rankings])},
        "reasons": dict(Counter(chain.from_iterable(ranking.reasons for ranking in rankings))),
    }


def _against(ours: Scores, baseline: Scores, best: str, k: int) -> dict[str, Any]:
    gain = difference(ours.recall[k], baseline.recall[k])
    return {
        "baseline": best,
        f"recall@{k}": rounded(gain.mean),
        "ci95": [rounded(gain.low), rounded(gain.high)],
        "p": round(gain.p, 5),
    }


def _groups(cases: Sequence[Case], scores: Scores, k: int) -> dict[str, Any]:
    groups = {}
    for name in sorted({case.group for case in cases} - {""}):
        rows = np.array([case.group == name for case in cases])
        groups[name] = {
            "questions": int(rows.sum()),
            f"recall@{k}": rounded(scores.recall[k][rows].mean()),
        }
    return groups


def alpha_of(scores: Mapping[str, Scores]) -> dict[str, Any]:
    """The exponent of the context factor as these answers have it, beside the one assumed."""
    quality = {}
    conveyed = {}
    for name, ranker_scores in scores.items():
        quality[name] = ranker_scores.ndcg.tolist()
        conveyed[name] = [ranking.conveyance for ranking in ranker_scores.rankings]
    return estimate_alpha(quality, conveyed)


def _some_questions(cases: Sequence[Case], scores: Scores) -> dict[str, Any]:
    """Figures that not every ranker or question has.

    The share of gold documents on the returned paths or cited by them, the share of questions whose
    answer stands in the prompt, and the conveyance.
    """
    pairs = [
        (ranking.on_paths, case.gold) for ranking, case in zip(scores.rankings, cases, strict=True)
    ]
    shares = [
        len(documents & set(gold)) / max(1, len(gold))
        for documents, gold in pairs
        if documents is not None
    ]
    has_answer = [
        ranking.has_answer for ranking in scores.rankings if ranking.has_answer is not None
    ]
    values = [
        ranking.conveyance.value for ranking in scores.rankings if ranking.conveyance is not None
    ]
    return {
        **({"path_recall": mean_of(shares)} if shares else {}),
        **(
            {"prompt": {"has_answer": mean_of(has_answer), "questions": len(has_answer)}}
            if has_answer
            else {}
        ),
        **({"conveyance": {"mean": mean_of(values)}} if values else {}),
    }


ANSWERS_FROM = 0.5  # confidence below which the default recipe abstains


def ask_unanswerable(
    questions: Sequence[str], rankers: Mapping[str, Ranker]
) -> dict[str, list[float]]:
    """The confidence of each ranker in questions that the corpus cannot answer; rankers without one
    are left out.
    """
    confidences: dict[str, list[float]] = {}
    for name, rank in rankers.items():
        answers = [
            rank(Case(str(place), text, frozenset())) for place, text in enumerate(questions)
        ]
        known = [answer.confidence for answer in answers if answer.confidence is not None]
        if len(known) == len(questions) and known:
            confidences[name] = known
    return confidences


def summarise_abstention(
    cases: Sequence[Case], scores: Mapping[str, Scores], unanswerable: Mapping[str, Sequence[float]]
) -> dict[str, Any]:
    """By ranker: AUROC of the confidence, share of wrong abstentions and of right ones, calibration
    error.
    """
    figures = {}
    for name, ranker_scores in scores.items():
        known = [ranking.confidence for ranking in ranker_scores.rankings]
        if any(value is None for value in known) or not known:
            continue
        confidence = np.array(known, np.float64)
        answerable = np.array([case.is_answerable for case in cases])
        doubtful = np.concatenate(
            [confidence[~answerable], np.array(unanswerable.get(name, ()), np.float64)]
        )
        good = confidence[answerable]
        supported = ranker_scores.recall[max(ranker_scores.recall)][answerable] > 0.0
        figures[name] = {
            "answerable": len(good),
            "unanswerable": len(doubtful),
            "wrong_abstention": _share(good < ANSWERS_FROM),
            "ece": round(expected_calibration_error(good, supported.astype(np.float64)), 4),
        }
        if len(doubtful):
            figures[name] |= {
                "auroc": round(auroc(good, doubtful), 4),
                "abstained": _share(doubtful < ANSWERS_FROM),
            }
    return figures


def _share(flags: NDArray[np.bool_]) -> float:
    return round(float(flags.mean()), 4) if len(flags) else 0.0


def expected_calibration_error(chance: Values, right: Values) -> float:
    """Mean distance between the predicted and the true share, over bins of equal width, by how many
    lie in each.
    """
    bins = 10
    place = np.minimum((chance * bins).astype(np.int64), bins - 1)
    counts = np.bincount(place, minlength=bins)
    predicted = np.bincount(place, chance, bins)
    came = np.bincount(place, right, bins)
    return float(np.abs(predicted - came).sum() / max(1, counts.sum()))
