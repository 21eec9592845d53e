"""Answers that now and then show neighbours the other way round, so that logs can tell what a rank does from what a
result does. Off unless `learning.explore` is set; every result says with which chance it stands where it stands.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from hades.retrieval.ranking.select import Selection
from hades.retrieval.turn.types import FoundPassage, FoundPath

Result = TypeVar("Result", FoundPath, FoundPassage)


@dataclass(frozen=True)
class ExplorationRules:
    """The chance that two neighbours change places, and a seed; the same question of the same moment swaps the same."""

    share: float = 0.0
    seed: int = 0


def swap_some(selected: Selection, swapping: ExplorationRules, query_id: str) -> Selection:
    """What was selected, with some neighbours swapped and every propensity set."""
    return replace(
        selected,
        paths=_swap(selected.paths, swapping, f"{swapping.seed} {query_id} paths"),
        passages=_swap(selected.passages, swapping, f"{swapping.seed} {query_id} passages"),
    )


def _swap(results: Sequence[Result], swapping: ExplorationRules, name: str) -> tuple[Result, ...]:
    from models.weights.swaps import propensities, swap_places  # most deployments swap nothing

    chance = np.random.default_rng(int.from_bytes(hashlib.sha256(name.encode()).digest()[:8]))
    place = swap_places(1, len(results), swapping.share, chance)[0]
    chances = propensities(place, swapping.share)
    return tuple(replace(results[at], propensity=float(odds)) for at, odds in zip(place.tolist(), chances, strict=True))
