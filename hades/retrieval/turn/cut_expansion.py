"""Expansions of a question that is limited to a domain."""

from __future__ import annotations

import numpy as np

from hades.ports.graph import Expansion, Flags


def keep_targets(found: Expansion, is_kept: Flags, fanout: int | None) -> Expansion:
    """The edges whose target is kept, at most `fanout` of each asked node."""
    kept = np.flatnonzero(is_kept)
    if fanout is not None and len(kept):
        rows = found.row[kept]
        first = np.searchsorted(rows, rows, side="left")
        kept = kept[np.arange(len(kept)) - first < fanout]
    return Expansion(
        found.row[kept],
        found.target[kept],
        found.edge[kept],
        found.type[kept],
        found.weight[kept],
        found.outbound[kept],
        found.work,
        found.capped,
    )
