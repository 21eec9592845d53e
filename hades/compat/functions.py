"""Functions other tools already call."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any

import numpy as np

from hades.errors import HadesError
from hades.memory.history.rows import MemoryRefused, plain
from hades.memory.memory import Memory
from hades.memory.recall import graph
from hades.memory.recall.context import MAX_TOKENS
from hades.ports.graph import CHUNK, Kind, Numbers
from hades.retrieval.answer.assemble import show
from hades.retrieval.answer.path_text import QuickCounts
from hades.retrieval.answers import Answers, retrieve_version
from hades.retrieval.core.metered_view import MeteredView
from hades.retrieval.core.types import DEFAULT, CandidateGraph, FoundPassage, Question, Seed, caps_of, recipe_named
from hades.retrieval.core.words import ANY, IN, MENTIONS, PATH_TYPES, Floats
from hades.retrieval.pipeline import BadQuestion, embedded, fetch_neighbourhood
from hades.retrieval.search.restart import expand_with_synonyms as share_with_synonyms
from hades.retrieval.search.seeds import entry_points, find_seeds, narrow
from hades.retrieval.search.walk_search import FACTORS, MULTI_HOP, HippoRules, WalkCaps, hippo_search
from hades.retrieval.search.walk_search import get_entity_neighborhood as edges_around
from hades.retrieval.search.walk_search import rank_chunks_by_ppr as rank_walk
from hades.retrieval.walks.best_paths import get_best_paths as best_paths
from hades.retrieval.walks.pagerank import EPSILON, Ppr
from hades.retrieval.walks.pagerank import personalized_pagerank as walk_from
from hades.telemetry.turn import Turn
from schemas.answer import Retrieval
from schemas.ids import Mask
from schemas.plan import Reason

# Retrieval by the names other tools already call: texts and ids in, plain JSON out, one metered turn each. Each is a
# thin reading of the search behind it, for callers that know no numbers of a view: a Prefect task, an agent's tool, a
# script. A graph that cannot be read, or a question that cannot be asked, is `success: false` with the error.
Restart = Mapping[str, float] | Sequence[str]  # ids with their mass, or equal ones
NO_TOPICS = {name: factor for name, factor in FACTORS.items() if not factor}
_LEVELS = {2: "super_topic", 1: "topic"}  # names of the thresholds in the settings


def check_asked(query: object, max_paths: object, domain_filter: object, as_of_version: object) -> int:
    """The number of paths to return; what is no text or no number is told in a sentence instead of a traceback."""
    if not isinstance(query, str):
        raise BadQuestion(f"the question is of type {type(query).__name__}; give a text")
    for name, value in (("domain_filter", domain_filter), ("as_of_version", as_of_version)):
        if value is not None and not isinstance(value, str):
            raise BadQuestion(f"{name} is of type {type(value).__name__}; give a text or leave it out")
    if not isinstance(max_paths, int) or max_paths < 1:
        raise BadQuestion(f"max_paths is {max_paths!r}; ask for at least 1, as a whole number")
    return max_paths


def paths_before_cut(found: Retrieval) -> int:
    """How many paths were found before pruning and `max_paths` cut them."""
    stages = {stage.name: stage for stage in found.telemetry.stages}
    if "prune" in stages:
        return stages["prune"].taken
    return max((stages[name].given for name in ("graph", "paths") if name in stages), default=0)  # of code: `paths`


def retrieve_paths(
    answers: Answers,
    query: str,
    max_paths: int = 5,
    domain_filter: str | None = None,
    as_of_version: str | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Paths for a question; none at all is a success with count 0 and the reason (A5, A68 to A70, X-22).

    With a `domain_filter` every vertex of a path is an entity of that domain. `as_of_version` is the id of a snapshot,
    which is then the one that answers, or a time, at which the edges were true. `options` are those of a turn.
    """
    return _ask_turn(describe_paths, answers, query, max_paths, domain_filter, as_of_version, **options)


def retrieve_and_format(
    answers: Answers,
    query: str,
    max_paths: int = 5,
    domain_filter: str | None = None,
    as_of_version: str | None = None,
    **options: Any,
) -> dict[str, Any]:
    """The prompt for a question. An error, no paths and a prompt are three results that cannot be mistaken (X-23)."""
    return _ask_turn(describe_prompt, answers, query, max_paths, domain_filter, as_of_version, **options)


