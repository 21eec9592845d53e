"""What the ranker sees: of a node, of a passage before it is read, of a passage that was read, of a path.

The names are the contract between who computes the numbers and who fits on them: a model that was fitted to other
names, or to the same names meaning something else (`VERSION`), is not asked.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from models.vectors import unit_rows

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]

VERSION = 1  # raise it with any change of what a column means

NET: tuple[str, ...] = (
    "searched", "searched_rank", "searched_place", "lexical", "graph",
    "linked", "linked_best", "linked_sum", "named", "named_best",
    "cosine", "cosine_gap", "cosine_rank", "remaining", "anchored",
    "state_asked", "state_best", "state_anchored", "degree",
)  # fmt: skip
_ALONE = (
    "walk", "walk_rank", "again", "again_rank", "cosine", "remaining_cosine", "lexical", "words", "title_words",
    "best_sentence", "first_sentence", "named", "spoken_of_by_named", "spoken_of", "speaks_of_named", "namesakes",
    "namesake_place",
)  # fmt: skip
_BESIDE = ("first", "share", "rank", "spoken_of", "speaks_of", "adds_to_1", "adds_to_2", "adds_to_4", "two_steps")
READ: tuple[str, ...] = (
    *(f"alone_{name}" for name in _ALONE),
    *(f"beside_{name}" for name in _BESIDE),
    "worth", "worth_rank", "worth_place", "hand", "gain", "gain_rank", "gain_place",
    "bm25", "bm25_rank", "title", "cosine_rank",
)  # fmt: skip
PATH: tuple[str, ...] = (
    "score", "score_rank", "reliability", "words", "words_rank", "hops", "weight_mean", "weight_least",
    "cosine_mean", "cosine_best", "cosine_end", "state_asked", "state_steps", "is_joined", "likened",
)  # fmt: skip
SURE: tuple[str, ...] = (
    "share", "gap", "place", "margin", "cosine", "words", "title_words", "best_sentence", "title", "most_cosine",
    "most_words", "reach",
)  # fmt: skip

# States say which passages to read; who has read them knows better. A head that orders what was read by states as well
# ranks questions like those it was fitted to, and others worse (docs/ranker.md).
STATES = frozenset({"state_asked", "state_best", "state_anchored"})
PRIOR: Mapping[str, float] = {"gain_rank": 1.0}  # what the order by hand counts beside what a head learned

HEADS: Mapping[str, tuple[str, ...]] = {
    "reach": NET,  # which passages around the best ones are worth reading
    "again": NET,  # the same, from the best of the first look
    "read": (*READ, *(f"net_{name}" for name in NET if name not in STATES), "reach"),  # in which order to show them
    "walk": READ,  # the same for passages that a walk brought up
    "sure": SURE,  # whether a passage that was read supports an answer
    "path": PATH,  # in which order paths are shown
}

N_KINDS = 5
N_LEVELS = 4
N_EXTRA = N_KINDS + N_LEVELS + 3


def prior_of(head: str) -> Singles:
    """(columns of the head,) what each column counts before anything is learned."""
    return np.array([PRIOR.get(name, 0.0) for name in HEADS[head]], np.float32)


def matrix(head: str, columns: Mapping[str, Floats]) -> Singles:
    """(n, columns of the head) in the head's order; a column that is missing is an error that names it."""
    return np.column_stack([columns[name] for name in HEADS[head]]).astype(np.float32)


def node_features(
    vectors: Singles,
    kinds: NDArray[np.uint8],
    levels: NDArray[np.uint8],
    degree_out: NDArray[np.int64],
    degree_in: NDArray[np.int64],
) -> Singles:
    """(n, dim + N_EXTRA): the text's vector at length 1 (zeros where there is none), kind, level, degrees."""
    has_vector = np.any(vectors != 0, axis=1)
    text = unit_rows(vectors)
    extra = np.zeros((len(vectors), N_EXTRA), np.float32)
    rows = np.arange(len(vectors))
    extra[rows, np.minimum(kinds, N_KINDS - 1)] = 1.0
    extra[rows, N_KINDS + np.minimum(levels, N_LEVELS - 1)] = 1.0
    extra[:, -3] = np.log1p(degree_out) / 5.0
    extra[:, -2] = np.log1p(degree_in) / 5.0
    extra[:, -1] = has_vector
    return np.hstack([text, extra]).astype(np.float32)
