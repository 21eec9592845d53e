"""Paths described by numbers for a learned ranker: how long, how strong, what they say, where they lead."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from hades.retrieval.ranking.multihop_reranker import reciprocal
from hades.retrieval.ranking.rerank import spread
from hades.retrieval.ranking.sentence_match import Floats
from hades.retrieval.ranking.word_overlap import Body, wording, words
from hades.retrieval.turn.types import FoundPath, Question
from hades.retrieval.walks.second_hop import ReachState

if TYPE_CHECKING:
    from hades.retrieval.turn.metered_view import MeteredView

LIKENED = frozenset({"similar_to", "related_to", "coref"})  # edges that only say that two names are alike or near


def path_columns(
    view: MeteredView, question: Question, paths: Sequence[FoundPath], texts: Sequence[str], known: ReachState
) -> dict[str, Floats]:
    """The columns `models.ranker.features.PATH`; `texts` are the paths in words, one each, so all was read before."""
    score = np.array([path.score for path in paths], np.float64)
    spoken = wording(question.text, [Body(words(text)) for text in texts]).bm25
    cosines, (weights, likened) = _cosines(view, question, paths), _edges(view, paths)
    steps, asked = _states(paths, known)
    return {
        "score": spread(score),
        "score_rank": reciprocal(score),
        "reliability": np.array([path.reliability for path in paths], np.float64),
        "words": spread(spoken),
        "words_rank": reciprocal(spoken),
        "hops": np.array([len(path.edges) for path in paths], np.float64),
        "weight_mean": np.array([one.mean() for one in weights]),
        "weight_least": np.array([one.min() for one in weights]),
        "cosine_mean": np.array([one.mean() for one in cosines]),
        "cosine_best": np.array([one.max() for one in cosines]),
        "cosine_end": np.array([one[-1] for one in cosines]),
        "state_asked": asked,
        "state_steps": steps,
        "is_joined": np.array([float(path.origin != "beam") for path in paths]),
        "likened": likened,
    }


def _cosines(view: MeteredView, question: Question, paths: Sequence[FoundPath]) -> list[Floats]:
    """The cosine of each node of each path with the question."""
    nodes = np.array(list(chain.from_iterable(path.nodes for path in paths)), np.int64)
    found = np.zeros(len(nodes))
    if question.vector is not None:
        found = view.cosines(question.vector, nodes, model=question.model).astype(np.float64)
    return np.split(found, np.cumsum([len(path.nodes) for path in paths])[:-1])


def _edges(view: MeteredView, paths: Sequence[FoundPath]) -> tuple[list[Floats], Floats]:
    """The weights along each path, 1 where there is none; and the share of its edges that only liken."""
    weights, likened = [], []
    for path in paths:
        facts = view.edges(np.array(path.edges, np.int64))
        own = [1.0 if fact.weight is None else fact.weight for fact in facts]
        weights.append(np.array(own or [1.0], np.float64))
        likened.append(sum(fact.type in LIKENED for fact in facts) / max(1, len(facts)))
    return weights, np.array(likened, np.float64)


def _states(paths: Sequence[FoundPath], known: ReachState) -> tuple[Floats, Floats]:
    """How alike neighbours on a path are by their states, and how near its nearest node is to the question."""
    if known.states is None:
        return np.zeros(len(paths)), np.zeros(len(paths))
    steps, asked = [], []
    for path in paths:
        own = known.states[list(path.nodes)].astype(np.float32)
        steps.append(float((own[:-1] * own[1:]).sum(axis=1).mean()) if len(own) > 1 else 1.0)
        asked.append(float((own @ known.asked).max()) if known.asked is not None else 0.0)
    return np.array(steps), np.array(asked)
