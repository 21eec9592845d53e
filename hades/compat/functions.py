"""Functions other tools already call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any, Literal, TypedDict

import numpy as np

from hades.errors import HadesError
from hades.memory.history.rows import MemoryRefused
from hades.memory.memory import Memory
from hades.memory.recall import graph
from hades.memory.recall.context import MAX_TOKENS
from hades.memory.recall.search import MemoryMatch, Window, plain_state
from hades.ports.graph import Numbers
from hades.retrieval.answer.assemble import show
from hades.retrieval.answer.path_text import QuickCounts
from hades.retrieval.answers import Answers, retrieve_version
from hades.retrieval.core.metered_view import MeteredView
from hades.retrieval.core.types import (
    DEFAULT,
    CandidateGraph,
    FoundPassage,
    GraphStep,
    Question,
    Seed,
    caps_of,
    recipe_named,
)
from hades.retrieval.core.words import ANY, PATH_TYPES
from hades.retrieval.pipeline import BadQuestion, embedded
from hades.retrieval.search.seeds import entry_points, find_seeds, narrow
from hades.retrieval.search.walk_search import hippo_search, multi_hop_rules
from hades.retrieval.warm_up import load_kernels
from hades.telemetry.turn import Turn
from schemas.answer import Retrieval
from schemas.ids import Mask
from schemas.plan import Plan, Reason

# Retrieval by the names other tools already call: texts and ids in, plain JSON out, one metered turn each. Each is
# a thin reading of the search behind it, for callers that know no numbers of a view: a Prefect task, an agent's
# tool, a script. A graph that cannot be read, or a question that cannot be asked, is `success: false` with the
# error.


class FailedCall(TypedDict):
    """A question that could not be asked, or a graph that could not be read."""

    success: Literal[False]
    query: str
    error: str


class FoundPaths(TypedDict):
    """Paths for a question; with none, `count` is 0 and `reason` says `no_paths`."""

    success: Literal[True]
    query: str
    paths: list[dict[str, Any]]
    count: int
    pruned_from: int
    reason: str | None
    reasons: list[str]
    query_id: str
    snapshot: str


class FoundPrompt(TypedDict):
    """The prompt for a question; with no paths it holds passages only, and `reason` says `no_paths`."""

    success: Literal[True]
    query: str
    formatted_prompt: str
    count: int
    reason: str | None
    reasons: list[str]
    tokens: dict[str, int]
    query_id: str
    snapshot: str


def at_least_one(max_paths: int) -> int:
    """The number of paths to return, or an error that says what is allowed."""
    if max_paths < 1:
        raise BadQuestion(f"max_paths is {max_paths}; ask for at least 1")
    return max_paths


def paths_before_cut(found: Retrieval) -> int:
    """How many paths were found before pruning and `max_paths` cut them."""
    stages = {stage.name: stage for stage in found.telemetry.stages}
    return stages["prune"].taken if "prune" in stages else stages["graph"].given if "graph" in stages else 0


def retrieve_paths(
    answers: Answers,
    query: str,
    max_paths: int = 5,
    domain_filter: str | None = None,
    as_of_version: str | None = None,
    *,
    recipe: str = DEFAULT,
    plan: Mapping[str, Any] | None = None,
    as_of: datetime | None = None,
    known_at: datetime | None = None,
) -> FoundPaths | FailedCall:
    """Paths for a question; none at all is a success with count 0 and the reason (A5, A68 to A70, X-22).

    With a `domain_filter` every vertex of a path is an entity of that domain. `as_of_version` is the id of a snapshot,
    which is then the one that answers, or a time, at which the edges were true.
    """
    try:
        found = retrieve_version(
            answers, query, as_of_version, max_paths=at_least_one(max_paths), domain=domain_filter, recipe=recipe,
            plan=plan, as_of=as_of, known_at=known_at,
        )  # fmt: skip
    except HadesError as error:
        return {"success": False, "query": query, "error": str(error)}
    return describe_paths(query, found)


def retrieve_and_format(
    answers: Answers,
    query: str,
    max_paths: int = 5,
    domain_filter: str | None = None,
    as_of_version: str | None = None,
    *,
    recipe: str = DEFAULT,
    plan: Mapping[str, Any] | None = None,
    as_of: datetime | None = None,
    known_at: datetime | None = None,
) -> FoundPrompt | FailedCall:
    """The prompt for a question. An error, no paths and a prompt are three results that cannot be mistaken (X-23)."""
    try:
        found = retrieve_version(
            answers, query, as_of_version, max_paths=at_least_one(max_paths), domain=domain_filter, recipe=recipe,
            plan=plan, as_of=as_of, known_at=known_at,
        )  # fmt: skip
    except HadesError as error:
        return {"success": False, "query": query, "error": str(error)}
    return describe_prompt(query, found)


def describe_paths(query: str, found: Retrieval) -> FoundPaths:
    """An answer as its paths."""
    return {
        "success": True,
        "query": query,
        "paths": [path.model_dump(mode="json") for path in found.paths],
        "count": len(found.paths),
        "pruned_from": paths_before_cut(found),
        "reason": None if found.paths else str(Reason.NO_PATHS),
        "reasons": [str(reason) for reason in found.reasons],
        "query_id": found.query_id,
        "snapshot": found.snapshot,
    }


def describe_prompt(query: str, found: Retrieval) -> FoundPrompt:
    """An answer as its prompt."""
    return {
        "success": True,
        "query": query,
        "formatted_prompt": found.prompt,
        "count": len(found.paths),
        "reason": None if found.paths else str(Reason.NO_PATHS),
        "reasons": [str(reason) for reason in found.reasons],
        "tokens": found.tokens.model_dump(),
        "query_id": found.query_id,
        "snapshot": found.snapshot,
    }


def get_hierarchy_candidates(
    answers: Answers, query: str, k_topic: int = 8, thresholds: Mapping[int, float] | None = None
) -> dict[str, Any]:
    """The nodes worth searching and the topics that led there (C46)."""
    with _ask(answers, query) as (view, question):
        rules = answers.tools.rules.model_copy(update={"topic_k": k_topic})
        found = narrow(view, question, rules, thresholds=thresholds)
        nodes = _score(view, found.nodes, found.hscore.tolist()) if found is not None else []
        topics = [] if found is None else [
            {"id": view.ids(np.array([topic.node]))[0], "level": topic.level, "similarity": topic.similarity}
            for topic in found.topics
        ]  # fmt: skip
        return {"nodes": nodes, "topics": topics, "reasons": list(view.turn.reasons)}


def get_best_paths(
    answers: Answers,
    query: str,
    M: int = 6,
    L: int = 5,
    relation_boosts: Mapping[str, float] | None = None,
    candidates: Sequence[str] | None = None,
) -> dict[str, Any]:
    """The M best paths of at most L edges between seeds, inside the question's candidates or those named (C47)."""
    from hades.retrieval.walks.best_paths import get_best_paths as best_paths

    with _ask(answers, query) as (view, question):
        seeds = _starts(view, question, answers.plan)
        graph = _candidates(view, question, answers, seeds, candidates)
        best = best_paths(view, graph, M, L, relation_boosts, seeds=seeds, rules=answers.tools.rules.path)
        shown = show(view, QuickCounts(answers.tools.tokenizer), best.paths, (), ())
        paths = [path.model_dump(mode="json") for path in shown.paths]
        return {"paths": paths, "bridge_hits": best.bridge_hits, "reasons": list(view.turn.reasons)}


