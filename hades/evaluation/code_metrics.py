"""Figures of rankings of files and symbols against the files and symbols that a fix changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hades.evaluation.code_cases import CodeCase
from hades.evaluation.metrics import all_gold_at, interval, recall_at, reciprocal_rank

FILE_DEPTHS = (1, 3, 5, 10)
RECALL_DEPTHS = (5, 10)
SYMBOL_DEPTHS = (5, 10)
MOST_SYMBOLS = 3  # symbol accuracy counts cases with at most this many gold symbols


@dataclass(frozen=True)
class CodeRanking:
    """What one ranker gave one case: paths, `path:symbol` names, both best first, and what it took."""

    files: tuple[str, ...]
    symbols: tuple[str, ...]
    ms: float
    abstained: bool = False


def summarise_code(cases: Sequence[CodeCase], rankings: Sequence[CodeRanking]) -> dict[str, Any]:
    """The figures of one ranker, in the shape that scripts rely on."""
    pairs = list(zip(cases, rankings, strict=True))
    single = [(case, found) for case, found in pairs if len(case.gold) == 1]
    named = [(case, found) for case, found in pairs if 1 <= len(case.gold_symbols) <= MOST_SYMBOLS]
    recall = {k: [recall_at(found.files, case.gold, k) for case, found in pairs] for k in RECALL_DEPTHS}
    times = [found.ms for found in rankings]
    return {
        "file_acc": _file_acc(pairs),
        "file_recall": {str(k): _mean(values) for k, values in recall.items()},
        "ci95": {f"file_recall@{k}": [round(end, 4) for end in interval(np.array(v))] for k, v in recall.items()},
        "symbol_acc": {
            **{
                str(k): _mean([all_gold_at(one.symbols, case.gold_symbols, k) for case, one in named])
                for k in SYMBOL_DEPTHS
            },
            "cases": len(named),
        },
        "mrr": _mean([reciprocal_rank(found.files, case.gold) for case, found in pairs]),
        "one_file": {"file_acc": _file_acc(single), "cases": len(single)},
        "ms": {"p50": round(float(np.quantile(times, 0.5)), 3), "p95": round(float(np.quantile(times, 0.95)), 3)},
        "abstained": _mean([float(found.abstained) for found in rankings]),
    }


def _file_acc(pairs: Sequence[tuple[CodeCase, CodeRanking]]) -> dict[str, float]:
    return {str(k): _mean([all_gold_at(found.files, case.gold, k) for case, found in pairs]) for k in FILE_DEPTHS}


def _mean(values: Sequence[float]) -> float:
    return round(float(np.mean(values)), 4) if values else 0.0
