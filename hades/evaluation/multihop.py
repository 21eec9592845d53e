"""Multi-hop questions over a corpus: build a graph of its own, ask, and say what was found beside the baselines."""

from __future__ import annotations

import resource
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hades.evaluation.cases import Case, digest, read_cases, read_lines
from hades.evaluation.harness import Scores, run, summarise
from hades.evaluation.rankings import MOMENT, Ranker, Remembered, baselines, recipe_ranker
from hades.ingest.door import Ingest
from hades.nightly.site import Site
from hades.nightly.stages import bridge, build_topics, weigh
from hades.ports.text import Embedder, Tokenizer
from hades.ports.view import GraphView
from hades.snapshot.open import open_snapshot
from hades.snapshot.publish import publish
from schemas.plan import Plan, Profile

RECIPES = ("hipporag", "hirag_pathrag", "pathrag", "nexus")


@dataclass(frozen=True)
class Workbench:
    """A home of its own, opened: where the graph of an evaluation is built and asked."""

    site: Site
    ingest: Ingest
    embedder: Embedder
    tokenizer: Tokenizer


@dataclass(frozen=True)
class Evaluated:
    """The summary as scripts read it, and every question's figures for plots and tests."""

    document: dict[str, Any]
    scores: dict[str, Scores]


def evaluate_multihop(
    bench: Workbench,
    corpus: Path,
    questions: Path,
    *,
    triples: Path | None = None,
    recipes: Sequence[str] = RECIPES,
    ks: Sequence[int] = (2, 5, 10),
) -> Evaluated:
    """Build, ask every recipe and every baseline, sum up."""
    cases = read_cases(questions)
    built = build(bench, corpus, triples)
    with_view = open_snapshot(bench.site.home)
    try:
        return measure(bench, with_view, cases, recipes, ks, dataset(corpus, questions, triples, cases), built)
    finally:
        with_view.close()


def build(bench: Workbench, corpus: Path, triples: Path | None) -> dict[str, float]:
    """Ingest, group, weigh, bridge, publish; seconds and peak memory."""
    began = time.perf_counter()
    bench.ingest.passages(corpus, triples)
    build_topics(bench.site, MOMENT)
    weigh(bench.site, MOMENT)
    bridge(bench.site, MOMENT)
    publish(bench.site.store, bench.site.home)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"seconds": round(time.perf_counter() - began, 2), "peak_mb": round(peak, 1)}


def measure(
    bench: Workbench,
    view: GraphView,
    cases: Sequence[Case],
    recipes: Sequence[str],
    ks: Sequence[int],
    data: dict[str, Any],
    built: dict[str, float],
) -> Evaluated:
    """Ask a published graph."""
    questions = [case.question for case in cases]
    began = time.perf_counter()
    embedder = Remembered(bench.embedder.model, dict(zip(questions, bench.embedder.embed(questions), strict=True)))
    embedding_ms = (time.perf_counter() - began) * 1000 / len(questions)
    plan = Plan(profile=Profile.EVALUATION)
    rankers: dict[str, Ranker] = baselines(view, embedder)
    for recipe in recipes:
        rankers[recipe] = recipe_ranker(view, embedder, bench.tokenizer, recipe, plan)
    scores = run(cases, rankers, ks, bench.site.progress)
    document = {
        "dataset": data,
        "build": built,
        "snapshot": view.info.snapshot,
        "model": bench.embedder.model.tag,
        "embedding_ms": round(embedding_ms, 3),
        "recipes": summarise(cases, scores, ks),
    }
    return Evaluated(document, scores)


def dataset(corpus: Path, questions: Path, triples: Path | None, cases: Sequence[Case]) -> dict[str, Any]:
    """What the figures are of."""
    files = [path for path in (corpus, questions, triples) if path is not None]
    return {"passages": sum(1 for _ in read_lines(corpus)), "questions": len(cases), "sha256": digest(files)}
