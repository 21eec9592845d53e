"""Paths described by numbers for a learned ranker: how long, how strong, what they say, where they lead."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, cast

import numpy as np

from hades.retrieval.closer import reciprocal
from hades.retrieval.found import FoundPath, Question
from hades.retrieval.reach import Known
from hades.retrieval.reading import Floats
from hades.retrieval.rerank import spread
from hades.retrieval.wording import wording, words

if TYPE_CHECKING:
    from hades.ports.store import Direction
    from hades.retrieval.metered import MeteredView

_ANY: Final = cast("Direction", "any")
LIKENED = ("similar_to", "related_to", "coref")  # edges that only say that two names are alike or near


def path_columns(
    view: MeteredView, question: Question, paths: Sequence[FoundPath], texts: Sequence[str], known: Known
) -> dict[str, Floats]:
    """The columns `models.ranker.features.PATH`; `texts` are the paths in words, one each."""
    score = np.array([path.score for path in paths], np.float64)
    spoken = wording(question.text, [words(text) for text in texts]).bm25
    cosines = [_cosines(view, question, path) for path in paths]
    weights = [_weights(view, path) for path in paths]
    likened = np.array(
        [
            sum(name in text for name in LIKENED) / max(1, len(path.edges))
            for path, text in zip(paths, texts, strict=True)
        ]
    )
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
        "stated": 1.0 - np.minimum(likened, 1.0),
        "likened": np.minimum(likened, 1.0),
    }


def _cosines(view: MeteredView, question: Question, path: FoundPath) -> Floats:
    if question.vector is None:
        return np.zeros(len(path.nodes))
    found: Floats = view.cosines(question.vector, np.array(path.nodes, np.int64), model=question.model).astype(
        np.float64
    )
    return found


def _weights(view: MeteredView, path: FoundPath) -> Floats:
    """The weight of each edge, from the adjacency; 1 for a path without edges."""
    if not path.edges:
        return np.ones(1)
    found = view.expand(np.array(path.nodes[:-1], np.int64), direction=_ANY)
    weight = dict(zip(found.edge.tolist(), found.weight.tolist(), strict=True))
    return np.array([weight.get(edge, 1.0) for edge in path.edges], np.float64)


def _states(paths: Sequence[FoundPath], known: Known) -> tuple[Floats, Floats]:
    """How alike neighbours on a path are by their states, and how near its end is to the question."""
    if known.states is None:
        return np.zeros(len(paths)), np.zeros(len(paths))
    steps, asked = [], []
    for path in paths:
        own = known.states[list(path.nodes)].astype(np.float32)
        steps.append(float((own[:-1] * own[1:]).sum(axis=1).mean()) if len(own) > 1 else 1.0)
        asked.append(float((own @ known.asked).max()) if known.asked is not None else 0.0)
    return np.array(steps), np.array(asked)
