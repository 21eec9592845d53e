"""One ranking of what every channel found: weights that follow the corpus and the question, not a choice between parts.

Two judgements are made of every passage that was read: by the closer look, which sees how passages name each other, and
by the look at what was told, which sees neighbours, times and titles. A corpus with a stated order leans to the second.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hades.retrieval.channels.search_names import LEXICAL, VECTOR
from hades.retrieval.ranking.judge import Judge
from hades.retrieval.ranking.memory_features import FIRST, SECOND, Columns, Floats, weighed
from hades.retrieval.turn.types import FoundPassage, Question
from hades.retrieval.walks.evidence_search import Evidence

# What a candidate counts before it is read; chosen on the training questions of musique and hotpotqa.
PICK = {"walk": 0.3, "walk_rank": 4.0, "cosine": 3.0, "words": 1.0, "words_rank": 1.0, "years": 1.0}


def pick_candidates(columns: Columns, is_told: bool) -> Floats:
    """(n,) how promising each candidate is, told without reading it."""
    return weighed(columns, FIRST if is_told else PICK)


def rank_evidence(question: Question, evidence: Evidence, judge: Judge) -> list[FoundPassage]:
    """The passages that were read, best first, their scores falling from 1; then what nobody read."""
    if not evidence.nodes:
        return []
    worth = evidence_worth(question, evidence, judge)
    shown = 2.0 / (1.0 + np.exp(worth.max() - worth))
    tiers = _tiers(evidence)
    order = np.argsort(-worth, kind="stable").tolist()
    ranked = [FoundPassage(evidence.nodes[row], float(shown[row]), tiers[row]) for row in order]
    last = ranked[-1].score
    rest = [FoundPassage(node, last / (2.0 + place), {}) for place, node in enumerate(evidence.unread)]
    return ranked + rest


def evidence_worth(question: Question, evidence: Evidence, judge: Judge) -> Floats:
    """(n,) the worth of each passage; only differences mean something."""
    if evidence.is_told:
        return weighed(evidence.columns, SECOND)
    return judge.walked(question, evidence.nodes, evidence.pool, evidence.want)


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
