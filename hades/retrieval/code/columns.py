"""Evidence as a matrix: one row a file, columns that mean the same in every repository."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from hades.retrieval.code.evidence import Evidence, base_score, unit_scale
from hades.retrieval.code.postings import Scores

_AS_THEY_ARE = frozenset(
    (
        "is_test",
        "is_aside",
        "is_text",
        "is_package",
        "size",
        "past_often",
        "past_recent",
    )
)
_FILE_RANKS = (
    *("base", "words_all", "unit_all", "words_title", "past_like", "name_mark"),
    *("path_all", "used_by_hits", "uses_hits", "unit3_all"),
)
_RANK_OFFSET = 1.0


def file_columns(evidence: Evidence) -> tuple[tuple[str, ...], Scores]:
    """Names and (files, columns) values."""
    return _stack({**evidence.files, "base": base_score(evidence.files)}, _FILE_RANKS)


def reciprocal_rank(values: Scores) -> Scores:
    """1 for the best, 1/2 for the next; a value of zero counts as last."""
    place = np.empty(len(values))
    place[np.argsort(-values, kind="stable")] = np.arange(len(values))
    return 1.0 / (_RANK_OFFSET + np.where(values > 0, place, len(values)))


def _stack(found: Mapping[str, Scores], ranked: tuple[str, ...]) -> tuple[tuple[str, ...], Scores]:
    columns: dict[str, Scores] = {}
    for name, values in found.items():
        columns[name] = values if name in _AS_THEY_ARE else unit_scale(values)
        if name in ranked:
            columns[f"{name}_rank"] = reciprocal_rank(values)
    return tuple(columns), np.stack(list(columns.values()), 1)
