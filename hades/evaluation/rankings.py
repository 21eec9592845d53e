"""What is measured of one question, and the rankers that give it: ours by recipe, and the baselines, always."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

from hades.evaluation.cases import Case
from hades.ports.text import EmbeddingModel, Progress, Tokenizer, Vectors
from hades.ports.view import GraphView, Kind
from hades.retrieval.pipeline import Tools, retrieve
from schemas.plan import Plan

MOMENT = datetime(2026, 1, 1, tzinfo=UTC)  # an evaluation stands still in time, so that its figures can be had again
DEPTH = 100  # documents of a ranking; beyond it nothing is counted
RRF = 60.0  # the usual constant of reciprocal rank fusion
BASELINES = ("bm25", "dense", "bm25+dense")


@dataclass(frozen=True)
class Ranking:
    """Documents as one ranker ordered them for one question, and what that cost."""

    documents: tuple[str, ...]
    ms: float
    reads: int = 0
    tokens: int = 0
    reasons: tuple[str, ...] = ()
    conveyance: float | None = None


Ranker = Callable[[Case], Ranking]


class Remembered:
    """An embedder that knows the questions already, so that a turn is timed without the model."""

    def __init__(self, model: EmbeddingModel, vectors: Mapping[str, NDArray[np.float32]]) -> None:
        self.model = model
        self._vectors = vectors

    def embed(self, texts: Iterable[str], *, progress: Progress | None = None) -> Vectors:
        """The vectors of texts that were embedded before."""
        return np.stack([self._vectors[text] for text in texts])


def baselines(view: GraphView, embedder: Remembered) -> dict[str, Ranker]:
    """BM25, cosine and their reciprocal rank fusion, over chunks."""

    def bm25(case: Case) -> NDArray[np.int64]:
        return view.lexical(case.question, kind=Kind.CHUNK, limit=DEPTH).numbers

    def dense(case: Case) -> NDArray[np.int64]:
        vector = embedder.embed([case.question])[0]
        return view.nearest(vector, kind=Kind.CHUNK, model=embedder.model.tag, limit=DEPTH).numbers

    def fused(case: Case) -> NDArray[np.int64]:
        scores: dict[int, float] = {}
        for numbers in (bm25(case), dense(case)):
            for place, number in enumerate(numbers.tolist(), 1):
                scores[number] = scores.get(number, 0.0) + 1.0 / (RRF + place)
        return np.array(sorted(scores, key=lambda number: (-scores[number], number))[:DEPTH], np.int64)

    def ranker(search: Callable[[Case], NDArray[np.int64]]) -> Ranker:
        def rank(case: Case) -> Ranking:
            began = time.perf_counter()
            numbers = search(case)
            seconds = time.perf_counter() - began
            found = tuple(dict.fromkeys(passage.document for passage in view.passages(numbers)))
            return Ranking(found, seconds * 1000, reads=len(numbers))

        return rank

    return {"bm25": ranker(bm25), "dense": ranker(dense), "bm25+dense": ranker(fused)}


def recipe_ranker(view: GraphView, embedder: Remembered, tokenizer: Tokenizer, recipe: str, plan: Plan) -> Ranker:
    """One recipe as a ranker: the order of its passages, its reads, its tokens."""
    tools = Tools(tokenizer=tokenizer, embedder=embedder)

    def rank(case: Case) -> Ranking:
        began = time.perf_counter()
        answer = retrieve(view, case.question, tools, at=MOMENT, recipe=recipe, plan=plan)
        ms = (time.perf_counter() - began) * 1000
        return Ranking(
            tuple(dict.fromkeys(passage.document for passage in answer.passages)),
            ms,
            answer.telemetry.reads,
            answer.tokens.prompt,
            tuple(str(reason) for reason in answer.reasons),
            answer.conveyance.value,
        )

    return rank
