"""The ranking of recipe auto."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from hades.retrieval.core.types import LEXICAL, VECTOR, FoundPassage, Question, rank_by_worth
from hades.retrieval.core.words import Floats, fitted_file
from hades.retrieval.features.leading import pool_columns, rank_looks, standard
from hades.retrieval.features.passages import (
    Columns,
    match_tokens,
    reciprocal,
    speech,
    weigh,
)
from hades.retrieval.features.sentences import share_linked
from hades.retrieval.ranking.judge import Judge
from hades.retrieval.search.default_search import MOSTLY, Evidence
from hades.text.languages import ENGLISH, detect_language

# One ranking of what every channel found (`models/fitted/ranking.json`, fitted by
# `benchmarks/fit_ranking.py`): a linear sum over the features of `features/table.py`, whose
# coefficients follow the corpus and the question. Only a telling that is asked without a vector is
# ranked by the weights of recipe `memory`.

# Written by hand, not fitted: what a candidate counts before it is read.
WEIGHTS_BY_HAND = {
    "walk": 0.3,
    "walk_rank": 4.0,
    "cosine": 3.0,
    "words": 1.0,
    "words_rank": 1.0,
    "years": 1.0,
}
ENOUGH_LINKED = 0.2  # share of passages linked by titles from which on names lead
ENOUGH_WORDS = 40  # from which on a passage is not too short to tell anything
ENGLISH_MODEL = "all-MiniLM"  # to it texts in another language are names at best
_RELEASE = re.compile(
    r"\W*(?:version |release |v)?\d+\.\d[\w.]*\b|\W*unreleased\b"
    r"|[\w .-]{0,40}?\d+\.\d[\w.]*\W{1,3}\d{4}-\d\d|\W*(?:change ?log|release notes|release "
    r"history)\W*$",
    re.I,
)
_ASKS_RELEASE = re.compile(
    r"\b(?:releases?d?|versions?|change ?log|changed|upgrad\w+|since|deprecat\w+|\d+\.\d[\w.]*)\b",
    re.I,
)


def pick_candidates(
    columns: Columns,
    states_order: bool,
    names_something: bool,
) -> Floats:
    """(n,) how promising each candidate is, without reading it."""
    if states_order:
        return weigh(columns, fitted_file("memory")["first"])
    if names_something:
        return weigh(columns, WEIGHTS_BY_HAND)

    return standard(columns["words"]) + standard(columns["cosine"])


def rank_evidence(
    question: Question,
    evidence: Evidence,
    judge: Judge,
    limit: int,
) -> list[FoundPassage]:
    """At most `limit`: the passages that were read, best first, their scores falling from 1; then
    what nobody read.
    """
    if not evidence.nodes:
        return []

    worth = evidence_worth(question, evidence)
    if evidence.pool.question_vector.any():
        worth = judge.adjust(
            evidence.nodes,
            worth,
            lambda: line_columns(evidence, judge),
        )

    channels = _channel_scores(evidence)
    ranked = rank_by_worth(
        evidence.nodes,
        worth,
        lambda row: _positive_scores(channels, row),
    )
    lowest = ranked[-1].score
    unread = [
        FoundPassage(node, lowest / (2.0 + place), {}) for place, node in enumerate(evidence.unread)
    ]
    return (ranked + unread)[:limit]


def line_columns(evidence: Evidence, judge: Judge) -> Columns:
    """The columns `models.ranker.infer.COLUMNS`, each in units of its spread: what a home's own
    ranker weighs anew.
    """
    pool = evidence.pool
    cosine = (pool.vectors @ pool.question_vector).astype(np.float64)
    best_walk = np.maximum(pool.walk, pool.second_walk)
    lengths = np.asarray(evidence.columns["length"], np.float64)
    return {
        "words": standard(pool.lexical),
        "cosine": standard(cosine),
        "walk": standard(reciprocal(best_walk)),
        "length": standard(lengths),
        "state": standard(judge.likeness(evidence.nodes)),
    }


def evidence_worth(question: Question, evidence: Evidence) -> Floats:
    """(n,) the worth of each passage; only differences mean something."""
    if evidence.states_order and not evidence.pool.question_vector.any():
        return weigh(evidence.columns, fitted_file("memory")["second"])

    columns = ranking_columns(question, evidence)
    return rank_looks(
        context_shares(question, evidence),
        columns,
        evidence.pool,
        evidence.want,
    )


def ranking_columns(question: Question, evidence: Evidence) -> Columns:
    """The features of each passage that its context weighs, but for those that follow names."""
    columns = plain_columns(question, evidence)
    if evidence.states_order:
        columns |= {f"told_{name}": column for name, column in evidence.columns.items()}
        columns |= speech(evidence.passages)

    return columns


def context_shares(question: Question, evidence: Evidence) -> dict[str, float]:
    """How far the question and what was read are of each context of the ranking; they add up to
    one.
    """
    if question.model.startswith(ENGLISH_MODEL) and detect_language(question.text) != ENGLISH:
        return {"foreign": 1.0}
    if evidence.states_order:
        return {"told": 1.0}

    leads = names_lead(evidence)
    return {"plain": 1.0 - leads, "leads": leads}


def plain_columns(question: Question, evidence: Evidence) -> Columns:
    """The columns that need no look at sentences: how well words, vectors and tokens fit, and what
    speaks against a passage.
    """
    columns = pool_columns(evidence.pool)
    closely = standard(evidence.columns["closely"])

    if not evidence.pool.question_vector.any():
        columns["cosine"] = closely
        columns["tokens"] = (columns["words"] + closely) / 2.0

    tokens = match_tokens(question.tokens, evidence.passages)
    if tokens.any():
        columns["tokens"] = standard(tokens)

    length_share = np.expm1(evidence.columns["length"]) / ENOUGH_WORDS
    release = np.zeros(len(evidence.passages))
    if _ASKS_RELEASE.search(question.text) is None:
        release = np.array(
            [float(tells_release(passage.headings)) for passage in evidence.passages]
        )

    return columns | {
        "cosine_rank": reciprocal(columns["cosine"]),
        "closely": closely,
        "short": np.log(np.clip(length_share, 1.0 / ENOUGH_WORDS, 1.0)),
        "release": release,
    }


def names_lead(evidence: Evidence) -> float:
    """How far names lead to passages, in [0, 1]: titles link enough of them, or the question spells
    one's own title. Among sections they lead nowhere.
    """
    if evidence.share_of_sections > MOSTLY:
        return 0.0
    if evidence.names_a_passage:
        return 1.0

    return min(1.0, share_linked(evidence.pool.readings) / ENOUGH_LINKED)


def tells_release(headings: Sequence[str]) -> bool:
    """Whether a passage stands below the heading of a release."""
    return any(_RELEASE.match(heading) for heading in headings)


def _channel_scores(evidence: Evidence) -> Columns:
    """(n,) what each channel gave to each passage, by its name in an answer."""
    pool = evidence.pool
    columns = evidence.columns
    cosine = pool.vectors @ pool.question_vector
    return {
        "ppr": np.maximum(pool.walk, pool.second_walk),
        VECTOR: cosine.astype(np.float64),
        LEXICAL: pool.lexical,
        "time": columns["time"],
        "beside": np.maximum(columns["before"], columns["after"]),
    }


def _positive_scores(channels: Columns, row: int) -> dict[str, float]:
    """The scores of a passage; a channel that did not find it is left out."""
    return {name: float(scores[row]) for name, scores in channels.items() if scores[row] > 0.0}
