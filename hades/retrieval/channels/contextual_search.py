"""A question that is asked from somewhere: words, vectors and a walk that know both what is asked and where.

A sentence of a paper says little by itself; the paper says what it is about, and its neighbours in the graph are what
papers like it lead to. Four rankings are fused by reciprocal rank: the words of the question, its words with those of
the place, the vector between both, and personalized PageRank from the place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hades.ports.graph import KINDS, Hits, Kind, Numbers
from hades.retrieval.channels.seeds import RankFusion, has_vectors
from hades.retrieval.turn.types import FoundPassage, Question
from hades.retrieval.walks.pagerank import personalized_pagerank

if TYPE_CHECKING:
    from hades.retrieval.turn.metered_view import MeteredView

_CHUNK = KINDS.index(Kind.CHUNK)
# From a place the stated relations lead on; what a text merely speaks of leads everywhere.
FACTORS: Mapping[str, float] = {
    "mentions": 0.3,
    "refers_to": 0.1,
    "similar_to": 0.1,
    "related_to": 0.0,
    "references": 0.3,
    "next": 0.3,
    "PART_OF": 0.0,
    "SUBTOPIC_OF": 0.0,
    "SIBLING_OF": 0.0,
}


@dataclass(frozen=True)
class PlacedRules:
    """What each ranking counts, and how deep each is looked at; chosen on a sample of citations (docs/hipporag.md).

    `lean` is how far the vector of the question leans to that of the place.
    """

    words: float = 0.5
    words_there: float = 0.5
    vector: float = 1.0
    walk: float = 0.5
    lean: float = 0.5
    depth: int = 100
    damping: float = 0.5
    epsilon: float = 3e-6
    max_work: int = 2_000_000
    factors: Mapping[str, float] = field(default_factory=lambda: dict(FACTORS))


def search_from(
    view: MeteredView, question: Question, limit: int, rules: PlacedRules = PlacedRules()
) -> list[FoundPassage]:
    """Passages for a question asked from `question.near`, best first; those of the place itself are left out."""
    near = np.array(question.near, np.int64)
    is_chunk = view.kinds(near) == _CHUNK
    pieces, others = near[is_chunk], near[~is_chunk]
    there = " ".join(passage.text for passage in view.passages(pieces)) if len(pieces) else name_places(view, others)
    fused = RankFusion()
    fused.add("lexical", view.lexical(question.text, kind=Kind.CHUNK, limit=rules.depth), rules.words)
    both = f"{question.text} {there}"
    fused.add("lexical_near", view.lexical(both, kind=Kind.CHUNK, limit=rules.depth), rules.words_there)
    vector = lean_to(view, question, pieces if len(pieces) else others, rules.lean)
    if vector is not None:
        hits = view.nearest(vector, kind=Kind.CHUNK, model=question.model, limit=rules.depth)
        fused.add("vector", hits, rules.vector)
    fused.add("ppr", walk_from(view, question, others if len(others) else pieces, rules), rules.walk)
    own = set(pieces.tolist())
    ranked = [node for node in fused.ranked(view, limit + len(own)) if node not in own][:limit]
    best = fused.scores[ranked[0]] if ranked else 1.0
    return [FoundPassage(node, fused.scores[node] / best, fused.origins[node]) for node in ranked]


def name_places(view: MeteredView, nodes: Numbers) -> str:
    return " ".join(node.name for node in view.nodes(nodes))


def lean_to(view: MeteredView, question: Question, place: Numbers, lean: float) -> NDArray[np.float32] | None:
    """The question's vector drawn towards the mean of the place's, unit length; None where nothing compares."""
    if not has_vectors(view, question) or question.model not in view.info.models.get(Kind.CHUNK, ()):
        return None
    assert question.vector is not None
    vectors, there = view.vectors(place, model=question.model)
    if not there.any():
        return question.vector
    mean = vectors[there].mean(axis=0)
    drawn = question.vector + lean * mean / max(float(np.linalg.norm(mean)), 1e-9)
    leaning: NDArray[np.float32] = (drawn / max(float(np.linalg.norm(drawn)), 1e-9)).astype(np.float32)
    return leaning


def walk_from(view: MeteredView, question: Question, start: Numbers, rules: PlacedRules) -> Hits:
    """Passages by where a walk is that starts over at the place."""
    found = personalized_pagerank(
        view,
        start,
        np.ones(len(start)),
        damping=rules.damping,
        epsilon=rules.epsilon,
        max_work=max(0, min(rules.max_work, view.turn.work_left)),
        mask=question.mask,
        factors=rules.factors,
        stop=view.turn.expired,
    )
    if not view.is_remote:  # over a network each expansion was counted as it came
        view.turn.worked(found.work, capped=found.capped)
    ours = np.flatnonzero(view.kinds(found.numbers) == _CHUNK)[: rules.depth]
    return Hits(found.numbers[ours], found.scores[ours].astype(np.float32))
