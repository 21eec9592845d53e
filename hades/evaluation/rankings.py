"""What is measured of one question, and the rankers that give it: ours by recipe, and the baselines, always."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hades.evaluation.cases import Case
from hades.ports.graph import Kind
from hades.ports.text import Embedder, Progress, Tokenizer, Vectors
from hades.ports.view import GraphView
from hades.retrieval.ranking.fitted_files import fusion_model
from hades.retrieval.turn.pipeline import Tools, retrieve
from hades.retrieval.turn.subqueries import subqueries
from hades.settings.hipporag import HippoSettings
from hades.settings.hirag import HiragPathrag
from schemas.plan import Plan, Profile
from schemas.retrieval import Conveyance, Retrieval

MOMENT = datetime(2026, 1, 1, tzinfo=UTC)  # an evaluation stands still in time, so that its figures can be had again
PLAN = Plan(profile=Profile.EVALUATION)
SHOWN = PLAN.final_context  # passages of every ranking, ours and the baselines'; beyond them nothing is counted
DEPTH = 100  # passages of each search that the fusion looks at
RRF = 60.0  # the usual constant of reciprocal rank fusion
BASELINES = ("bm25", "dense", "fusion")
PLACED = ("bm25+source", "dense+source", "fusion+source")  # the same, told what is written where the question is asked


@dataclass(frozen=True)
class Ranking:
    """Documents as one ranker ordered them for one question, and what that cost.

    `has_answer` says whether the answer stands in what a language model would be told; None where none is known.
    """

    documents: tuple[str, ...]
    ms: float
    reads: int = 0
    tokens: int = 0
    reasons: tuple[str, ...] = ()
    conveyance: Conveyance | None = None
    has_answer: bool | None = None
    on_paths: frozenset[str] | None = None  # documents that lie on a returned path or are cited by one of its edges
    confidence: float | None = None


Ranker = Callable[[Case], Ranking]


class CachingEmbedder:
    """An embedder that keeps every vector it made, so that a turn is timed without the model."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.model = embedder.model
        self._vectors: dict[str, NDArray[np.float32]] = {}

    def embed(self, texts: Sequence[str], *, progress: Progress | None = None) -> Vectors:
        """The vectors of the texts; only what is new goes to the model."""
        fresh = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        if fresh:
            self._vectors.update(zip(fresh, self._embedder.embed(fresh, progress=progress), strict=True))
        return np.stack([self._vectors[text] for text in texts])

    def learn(self, questions: Iterable[str]) -> float:
        """Embed questions and their sub-queries ahead; milliseconds a text."""
        texts = list(dict.fromkeys(part for text in questions for part in subqueries(text, PLAN.q)))
        began = time.perf_counter()
        self.embed(texts)
        return (time.perf_counter() - began) * 1000 / len(texts)


@dataclass(frozen=True)
class Bench:
    """A published graph and what asking it needs."""

    view: GraphView
    embedder: CachingEmbedder
    tokenizer: Tokenizer
    rules: HiragPathrag = field(default_factory=HiragPathrag)
    walk: HippoSettings = field(default_factory=HippoSettings)
    is_fitted: bool = True  # whether the fitted ranking of the default recipe serves, or weights by hand


def baselines(bench: Bench, *, placed: bool = False) -> dict[str, Ranker]:
    """BM25, cosine and their reciprocal rank fusion, over chunks.

    `placed` gives those that also know what is written where a question is asked: BM25 searches by both texts, cosine
    by the mean of both vectors.
    """
    view, embedder = bench.view, bench.embedder

    def bm25(case: Case) -> NDArray[np.int64]:
        text = f"{case.question} {case.beside}" if placed else case.question
        return view.lexical(text, kind=Kind.CHUNK, limit=DEPTH).numbers

    def dense(case: Case) -> NDArray[np.int64]:
        texts = [case.question, case.beside] if placed and case.beside else [case.question]
        vector = embedder.embed(texts).mean(axis=0)
        return view.nearest(vector, kind=Kind.CHUNK, model=embedder.model.tag, limit=DEPTH).numbers

    def fused(case: Case) -> NDArray[np.int64]:
        scores: dict[int, float] = {}
        for numbers in (bm25(case), dense(case)):
            for place, number in enumerate(numbers.tolist(), 1):
                scores[number] = scores.get(number, 0.0) + 1.0 / (RRF + place)
        return np.array(sorted(scores, key=lambda number: (-scores[number], number)), np.int64)

    def ranker(search: Callable[[Case], NDArray[np.int64]]) -> Ranker:
        def rank(case: Case) -> Ranking:
            began = time.perf_counter()
            passages = view.passages(search(case)[:SHOWN])
            ms = (time.perf_counter() - began) * 1000
            tokens = sum(passage.token_count for passage in passages)
            told = _has_answer(case, "\n".join(one.text for one in passages))
            found = _documents(case, (one.document for one in passages))
            return Ranking(found, ms, len(passages), tokens, has_answer=told)

        return rank

    return dict(zip(PLACED if placed else BASELINES, map(ranker, (bm25, dense, fused)), strict=True))


def recipe_ranker(bench: Bench, recipe: str, plan: Plan = PLAN) -> Ranker:
    """One recipe as a ranker: the order of its passages, its reads, its tokens."""
    ask = asker(bench, recipe, plan)

    def rank(case: Case) -> Ranking:
        answer, ms = ask(case.question, case.near)
        return Ranking(
            _documents(case, (passage.document for passage in answer.passages)),
            ms,
            answer.telemetry.reads,
            answer.tokens.prompt,
            tuple(str(reason) for reason in answer.reasons),
            answer.conveyance,
            _has_answer(case, answer.prompt),
            path_documents(answer),
            answer.confidence,
        )

    return rank


class Ask(Protocol):
    """A recipe as a function of a question and of where it is asked: its answer and the milliseconds it took."""

    def __call__(self, question: str, near: Sequence[str] = ()) -> tuple[Retrieval, float]: ...


def asker(bench: Bench, recipe: str, plan: Plan = PLAN) -> Ask:
    """One recipe, to be asked."""
    fusion = fusion_model if bench.is_fitted else _no_model
    tools = Tools(bench.tokenizer, bench.embedder, bench.rules, bench.walk, fusion=fusion)

    def ask(question: str, near: Sequence[str] = ()) -> tuple[Retrieval, float]:
        began = time.perf_counter()
        answer = retrieve(bench.view, question, tools, at=MOMENT, recipe=recipe, plan=plan, near=near)
        return answer, (time.perf_counter() - began) * 1000

    return ask


def _no_model() -> None:
    return None


def path_documents(answer: Retrieval) -> frozenset[str]:
    """The documents that the paths of an answer run through or cite."""
    nodes = {node.document for path in answer.paths for node in path.nodes}
    return frozenset(nodes | {edge.provenance.doc for path in answer.paths for edge in path.edges}) - {""}


def _documents(case: Case, documents: Iterable[str]) -> tuple[str, ...]:
    """Each document once, in the order of its best passage, without those the question must not find."""
    return tuple(one for one in dict.fromkeys(documents) if one not in case.excluded)


def _has_answer(case: Case, prompt: str) -> bool | None:
    if not case.answers:
        return None
    told = " ".join(prompt.split()).casefold()
    return any(answer in told for answer in case.answers)
