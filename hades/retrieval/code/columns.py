"""Evidence as a matrix: one row a file or symbol, columns that mean the same in every repository."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from hades.ports.view import Numbers
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
        "is_class",
        "is_init",
        "file_place",
    )
)
_FILE_RANKS = (
    *("base", "words_all", "unit_all", "words_title", "past_like", "name_mark"),
    *("path_all", "used_by_hits", "uses_hits", "unit3_all"),
)
_SYMBOL_RANKS = ("words_all", "words_title", "words_prose")
_RANK_OFFSET = 1.0


def file_columns(evidence: Evidence) -> tuple[tuple[str, ...], Scores]:
    """Names and (files, columns) values."""
    return _stack({**evidence.files, "base": base_score(evidence.files)}, _FILE_RANKS)


def symbol_columns(symbol_file: Numbers, evidence: Evidence, file_scores: Scores) -> tuple[tuple[str, ...], Scores]:
    """Names and (symbols, columns) values; a symbol knows how its file ranks and how it ranks inside its file."""
    place = np.empty(len(file_scores))
    place[np.argsort(-file_scores, kind="stable")] = np.arange(len(file_scores))
    found = dict(evidence.symbols)
    words = found["words_all"]
    best = np.zeros(len(file_scores))
    np.maximum.at(best, symbol_file, words)
    found["share_of_file"] = words / np.maximum(best[symbol_file], 1e-9)
    found["file_place"] = 1.0 / (1.0 + place[symbol_file])
    found["file_score"] = np.exp(np.clip(file_scores - file_scores.max(initial=0.0), -30, 0))[symbol_file]
    for name in ("name_mark", "path_exact", "frame_last", "dotted", "is_test", "is_aside", "past_like"):
        found[f"file_{name}"] = evidence.files[name][symbol_file]
    return _stack(found, _SYMBOL_RANKS)


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
