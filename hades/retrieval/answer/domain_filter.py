"""Paths of one domain: every vertex of a path belongs to it, or the path is not shown (requirement A22)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from hades.retrieval.turn.types import FoundPath

if TYPE_CHECKING:
    from hades.retrieval.turn.metered_view import MeteredView


def within_domain(view: MeteredView, paths: Sequence[FoundPath], domain: str) -> tuple[FoundPath, ...]:
    """The paths whose vertices are all entities of a domain, in their order.

    A vertex is read to know its domain, once, as it is to be shown; a path that may not be read is not known to belong.
    """
    kept: list[FoundPath] = []
    for path in paths:
        facts = view.nodes(np.array(path.nodes, np.int64))
        if len(facts) < len(path.nodes) or view.turn.expired():
            break
        if all(fact.domain == domain for fact in facts):
            kept.append(path)
    return tuple(kept)
