"""How the flow's threshold was chosen: recall, paths and work at each candidate, over questions with gold passages.

    HADES_HOME=HOME python benchmarks/flow_threshold.py QUESTIONS.jsonl.gz [--json FILE]

HOME holds the published graph of the questions' corpus. Seeds are the entities a question names and the six nearest to
it; passages are ranked by what the flow brought to the entities they name. The threshold to choose is the largest that
still has the recall of the smaller ones: below it, flow only costs.
"""

from __future__ import annotations

import argparse
import gzip
import json
import statistics
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from hades.ports.graph import Kind
from hades.retrieval.core.metered_view import MeteredView
from hades.retrieval.core.types import Question, Seed
from hades.retrieval.search.code_passages import passages_of
from hades.retrieval.walks.flow import FlowRules, flow_paths
from hades.settings.load import load_settings
from hades.snapshot.open import open_snapshot
from hades.snapshot.view import GraphView
from hades.telemetry.turn import Caps, Turn
from hades.wiring import open_embedder

THRESHOLDS = (0.1, 0.03, 0.01, 0.005, 0.003, 0.001, 0.0003)
NAMED, NEAREST, FIRST = 0.9, 6, 5


def main() -> None:
    """Measure, print a table, and write the figures where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("questions", type=Path)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    settings = load_settings()
    view = open_snapshot(settings.home)
    with gzip.open(arguments.questions, "rt", encoding="utf-8") as lines:
        asked = [json.loads(line) for line in lines]
    embedder = open_embedder(settings)
    model = view.info.models[Kind.ENTITY][0]
    vectors = embedder.embed([one["question"] for one in asked])
    questions = [Question(one["question"], vector, model) for one, vector in zip(asked, vectors, strict=True)]
    golds = [set(one["gold"]) for one in asked]
    figures = {str(theta): measure(view, questions, golds, theta) for theta in THRESHOLDS}
    show(figures)
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=1))


def measure(view: GraphView, questions: list[Question], golds: list[set[str]], theta: float) -> dict[str, float]:
    """What one threshold gives, in the mean over the questions."""
    recalls, paths, reached, work = [], [], [], []
    for question, gold in zip(questions, golds, strict=True):
        account = MeteredView(view, Turn(Caps(160, 10**9, 1e9)))
        seeds = seeds_of(view, question)
        flow = flow_paths(account, question, seeds, FlowRules(theta=theta))
        mass = dict(zip(flow.reached.tolist(), flow.resource.tolist(), strict=True))
        for seed in seeds:
            mass[seed.node] = mass.get(seed.node, 0.0) + seed.score
        found = passages_of(account, question, mass, flow.paths, limit=4 * FIRST)
        documents = [one.document for one in view.passages(np.array([passage.node for passage in found], np.int64))]
        recalls.append(len(gold & set(list(dict.fromkeys(documents))[:FIRST])) / len(gold))
        paths.append(flow.pruned_from)
        reached.append(len(flow.reached))
        work.append(account.turn.work_spent)
    names = (f"recall@{FIRST}", "paths", "reached", "work")
    columns: list[list[float]] = [recalls, list(map(float, paths)), list(map(float, reached)), list(map(float, work))]
    return {name: statistics.mean(column) for name, column in zip(names, columns, strict=True)}


def seeds_of(view: GraphView, question: Question) -> list[Seed]:
    """Entities the question names, and those nearest to it."""
    assert question.vector is not None
    near = view.nearest(question.vector, kind=Kind.ENTITY, model=question.model, limit=NEAREST)
    scores = dict(zip(near.numbers.tolist(), near.scores.tolist(), strict=True))
    for node in view.match_names(question.text).numbers.tolist():
        scores[node] = max(scores.get(node, 0.0), NAMED)
    return [Seed(node, min(1.0, score)) for node, score in scores.items()]


def show(figures: dict[str, dict[str, float]]) -> None:
    """One row a threshold."""
    table = Table("threshold", *next(iter(figures.values())))
    for theta, row in figures.items():
        table.add_row(theta, *(f"{value:,.4g}" for value in row.values()))
    Console().print(table)


if __name__ == "__main__":
    main()
