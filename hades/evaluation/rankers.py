"""Ours by recipe, baselines, ablations."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from itertools import chain
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from hades.evaluation.cases import Case
from hades.ingest.ingest import Ingest
from hades.ingest.manifest import IngestReport
from hades.night.bridges.stage import bridge
from hades.night.context import BuildContext
from hades.night.topics.stage import build_topics
from hades.night.weights.stage import weigh
from hades.ports.graph import KINDS, Adjacency, BridgePath, Csr, Flags, Kind, Numbers
from hades.ports.services import RememberingEmbedder
from hades.ports.store import Direction
from hades.retrieval.core.types import NAMES_OF_RECIPES, UnknownRecipe
from hades.retrieval.core.words import subqueries
from hades.retrieval.pipeline import Tools, retrieve
from hades.snapshot.publish import publish
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


Hides = Callable[[Numbers, Csr], Flags]  # (near ends, rows) -> which entries are hidden
SYNONYMS = ("similar_to", "coref")


class _Changed:
    """Another view, but for the answers that are given."""

    def __init__(self, view: GraphView, **answers: Any) -> None:
        self._view = view
        self.__dict__.update(answers)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._view, name)


def no_ranker(view: GraphView) -> GraphView:
    """Without the learned ranker: the shipped weights rank."""
    info = replace(view.info, parts={**view.info.parts, RANKER: ""})
    return cast(GraphView, _Changed(view, info=info, fitted=lambda: None))


def no_bridges(view: GraphView) -> GraphView:
    """Without paths computed ahead; a question searches for all of them."""
    return cast(GraphView, _Changed(view, bridges=lambda starts, ends=None, *, limit: []))


def no_hierarchy(view: GraphView) -> GraphView:
    """As before the hierarchy was built: no topic, no node in one, and so no bridge between two."""
    info = view.info
    parts = {**info.parts, "hierarchy": "", "bridges": ""}
    nodes, models = {**info.nodes, Kind.CLUSTER: 0}, {**info.models, Kind.CLUSTER: ()}
    hidden = replace(info, nodes=nodes, models=models, parts=parts)
    changed = _Changed(
        no_bridges(view),
        info=hidden,
        clusters_of=lambda numbers: np.full(len(numbers), -1, np.int64),
    )
    return cast(GraphView, changed)


def no_synonyms(view: GraphView) -> GraphView:
    """Without the edges that say that two names are alike."""
    codes = np.array([view.type_names.index(name) for name in SYNONYMS], np.uint8)
    return _with_fewer_edges(view, lambda near, rows: np.isin(rows.type, codes))


def passages_as_ends(view: GraphView) -> GraphView:
    """Passages take what the names in them have, and pass nothing on: a walk goes from name to name
    only.
    """
    return _with_fewer_edges(view, lambda near, rows: view.kinds(near) == KINDS.index(Kind.CHUNK))


def no_edges_between(view: GraphView, first: int, second: int) -> GraphView:
    """Without any edge that joins these two nodes, whatever its type and direction."""
    expansion = view.expand(np.array([first], np.int64), direction=Direction.ANY)
    hidden = np.unique(expansion.edge[expansion.target == second])
    return _with_fewer_edges(view, lambda near, rows: np.isin(rows.edge, hidden))


def _with_fewer_edges(view: GraphView, hides: Hides) -> GraphView:
    """Some edges taken out of the adjacency, so that no walk, no search and no bridge can use
    them.
    """
    whole = view.adjacency()
    fewer = Adjacency(_fewer(whole.out, hides), _fewer(whole.into, hides), whole.validity)
    edges_left = cache(lambda: frozenset(fewer.out.edge.tolist()))

    def bridges(starts: Numbers, ends: Numbers | None = None, *, limit: int) -> list[BridgePath]:
        return [
            path
            for path in view.bridges(starts, ends, limit=limit)
            if edges_left().issuperset(path.edges)
        ]

    return cast(GraphView, _Changed(view.with_adjacency(fewer), bridges=bridges))


def _fewer(rows: Csr, hides: Hides) -> Csr:
    near = np.repeat(np.arange(len(rows.starts) - 1), np.diff(rows.starts))
    is_shown = ~hides(near, rows)
    starts = np.concatenate([[0], np.cumsum(is_shown)])[rows.starts].astype(np.int64)
    return Csr(
        starts,
        rows.target[is_shown],
        rows.edge[is_shown],
        rows.type[is_shown],
        rows.weight[is_shown],
    )


RANKER = "ranker"  # the part of a snapshot that a learned ranker would be


@dataclass(frozen=True)
class Rung:
    """A recipe, on the graph as it is or on one that lacks a part.

    `stays_out`: a plan without hops keeps it out of the graph. `is_online`: the plan of a user's
    turn instead of the one for evaluation. `has_clauses`: whether parts of the question are
    searched for too.
    """

    name: str
    recipe: str
    about: str
    without: Callable[[GraphView], GraphView] | None = None
    stays_out: bool = False
    is_online: bool = False
    has_clauses: bool = True

    def plan(self) -> Plan:
        """The plan it is asked with."""
        plan = Plan(profile=Profile.ONLINE) if self.is_online else PLAN
        graph = plan.graph.model_copy(update={"hops": 0}) if self.stays_out else plan.graph
        return plan.model_copy(update={"graph": graph, **({} if self.has_clauses else {"q": 1})})

    def bench(self, bench: Bench) -> Bench:
        """What it is asked on."""
        view = bench.view if self.without is None else self.without(bench.view)
        return replace(bench, view=view)

    def ranker(self, bench: Bench) -> Ranker:
        """It as a ranker: the order of its passages, its reads, its tokens."""
        rung_bench, plan = self.bench(bench), self.plan()

        def rank(case: Case) -> Ranking:
            answer, ms = ask(rung_bench, self.recipe, plan, case.question, case.near)
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


LADDER: tuple[Rung, ...] = (
    Rung("auto", "auto", "the default: every channel, one ranking"),
    Rung(
        "auto/online",
        "auto",
        "the plan of a user's turn: 20 candidates, 6 passages, 1 hop",
        is_online=True,
    ),
    Rung("auto/no-graph", "auto", "its searches and a reranking, without walks", stays_out=True),
    Rung("auto/no-synonyms", "auto", "no similar_to and coref edges", no_synonyms),
    Rung("auto/no-passage-nodes", "auto", "passages take and pass nothing on", passages_as_ends),
    Rung(
        "auto/no-clauses", "auto", "the question is searched for as a whole only", has_clauses=False
    ),
    Rung("auto/no-ranker", "auto", "ranked by the shipped weights", no_ranker),
    Rung("vector", "vector", "flat RAG"),
    Rung("graphrag", "graphrag", "GraphRAG-style expansion"),
    Rung("hirag", "hirag", "HiRAG"),
    Rung("pathrag", "pathrag", "PathRAG"),
    Rung("hirag_pathrag", "hirag_pathrag", "HiRAG x PathRAG"),
    Rung("hipporag", "hipporag", "HippoRAG"),
    Rung("hipporag_multihop", "hipporag_multihop", "HippoRAG, walking on"),
    Rung("nexus", "nexus", "Nexus"),
    Rung(
        "hirag_pathrag/no-hierarchy", "hirag_pathrag", "no topics narrow the search", no_hierarchy
    ),
    Rung(
        "pathrag/no-flow",
        "pathrag",
        "its seeds and its reranking, without the flow",
        stays_out=True,
    ),
    Rung("hirag_pathrag/no-bridges", "hirag_pathrag", "no paths computed ahead", no_bridges),
    Rung("hipporag/no-synonyms", "hipporag", "no similar_to and coref edges", no_synonyms),
    Rung(
        "hipporag/no-passage-nodes",
        "hipporag",
        "passages take and pass nothing on",
        passages_as_ends,
    ),
)
_BY_NAME = {rung.name: rung for rung in LADDER}


def rungs(names: str | None, default: str) -> list[Rung]:
    """Rungs by their names, separated by commas; `ladder` for all of them."""
    rung_names = [name.strip() for name in (names or default).split(",") if name.strip()]
    chosen: dict[str, Rung] = {}
    for name in rung_names:
        if name == "ladder":
            chosen |= _BY_NAME
        elif name in _BY_NAME:
            chosen[name] = _BY_NAME[name]
        elif name in NAMES_OF_RECIPES:
            chosen[name] = Rung(name, name, "")
        else:
            known = ", ".join(dict.fromkeys(("ladder", *NAMES_OF_RECIPES, *_BY_NAME)))
            raise UnknownRecipe(f"no recipe or rung is called {name!r}; use some of {known}")
    return list(chosen.values())


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


def build(bench: Workbench, read: Callable[[Ingest], IngestReport]) -> dict[str, float]:
    """Bring the home to what the files say, and publish; seconds, peak memory, and how many texts
    were embedded.
    """
    began = time.perf_counter()
    report = read(bench.ingest)
    build_topics(bench.build_context, MOMENT)
    weigh(bench.build_context, MOMENT)
    bridge(bench.build_context, MOMENT)
    publish(bench.build_context.store, bench.build_context.home)
    seconds = round(time.perf_counter() - began, 2)
    return {"seconds": seconds, "peak_mb": peak_mb(), "embedded": report.embedded}


def peak_mb() -> float:
    """The most memory this process has held so far."""
    unit = 1024 * 1024 if sys.platform == "darwin" else 1024
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit, 1)