def _ask_turn(
    describe: Callable[[str, Retrieval], dict[str, Any]],
    answers: Answers,
    query: str,
    max_paths: int,
    domain: str | None,
    version: str | None,
    **options: Any,
) -> dict[str, Any]:
    try:
        most = check_asked(query, max_paths, domain, version)
        found = retrieve_version(answers, query, version, max_paths=most, domain=domain, **options)
    except HadesError as error:
        return {"success": False, "query": query, "error": str(error)}
    return describe(query, found)


def describe_paths(query: str, found: Retrieval) -> dict[str, Any]:
    """An answer as its paths, each also by the field names of specification 000 (A20, A21)."""
    paths = [path_document(path.model_dump(mode="json")) for path in found.paths]
    return {**_describe(query, found), "paths": paths, "pruned_from": paths_before_cut(found)}


def describe_prompt(query: str, found: Retrieval) -> dict[str, Any]:
    """An answer as its prompt, which holds passages only where there are no paths."""
    return {**_describe(query, found), "formatted_prompt": found.prompt, "tokens": found.tokens.model_dump()}


def _describe(query: str, found: Retrieval) -> dict[str, Any]:
    """With no paths, `count` is 0 and `reason` says `no_paths`."""
    return {
        "success": True,
        "query": query,
        "count": len(found.paths),
        "reason": None if found.paths else str(Reason.NO_PATHS),
        "reasons": [str(reason) for reason in found.reasons],
        "query_id": found.query_id,
        "snapshot": found.snapshot,
    }


def path_document(path: dict[str, Any]) -> dict[str, Any]:
    """A path with the fields that `calculate_path_score` and `prune_paths` read."""
    nodes, edges = path["nodes"], path["edges"]
    return path | {
        "path": " -> ".join(node["name"] or node["id"] for node in nodes),
        "vertices": [{"_id": node["id"], **node} for node in nodes],
        "edges": [{"_from": edge["from"], "_to": edge["to"], **edge} for edge in edges],
        "edge_weights": [edge["weight"] for edge in edges],
        "edge_types": [edge["type"] for edge in edges],
        "vertex_types": [node["type"] for node in nodes],
        "path_length": len(edges),
    }


def get_hierarchy_candidates(
    answers: Answers, query: str | Sequence[float], k_topic: int = 8, thresholds: Mapping[int, float] | None = None
) -> dict[str, Any]:
    """The nodes worth searching and the topics that led there (C46), for a question or for its vector."""
    with _ask(answers, query if isinstance(query, str) else "") as (view, question):
        if not isinstance(query, str):
            models = view.info.models.get(Kind.CLUSTER, ())
            question = Question("", np.asarray(query, np.float32), models[0] if models else "")
        rules = answers.tools.rules
        given = {_LEVELS[level]: least for level, least in (thresholds or {}).items() if level in _LEVELS}
        least = rules.topic_thresholds.model_copy(update=given)
        found = narrow(view, question, rules.model_copy(update={"topic_k": k_topic, "topic_thresholds": least}))
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
    with _ask(answers, query) as (view, question):
        plan = answers.plan
        seeds = entry_points(view, question, find_seeds(view, [question], plan).seeds, plan.retriever.k)
        graph = _candidates(view, question, answers, seeds, candidates)
        best = best_paths(view, graph, M, L, relation_boosts, seeds=seeds, rules=answers.tools.rules.path)
        shown = show(view, QuickCounts(answers.tools.tokenizer), best.paths, (), ())
        paths = [path.model_dump(mode="json") for path in shown.paths]
        return {"paths": paths, "bridge_hits": best.bridges, "reasons": list(view.turn.reasons)}


def personalized_pagerank(
    answers: Answers,
    query_nodes: Restart,
    alpha: float = 0.85,
    max_iter: int = 100,
    tol: float = EPSILON,
    *,
    damping: float | None = None,
    top: int = 100,
) -> dict[str, Any]:
    """Scores of the nodes that a walk from these ids reaches, best first, with the bound on their error (E3, E13).

    Topics are left out, as in the recipes. `max_iter` bounds the work: that many passes over all edges of the graph.
    """
    with _ask(answers, near=query_nodes) as (view, _):
        found = _walk(view, query_nodes, alpha if damping is None else damping, max_iter, tol, top)
        scores = _score(view, found.numbers[:top], found.scores[:top].tolist())
        return {"scores": scores, "bound": found.bound, "residue": found.residue, "capped": found.capped}


