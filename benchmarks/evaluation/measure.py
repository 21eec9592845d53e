"""A published graph, asked by baselines and recipes: every figure of every question."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any

from benchmarks.evaluation.cases import Case
from benchmarks.evaluation.metrics import (
    Scores,
    alpha_of,
    ask_unanswerable,
    run,
    summarise,
    summarise_abstention,
)
from benchmarks.evaluation.rankers import Rung, baselines, notes
from benchmarks.evaluation.workbench import Workbench
from hades.evaluation.rankers import Bench, CachingEmbedder
from hades.snapshot.open import open_snapshot


@dataclass(frozen=True)
class Evaluation:
    """The summary as scripts read it, and every question's figures for plots and tests."""

    document: dict[str, Any]
    scores: dict[str, Scores]
    unanswerable: dict[str, list[float]] = field(
        default_factory=dict
    )  # confidence in questions without an answer


def measure(
    bench: Workbench,
    cases: Sequence[Case],
    rungs: Sequence[Rung],
    ks: Sequence[int],
    middle: int,
    unanswerable: Sequence[str] = (),
) -> Evaluation:
    """Ask the published graph: the baselines, whoever asks, then the rungs."""
    embedder = CachingEmbedder(bench.ingest.embedder)
    embedding_ms = embedder.learn(case.question for case in cases)
    with closing(open_snapshot(bench.build_context.home)) as view:
        cached_bench = Bench(view, replace(bench.tools, embedder=embedder))
        rankers = baselines(cached_bench)
        if context_texts := [case.context for case in cases if case.context]:
            embedder.embed(context_texts)
            rankers |= baselines(cached_bench, placed=True)
        ours = {rung.name: rung.ranker(cached_bench) for rung in rungs}
        scores = run(cases, rankers | ours, ks, bench.build_context.progress)
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


def middle_of(ks: Sequence[int], preferred: int = 5) -> int:
    """The depth that recipes are compared at: the usual one where it is measured, else the
    first.
    """
    return preferred if preferred in ks else ks[0]
