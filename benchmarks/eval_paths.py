"""Which order of paths puts a good one first, and what a threshold drops: over questions with gold
passages.

    HADES_HOME=HOME python benchmarks/eval_paths.py QUESTIONS.jsonl.gz [--json FILE]

HOME holds the published graph of the questions' corpus. A path of the default's answer is good when
gold passages state all of its edges. Three orders are compared: that of the answer, the reliability
by flow, and the formula of specification 000. The threshold to choose is the largest that keeps 95
of 100 good paths.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import mean

from rich.console import Console
from rich.table import Table

from hades.retrieval.walks.flow import calculate_path_score
from hades.settings.load import load_settings
from hades.wiring import open_hades
from schemas.answer import Path as FoundPath
from schemas.answer import Retrieval

THRESHOLDS = (0.1, 0.05, 0.04, 0.03, 0.02, 0.01, 0.005)
LabelledPaths = list[tuple[FoundPath, bool]]


def main() -> None:
    """Measure, print two tables, and write the figures where asked."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("questions", type=Path)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    with gzip.open(arguments.questions, "rt", encoding="utf-8") as lines:
        asked = [json.loads(line) for line in lines]
    with open_hades(load_settings()) as hades:
        labelled = [
            label(hades.retrieve(one["question"], anyway=True), set(one["gold"])) for one in asked
        ]
    figures = {"orders": compare_orders(labelled), "thresholds": compare_thresholds(labelled)}
    for rows in figures.values():
        show(rows)
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=1))


def label(found: Retrieval, gold: set[str]) -> LabelledPaths:
    """The paths of one answer, each with whether gold passages state it."""
    return [(path, all(edge.provenance.doc in gold for edge in path.edges)) for path in found.paths]


def score_as_specified(path: FoundPath) -> float:
    """The formula of specification 000, as a client that holds the path's JSON computes it."""
    edges = [{"_from": one.source, "_to": one.target, "weight": one.weight} for one in path.edges]
    vertices = [{"_id": node.id} for node in path.nodes]
    return calculate_path_score({"vertices": vertices, "edges": edges}, vertices[0], scoring="v0")


def compare_orders(questions: Sequence[LabelledPaths]) -> dict[str, dict[str, float]]:
    """For each order: how often the first path is good, and the mean reciprocal rank of the first
    good one.
    """
    orders: dict[str, Callable[[FoundPath], float]] = {
        "answer": lambda path: path.rank,
        "reliability by flow": lambda path: -path.reliability,
        "specification 000": lambda path: -score_as_specified(path),
    }
    figures = {}
    told = [one for one in questions if any(good for _, good in one)]
    for name, order in orders.items():
        ranks = [
            [good for _, good in sorted(one, key=lambda pair: order(pair[0]))].index(True) + 1
            for one in told
        ]
        figures[name] = {
            "questions": float(len(told)),
            "first is good": mean(rank == 1 for rank in ranks),
            "mean reciprocal rank": mean(1.0 / rank for rank in ranks),
        }
    return figures


def compare_thresholds(questions: Sequence[LabelledPaths]) -> dict[str, dict[str, float]]:
    """For each threshold on the reliability: the good paths and the others it keeps, and questions
    left without one.
    """
    scored = [(path.reliability, good) for one in questions for path, good in one]
    return {
        str(threshold): {
            name: mean(value >= threshold for value, good in scored if good is wanted)
            for name, wanted in (("good kept", True), ("others kept", False))
        }
        | {
            "left without": mean(
                all(path.reliability < threshold for path, _ in one) for one in questions if one
            )
        }
        for threshold in THRESHOLDS
    }


def show(figures: dict[str, dict[str, float]]) -> None:
    """One row an order or a threshold."""
    table = Table("", *next(iter(figures.values())))
    for name, row in figures.items():
        table.add_row(name, *(f"{value:,.4g}" for value in row.values()))
    Console().print(table)


if __name__ == "__main__":
    main()
