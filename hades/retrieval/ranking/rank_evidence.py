"""One ranking of what every channel found: weights that follow the corpus and the question, not a choice between parts.

The fitted ranking (`models/fusion`) judges each passage by the figures of every channel, alone and beside others. In
its absence weights by hand serve: the closer look, or the look at what was told where the corpus states an order.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hades.retrieval.channels.search_names import LEXICAL, VECTOR
from hades.retrieval.ranking.evidence_features import first_columns, second_columns
from hades.retrieval.ranking.fitted_files import linear_looks
from hades.retrieval.ranking.judge import Judge
from hades.retrieval.ranking.memory_features import Columns, Floats, weigh
from hades.retrieval.turn.types import FoundPassage, Question
from hades.retrieval.walks.evidence_search import Evidence
from models.fusion.infer import FusionModel

# Written by hand, not fitted: what a candidate counts before it is read.
WEIGHTS_BY_HAND = {
    "walk": 0.3,
    "walk_rank": 4.0,
    "cosine": 3.0,
    "words": 1.0,
    "words_rank": 1.0,
    "years": 1.0,
}


def pick_candidates(columns: Columns, is_told: bool) -> Floats:
    """(n,) how promising each candidate is, told without reading it."""
    return weigh(columns, linear_looks("memory").first if is_told else WEIGHTS_BY_HAND)


def rank_evidence(
    question: Question, evidence: Evidence, judge: Judge, limit: int, model: FusionModel | None
) -> list[FoundPassage]:
    """At most `limit`: the passages that were read, best first, their scores falling from 1; then what nobody read."""
    if not evidence.nodes:
        return []
    worth = evidence_worth(question, evidence, judge, model)
    shown = 2.0 / (1.0 + np.exp(worth.max() - worth))
    tiers = _tiers(evidence)
    order = np.argsort(-worth, kind="stable").tolist()
    ranked = [FoundPassage(evidence.nodes[row], float(shown[row]), tiers[row]) for row in order]
    last, unread = ranked[-1].score, evidence.unread[: max(0, limit - len(ranked))]
    rest = [FoundPassage(node, last / (2.0 + place), {}) for place, node in enumerate(unread)]
    return (ranked + rest)[:limit]


def evidence_worth(question: Question, evidence: Evidence, judge: Judge, model: FusionModel | None) -> Floats:
    """(n,) the worth of each passage; only differences mean something. Without a model weights by hand serve."""
    if model is not None and evidence.pool.asked.any():
        return fuse_worth(model, evidence)
    if evidence.is_told:
        return weigh(evidence.columns, linear_looks("memory").second)
    return judge.walked(question, evidence.nodes, evidence.pool, evidence.want)


def fuse_worth(model: FusionModel, evidence: Evidence) -> Floats:
    """(n,) the worth of each passage by the fitted ranking."""
    told = float(evidence.is_told)
    columns, connections = first_columns(evidence)
    worth = model.look.score(columns, told)
    for line in (model.rank, model.last):
        worth = line.score({**columns, **second_columns(evidence, worth, connections)}, told)
    return worth


def _tiers(evidence: Evidence) -> list[dict[str, float]]:
    """What each channel gave to each passage; a channel that did not find it is left out."""
    pool, columns = evidence.pool, evidence.columns
    cosine = pool.vectors @ pool.asked
    found: Sequence[tuple[str, Floats]] = (
        ("ppr", np.maximum(pool.walk, pool.second_walk)),
        (VECTOR, cosine.astype(np.float64)),
        (LEXICAL, pool.lexical),
        ("time", columns["time"]),
        ("beside", np.maximum(columns["before"], columns["after"])),
    )
    return [
        {name: float(column[row]) for name, column in found if column[row] > 0.0} for row in range(len(evidence.nodes))
    ]
