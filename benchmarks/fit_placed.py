"""Fit the ranking of questions that are asked from a place and write `models/fitted/placed.json`.

    hades eval citations --sample 1000 --seed 7 --home HOME python benchmarks/fit_placed.py HOME
    [--sample 1000] [--seed 7] [--without 300:2] [--most 450] [--out FILE]

The questions are citation sentences of HADES_DATA/arxiv, asked from the paper they stand in; the
gold are the papers that they cite. HOME was built without the citations that its own sample asks
for, which is checked. `--without SAMPLE:SEED` leaves out the sentences whose citations that other
sample asks for, so that it can be evaluated later; of the others `--most` are drawn. The fit is
listwise; figures are cross-validated over four parts, the sentences of one paper in one part.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from linear_fit import fit_listwise

from benchmarks.evaluation.arxiv import citation_cases, read_papers, test_citations
from benchmarks.evaluation.cases import Case
from benchmarks.evaluation.citations import require_withheld
from hades.budget import Caps, Turn
from hades.retrieval.core.metered_view import MeteredView
from hades.retrieval.core.types import Question
from hades.retrieval.features.passages import Columns
from hades.retrieval.search.near_document import (
    PlacedCandidates,
    gather_placed,
    nodes_near,
    read_placed,
)
from hades.settings.load import load_settings
from hades.snapshot.open import open_snapshot
from hades.snapshot.view import GraphView
from hades.wiring import open_build_context, open_embedder
from schemas.plan import Plan, Profile

Floats = NDArray[np.float64]
CAPS = Caps(docs_max=10_000, work_max=100_000_000, latency_ms=600_000)
READ = Plan(profile=Profile.EVALUATION).reranker.m
DEPTH, PARTS = 10, 4


@dataclass(frozen=True)
class PlacedCase:
    """One sentence: its candidates, all of them read, and which are gold."""

    question: Question
    found: PlacedCandidates
    read: Columns  # of all candidates
    documents: list[str]
    gold: frozenset[str]
    source: str

    @property
    def wanted(self) -> Floats:
        """1 for gold passages."""
        return np.array([float(document in self.gold) for document in self.documents])


def main() -> None:
    """Gather, fit, report, write."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("home", type=Path, metavar="HOME")
    options.add_argument("--sample", type=int, default=1000)
    options.add_argument("--seed", type=int, default=7)
    options.add_argument("--without", default="300:2", metavar="SAMPLE:SEED")
    options.add_argument("--most", type=int, default=450)
    options.add_argument("--penalty", type=float, default=0.01)
    options.add_argument("--out", type=Path, default=ROOT / "models" / "fitted" / "placed.json")
    asked = options.parse_args()
    folder = Path(os.environ.get("HADES_DATA", ROOT.parent / "shared" / "data")) / "arxiv"
    contexts = folder / "citation_contexts.jsonl.gz"
    drawn = draw(folder, asked.sample, asked.seed, asked.without, asked.most)
    cases = gather(asked.home, drawn)
    weights = fit(cases, asked.penalty)
    command = f"python benchmarks/fit_placed.py HOME --sample {asked.sample} --seed {asked.seed}"
    command += f" --without {asked.without} --most {asked.most}"
    body = {
        "version": 1,
        "data_sha256": {"arxiv": hashlib.sha256(contexts.read_bytes()).hexdigest()},
        "metric": {
            "citations, cross-validated": cross_validate(cases, asked.penalty),
            "sentences": len(cases),
        },
        "command": command,
        "first": named(cases[0].found.columns, weights[0]),
        "second": named(cases[0].read, weights[1]),
    }
    asked.out.write_text(json.dumps(body, indent=1) + "\n", "utf-8")
    print(json.dumps(body["metric"], indent=1))


