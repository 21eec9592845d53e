"""Whether the fitted ranking of the default recipe may serve in a home: it must not lose against weights by hand."""

from __future__ import annotations

from collections.abc import Mapping

from hades.evaluation.harness import Scores
from hades.retrieval.ranking.served_fusion import RankingChoice
from hades.stages.ranker.ranker_gate import DEPTH, Quality, decide
from models.fusion.infer import FusionModel

FITTED, BY_HAND = "auto", "auto/by-hand"


def choose_ranking(scores: Mapping[str, Scores], model: FusionModel | None, questions: str) -> RankingChoice | None:
    """What serves, by the figures of both; None where one of them was not measured.

    The gate of the night decides: weights by hand replace the fitted ranking where they are better beyond chance.
    """
    if model is None or FITTED not in scores or BY_HAND not in scores or DEPTH not in scores[FITTED].recall:
        return None
    by_hand, fitted = (Quality(scores[name].mrr, scores[name].recall[DEPTH]) for name in (BY_HAND, FITTED))
    n_questions = len(by_hand.mrr)
    verdict = decide(by_hand, {"the fitted ranking": fitted}, ["questions"] * n_questions)
    serves = "weights by hand serve" if verdict.is_better else "the fitted ranking serves"
    return RankingChoice(
        not verdict.is_better,
        f"{serves}; weights by hand are {verdict.reason}",
        model.digest,
        questions,
        n_questions,
    )
