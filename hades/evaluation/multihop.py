"""Multi-hop questions over a corpus: build a graph of its own, ask, and say what was found beside the baselines."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hades.evaluation.abstention import ask_unanswerable, summarise_abstention
from hades.evaluation.build import Workbench, build
from hades.evaluation.cases import Case, digest, read_cases, read_lines
from hades.evaluation.harness import Scores, alpha_of, run, summarise
from hades.evaluation.ladder import Rung, notes
from hades.evaluation.published import compare_published
from hades.evaluation.rankings import Bench, CachingEmbedder, baselines
from hades.ports.view import GraphView
from hades.snapshot.open import open_snapshot

DEFAULT = "auto,auto/online,hipporag,hirag_pathrag,pathrag,nexus"


@dataclass(frozen=True)
class Evaluation:
    """The summary as scripts read it, and every question's figures for plots and tests."""

    document: dict[str, Any]
    scores: dict[str, Scores]
    unanswerable: dict[str, list[float]] = field(default_factory=dict)  # confidence in questions without an answer


def evaluate_multihop(
    bench: Workbench,
    corpus: Path,
    questions: Path,
    *,
    triples: Path | None = None,
    published: Path | None = None,
    rungs: Sequence[Rung],
    ks: Sequence[int] = (2, 5, 10),
    unanswerable: Sequence[str] = (),
) -> Evaluation:
    """Build, ask every rung and every baseline, sum up.

    `unanswerable` are questions of the corpus that it does not answer: how sure each rung is of them is measured too.
    """
    cases = read_cases(questions)
    titles = {str(row["id"]): str(row.get("title", "")) for row in read_lines(corpus)}
    built = build(bench, lambda ingest: ingest.passages(corpus, triples))
    files = [path for path in (corpus, questions, triples) if path is not None]
    data = {"passages": len(titles), "questions": len(cases), "sha256": digest(files), "triples": triples is not None}
    with closing(open_snapshot(bench.build_context.home)) as view:
        found = measure(bench, view, cases, rungs, ks, middle_of(ks), unanswerable)
    document = {"dataset": data, "build": built, **found.document}
    if published is not None:
        document["published"] = compare_published(published, titles, cases, found.scores)
    return Evaluation(document, found.scores, found.unanswerable)


def measure(
    bench: Workbench,
    view: GraphView,
    cases: Sequence[Case],
    rungs: Sequence[Rung],
    ks: Sequence[int],
    middle: int,
    unanswerable: Sequence[str] = (),
) -> Evaluation:
    """Ask a published graph: the baselines, whoever asks, then the rungs."""
    embedder = CachingEmbedder(bench.embedder)
    embedding_ms = embedder.learn(case.question for case in cases)
    asked = Bench(view, embedder, bench.tokenizer, bench.rules, bench.walk)
    rankers = baselines(asked)
    if beside := [case.beside for case in cases if case.beside]:
        embedder.embed(beside)
        rankers |= baselines(asked, placed=True)
    ours = {rung.name: rung.ranker(asked) for rung in rungs}
    rankers |= ours
    scores = run(cases, rankers, ks, bench.build_context.progress)
    doubtful = ask_unanswerable(unanswerable, ours)
    document = {
        "snapshot": view.info.snapshot,
        "model": embedder.model.tag,
        "embedding_ms": round(embedding_ms, 3),
        "compared_at": middle,
        "recipes": summarise(cases, scores, ks, middle),
        "abstention": summarise_abstention(cases, scores, doubtful),
        "alpha": alpha_of(scores),
        "notes": notes(view),
    }
    return Evaluation(document, scores, doubtful)


def middle_of(ks: Sequence[int], wanted: int = 5) -> int:
    """The depth that recipes are compared at: the usual one where it is measured, else the first."""
    return wanted if wanted in ks else ks[0]
