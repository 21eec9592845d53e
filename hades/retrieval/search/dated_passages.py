"""Recipe `memory`: find again what was said, in corpora that are dated, told turn by turn, or versioned.

Words, vectors and a short walk from what the question names bring up candidates; where the corpus states an order, what
was said right before and after them comes along. The best few are read, and a time in the question prefers passages
that state a time which fits. A corpus without dates and order is served by what is left: words, vectors, walk, titles.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from hades.ports.graph import Kind, Numbers, Passage
from hades.ports.store import Direction
from hades.retrieval.core.metered_view import MeteredView
from hades.retrieval.core.types import FoundPassage, Question, rank_by_worth
from hades.retrieval.core.words import IN, OUT, Floats, fitted_file
from hades.retrieval.features.passages import ChannelScores, dated_features, dated_pair_features, weigh
from hades.retrieval.search.restart import named_entities, restart_mass
from hades.retrieval.search.seeds import NO_HITS, nearest_chunks
from hades.retrieval.search.walk_search import FACTORS, chunk_scores
from hades.retrieval.walks.pagerank import walk_from
from hades.text.dates import Interval, time_asked, years_of

NEXT = "next"  # from what was said to what was said after it
READ = 48  # candidates
_TURNS = 2  # right before or after one
_DAMPING, _EPSILON, _MAX_WORK = 0.5, 1e-4, 200_000  # of the walk


@dataclass(frozen=True)
class ChannelDepths:
    """How far the channels are searched: each ranks `depth`, the `searched` best of each are candidates."""

    depth: int = 300
    searched: int = 60


def recollect(view: MeteredView, question: Question, limit: int) -> list[FoundPassage]:
    """Passages for a question, best first, at most `limit`, of which as many are read; scores fall from 1.

    With a moment in the mask, what was said after it is left out: it had not been said yet.
    """
    looks, asked = fitted_file("memory"), time_asked(question.text, question.mask.as_of)
    candidates, heard = search_channels(view, question, asked, ChannelDepths())
    first = dated_features(heard)
    order = np.argsort(-weigh(first, looks["first"]), kind="stable")[: min(READ, limit)]
    read = zip(order.tolist(), view.passages(candidates[order]), strict=False)
    kept = [(place, passage) for place, passage in read if was_said(passage, question)]
    if not kept:
        return []
    places = np.array([place for place, _ in kept], np.int64)
    seen = {name: column[places] for name, column in first.items()}
    columns = dated_pair_features(question.text, asked, [passage for _, passage in kept], seen)
    told = {"lexical": heard.words[places], "vector": heard.cosine[places], "ppr": heard.walk[places]}
    told["time"] = columns["time"]
    nodes, worth = candidates[places].tolist(), weigh(columns, looks["second"])
    return rank_by_worth(nodes, worth, lambda row: {name: float(one[row]) for name, one in told.items()})


def search_channels(
    view: MeteredView,
    question: Question,
    asked: Interval | None,
    rules: ChannelDepths,
    walked: dict[int, float] | None = None,
    others: Iterable[Mapping[int, float]] = (),
) -> tuple[Numbers, ChannelScores]:
    """The candidates and what each search gave them; nothing is read but what the question names.

    `walked` are passages of a walk that was made already, best first; `others` are passages that other channels found.
    """
    spoken = view.lexical(question.text, kind=Kind.CHUNK, limit=rules.depth).by_number()
    near = (nearest_chunks(view, question, rules.depth) or NO_HITS).by_number()
    years = "" if asked is None else " ".join(map(str, years_of(asked)))  # a range names only its ends
    both = f"{question.text} {years}"
    dated = view.lexical(both, kind=Kind.CHUNK, limit=rules.depth).by_number() if years else {}
    if walked is None:
        walked = {} if view.turn.expired() else _walk(view, question, rules)
    best = (list(found)[: rules.searched] for found in (spoken, near, dated, walked, *others))
    chosen = np.array(list(dict.fromkeys(node for found in best for node in found)), np.int64)
    after, before = (_said_beside(view, question, chosen, way)[1] for way in (OUT, IN))
    candidates = np.array(list(dict.fromkeys(np.concatenate([chosen, after, before]).tolist())), np.int64)
    place = {node: row for row, node in enumerate(candidates.tolist())}
    words, years_of_each, walk = (
        np.array([scores.get(node, 0.0) for node in place], np.float64) for scores in (spoken, dated, walked)
    )
    pairs = []
    for way in (IN, OUT):
        rows, targets = _said_beside(view, question, candidates, way)
        held = [(row, place[node]) for row, node in zip(rows.tolist(), targets.tolist(), strict=True) if node in place]
        pairs.append(np.array(held, np.int64).reshape(-1, 2))
    return candidates, ChannelScores(words, _cosines(view, question, candidates, near), years_of_each, walk, *pairs)


def was_said(passage: Passage, question: Question) -> bool:
    """Whether a passage was there at the moment the question stands at; one without a date always was."""
    moments = [moment for moment in (question.mask.as_of, question.mask.known_at) if moment is not None]
    return passage.timestamp is None or not moments or passage.timestamp <= min(moments)


def _cosines(view: MeteredView, question: Question, candidates: Numbers, near: dict[int, float]) -> Floats:
    """Cosine of each candidate with the question, as the search by vector gave it or compared now; 0 without hits."""
    found = np.array([near.get(node, np.nan) for node in candidates.tolist()], np.float64)
    missing = np.isnan(found)
    if near and missing.any():
        assert question.vector is not None
        found[missing] = view.cosines(question.vector, candidates[missing], model=question.model)
    return found if near else np.zeros(len(candidates))


def _walk(view: MeteredView, question: Question, rules: ChannelDepths) -> dict[int, float]:
    """Passages by a short walk from what the question names, best first: which candidates share names with it.

    It does not run along the telling, which is looked at by itself.
    """
    mass = restart_mass(view, question, named_entities(view, question.text))
    if not mass:
        return {}
    factors = {**FACTORS, NEXT: 0.0}
    found = walk_from(view, mass, question.mask, factors, _MAX_WORK, _DAMPING, _EPSILON)
    return chunk_scores(view, found, rules.depth)


def _said_beside(view: MeteredView, question: Question, nodes: Numbers, way: Direction) -> tuple[Numbers, Numbers]:
    """What was said right after these (`OUT`) or before: places of the nodes, and their neighbours."""
    if not view.info.edges.get("references") or not len(nodes):
        return nodes[:0], nodes[:0]
    found = view.expand(nodes, direction=way, types=[NEXT], fanout=_TURNS, mask=question.mask)
    return found.row, found.target
