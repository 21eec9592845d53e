"""Fit the two weights that rank single functions for a plain question: of words and of vectors.

    python -m benchmarks.fit_code_functions --files functions.jsonl.gz --questions questions.jsonl.gz

A softmax over the first hundred functions of each question, by gradient ascent. Five folds of questions: the figure
that is printed and stored is that of questions which the weights never saw. The weights written are fitted on all.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hades.evaluation.cases import Case, digest, read_cases
from hades.evaluation.code_cases import FunctionRow, read_functions
from hades.ports.text import Embedder
from hades.retrieval.code.evidence import unit_scale
from hades.retrieval.code.functions import describe_function, question_forms
from hades.retrieval.code.index import CodeIndex, CodeUnit
from hades.retrieval.code.ranker import FORMAT
from hades.retrieval.code.words import code_terms
from hades.settings import load_settings
from hades.wiring import open_embedder

PLACE = Path(__file__).parents[1] / "models" / "code_ranker" / "functions.json"
COMMAND = (
    "python -m benchmarks.fit_code_functions --files cosqa/functions.jsonl.gz --questions cosqa/questions.jsonl.gz"
)
NAMES = ("cosine", "words")
VERSION = 2
FOLDS, POOL, STEPS, RATE, SHRINK = 5, 100, 200, 0.3, 1e-3
Floats = NDArray[np.float64]


def main() -> None:
    """Measure, fit, judge, write."""
    options = _options()
    rows, cases = read_functions(options.files), read_cases(options.questions)
    values = measure(rows, cases, open_embedder(load_settings()))
    place = {row.id: number for number, row in enumerate(rows)}
    gold = [np.array(sorted(place[one] for one in case.gold), np.int64) for case in cases]
    fold = np.random.default_rng(0).permutation(len(cases)) % FOLDS
    ranks = np.zeros(len(cases))
    for held in range(FOLDS):
        weights = fit_weights(values, gold, np.flatnonzero(fold != held))
        for case in np.flatnonzero(fold == held).tolist():
            ranks[case] = _reciprocal_rank(values[case] @ weights, gold[case])
    metric = {"mrr_five_folds": round(float(ranks.mean()), 4), "questions": len(cases)}
    weights = fit_weights(values, gold, np.arange(len(cases)))
    stored = {
        "format": FORMAT,
        "version": VERSION,
        "data_sha256": digest([options.files, options.questions]),
        "metric": metric,
        "command": COMMAND,
        "weights": dict(zip(NAMES, np.round(weights, 2).tolist(), strict=True)),
    }
    PLACE.write_text(json.dumps(stored) + "\n", encoding="utf-8")
    print(json.dumps({**metric, "weights": stored["weights"]}))


def measure(rows: Sequence[FunctionRow], cases: Sequence[Case], embedder: Embedder) -> Floats:
    """(questions, functions, 2): cosine of the description, and BM25 of the words as a share of the best."""
    index = CodeIndex([CodeUnit(row.id, row.name, "function", 1, 1, row.text) for row in rows])
    described = np.stack(list(embedder.embed([describe_function(row.name, row.text) for row in rows])))
    values = np.zeros((len(cases), len(rows), len(NAMES)))
    for number, case in enumerate(cases):
        asked = np.mean(list(embedder.embed(list(question_forms(case.question)))), axis=0)
        terms = index.words.terms
        query = {terms[word]: 1.0 for word in set(code_terms(case.question)) if word in terms}
        values[number, :, 0] = described @ asked
        values[number, :, 1] = unit_scale(index.unit_postings.score(query))
    return values


def fit_weights(values: Floats, gold: Sequence[NDArray[np.int64]], chosen: NDArray[np.int64]) -> Floats:
    """Weights that make the wanted functions likely among the best of their question (Adam, Kingma and Ba 2015)."""
    rows, right = [], []
    for case in chosen.tolist():
        pool = np.argsort(-(2 * values[case, :, 0] + values[case, :, 1]), kind="stable")[:POOL]
        wanted = np.isin(pool, gold[case])
        if wanted.any():
            rows.append(values[case, pool])
            right.append(wanted / wanted.sum())
    stacked, target = np.stack(rows), np.stack(right)
    weights, first, second = np.array([10.0, 0.0]), np.zeros(2), np.zeros(2)
    for step in range(1, STEPS + 1):
        scores = stacked @ weights
        chance = np.exp(scores - scores.max(1, keepdims=True))
        chance /= chance.sum(1, keepdims=True)
        slope = np.einsum("qpk,qp->k", stacked, target - chance) / len(stacked) - SHRINK * weights
        first, second = 0.9 * first + 0.1 * slope, 0.99 * second + 0.01 * slope**2
        weights = weights + RATE * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.99**step)) + 1e-8)
    return np.asarray(weights)


def _reciprocal_rank(scores: Floats, gold: NDArray[np.int64]) -> float:
    return 1.0 / (1 + int((scores > scores[gold].max()).sum()))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=Path, required=True, help="rows of id, name, text")
    parser.add_argument("--questions", type=Path, required=True, help="rows of id, question, gold")
    return parser.parse_args()


if __name__ == "__main__":
    main()
