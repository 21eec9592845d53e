"""Fit the coefficients of `hades.retrieval.features.passages` and report figures on unseen sets.

    python benchmarks/fit_closer.py NAME=HOME [NAME=HOME ...] [--penalty 0.1] [--json FILE]

NAME is a folder of HADES_DATA with questions.jsonl.gz, HOME a published home of its corpus with
MiniLM vectors. The fit is listwise: the share of the softmax over a question's passages that lies
on its gold passages, each set counting the same. "left out" is fitted without the sets of the same
family (musique_train and musique_openie are of musique's).
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from linear_fit import fit_listwise

from hades.budget import Caps, Turn
from hades.retrieval.core.metered_view import MeteredView
from hades.retrieval.core.types import Question
from hades.retrieval.features.passages import pairwise_features as second_look
from hades.retrieval.features.passages import passage_features as first_look
from hades.retrieval.features.sentences import hold_shares
from hades.retrieval.search.walk_search import HippoRules, WalkFindings, WalkSearch
from hades.settings.load import load_settings
from hades.snapshot.open import open_snapshot
from hades.wiring import open_embedder

Floats = NDArray[np.float64]
CAPS = Caps(docs_max=400, work_max=100_000_000, latency_ms=600_000)


@dataclass(frozen=True)
class Case:
    """One question: what was gathered, what the first look saw, and which passages are gold; `gold`
    are documents.
    """

    gathered: WalkFindings
    columns: dict[str, Floats]
    linked: Floats
    documents: list[str]
    gold: frozenset[str]

    @property
    def wanted(self) -> Floats:
        """1 for gold passages."""
        return np.array([float(document in self.gold) for document in self.documents])

    def first(self) -> Floats:
        """(n, columns) of the first look."""
        return np.column_stack(list(self.columns.values()))

    def second(self, weights: Floats) -> tuple[list[str], Floats]:
        """Names and (n, columns) of the second look."""
        holds = hold_shares(self.gathered.pool.readings, self.gathered.want)
        seen = second_look(self.first() @ weights, self.linked, holds)
        return list(seen), np.column_stack(list(seen.values()))


def main() -> None:
    """Gather, fit, print."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("sets", nargs="+", metavar="NAME=HOME")
    options.add_argument("--penalty", type=float, default=0.1)
    options.add_argument("--json", type=Path)
    asked = options.parse_args()
    data = Path(os.environ.get("HADES_DATA", ROOT.parent / "shared" / "data"))
    sets = {
        name: cases(data / name, Path(home))
        for name, _, home in (one.partition("=") for one in asked.sets)
    }
    weights = fitted(list(sets.values()), asked.penalty)
    body: dict[str, Any] = {"sets": {}}
    for name, own in sets.items():
        family = name.partition("_")[0]
        others = [cases for other, cases in sets.items() if other.partition("_")[0] != family]
        figures = {"fitted": recall(own, weights)}
        if others:
            figures["left out"] = recall(own, fitted(others, asked.penalty))
        body["sets"][name] = figures
        for how, (share, whole) in figures.items():
            print(f"{name:18}{how:10} R@5 {100 * share:5.1f}   all gold in 5 {100 * whole:5.1f}")
    first, second = weights
    example = next(iter(sets.values()))[0]
    body["FIRST"] = dict(zip(example.columns, np.round(first, 2).tolist(), strict=True))
    body["SECOND"] = dict(zip(example.second(first)[0], np.round(second, 2).tolist(), strict=True))
    print(json.dumps(body, indent=1))
    if asked.json:
        asked.json.write_text(json.dumps(body, indent=1), "utf-8")


def cases(folder: Path, home: Path) -> list[Case]:
    """Every question of a set, gathered from its published home."""
    with gzip.open(folder / "questions.jsonl.gz", "rt", encoding="utf-8") as lines:
        questions = [json.loads(line) for line in lines]
    embedder = open_embedder(load_settings({"HADES_HOME": str(home)}, home))
    vectors = embedder.embed([question["question"] for question in questions])
    view = open_snapshot(home)
    found = []
    for question, vector in zip(questions, vectors, strict=True):
        asked = Question(question["question"], vector, embedder.model.tag)
        gathered = WalkSearch(MeteredView(view, Turn(CAPS)), asked, HippoRules()).run()
        columns, linked = first_look(gathered.pool, gathered.want)
        documents = [
            passage.document for passage in view.passages(np.array(gathered.nodes, np.int64))
        ]
        found.append(Case(gathered, columns, linked, documents, frozenset(question["gold"])))
    return found


def fitted(sets: list[list[Case]], penalty: float) -> tuple[Floats, Floats]:
    """Coefficients of both looks."""
    rows = [
        (case, 1.0 / len(cases))
        for cases in sets
        for case in cases
        if 0 < case.wanted.sum() < len(case.documents)
    ]
    counts = [weight for _, weight in rows]
    wanted = [case.wanted for case, _ in rows]
    first = fit_listwise([case.first() for case, _ in rows], wanted, counts, penalty)
    second = fit_listwise([case.second(first)[1] for case, _ in rows], wanted, counts, penalty)
    return first, second


def recall(cases: list[Case], weights: tuple[Floats, Floats], k: int = 5) -> tuple[float, float]:
    """Mean recall of gold documents in the first k, and the share of questions with all of them
    there.
    """
    shares = []
    for case in cases:
        order = np.argsort(-(case.second(weights[0])[1] @ weights[1]), kind="stable")
        first = list(dict.fromkeys(case.documents[row] for row in order.tolist()))[:k]
        shares.append(len(case.gold & set(first)) / len(case.gold))
    return float(np.mean(shares)), float(np.mean([share == 1.0 for share in shares]))


if __name__ == "__main__":
    main()
