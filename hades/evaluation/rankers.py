"""A published graph asked by recipes and by baselines."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain

import numpy as np

from hades.ports.graph import Kind
from hades.ports.services import RememberingEmbedder
from hades.retrieval.core.types import AUTO, NAMES_OF_RECIPES, UnknownRecipe
from hades.retrieval.core.words import subqueries
from hades.retrieval.pipeline import Tools, retrieve
from hades.snapshot.view import GraphView
from models.arrays import Longs
from schemas.answer import Retrieval
from schemas.plan import Plan, Profile

# An evaluation stands still in time, so that its figures can be had again.
MOMENT = datetime(2026, 1, 1, tzinfo=UTC)
PLAN = Plan(profile=Profile.EVALUATION)
# Passages of every ranking, ours and the baselines'; beyond them nothing is counted.
SHOWN = PLAN.final_context
DEPTH = 100  # passages of each search that the fusion looks at
RRF = 60.0  # the usual constant of reciprocal rank fusion


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


Search = Callable[[str, str], Longs]  # of a question and what is written around it


def baseline_searches(bench: Bench) -> dict[str, Search]:
    """BM25, cosine and their reciprocal rank fusion over chunks, each giving numbers of chunks,
    best first.

    With a context BM25 searches by both texts, cosine by the mean of both vectors.
    """
    view = bench.view
    embedder = bench.tools.embedder
    assert embedder is not None

    def bm25(question: str, context: str) -> Longs:
        return view.lexical(
            f"{question} {context}",
            kind=Kind.CHUNK,
            limit=DEPTH,
        ).numbers

    def dense(question: str, context: str) -> Longs:
        vector = embedder.embed([question, context] if context else [question]).mean(axis=0)
        return view.nearest(
            vector,
            kind=Kind.CHUNK,
            model=embedder.model.tag,
            limit=DEPTH,
        ).numbers

    def fused(question: str, context: str) -> Longs:
        scores: dict[int, float] = defaultdict(float)
        for search in (bm25, dense):
            for place, number in enumerate(search(question, context).tolist(), 1):
                scores[number] += 1.0 / (RRF + place)

        return np.array(
            sorted(scores, key=lambda number: (-scores[number], number)),
            np.int64,
        )

    return {
        "bm25": bm25,
        "dense": dense,
        "fusion": fused,
    }


def ask(
    bench: Bench,
    recipe: str,
    plan: Plan,
    question: str,
    near: Sequence[str] = (),
) -> tuple[Retrieval, float]:
    """The answer of a recipe to a question that is asked near some nodes, and the milliseconds it
    took.
    """
    began = time.perf_counter()
    answer = retrieve(
        bench.view,
        question,
        bench.tools,
        at=MOMENT,
        recipe=recipe,
        plan=plan,
        near=near,
    )
    return answer, ms_since(began)


def read_recipes(text: str | None, default: str = AUTO) -> tuple[str, ...]:
    """Names of recipes, separated by commas, each once."""
    stripped = [name.strip() for name in (text or default).split(",")]
    names = tuple(dict.fromkeys(filter(None, stripped)))

    for name in names:
        if name not in NAMES_OF_RECIPES:
            known = ", ".join(NAMES_OF_RECIPES)
            raise UnknownRecipe(f"no recipe is called {name!r}; use one of {known}")

    return names
