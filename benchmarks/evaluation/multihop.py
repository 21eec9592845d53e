"""Questions over a corpus of passages, several of which each needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.evaluation.cases import Case, read_cases
from benchmarks.evaluation.measure import Evaluation, measure, middle_of
from benchmarks.evaluation.metrics import Scores, all_gold_at, interval
from benchmarks.evaluation.rankers import Rung
from benchmarks.evaluation.workbench import Workbench, build
from hades.evaluation.cases import BadCases, digest, read_lines, read_unanswerable
from hades.evaluation.figures import rounded

FIRST = 8  # titles that the published runs kept
GOLD = "ground_truth"


def compare_published(
    path: Path, titles: Mapping[str, str], cases: Sequence[Case], scores: Mapping[str, Scores]
) -> dict[str, Any]:
    """Share of the questions of both with all evidence among the first 8, for every system in the
    file and for ours.

    Evidence is given there by title, so a passage counts by its title; ours are cut to 8 passages,
    as theirs were.
    """
    rows = {str(row["question"]): row for row in read_lines(path)}
    both = [
        (place, rows[case.question]) for place, case in enumerate(cases) if case.question in rows
    ]
    if not both:
        raise BadCases(
            f"{path} and the questions have no question in common; give the runs of the same "
            "questions"
        )
    systems = [
        name for name, value in both[0][1].items() if name != GOLD and isinstance(value, list)
    ]
    shown: dict[str, list[list[str]]] = {}
    for name in systems:
        shown[f"published: {name}"] = [row[name] for _, row in both]
    for name, system_scores in scores.items():
        rankings = system_scores.rankings
        shown[name] = [_titles_of(rankings[place].documents, titles) for place, _ in both]
    gold = [frozenset(row[GOLD]) for _, row in both]
    shares = {}
    for name, lists in shown.items():
        pairs = zip(lists, gold, strict=True)
        values = np.array([all_gold_at(ranked, evidence, FIRST) for ranked, evidence in pairs])
        ends = [rounded(end) for end in interval(values)]
        shares[name] = {"share": rounded(values.mean()), "ci95": ends}
    return {"questions": len(both), "k": FIRST, "all_evidence": shares}


def _titles_of(documents: Sequence[str], titles: Mapping[str, str]) -> list[str]:
    return [titles.get(document, "") for document in documents]


DEFAULT = "auto,auto/online,hipporag,hirag_pathrag,pathrag,nexus"


def evaluate_multihop(
    bench: Workbench,
    corpus: Path,
    questions: Path,
    *,
    triples: Path | None = None,
    published: Path | None = None,
    rungs: Sequence[Rung],
    ks: Sequence[int] = (2, 5, 10),
) -> Evaluation:
    """Build, ask every rung and every baseline, sum up; how sure each rung is of what has no answer
    is measured too.
    """
    cases, unanswerable = read_cases(questions), read_unanswerable(questions)
    titles = {str(row["id"]): str(row.get("title", "")) for row in read_lines(corpus)}
    built = build(bench, lambda ingest: ingest.passages(corpus, triples))
    files = [path for path in (corpus, questions, triples) if path is not None]
    dataset = {
        "passages": len(titles),
        "questions": len(cases),
        "sha256": digest(files),
        "triples": triples is not None,
    }
    evaluation = measure(bench, cases, rungs, ks, middle_of(ks), unanswerable)
    document = {"dataset": dataset, "build": built, **evaluation.document}
    if published is not None:
        document["published"] = compare_published(published, titles, cases, evaluation.scores)
    return Evaluation(document, evaluation.scores, evaluation.unanswerable)