def personalized_pagerank(
    answers: Answers, restart: Mapping[str, float], *, damping: float = 0.85, top: int = 100
) -> dict[str, Any]:
    """Scores of the nodes that a walk from these ids reaches, best first, with the bound on their error (E3, E13)."""
    from hades.retrieval.walks.pagerank import personalized_pagerank as walk

    with _open(answers, GraphStep.PAGERANK) as view:
        numbers, weights = _number(view, restart)
        found = walk(view, numbers, weights, damping=damping, top=top, max_work=view.turn.work_left,
                     stop=view.turn.expired)  # fmt: skip
        scores = _score(view, found.numbers[:top], found.scores[:top].tolist())
        return {"scores": scores, "bound": found.bound, "residue": found.residue, "capped": found.capped}


def rank_chunks_by_ppr(
    answers: Answers, restart: Mapping[str, float], *, damping: float = 0.85, limit: int = 10
) -> dict[str, Any]:
    """Passages by a walk from these ids, with their text (E3, E11)."""
    from hades.retrieval.search.walk_search import rank_chunks_by_ppr as rank
    from hades.retrieval.walks.pagerank import personalized_pagerank as walk

    with _open(answers, GraphStep.PAGERANK) as view:
        numbers, weights = _number(view, restart)
        found = walk(view, numbers, weights, damping=damping, max_work=view.turn.work_left, stop=view.turn.expired)
        return _passages(view, answers, rank(view, found, limit))


