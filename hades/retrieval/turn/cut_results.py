"""What stays of an answer of the view: edges inside a domain, names that are a whole text."""

from __future__ import annotations

import numpy as np

from hades.ports.graph import Expansion, Flags, NameMatches, Numbers
from hades.text.analyzer import words


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


def keep_whole(text: str, found: NameMatches) -> Numbers:
    """The entities whose name is the whole text, word for word."""
    spans = zip(found.starts.tolist(), found.ends.tolist(), strict=True)
    whole: Numbers = found.numbers[[words(text[start:end]) == words(text) for start, end in spans]]
    return whole
