"""What an edge is worth: parts in [0, 1], squashed into weight and cost; what judged choices
move.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from models.arrays import Flags, Floats, Longs, Singles, blocks_of

# The parts of a weight, each an array in [0, 1]: how alike the ends are, how well it is supported,
# how recent it is. Arrays are float32, which is as exact as any of these can be known. Every part
# is rounded to six decimals before it is used, so that what is stored is what the weight was made
# of.
Codes = NDArray[np.uint8]
PART_DECIMALS = 6
NEUTRAL = 0.5  # where nothing at all is known
NEUTRAL_STEP = 0.05
_GATHERED = 8_192  # pairs of vectors held at a time


def similarity(
    vectors: Singles,
    source: Longs,
    target: Longs,
) -> Singles:
    """Cosine of the vectors of both ends, at least 0; NaN where an end has none.

    `vectors` is (n_nodes, dim) of any length; `source` and `target` are its rows, -1 for a node
    without vector. Opposite is not less related than unrelated, so negative cosines count 0.
    """
    if len(vectors):
        norms = np.sqrt(
            np.einsum(
                "ij,ij->i",
                vectors,
                vectors,
                dtype=np.float64,
            )
        )
    else:
        norms = np.zeros(0)

    cosine = np.full(len(source), np.nan)
    known = np.flatnonzero((source >= 0) & (target >= 0))
    known = known[(norms[source[known]] > 0) & (norms[target[known]] > 0)]

    for block in blocks_of(len(known), _GATHERED):
        rows = known[block]
        tail = source[rows]
        head = target[rows]
        product = np.einsum(
            "ij,ij->i",
            vectors[tail],
            vectors[head],
            dtype=np.float64,
        )
        cosine[rows] = product / (norms[tail] * norms[head])

    return rounded(np.clip(cosine, 0.0, 1.0))


def support(count: Longs, strength: Singles, full: int) -> Singles:
    """How well an edge is supported: log2(1 + count) / log2(1 + full), at most 1, times its
    strength where it has one.

    The logarithm: the second place that states a fact says much, the twentieth little. The strength
    of an association (how much more often two names meet than chance would have it) discounts what
    mere frequency explains.
    """
    evidence = rounded(np.log2(1.0 + np.clip(count, 0, full)) / np.log2(1.0 + full))
    rated = np.flatnonzero(~np.isnan(strength))
    evidence[rated] = rounded(evidence[rated].astype(np.float64) * strength[rated])
    return evidence


def freshness(
    age_days: Longs,
    types: Codes,
    tau_days: Floats,
) -> Singles:
    """exp(-age / tau) with the time constant of each edge's type; an event after `as_of` is
    fresh.
    """
    return rounded(np.exp(-np.maximum(age_days, 0) / tau_days[types]))


def neutral_of(values: Singles) -> float:
    """What an unknown value counts: the median of the known ones on a grid, so that not knowing
    moves an edge neither way and a few new edges do not change what it counts.
    """
    known = values[~np.isnan(values)]
    if len(known):
        return round(
            round(float(np.median(known)) / NEUTRAL_STEP) * NEUTRAL_STEP,
            PART_DECIMALS,
        )

    return NEUTRAL


def fill(values: Singles, neutral: float) -> Singles:
    """The values with unknown ones replaced."""
    return np.where(
        np.isnan(values),
        np.float32(neutral),
        values,
    )


def rounded(values: Floats) -> Singles:
    """Values as parts are kept: the float32 nearest to six decimals."""
    parts: Singles = np.round(values, PART_DECIMALS).astype(np.float32)
    return parts


# weight = sigma(bias + a sim + b type_prior + g evidence + d freshness), and cost = -ln(weight
# boost). All rows at once, in float32; coefficients may differ by type. The same parts give the
# same bits, wherever in the arrays they stand, and the formula in double precision differs from
# them by less than a millionth.
PARTS = ("sim", "type_prior", "evidence", "freshness")
_LOWEST = np.float32(80.0)  # exp of more overflows, and 1e-35 is as good as no weight


def logits(
    parts: Mapping[str, Singles],
    types: Codes,
    coefficients: Mapping[str, Singles],
) -> Singles:
    """The weighted sum of the `PARTS`, (n,) each, without the bias; what each counts is
    (n_types,).
    """
    total: Singles = np.zeros(len(types), dtype=np.float32)
    for name in PARTS:
        total += coefficients[name][types] * parts[name]

    return total


def squash(sums: Singles, bias: float) -> Singles:
    """The logistic function of the sums, in (0, 1]."""
    weights: Singles = 1.0 / (1.0 + np.exp(np.minimum(np.float32(-bias) - sums, _LOWEST)))
    return weights


def costs(
    weights: Singles,
    types: Codes,
    boosts: Singles,
    eps: float,
) -> Singles:
    """-ln(max(weight boost, eps)), never below 0 for boosts up to 1: the length that path searches
    add up.
    """
    lengths: Singles = np.float32(0.0) - np.log(
        np.maximum(weights * boosts[types], np.float32(eps))
    )  # no minus 0
    return lengths


# The bias that puts the median weight where it should be. Components are never negative, so without
# a bias no weight would fall below .5 and all would crowd above it.
# a grid, so that a few new edges do not shift every weight; it moves the median by .006 at most
BIAS_STEP = 0.05


def bias_for(sums: Singles, median: float = 0.5) -> float:
    """The bias on the grid with which about half of the edges weigh more than `median`; 0 without
    edges.
    """
    if not len(sums):
        return 0.0

    median_logit = float(np.log(median / (1.0 - median)))
    steps = round((median_logit - float(np.median(sums))) / BIAS_STEP)
    return round(steps * BIAS_STEP, 6) + 0.0  # + 0.0: no minus zero in reports


TITLE_COUNTS = (
    3.0  # mentions that one in the title stands for: it says what the whole passage is about
)
HALF = 1.0  # mentions that weigh one half of what endless ones would
# of a name's weight, for a plain repeated term: it is in many passages and tells less about each
TERM_SHARE = 0.2


def weigh_mentions(
    count: Longs,
    in_title: Flags,
    is_term: Flags,
) -> Singles:
    """How much it means that a passage names an entity: (n,) float32 in [0, 1], which is
    mentions / (mentions + half), for terms a share of it.

    `count` includes the title's mention, where there is one. One mention of a name weighs .5, three
    .75, an endless repetition 1: saturating, like the term frequency of BM25.
    """
    mentions = count + np.where(in_title, TITLE_COUNTS - 1.0, 0.0)
    weight: Singles = (mentions / (mentions + HALF) * np.where(is_term, TERM_SHARE, 1.0)).astype(
        np.float32
    )
    return weight


# Learning from choices: what was preferred to what else was shown moves the edges of both, a little
# and not far. A result (a path, a passage) is scored by the mean logit of its edges. For a pair of
# results the chance that the first is preferred is modelled as sigma(score - score), as Bradley and
# Terry (1952) do; the surprise of what was really preferred, 1 - that chance, lifts the edges that
# only the preferred result has and lowers those that only the other has. Edges of both stay. A turn
# is one update: it moves an edge by rate * pull / sqrt(CALM + squares of its pulls so far), which
# is less than `rate` and falls as the edge is judged more often (AdaGrad: Duchi, Hazan and Singer,
# 2011), within [-radius, radius], the trust region around the prior. The offset of an edge is the
# mean of where it stood after each update, later ones counting more (Shamir and Zhang, 2013):
# single judgements do not shake it. An edge gains only through a result that somebody preferred, so
# being shown, however often, lifts nothing.


@dataclass(frozen=True)
class Results:
    """What was shown, by its edges: those of result i are `edges[starts[i]:starts[i + 1]]`, each
    once.
    """

    starts: Longs
    edges: Longs

    def __len__(self) -> int:
        return len(self.starts) - 1

    def of(self, result: int) -> Longs:
        """The edges of one."""
        return self.edges[self.starts[result] : self.starts[result + 1]]


@dataclass(frozen=True)
class Pairs:
    """Choices, (n,) each: of turn `turn` (never falling) somebody held result `preferred` above
    result `other`.

    `weight` is how much the pair counts within its turn. Where `lifts` is False the first result
    was merely not rejected: it does not gain, the rejected one loses.
    """

    turn: Longs
    preferred: Longs
    other: Longs
    weight: Floats
    lifts: Flags

    def __len__(self) -> int:
        return len(self.turn)

    def where(self, chosen: Flags) -> Pairs:
        """Some of them."""
        rows = np.flatnonzero(chosen)
        return Pairs(
            self.turn[rows],
            self.preferred[rows],
            self.other[rows],
            self.weight[rows],
            self.lifts[rows],
        )


# as if each edge had been pulled by one half already: a first judgement does not move it the whole
# rate
CALM = 0.25


def learn_offsets(
    prior: Floats,
    results: Results,
    pairs: Pairs,
    *,
    rate: float,
    radius: float,
) -> Floats:
    """(n_edges,) float64: what to add to the prior logit of each edge, turns taken in the order
    they stand in.

    `prior` is finite. Every result that a pair names has an edge.
    """
    offsets, now, pull, squares, updates = np.zeros((5, len(prior)))
    may_gain = np.zeros(len(prior), np.bool_)

    if len(pairs):
        turns = np.split(np.arange(len(pairs)), np.flatnonzero(np.diff(pairs.turn)) + 1)
    else:
        turns = []

    # the pulls of all its pairs from the same state, then one bounded step for each edge they name
    for turn in turns:
        named_edges = []
        for place in turn.tolist():
            preferred = results.of(pairs.preferred[place])
            rejected = results.of(pairs.other[place])
            margin = float(
                np.mean(prior[preferred] + now[preferred])
                - np.mean(prior[rejected] + now[rejected])
            )
            surprise = pairs.weight[place] * np.exp(-np.logaddexp(0.0, margin))
            pull[preferred] += surprise
            pull[rejected] -= surprise
            may_gain[preferred] |= pairs.lifts[place]
            named_edges += [preferred, rejected]

        edges = np.unique(np.concatenate(named_edges))
        moved = edges[(pull[edges] < 0.0) | ((pull[edges] > 0.0) & may_gain[edges])]
        squares[moved] += pull[moved] ** 2
        updates[moved] += 1.0
        step = rate * pull[moved] / np.sqrt(CALM + squares[moved])
        now[moved] = np.clip(now[moved] + step, -radius, radius)
        offsets[moved] += 2.0 / (updates[moved] + 1.0) * (now[moved] - offsets[moved])
        pull[edges], may_gain[edges] = 0.0, False

    return offsets


def scores_of(logits: Floats, results: Results) -> Floats:
    """The mean logit of each result's edges, (n_results,); NaN for one without edges."""
    sizes = np.diff(results.starts)
    owner = np.repeat(np.arange(len(results)), sizes)
    total = np.bincount(
        owner,
        weights=logits[results.edges],
        minlength=len(results),
    )

    with np.errstate(invalid="ignore"):
        means: Floats = total / sizes

    return means


