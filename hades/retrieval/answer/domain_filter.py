"""Answers of one domain: every vertex of a path and every passage belongs to it, or it is not shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from hades.retrieval.turn.types import FoundPassage, FoundPath

if TYPE_CHECKING:
    from hades.retrieval.turn.metered_view import MeteredView


def paths_inside(view: MeteredView, paths: Sequence[FoundPath]) -> tuple[FoundPath, ...]:
    """The paths whose vertices all belong to the domain of the turn, in their order."""
    nodes = np.unique(np.array([node for path in paths for node in path.nodes], np.int64))
    inside = set(nodes[view.is_inside(nodes)].tolist())
    return tuple(path for path in paths if inside.issuperset(path.nodes))


def passages_inside(view: MeteredView, passages: Sequence[FoundPassage]) -> tuple[FoundPassage, ...]:
    """The passages whose documents belong to the domain of the turn, in their order."""
    inside = view.is_inside(np.array([one.node for one in passages], np.int64))
    return tuple(one for one, is_kept in zip(passages, inside.tolist(), strict=True) if is_kept)
