"""What other systems retrieved for the same questions, as they published it, beside what we do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hades.evaluation.cases import BadCases, Case, read_lines
from hades.evaluation.harness import Scores
from hades.evaluation.metrics import interval

FIRST = 8  # titles that the published runs kept
GOLD = "ground_truth"


def compare_published(
    path: Path, titles: Mapping[str, str], cases: Sequence[Case], scores: Mapping[str, Scores]
) -> dict[str, Any]:
    """Share of the questions of both with all evidence among the first 8, for every system in the file and for ours.

    Evidence is given there by title, so a passage counts by its title; ours are cut to 8 passages, as theirs were.
    """
    rows = {str(row["question"]): row for row in read_lines(path)}
    both = [(place, rows[case.question]) for place, case in enumerate(cases) if case.question in rows]
    if not both:
        raise BadCases(f"{path} and the questions have no question in common; give the runs of the same questions")
    systems = [name for name, value in both[0][1].items() if name != GOLD and isinstance(value, list)]
    found = {
        f"published: {name}": [_has_all(row[name], row[GOLD]) for _, row in both] for name in systems
    }  # fmt: skip
    for name, one in scores.items():
        shown = ([titles.get(document, "") for document in one.rankings[place].documents] for place, _ in both)
        found[name] = [_has_all(ranked, row[GOLD]) for ranked, (_, row) in zip(shown, both, strict=True)]
    return {
        "questions": len(both),
        "k": FIRST,
        "all_evidence": {
            name: {
                "share": round(float(np.mean(values)), 4),
                "ci95": [round(end, 4) for end in interval(_floats(values))],
            }
            for name, values in found.items()
        },
    }


def _has_all(ranked: Sequence[str], gold: Sequence[str]) -> bool:
    return set(gold).issubset(ranked[:FIRST])


def _floats(values: Sequence[bool]) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.array(values, np.float64)