def draw(folder: Path, sample: int, seed: int, without: str, most: int) -> list[Case]:
    """Sentences of a sample, at most the given number, without those that ask for a citation of the
    other sample.
    """
    titles, contexts = (
        read_papers(folder / "papers.jsonl.gz"),
        folder / "citation_contexts.jsonl.gz",
    )
    other_sample, other_seed = map(int, without.split(":"))
    apart = (
        test_citations(citation_cases(contexts, titles, other_sample, other_seed))
        if other_sample
        else set()
    )
    cases = citation_cases(contexts, titles, sample, seed)
    left = [case for case in cases if not test_citations([case]) & apart]
    random.Random(1).shuffle(left)
    return left[:most]


def gather(home: Path, cases: Sequence[Case]) -> list[PlacedCase]:
    """Every sentence with its candidates; a home that knows one of the citations is refused."""
    settings = load_settings({"HADES_HOME": str(home)}, home)
    with open_build_context(settings) as context:
        require_withheld(context.store, test_citations(cases))
    embedder = open_embedder(settings)
    vectors = embedder.embed([case.question for case in cases])
    view = open_snapshot(home)
    return [
        gather_one(view, case, vector, embedder.model.tag)
        for case, vector in zip(cases, vectors, strict=True)
    ]


def gather_one(view: GraphView, case: Case, vector: NDArray[np.float32], model: str) -> PlacedCase:
    """The candidates of one sentence."""
    metered = MeteredView(view, Turn(CAPS))
    question = Question(case.question, vector, model, near=nodes_near(metered, case.near))
    found = gather_placed(metered, question)
    passages = metered.passages(found.nodes)
    documents = [one.document for one in passages]
    return PlacedCase(
        question, found, read_placed(question, found, passages), documents, case.gold, case.near[0]
    )


def fit(cases: Sequence[PlacedCase], penalty: float) -> tuple[Floats, Floats]:
    """Coefficients of both looks; the second sees what the first brings up."""
    usable = [one for one in cases if 0 < one.wanted.sum() < len(one.documents)]
    counts = [1.0 / len(usable)] * len(usable)
    tables = [table(one.found.columns) for one in usable]
    first = fit_listwise(tables, [one.wanted for one in usable], counts, penalty)
    seen = [(one, best(own @ first)) for one, own in zip(usable, tables, strict=True)]
    seen = [(one, rows) for one, rows in seen if 0 < one.wanted[rows].sum() < len(rows)]
    second = fit_listwise(
        [table(one.read)[rows] for one, rows in seen],
        [one.wanted[rows] for one, rows in seen],
        [1.0 / len(seen)] * len(seen),
        penalty,
    )
    return first, second


def cross_validate(cases: Sequence[PlacedCase], penalty: float) -> dict[str, float]:
    """Recall of each part by what was fitted on the others; papers are dealt out, not sentences."""
    part = {
        source: place % PARTS for place, source in enumerate(sorted({one.source for one in cases}))
    }
    found: list[list[float]] = []
    for held_out in range(PARTS):
        weights = fit([one for one in cases if part[one.source] != held_out], penalty)
        found += [recalls(one, weights) for one in cases if part[one.source] == held_out]
    shares = (100 * np.mean(found, axis=0)).round(1).tolist()
    return dict(zip(("recall@2", "recall@5", "recall@10"), shares, strict=True))


def recalls(case: PlacedCase, weights: tuple[Floats, Floats]) -> list[float]:
    """The share of the gold among the first 2, 5 and 10."""
    rows = best(table(case.found.columns) @ weights[0])
    order = rows[np.argsort(-(table(case.read)[rows] @ weights[1]), kind="stable")]
    ranked = [case.documents[row] for row in order.tolist()]
    ranked = [document for document in dict.fromkeys(ranked) if document != case.source]
    return [len(case.gold & set(ranked[:k])) / len(case.gold) for k in (2, 5, DEPTH)]


def best(worth: Floats) -> NDArray[np.int64]:
    """The rows that would be read."""
    return np.argsort(-worth, kind="stable")[:READ]


def table(columns: Columns) -> Floats:
    """(n, columns) as an array."""
    return np.column_stack(list(columns.values()))


def named(columns: Columns, weights: Floats) -> dict[str, float]:
    """Coefficients by column."""
    return dict(zip(columns, np.round(weights, 4).tolist(), strict=True))


if __name__ == "__main__":
    main()