_EQUAL = 1e-9  # scores so near are a tie, which counts one half


@dataclass(frozen=True)
class Comparison:
    """Mean accuracy over held-out turns before and after, and the difference with its interval."""

    turns: int
    before: float
    after: float
    difference: float
    low: float
    high: float


def accuracy_by_turn(scores: Floats, pairs: Pairs) -> Floats:
    """The weighted share of each turn's pairs that the scores order as the person did, (n_turns,)
    in order of turn.
    """
    margin = scores[pairs.preferred] - scores[pairs.other]
    right = np.where(
        margin > _EQUAL,
        1.0,
        np.where(margin < -_EQUAL, 0.0, 0.5),
    )
    _, turn = np.unique(pairs.turn, return_inverse=True)
    accuracy: Floats = np.bincount(turn, right * pairs.weight) / np.bincount(turn, pairs.weight)
    return accuracy


def compare(
    prior_scores: Floats,
    learned_scores: Floats,
    pairs: Pairs,
) -> Comparison:
    """How much better `after` orders the pairs; a turn counts once however many pairs it gave.

    The interval is Student's at 95%, over turns; with a single turn it is unbounded, with none
    there is nothing to say.
    """
    if not len(pairs):
        return Comparison(0, 0.0, 0.0, 0.0, -np.inf, np.inf)

    old = accuracy_by_turn(prior_scores, pairs)
    new = accuracy_by_turn(learned_scores, pairs)
    gain = new - old
    turns = len(new)
    mean = float(gain.mean())
    reach = np.inf

    if turns > 1:
        from scipy.special import (
            stdtrit,
        )  # a tenth of a second to load, for nights that learned something

        reach = float(stdtrit(turns - 1, 0.975) * gain.std(ddof=1) / np.sqrt(turns))

    return Comparison(
        turns,
        float(old.mean()),
        float(new.mean()),
        mean,
        mean - reach,
        mean + reach,
    )


