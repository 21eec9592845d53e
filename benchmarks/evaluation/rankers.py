"""Ours by recipe, and the baselines, as rankers of documents."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from benchmarks.evaluation.cases import Case
from hades.evaluation.rankers import (
    PLAN,
    SHOWN,
    Bench,
    Search,
    ask,
    baseline_searches,
    ms_since,
)
from hades.snapshot.view import GraphView
from schemas.answer import Conveyance, Retrieval
from schemas.plan import Plan

BASELINES = ("bm25", "dense", "fusion")
# The same, with the text in which the question stands.
PLACED = ("bm25+source", "dense+source", "fusion+source")


@dataclass(frozen=True)
class Ranking:
    """Documents as one ranker ordered them for one question, and what that cost.

    `has_answer` says whether the answer stands in the prompt for a language model; None where
    none is known.
    """

    documents: tuple[str, ...]
    ms: float
    reads: int = 0
    tokens: int = 0
    reasons: tuple[str, ...] = ()
    conveyance: Conveyance | None = None
    has_answer: bool | None = None
    on_paths: frozenset[str] | None = (
        None  # documents that lie on a returned path or are cited by one of its edges
    )
    confidence: float | None = None


Ranker = Callable[[Case], Ranking]


def baselines(bench: Bench, *, placed: bool = False) -> dict[str, Ranker]:
    """The searches of `baseline_searches` as rankers of documents; `placed` searches also by what
    is written where a question is asked.
    """
    view = bench.view

    def ranker(search: Search) -> Ranker:
        def rank(case: Case) -> Ranking:
            began = time.perf_counter()
            numbers = search(case.question, case.context if placed else "")
            passages = view.passages(numbers[:SHOWN])
            ms = ms_since(began)
            tokens = sum(passage.token_count for passage in passages)
            has_answer = _has_answer(case, "\n".join(passage.text for passage in passages))
            documents = _documents(case, (passage.document for passage in passages))
            return Ranking(documents, ms, len(passages), tokens, has_answer=has_answer)

        return rank

    suffix = "+source" if placed else ""
    searches = baseline_searches(bench)
    return {f"{name}{suffix}": ranker(search) for name, search in searches.items()}


def path_documents(answer: Retrieval) -> frozenset[str]:
    """The documents that the paths of an answer run through or cite."""
    documents: set[str] = set()
    for path in answer.paths:
        documents.update(node.document for node in path.nodes)
        documents.update(edge.provenance.doc for edge in path.edges)
    return frozenset(documents - {""})


def _documents(case: Case, documents: Iterable[str]) -> tuple[str, ...]:
    """Each document once, in the order of its best passage, without those the question must not
    find.
    """
    return tuple(document for document in dict.fromkeys(documents) if document not in case.excluded)


def _has_answer(case: Case, prompt: str) -> bool | None:
    if not case.answers:
        return None
    plain_prompt = " ".join(prompt.split()).casefold()
    return any(answer in plain_prompt for answer in case.answers)


RANKER = "ranker"  # the part of a snapshot that a learned ranker would be


@dataclass(frozen=True)
class Rung:
    """A recipe with the plan it is asked with, on the graph as it is or on one that lacks a
    part.
    """

    name: str
    recipe: str
    plan: Plan = PLAN
    without: Callable[[GraphView], GraphView] | None = None

    def bench(self, bench: Bench) -> Bench:
        """What it is asked on."""
        return bench if self.without is None else replace(bench, view=self.without(bench.view))

    def ranker(self, bench: Bench) -> Ranker:
        """It as a ranker: the order of its passages, its reads, its tokens."""
        rung_bench = self.bench(bench)

        def rank(case: Case) -> Ranking:
            answer, ms = ask(rung_bench, self.recipe, self.plan, case.question, case.near)
            return Ranking(
                _documents(case, (passage.document for passage in answer.passages)),
                ms,
                reads=answer.telemetry.reads,
                tokens=answer.tokens.prompt,
                reasons=tuple(map(str, answer.reasons)),
                conveyance=answer.conveyance,
                has_answer=_has_answer(case, answer.prompt),
                on_paths=path_documents(answer),
                confidence=answer.confidence,
            )

        return rank


def notes(view: GraphView) -> list[str]:
    """What of the ladder this graph cannot show."""
    if view.info.parts.get(RANKER):
        return []
    return [f"snapshot {view.info.snapshot} has no learned ranker: every rung runs with it off"]
