"""The ranking of recipe auto; nexus."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hades.retrieval.core.types import LEXICAL, VECTOR, FoundPassage, Question, rank_by_worth
from hades.retrieval.core.words import Floats, fitted_file, fusion_model
from hades.retrieval.features.passages import (
    Columns,
    match_tokens,
    pairwise_features,
    passage_features,
    reciprocal,
    score_multihop,
    share_of_best,
    speech,
    weigh,
)
from hades.retrieval.features.sentences import (
    LeadingMatrices,
    combine_bridges,
    find_bridges,
    find_sentence_bridges,
    hold_shares,
    share_linked,
)
from hades.retrieval.ranking.judge import Judge
from hades.retrieval.search.default_search import Evidence
from hades.text.languages import ENGLISH, detect_language
from models.rankings import FusionModel

# What the one ranking sees of a passage: every channel's figures, scaled so that corpora and
# embedders compare. The first columns describe each passage alone, the second ones the passages
# beside each other, given an earlier worth.


def first_columns(evidence: Evidence) -> tuple[Columns, Connections]:
    """Columns of each passage alone, by name; and how the passages lead to each other."""
    pool = evidence.pool
    alone, linked = passage_features(pool, evidence.want)
    cosine = (pool.vectors @ pool.question_vector).astype(np.float64)
    channel_columns = {f"told_{name}": column for name, column in evidence.columns.items()}
    if evidence.clauses.shape[1]:
        clause = standard(evidence.clauses.max(axis=1))
        clause_rank = np.max([reciprocal(cosines) for cosines in evidence.clauses.T], axis=0)
    else:
        clause = clause_rank = np.zeros(len(cosine))
    pool_columns = {
        "cosine_z": standard(cosine),
        "cosine_rank": reciprocal(cosine),
        "remaining_z": standard(alone["remaining_cosine"]),
        "lexical_rank": reciprocal(pool.lexical),
        "clause": clause,
        "clause_rank": clause_rank,
        **speech(evidence.passages),
    }
    remaining = compare_remaining(pool.vectors, pool.question_vector)
    holds = hold_shares(pool.readings, evidence.want)
    bridges = find_bridges(pool.readings, evidence.want, holds)
    name_bridges = find_sentence_bridges(pool.readings, evidence.want)
    leading = combine_bridges(bridges, name_bridges, remaining)
    return {**alone, **channel_columns, **pool_columns}, Connections(linked, holds, leading)


@dataclass(frozen=True)
class Connections:
    """How the passages lead to each other: (n, n) links by title, and by names.

    `holds` (n, words): what of the question each passage holds.
    """

    linked: Floats
    holds: Floats
    leading: LeadingMatrices


def second_columns(worth: Floats, connections: Connections) -> Columns:
    """Columns of the passages beside each other, given the worth that an earlier look gave."""
    pair_columns = pairwise_features(worth, connections.linked, connections.holds)
    pair_columns |= connections.leading.columns(share_of_best(worth))
    return {f"beside_{name}": column for name, column in pair_columns.items()}


def compare_remaining(vectors: NDArray[np.float32], question_vector: NDArray[np.float32]) -> Floats:
    """(n, n): at [k, i] the cosine of i with the question's vector without the part that lies along
    k; at least 0.
    """
    cosine = vectors @ question_vector
    remaining_vectors = question_vector[None, :] - cosine[:, None] * vectors
    length = np.maximum(np.linalg.norm(remaining_vectors, axis=1, keepdims=True), 1e-9)
    remaining: Floats = np.maximum((remaining_vectors / length) @ vectors.T, 0.0).astype(np.float64)
    return remaining


def standard(values: Floats) -> Floats:
    """Values minus their mean, over their spread; all 0 where they do not differ."""
    spread = float(values.std()) if len(values) else 0.0
    return (values - values.mean()) / spread if spread > 1e-9 else np.zeros(len(values))


# One ranking of what every channel found: weights that follow the corpus and the question, not a
# choice between parts. The fitted ranking (`models/fitted/fusion.json`) judges each passage by the
# figures of every channel, alone and beside others. A question without a vector is ranked by the
# multi-hop weights, or by the memory weights where the corpus states an order.

# Written by hand, not fitted: what a candidate counts before it is read.
WEIGHTS_BY_HAND = {
    "walk": 0.3,
    "walk_rank": 4.0,
    "cosine": 3.0,
    "words": 1.0,
    "words_rank": 1.0,
    "years": 1.0,
}

# What a passage is worth where no names lead to it: each column in units of its spread in the
# question's pool or in [0, 1], so that it means the same in every corpus. Chosen on a mixture of
# kinds (`benchmarks/fit_kinds.py`: manuals, scientific abstracts, encyclopaedic pages, dated
# articles, conversations; docs/evaluation.md has each kind left out).
# `tokens` is late interaction, `fused` the ranking that was fitted on multi-hop questions.
PLAIN_WEIGHTS = {
    "words": 0.6,
    "cosine": 0.4,
    "tokens": 0.9,
    "short": 0.5,
    "time_overlaps": 0.4,
    "time_ends": 0.65,
    "fused": 0.2,
}
RELEASE = -2.5  # notes on releases tell what changed, not how it is
REPEATED = -1.0  # among sections of a manual, a passage of one that stands higher already
OPENING_PLACE = 5  # passages that stand before what opens the section of the best one
LEADING_WORTH, LEADING_TOKENS = 0.9, 0.1  # of the fused ranking and of tokens where names lead
ENOUGH_LINKED = 0.2  # share of passages linked by titles from which on names lead
ENOUGH_WORDS = 40  # from which on a passage is not too short to tell anything
# A passage whose words fit this many times as well as those of any other is quoted by the question;
# what that is worth.
QUOTED, QUOTED_WORTH = 1.8, 8.0
# To a model of English texts in another language are names at best: there words count this much
# more.
ENGLISH_MODEL, FOREIGN_WORDS = "all-MiniLM", 4.0
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


def pick_candidates(columns: Columns, is_told: bool, names_something: bool) -> Floats:
    """(n,) how promising each candidate is, without reading it."""
    if is_told:
        return weigh(columns, fitted_file("memory")["first"])
    if names_something:
        return weigh(columns, WEIGHTS_BY_HAND)
    return standard(columns["words"]) + standard(columns["cosine"])


def rank_evidence(
    question: Question, evidence: Evidence, judge: Judge, limit: int
) -> list[FoundPassage]:
    """At most `limit`: the passages that were read, best first, their scores falling from 1; then
    what nobody read.
    """
    if not evidence.nodes:
        return []
    worth = evidence_worth(question, evidence)
    if evidence.pool.question_vector.any():
        worth = judge.adjust(evidence.nodes, worth, lambda: line_columns(evidence, judge))
    channels = _channel_scores(evidence)
    ranked = rank_by_worth(evidence.nodes, worth, lambda row: _positive_scores(channels, row))
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
    has_vector = evidence.pool.question_vector.any()
    if evidence.is_told and not has_vector:
        return weigh(evidence.columns, fitted_file("memory")["second"])
    columns, connections = first_columns(evidence)
    if has_vector:
        fused = fuse_worth(fusion_model(), evidence, columns, connections)
    elif evidence.entities:
        fused = score_multihop(evidence.pool, evidence.want)
    else:  # nothing but words found them
        fused = np.zeros(len(evidence.nodes))
    worth = fused if evidence.is_told else _weigh_kinds(question, evidence, columns, fused)
    if question.model.startswith(ENGLISH_MODEL) and detect_language(question.text) != ENGLISH:
        return worth + FOREIGN_WORDS * standard(evidence.pool.lexical)
    return worth


def fuse_worth(
    model: FusionModel, evidence: Evidence, columns: Columns, connections: Connections
) -> Floats:
    """(n,) the worth of each passage by the fitted ranking."""
    told_share = float(evidence.is_told)
    worth = model.look.score(columns, told_share)
    for line in (model.rank, model.last):
        if evidence.pool.is_late():
            break
        worth = line.score({**columns, **second_columns(worth, connections)}, told_share)
    return worth


def _weigh_kinds(question: Question, evidence: Evidence, columns: Columns, fused: Floats) -> Floats:
    """The fused ranking as far as names lead, and what means the same in every corpus as far as
    they do not.
    """
    leads = names_lead(evidence)
    kind_columns = plain_columns(question, evidence, columns, fused)
    release = kind_columns["release"]
    plain = weigh(kind_columns, PLAIN_WEIGHTS)
    lexical = evidence.pool.lexical
    quoted = int(np.argmax(lexical))
    is_quoted = len(lexical) > 1 and lexical[quoted] > QUOTED * np.sort(lexical)[-2]
    if is_quoted and not release[quoted]:
        plain[quoted] += QUOTED_WORTH
    leading = LEADING_WORTH * fused + LEADING_TOKENS * kind_columns["tokens"]
    worth = leads * leading + (1.0 - leads) * plain
    worth += RELEASE * release
    share_of_sections = evidence.share_of_sections
    if share_of_sections:
        _lower_repeated(evidence, worth, share_of_sections * REPEATED)
        _lift_opening(evidence, worth)
    return worth


def _lower_repeated(evidence: Evidence, worth: Floats, change: float) -> None:
    """Of each section only the best passage keeps its worth."""
    sections: set[tuple[str, tuple[str, ...]]] = set()
    for row in np.argsort(-worth, kind="stable").tolist():
        passage = evidence.passages[row]
        section = (passage.document, passage.headings)
        if passage.headings and section in sections:
            worth[row] += change
        sections.add(section)


def _lift_opening(evidence: Evidence, worth: Floats) -> None:
    """What opens the section of the best passage stands at `OPENING_PLACE` at the latest: an answer
    needs both.
    """
    passages = evidence.passages
    order = np.argsort(-worth, kind="stable").tolist()
    best = passages[order[0]]
    section = [
        row
        for row in order
        if (passages[row].document, passages[row].headings) == (best.document, best.headings)
    ]
    opening = min(section, key=lambda row: passages[row].span)
    if best.headings and order.index(opening) > OPENING_PLACE:
        worth[opening] = np.nextafter(worth[order[OPENING_PLACE - 1]], -np.inf)


def plain_columns(
    question: Question, evidence: Evidence, columns: Columns, fused: Floats
) -> Columns:
    """The columns of `PLAIN_WEIGHTS`, and whether a passage tells of a release that was not asked
    for.
    """
    lexical, cosine = standard(evidence.pool.lexical), columns["cosine_z"]
    if not evidence.pool.question_vector.any():
        cosine = standard(columns["told_closely"])  # words by how rare the candidates have them
    tokens = standard(match_tokens(question.tokens, evidence.passages))
    if not tokens.any():  # no states of tokens
        tokens = (lexical + cosine) / 2.0
    length_share = np.expm1(columns["told_length"]) / ENOUGH_WORDS
    release = np.zeros(len(evidence.passages))
    if _ASKS_RELEASE.search(question.text) is None:
        release = np.array(
            [float(tells_release(passage.headings)) for passage in evidence.passages]
        )
    return {
        "words": lexical,
        "cosine": cosine,
        "tokens": tokens,
        "short": np.log(np.clip(length_share, 1.0 / ENOUGH_WORDS, 1.0)),
        "time_overlaps": columns["told_overlaps"],
        "time_ends": columns["told_begins"] + columns["told_ends"],
        "fused": standard(fused),
        "release": release,
    }


def names_lead(evidence: Evidence) -> float:
    """How far names lead to passages, in [0, 1]: titles link enough of them, or the question spells
    one's own title.
    """
    share = 1.0
    if not evidence.names_a_passage:
        share = min(1.0, share_linked(evidence.pool.readings) / ENOUGH_LINKED)
    return (1.0 - evidence.share_of_sections) * share


def tells_release(headings: Sequence[str]) -> bool:
    """Whether a passage stands below the heading of a release."""
    return any(_RELEASE.match(heading) for heading in headings)


def _channel_scores(evidence: Evidence) -> Columns:
    """(n,) what each channel gave to each passage, by its name in an answer."""
    pool, columns = evidence.pool, evidence.columns
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