def multi_hop_search(answers: Answers, query: str, *, max_hops: int = 3, top_k: int = 10) -> dict[str, Any]:
    """Passages by walks that go on from what they found, restart decaying hop by hop (E18)."""
    with _ask(answers, query, GraphStep.MULTI_HOP) as (view, question):
        rules = replace(multi_hop_rules(answers.tools.walk), hops=max_hops, limit=top_k)
        found = hippo_search(view, question, rules)
        entities = _score(view, np.array([one.node for one in found.entities], np.int64),
                           [one.score for one in found.entities])  # fmt: skip
        return {**_passages(view, answers, found.passages), "entities": entities}


def expand_with_synonyms(answers: Answers, mass: Mapping[str, float]) -> dict[str, Any]:
    """The ids with other names of the same things, mass shared among them."""
    from hades.retrieval.search.restart import expand_with_synonyms as expand

    with _open(answers) as view:
        numbers, weights = _number(view, mass)
        found = expand(view, dict(zip(numbers.tolist(), weights.tolist(), strict=True)))
        return {"mass": _score(view, np.array(list(found), np.int64), list(found.values()))}


def get_entity_neighborhood(answers: Answers, entity: str, *, hops: int = 1, fanout: int = 16) -> dict[str, Any]:
    """The edges around an entity, heaviest first."""
    from hades.retrieval.search.walk_search import get_entity_neighborhood as around

    with _open(answers) as view:
        numbers, _ = _number(view, {entity: 1.0})
        found = around(view, int(numbers[0]), hops=hops, fanout=fanout)
        edges = [
            {"id": edge.id, "from": edge.source, "to": edge.target, "type": edge.type, "weight": edge.weight,
             "provenance": {"doc": edge.document, "span": edge.span}}
            for edge in view.edges(found.edge)
        ]  # fmt: skip
        return {"entity": entity, "edges": edges, "reasons": list(view.turn.reasons)}


@contextmanager
def _open(answers: Answers, step: GraphStep = GraphStep.NOTHING) -> Iterator[MeteredView]:
    """The graph through a meter with the plan's caps, in one stage; what the step calls is made ready before it."""
    load_kernels()
    turn = Turn(caps_of(answers.plan), answers.tools.clock)
    with turn.stage("function"):
        yield MeteredView(answers.view, turn)


@contextmanager
def _ask(answers: Answers, query: str, step: GraphStep = GraphStep.NOTHING) -> Iterator[tuple[MeteredView, Question]]:
    """The same with a question, embedded where the graph has the like."""
    load_kernels()
    turn = Turn(caps_of(answers.plan), answers.tools.clock)
    view = MeteredView(answers.view, turn)
    parts = embedded(view, query, answers.tools, recipe_named(DEFAULT), answers.plan)
    with turn.stage("function"):
        yield view, parts[0]


def _starts(view: MeteredView, question: Question, plan: Plan) -> list[Seed]:
    return entry_points(view, question, find_seeds(view, [question], plan).seeds, plan.retriever.k)


