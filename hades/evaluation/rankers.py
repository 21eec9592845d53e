"""Ours by recipe, baselines, ablations."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from hades.evaluation.cases import Case
from hades.ingest.ingest import Ingest
from hades.night.context import BuildContext
from hades.ports.graph import Kind
from hades.ports.services import RememberingEmbedder
from hades.retrieval.core.types import AUTO, NAMES_OF_RECIPES, UnknownRecipe
from hades.retrieval.core.words import subqueries
from hades.retrieval.pipeline import Tools, retrieve
from hades.snapshot.view import GraphView
from schemas.answer import Conveyance, Retrieval
from schemas.plan import Plan, Profile

# What is measured of one question, and the rankers that give it: ours by recipe, and the baselines,
# always.
MOMENT = datetime(
    2026, 1, 1, tzinfo=UTC
)  # an evaluation stands still in time, so that its figures can be had again
PLAN = Plan(profile=Profile.EVALUATION)
SHOWN = (
    PLAN.final_context
)  # passages of every ranking, ours and the baselines'; beyond them nothing is counted
DEPTH = 100  # passages of each search that the fusion looks at
RRF = 60.0  # the usual constant of reciprocal rank fusion
BASELINES = ("bm25", "dense", "fusion")
PLACED = (
    "bm25+source",
    "dense+source",
    "fusion+source",
)  # the same, with the text in which the question stands


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


def ms_since(began: float) -> float:
    """Milliseconds since a reading of `time.perf_counter`."""
    return (time.perf_counter() - began) * 1000


class CachingEmbedder(RememberingEmbedder):
    """An embedder that knows the questions ahead, so that a turn is timed without the model."""

    def learn(self, questions: Iterable[str]) -> float:
        """Embed questions and their sub-queries ahead; milliseconds a text."""
        parts = chain.from_iterable(subqueries(question, PLAN.q) for question in questions)
        texts = list(dict.fromkeys(parts))
        began = time.perf_counter()
        self.embed(texts)
        return ms_since(began) / len(texts)


@dataclass(frozen=True)
class Bench:
    """A published graph and what asking it needs."""

    view: GraphView
    tools: Tools


Search = Callable[[Case], NDArray[np.int64]]


def baseline_searches(bench: Bench, *, placed: bool = False) -> dict[str, Search]:
    """BM25, cosine and their reciprocal rank fusion over chunks, each giving numbers of chunks,
    best first.

    `placed` gives those that also know what is written where a question is asked: BM25 searches by
    both texts, cosine by the mean of both vectors.
    """
    view, embedder = bench.view, bench.tools.embedder
    assert embedder is not None

    def bm25(case: Case) -> NDArray[np.int64]:
        text = f"{case.question} {case.context}" if placed else case.question
        return view.lexical(text, kind=Kind.CHUNK, limit=DEPTH).numbers

    def dense(case: Case) -> NDArray[np.int64]:
        texts = [case.question, case.context] if placed and case.context else [case.question]
        vector = embedder.embed(texts).mean(axis=0)
        return view.nearest(vector, kind=Kind.CHUNK, model=embedder.model.tag, limit=DEPTH).numbers

    def fused(case: Case) -> NDArray[np.int64]:
        scores: dict[int, float] = {}
        for numbers in (bm25(case), dense(case)):
            for place, number in enumerate(numbers.tolist(), 1):
                scores[number] = scores.get(number, 0.0) + 1.0 / (RRF + place)
        return np.array(sorted(scores, key=lambda number: (-scores[number], number)), np.int64)

    return dict(zip(PLACED if placed else BASELINES, (bm25, dense, fused), strict=True))


def baselines(bench: Bench, *, placed: bool = False) -> dict[str, Ranker]:
    """The searches of `baseline_searches` as rankers of documents."""
    view = bench.view

    def ranker(search: Search) -> Ranker:
        def rank(case: Case) -> Ranking:
            began = time.perf_counter()
            passages = view.passages(search(case)[:SHOWN])
            ms = ms_since(began)
            tokens = sum(passage.token_count for passage in passages)
            has_answer = _has_answer(case, "\n".join(passage.text for passage in passages))
            documents = _documents(case, (passage.document for passage in passages))
            return Ranking(documents, ms, len(passages), tokens, has_answer=has_answer)

        return rank

    return {
        name: ranker(search) for name, search in baseline_searches(bench, placed=placed).items()
    }


def ask(
    bench: Bench, recipe: str, plan: Plan, question: str, near: Sequence[str] = ()
) -> tuple[Retrieval, float]:
    """The answer of a recipe to a question that is asked near some nodes, and the milliseconds it
    took.
    """
    began = time.perf_counter()
    answer = retrieve(
        bench.view, question, bench.tools, at=MOMENT, recipe=recipe, plan=plan, near=near
    )
    return answer, ms_since(began)


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


def read_recipes(text: str | None, default: str = AUTO) -> tuple[str, ...]:
    """Names of recipes, separated by commas, each once."""
    names = tuple(
        dict.fromkeys(name.strip() for name in (text or default).split(",") if name.strip())
    )
    for name in names:
        if name not in NAMES_OF_RECIPES:
            known = ", ".join(NAMES_OF_RECIPES)
            raise UnknownRecipe(f"no recipe is called {name!r}; use one of {known}")
    return names


def notes(view: GraphView) -> list[str]:
    """What of the ladder this graph cannot show."""
    if view.info.parts.get(RANKER):
        return []
    return [f"snapshot {view.info.snapshot} has no learned ranker: every rung runs with it off"]


@dataclass(frozen=True)
class Workbench:
    """A home of its own, opened: where the graph of an evaluation is built and asked."""

    build_context: BuildContext
    ingest: Ingest
    tools: Tools
