"""Recipe `memory`: find again what was said, in corpora that are dated, told turn by turn, or
versioned.

Words, vectors and a short walk from what the question names bring up candidates; where the corpus
states an order, what was said right before and after them comes along. The best few are read, and a
time in the question prefers passages that state a time which fits. A corpus without dates and order
is served by what is left: words, vectors, walk, titles.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from hades.ports.graph import Kind, Numbers
from hades.ports.store import Direction
from hades.retrieval.core.metered_view import MeteredView
from hades.retrieval.core.types import FoundPassage, Question, rank_by_worth
from hades.retrieval.core.words import IN, OUT, Floats, fitted_file
from hades.retrieval.features.passages import (
    ChannelScores,
    dated_features,
    dated_pair_features,
    weigh,
)
from hades.retrieval.search.restart import named_entities, restart_mass
from hades.retrieval.search.seeds import NO_HITS, nearest_chunks
from hades.retrieval.search.walk_search import FACTORS, chunk_scores
from hades.retrieval.walks.pagerank import walk_from
from hades.text.dates import Interval, time_asked, years_of

ORDER_EDGES = "references"  # the collection of the edges that state an order of a corpus
NEXT = "next"  # from what was said to what was said after it
READ = 48  # candidates
_TURNS = 2  # right before or after one
_DAMPING, _EPSILON, _MAX_WORK = 0.5, 1e-4, 200_000  # of the walk


@dataclass(frozen=True)
class ChannelDepths:
    """How far the channels are searched: each ranks `depth`, the `searched` best of each are
    candidates.
    """

    depth: int = 300
    searched: int = 60


def recollect(
    view: MeteredView,
    question: Question,
    limit: int,
) -> list[FoundPassage]:
    """Passages for a question, best first, at most `limit`, of which as many are read; scores fall
    from 1.
    """
    weights = fitted_file("memory")
    time = time_asked(question.text, question.mask.as_of)
    candidates, channels = search_channels(
        view,
        question,
        time,
        ChannelDepths(),
    )
    features = dated_features(channels)
    order = np.argsort(-weigh(features, weights["first"]), kind="stable")[: min(READ, limit)]
    passages = view.passages(candidates[order])
    places = order[: len(passages)]

    if not passages:
        return []

    read_features = {}
    for name, column in features.items():
        read_features[name] = column[places]

    columns = dated_pair_features(
        question.text,
        time,
        passages,
        read_features,
    )
    tiers = {
        "lexical": channels.words[places],
        "vector": channels.cosine[places],
        "ppr": channels.walk[places],
        "time": columns["time"],
    }
    worth = weigh(columns, weights["second"])
    return rank_by_worth(
        candidates[places].tolist(),
        worth,
        lambda row: {name: float(column[row]) for name, column in tiers.items()},
    )


def search_channels(
    view: MeteredView,
    question: Question,
    time: Interval | None,
    rules: ChannelDepths,
    *,
    walked: Mapping[int, float] | None = None,
    other_channels: Iterable[Mapping[int, float]] = (),
) -> tuple[Numbers, ChannelScores]:
    """The candidates and what each search gave them; nothing is read but what the question names.

    `walked` are passages of a walk that was made already, best first; `other_channels` are
    passages that other channels found.
    """
    by_words = view.lexical(
        question.text,
        kind=Kind.CHUNK,
        limit=rules.depth,
    ).by_number()
    by_vector = (nearest_chunks(view, question, rules.depth) or NO_HITS).by_number()
    years = [] if time is None else years_of(time)  # a range names only its ends
    by_years: dict[int, float] = {}

    if years:
        dated_text = " ".join([question.text, *map(str, years)])
        by_years = view.lexical(
            dated_text,
            kind=Kind.CHUNK,
            limit=rules.depth,
        ).by_number()

    if walked is None:
        if view.turn.expired():
            walked = {}
        else:
            walked = _walk(view, question, rules)

    chosen: dict[int, None] = {}
    for ranking in (by_words, by_vector, by_years, walked, *other_channels):
        chosen |= dict.fromkeys(list(ranking)[: rules.searched])

    nodes = np.array(list(chosen), np.int64)
    _, following = _neighbours(view, question, nodes, OUT)
    _, preceding = _neighbours(view, question, nodes, IN)
    distinct = dict.fromkeys([*chosen, *following.tolist(), *preceding.tolist()])
    candidates = np.array(list(distinct), np.int64)
    before = _row_pairs(view, question, candidates, IN)
    after = _row_pairs(view, question, candidates, OUT)
    return candidates, ChannelScores(
        words=_column(by_words, candidates),
        cosine=_cosines(view, question, candidates, by_vector),
        years=_column(by_years, candidates),
        walk=_column(walked, candidates),
        before_pairs=before,
        after_pairs=after,
    )


def _column(scores: Mapping[int, float], nodes: Numbers) -> Floats:
    return np.array([scores.get(node, 0.0) for node in nodes.tolist()], np.float64)


def _row_pairs(
    view: MeteredView,
    question: Question,
    candidates: Numbers,
    direction: Direction,
) -> Numbers:
    """(n, 2) rows of candidates of which the second was said right after the first, or before."""
    row_of = {}
    for row, node in enumerate(candidates.tolist()):
        row_of[node] = row

    rows, neighbours = _neighbours(view, question, candidates, direction)
    pairs = []
    for row, node in zip(rows.tolist(), neighbours.tolist(), strict=True):
        if node in row_of:
            pairs.append((row, row_of[node]))

    return np.array(pairs, np.int64).reshape(-1, 2)


def _cosines(
    view: MeteredView,
    question: Question,
    candidates: Numbers,
    near: dict[int, float],
) -> Floats:
    """Cosine of each candidate with the question, as the search by vector gave it or compared now;
    0 without hits.
    """
    cosines = np.array([near.get(node, np.nan) for node in candidates.tolist()], np.float64)
    missing = np.isnan(cosines)

    if near and missing.any():
        assert question.vector is not None
        cosines[missing] = view.cosines(
            question.vector,
            candidates[missing],
            model=question.model,
        )

    return cosines if near else np.zeros(len(candidates))


def _walk(
    view: MeteredView,
    question: Question,
    rules: ChannelDepths,
) -> dict[int, float]:
    """Passages by a short walk from what the question names, best first: which candidates share
    names with it.

    It does not run along the telling, which is looked at by itself.
    """
    mass = restart_mass(
        view,
        question,
        named_entities(view, question.text),
    )
    if not mass:
        return {}

    factors = {**FACTORS, NEXT: 0.0}
    ppr = walk_from(
        view,
        mass,
        question.mask,
        factors,
        max_work=_MAX_WORK,
        damping=_DAMPING,
        epsilon=_EPSILON,
    )
    return chunk_scores(view, ppr, rules.depth)


def _neighbours(
    view: MeteredView,
    question: Question,
    nodes: Numbers,
    direction: Direction,
) -> tuple[Numbers, Numbers]:
    """What was said right after these (`OUT`) or before: places of the nodes, and their
    neighbours.
    """
    if not view.info.edges.get(ORDER_EDGES) or not len(nodes):
        return nodes[:0], nodes[:0]

    expansion = view.expand(
        nodes,
        direction=direction,
        types=[NEXT],
        fanout=_TURNS,
        mask=question.mask,
    )
    return expansion.row, expansion.target