def _candidates(
    view: MeteredView, question: Question, answers: Answers, seeds: Sequence[Seed], named: Sequence[str] | None
) -> CandidateGraph:
    """Those named; else the question's; else, without topics, the seeds and what is next to them."""
    if named is not None:
        numbers, _ = _number(view, dict.fromkeys(named, 1.0))
        return CandidateGraph(numbers, np.ones(len(numbers), np.float32))
    found = narrow(view, question, answers.tools.rules)
    if found is not None:
        return found
    starts = np.array([seed.node for seed in seeds], np.int64)
    near = view.expand(starts, direction=ANY, types=PATH_TYPES, fanout=answers.tools.rules.cand_cap // 8)
    numbers = np.union1d(starts, near.target)[: answers.tools.rules.cand_cap]
    return CandidateGraph(numbers, np.ones(len(numbers), np.float32))


def _number(view: MeteredView, mass: Mapping[str, float]) -> tuple[Numbers, np.ndarray[Any, np.dtype[np.float64]]]:
    """Numbers of ids; one that is no node is an error that names it."""
    numbers = view.number(list(mass))
    if unknown := [one for one, number in zip(mass, numbers.tolist(), strict=True) if number < 0]:
        raise HadesError(f"{unknown[0]!r} is not a node of snapshot {view.info.snapshot}; ids look like entities/name")
    return numbers, np.array(list(mass.values()), np.float64)


def _score(view: MeteredView, numbers: Numbers, scores: Sequence[float]) -> list[dict[str, Any]]:
    return [{"id": one, "score": float(score)} for one, score in zip(view.ids(numbers), scores, strict=True)]


def _passages(view: MeteredView, answers: Answers, passages: Sequence[FoundPassage]) -> dict[str, Any]:
    """E7: chunk id, text, score and rank, with what leads back to the document."""
    shown = show(view, QuickCounts(answers.tools.tokenizer), (), passages, ())
    return {
        "passages": [passage.model_dump(mode="json") for passage in shown.passages],
        "reasons": list(view.turn.reasons),
    }


# Memory by the names other tools already call: plain values in, plain JSON out.


def search_memories(
    memory: Memory,
    query: str,
    time_window: Sequence[datetime | None] | None = None,
    limit: int | None = None,
    *,
    mask: Mask = Mask(),
) -> dict[str, Any]:
    """Topics near to a question, nearest first, each as it is now (D47)."""
    found = memory.search(query, _window(time_window), limit=limit, mask=mask)
    return find_as_dict(query, found)


def find_as_dict(query: str, found: Sequence[MemoryMatch]) -> dict[str, Any]:
    """What a search found, as JSON."""
    return {"query": query, "results": [one.as_dict() for one in found], "count": len(found)}


def graph_enhanced_retrieval(
    memory: Memory, query: str, depth: int = 2, *, matches: int = graph.MATCHES, mask: Mask = Mask()
) -> dict[str, Any]:
    """What a question finds, related states by edge strength, and three versions before (D48)."""
    return {
        "query": query,
        **memory.graph_enhanced_retrieval(query, depth, matches=matches, mask=mask).as_dict(),
    }


def query_at_time(memory: Memory, topic: str, timestamp: datetime, known_at: datetime | None = None) -> dict[str, Any]:
    """What was true of a topic then; `state` is None before the first version (D49)."""
    state = memory.at(topic, timestamp, known_at=known_at)
    return {"topic": topic, "state": None if state is None else plain_state(state)}


def retrieve_within_budget(
    memory: Memory, query: str, max_tokens: int = MAX_TOKENS, *, mask: Mask = Mask()
) -> dict[str, Any]:
    """The context for a question, and the tokens of each part (D50)."""
    return memory.retrieve_within_budget(query, max_tokens, mask=mask).as_dict()


def get_relevant_subgraph(
    memory: Memory, query_embedding: Sequence[float], max_nodes: int = 100, *, mask: Mask = Mask()
) -> dict[str, Any]:
    """The versions worth reading for a vector, ranked, then cut (D52)."""
    return memory.get_relevant_subgraph(query_embedding, max_nodes, mask=mask).as_dict()


def _window(window: Sequence[datetime | None] | None) -> Window | None:
    if window is None:
        return None
    if len(window) != 2:
        raise MemoryRefused(f"a time window has two ends, not {len(window)}; leave an open one None")
    return window[0], window[1]