def rank_chunks_by_ppr(
    answers: Answers, ppr_scores: Restart | Mapping[str, Any] = (), top_k: int = 10
) -> dict[str, Any]:
    """Passages with their text by the scores of a walk (E3, E11).

    `ppr_scores` are scores by id or the result of `personalized_pagerank`. A passage counts its own score and the sum
    of those of the entities that it mentions over the root of their number, so that a long one does not win (X-84).
    """
    known: Any = ppr_scores.get("scores", ppr_scores) if isinstance(ppr_scores, Mapping) else ppr_scores
    listed = not isinstance(known, Mapping) and known and isinstance(known[0], Mapping)
    scores = {one["id"]: one["score"] for one in known} if listed else known
    with _ask(answers, near=scores) as (view, _):
        numbers, weights = _number(view, scores)
        return _passages(view, answers, _mentioning(view, numbers, weights, top_k))


def _mentioning(view: MeteredView, numbers: Numbers, weights: Floats, most: int) -> list[FoundPassage]:
    is_chunk = view.kinds(numbers) == CHUNK
    total: dict[int, float] = dict(zip(numbers[is_chunk].tolist(), weights[is_chunk].tolist(), strict=True))
    found = view.expand(numbers[~is_chunk], direction=IN, types=[MENTIONS])
    passages, place = np.unique(found.target, return_inverse=True)
    sums = np.bincount(place, weights[~is_chunk][found.row]) / np.sqrt(np.bincount(place))
    for node, part in zip(passages.tolist(), sums.tolist(), strict=True):
        total[node] = total.get(node, 0.0) + part
    ranked = sorted(total.items(), key=lambda one: (-one[1], one[0]))[:most]
    return [FoundPassage(node, score, {"ppr": score}) for node, score in ranked]


def retrieve(answers: Answers, query: str, top_k: int = 10, alpha: float | None = None) -> dict[str, Any]:
    """Passages for a question by personalized PageRank (E2); `alpha` is the damping of the walk."""
    walk = answers.tools.walk if alpha is None else answers.tools.walk.model_copy(update={"damping": alpha})
    return _search(answers, query, HippoRules(walk, limit=top_k))


def retrieve_multi_hop(answers: Answers, query: str, max_hops: int = 3, top_k: int = 10) -> dict[str, Any]:
    """The same by walks that go on from what they found (E2)."""
    return _search(answers, query, replace(MULTI_HOP, walk=answers.tools.walk, hops=max_hops, limit=top_k))


def multi_hop_search(
    answers: Answers, start_nodes: str | Sequence[str] = "", max_hops: int = 3, top_k: int = 10, *, query: str = ""
) -> dict[str, Any]:
    """Passages by several hops (E18). For a question, walks go on from what they found; the restart decays hop by hop.

    For ids, a walk from them and from what lies within `max_hops` edges, each hop counting half of the one before.
    """
    if query or isinstance(start_nodes, str):
        return retrieve_multi_hop(answers, query or str(start_nodes), max_hops, top_k)
    with _ask(answers, near=start_nodes) as (view, _):
        mass = dict(zip(*(part.tolist() for part in _number(view, start_nodes)), strict=True))
        nearby, share = np.array(list(mass), np.int64), 1.0
        for _ in range(max_hops):
            share /= 2
            found = view.expand(nearby, direction=ANY, types=PATH_TYPES, fanout=16)
            nearby = np.array([node for node in np.unique(found.target).tolist() if node not in mass], np.int64)
            mass |= dict.fromkeys(nearby.tolist(), share)
        ids = dict(zip(view.ids(np.array(list(mass), np.int64)), mass.values(), strict=True))
        passages = _passages(view, answers, rank_walk(view, _walk(view, ids), top_k))
        return {**passages, "entities": [{"id": one, "score": score} for one, score in ids.items()]}


def _search(answers: Answers, query: str, rules: HippoRules) -> dict[str, Any]:
    caps = WalkCaps.of(answers.plan)
    caps = replace(caps, passages=max(caps.passages, rules.limit))
    with _ask(answers, query) as (view, question):
        passages, named = hippo_search(view, question, replace(rules, caps=caps))
        entities = _score(view, np.array([one.node for one in named], np.int64), [one.score for one in named])
        return {**_passages(view, answers, passages), "entities": entities}


def expand_with_synonyms(answers: Answers, entity_nodes: Restart) -> dict[str, Any]:
    """The ids with other names of the same things, mass shared among them."""
    with _ask(answers, near=entity_nodes) as (view, _):
        numbers, weights = _number(view, entity_nodes)
        found = share_with_synonyms(view, dict(zip(numbers.tolist(), weights.tolist(), strict=True)))
        return {"mass": _score(view, np.array(list(found), np.int64), list(found.values()))}