# Lists that are tried out another way now and then: neighbours change places, with a chance that is
# known afterwards. Only neighbours, so that an answer is never much worse for it; both ways of
# pairing them, so that every two neighbouring ranks can be compared.


def swap_places(
    turns: int,
    length: int,
    share: float,
    chance: np.random.Generator,
) -> Longs:
    """(turns, length): which place of the original list each result comes from, 0 first.

    Neighbours are paired from the first or from the second place on, each with chance one half, and
    every pair changes places with chance `share`.
    """
    place = np.tile(np.arange(length), (turns, 1))
    begins = chance.integers(0, 2, turns)
    flips = chance.random((turns, length // 2)) < share

    for begin in (0, 1):
        for pair, rank in enumerate(range(begin, length - 1, 2)):
            rows = np.flatnonzero(flips[:, pair] & (begins == begin))
            place[rows, rank], place[rows, rank + 1] = rank + 1, rank

    return place


def propensities(place: Longs, share: float) -> Floats:
    """The chance that `swap_places` puts each result where it stands, in the shape of `place`."""
    length = place.shape[-1]
    ranks = np.arange(length)
    neighbours = (ranks > 0).astype(np.float64) + (ranks < length - 1)
    chances: Floats = np.where(
        place == ranks,
        1.0 - share * neighbours / 2.0,
        share / 2.0,
    )
    return chances