def get_entity_neighborhood(answers: Answers, entity: str, *, hops: int = 1, fanout: int = 16) -> dict[str, Any]:
    """The edges around an entity, heaviest first."""
    with _ask(answers, near=[entity]) as (view, _):
        numbers, _ = _number(view, [entity])
        found = edges_around(view, int(numbers[0]), hops=hops, fanout=fanout)
        edges = [
            {"id": edge.id, "from": edge.source, "to": edge.target, "type": edge.type, "weight": edge.weight,
             "provenance": {"doc": edge.document, "span": edge.span}}
            for edge in view.edges(found)
        ]  # fmt: skip
        return {"entity": entity, "edges": edges, "reasons": list(view.turn.reasons)}


@contextmanager
def _ask(answers: Answers, query: str = "", near: Restart = ()) -> Iterator[tuple[MeteredView, Question]]:
    """The graph around a question or these ids, through a meter with the plan's caps, in one stage.

    With the question, embedded where the graph has the like.
    """
    turn = Turn(caps_of(answers.plan), answers.tools.clock)
    graph, parts = answers.view, [Question("")]
    if query:
        parts = embedded(turn, graph.info, query, answers.tools, recipe_named(DEFAULT), answers.plan)
    view = fetch_neighbourhood(graph, turn, parts, list(near))
    with turn.stage("function"):
        yield MeteredView(view, turn), parts[0]


def _walk(
    view: MeteredView,
    restart: Restart,
    damping: float = 0.85,
    max_iter: int = 100,
    tol: float = EPSILON,
    top: int | None = None,
) -> Ppr:
    numbers, weights = _number(view, restart)
    most = min(view.turn.work_left, max_iter * 2 * max(1, sum(view.info.edges.values())))
    return walk_from(view, numbers, weights, damping=damping, epsilon=tol, factors=NO_TOPICS, top=top, max_work=most,
                     stop=view.turn.expired)  # fmt: skip


def _candidates(
    view: MeteredView, question: Question, answers: Answers, seeds: Sequence[Seed], named: Sequence[str] | None
) -> CandidateGraph:
    """Those named; else the question's; else, without topics, the seeds and what is next to them."""
    rules = answers.tools.rules
    if named is not None:
        numbers, _ = _number(view, named)
    elif (found := narrow(view, question, rules)) is not None:
        return found
    else:
        starts = np.array([seed.node for seed in seeds], np.int64)
        near = view.expand(starts, direction=ANY, types=PATH_TYPES, fanout=rules.cand_cap // 8)
        numbers = np.union1d(starts, near.target)[: rules.cand_cap]
    return CandidateGraph(numbers, np.ones(len(numbers), np.float32))


def _number(view: MeteredView, restart: Restart) -> tuple[Numbers, Floats]:
    """Numbers of ids and their masses, equal ones for a list; one that is no node is an error that names it."""
    mass = restart if isinstance(restart, Mapping) else dict.fromkeys(restart, 1.0)
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


def search_memories(
    memory: Memory,
    query: str,
    time_window: Sequence[datetime | None] | None = None,
    limit: int | None = None,
    *,
    mask: Mask = Mask(),
) -> dict[str, Any]:
    """Topics near to a question, nearest first, each as it is now (D47)."""
    if time_window is not None and len(time_window) != 2:
        raise MemoryRefused(f"a time window has two ends, not {len(time_window)}; leave an open one None")
    window = None if time_window is None else (time_window[0], time_window[1])
    found = memory.search(query, window, limit=limit, mask=mask)
    return {"query": query, "results": plain(found), "count": len(found)}


def graph_enhanced_retrieval(
    memory: Memory, query: str, depth: int = 2, *, matches: int = graph.MATCHES, mask: Mask = Mask()
) -> dict[str, Any]:
    """What a question finds, related states by edge strength, and three versions before (D48)."""
    return {"query": query, **plain(memory.graph_enhanced_retrieval(query, depth, matches=matches, mask=mask))}


def retrieve_within_budget(
    memory: Memory, query: str, max_tokens: int = MAX_TOKENS, *, mask: Mask = Mask()
) -> dict[str, Any]:
    """The context for a question, and the tokens of each part (D50)."""
    return memory.retrieve_within_budget(query, max_tokens, mask=mask).as_dict()


def get_relevant_subgraph(
    memory: Memory, query_embedding: Sequence[float], max_nodes: int = 100, *, mask: Mask = Mask()
) -> dict[str, Any]:
    """The versions worth reading for a vector, ranked, then cut (D52)."""
    found = memory.get_relevant_subgraph(query_embedding, max_nodes, mask=mask)
    return {**plain(found), "nodes": [{**plain(state), "score": round(score, 6)} for state, score in found.nodes]}
