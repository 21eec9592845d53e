"""Functions other tools already call."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import numpy as np

from hades.budget import Turn
from hades.errors import HadesError
from hades.memory.history.rows import MemoryRefused, plain
from hades.memory.memory import Memory
from hades.memory.recall import graph
from hades.memory.recall.context import MAX_TOKENS
from hades.ports.graph import CHUNK, EdgeFacts, Kind, Numbers
from hades.retrieval.answer.assemble import show
from hades.retrieval.answer.path_text import QuickCounts
from hades.retrieval.answers import Answers, retrieve_version
from hades.retrieval.core.metered_view import MeteredView
from hades.retrieval.core.types import (
    DEFAULT,
    CandidateGraph,
    FoundPassage,
    NarrowedTopic,
    Question,
    Seed,
    caps_of,
    recipe_named,
)
from hades.retrieval.core.words import ANY, IN, MENTIONS, PATH_TYPES, Floats
from hades.retrieval.pipeline import BadQuestion, embedded, fetch_neighbourhood
from hades.retrieval.search.restart import expand_with_synonyms as share_with_synonyms
from hades.retrieval.search.seeds import entry_points, find_seeds, narrow
from hades.retrieval.search.walk_search import (
    FACTORS,
    MULTI_HOP,
    HippoRules,
    WalkCaps,
    hippo_search,
)
from hades.retrieval.search.walk_search import get_entity_neighborhood as edges_around
from hades.retrieval.search.walk_search import rank_chunks_by_ppr as rank_walk
from hades.retrieval.walks.best_paths import get_best_paths as best_paths
from hades.retrieval.walks.pagerank import EPSILON, Ppr
from hades.retrieval.walks.pagerank import personalized_pagerank as walk_from
from schemas.answer import Retrieval
from schemas.ids import Mask
from schemas.plan import Reason
from schemas.record import JsonObject

# Retrieval by the names other tools already call: texts and ids in, plain JSON out, one metered
# turn each. Each is a thin reading of the search behind it, for callers that know no numbers of a
# view: a Prefect task, an agent's tool, a script. A graph that cannot be read, or a question that
# cannot be asked, is `success: false` with the error.
Restart = Mapping[str, float] | Sequence[str]  # ids with their mass, or equal ones
NO_TOPICS = {name: factor for name, factor in FACTORS.items() if not factor}
_LEVELS = {2: "super_topic", 1: "topic"}  # names of the thresholds in the settings


def check_arguments(
    query: object,
    max_paths: object,
    domain_filter: object,
    as_of_version: object,
) -> int:
    """The number of paths to return; raises `BadQuestion` for what is no text or no number."""
    if not isinstance(query, str):
        raise BadQuestion(f"the question is of type {type(query).__name__}; give a text")

    for name, value in (("domain_filter", domain_filter), ("as_of_version", as_of_version)):
        if value is not None and not isinstance(value, str):
            raise BadQuestion(
                f"{name} is of type {type(value).__name__}; give a text or leave it out"
            )

    if not isinstance(max_paths, int) or max_paths < 1:
        raise BadQuestion(f"max_paths is {max_paths!r}; ask for at least 1, as a whole number")

    return max_paths


def paths_before_cut(answer: Retrieval) -> int:
    """How many paths were found before pruning and `max_paths` cut them."""
    stages = {stage.name: stage for stage in answer.telemetry.stages}
    if "prune" in stages:
        return stages["prune"].taken

    # The stage that finds paths is called `paths` for code.
    counts = []
    for name in ("graph", "paths"):
        if name in stages:
            counts.append(stages[name].given)

    return max(counts, default=0)


def retrieve_paths(
    answers: Answers,
    query: str,
    max_paths: int = 5,
    domain_filter: str | None = None,
    as_of_version: str | None = None,
    **options: Any,
) -> JsonObject:
    """Paths for a question; none at all is a success with count 0 and the reason (A5, A68 to A70,
    X-22).

    With a `domain_filter` every vertex of a path is an entity of that domain. `as_of_version` is
    the id of a snapshot, which is then the one that answers, or a time, at which the edges were
    true. `options` are those of a turn.
    """
    return _describe_turn(
        describe_paths,
        answers,
        query,
        max_paths=max_paths,
        domain=domain_filter,
        version=as_of_version,
        **options,
    )


def retrieve_and_format(
    answers: Answers,
    query: str,
    max_paths: int = 5,
    domain_filter: str | None = None,
    as_of_version: str | None = None,
    **options: Any,
) -> JsonObject:
    """The prompt for a question. An error, no paths and a prompt are three results that cannot be
    mistaken (X-23).
    """
    return _describe_turn(
        describe_prompt,
        answers,
        query,
        max_paths=max_paths,
        domain=domain_filter,
        version=as_of_version,
        **options,
    )


def _describe_turn(
    describe: Callable[[str, Retrieval], JsonObject],
    answers: Answers,
    query: str,
    *,
    max_paths: int,
    domain: str | None,
    version: str | None,
    **options: Any,
) -> JsonObject:
    try:
        check_arguments(query, max_paths, domain, version)
        answer = retrieve_version(
            answers,
            query,
            version,
            max_paths=max_paths,
            domain=domain,
            **options,
        )
    except HadesError as error:
        return {
            "success": False,
            "query": query,
            "error": str(error),
        }

    return describe(query, answer)


def describe_paths(query: str, answer: Retrieval) -> JsonObject:
    """An answer as its paths, each also by the field names of specification 000 (A20, A21)."""
    paths = [path_document(path.model_dump(mode="json")) for path in answer.paths]
    return {
        **_describe_answer(query, answer),
        "paths": paths,
        "pruned_from": paths_before_cut(answer),
    }


def describe_prompt(query: str, answer: Retrieval) -> JsonObject:
    """An answer as its prompt of paths and passages; `count` is how many paths the prompt holds."""
    count = sum(path.in_prompt for path in answer.paths)
    if answer.paths:
        reason = Reason.PROMPT_FULL
    else:
        reason = Reason.NO_PATHS

    return {
        **_describe_answer(query, answer),
        "count": count,
        "reason": None if count else str(reason),
        "formatted_prompt": answer.prompt,
        "tokens": answer.tokens.model_dump(),
    }


def _describe_answer(query: str, answer: Retrieval) -> JsonObject:
    """With no paths, `count` is 0 and `reason` says `no_paths`."""
    return {
        "success": True,
        "query": query,
        "count": len(answer.paths),
        "reason": None if answer.paths else str(Reason.NO_PATHS),
        "reasons": [str(reason) for reason in answer.reasons],
        "query_id": answer.query_id,
        "snapshot": answer.snapshot,
    }


def path_document(path: JsonObject) -> JsonObject:
    """A path with the fields that `calculate_path_score` and `prune_paths` read."""
    nodes = path["nodes"]
    edges = path["edges"]
    names = [node["name"] or node["id"] for node in nodes]
    vertices = [{"_id": node["id"], **node} for node in nodes]

    edges_with_ends = []
    for edge in edges:
        edges_with_ends.append(
            {
                "_from": edge["from"],
                "_to": edge["to"],
                **edge,
            }
        )

    return path | {
        "path": " -> ".join(names),
        "vertices": vertices,
        "edges": edges_with_ends,
        "edge_weights": [edge["weight"] for edge in edges],
        "edge_types": [edge["type"] for edge in edges],
        "vertex_types": [node["type"] for node in nodes],
        "path_length": len(edges),
    }


def get_hierarchy_candidates(
    answers: Answers,
    query: str | Sequence[float],
    k_topic: int = 8,
    thresholds: Mapping[int, float] | None = None,
) -> JsonObject:
    """The nodes worth searching and the topics that led there (C46), for a question or for its
    vector.
    """
    with _open_turn(answers, query if isinstance(query, str) else "") as (view, question):
        if not isinstance(query, str):
            models = view.info.models.get(Kind.CLUSTER, ())
            question = Question(
                "",
                np.asarray(query, np.float32),
                models[0] if models else "",
            )

        rules = answers.tools.rules
        overrides = {}
        for level, threshold in (thresholds or {}).items():
            if level in _LEVELS:
                overrides[_LEVELS[level]] = threshold

        topic_thresholds = rules.topic_thresholds.model_copy(update=overrides)
        rules = rules.model_copy(
            update={
                "topic_k": k_topic,
                "topic_thresholds": topic_thresholds,
            }
        )
        candidates = narrow(view, question, rules)
        nodes: list[JsonObject] = []
        topics: list[JsonObject] = []

        if candidates is not None:
            nodes = _score_documents(
                view,
                candidates.nodes,
                candidates.hscore.tolist(),
            )
            topics = [_topic_document(view, topic) for topic in candidates.topics]

        return {
            "nodes": nodes,
            "topics": topics,
            "reasons": list(view.turn.reasons),
        }


def _topic_document(view: MeteredView, topic: NarrowedTopic) -> JsonObject:
    id_ = view.ids(np.array([topic.node]))[0]
    return {
        "id": id_,
        "level": topic.level,
        "similarity": topic.similarity,
    }


def get_best_paths(
    answers: Answers,
    query: str,
    M: int = 6,
    L: int = 5,
    relation_boosts: Mapping[str, float] | None = None,
    candidates: Sequence[str] | None = None,
) -> JsonObject:
    """The M best paths of at most L edges between seeds, inside the question's candidates or those
    named (C47).
    """
    with _open_turn(answers, query) as (view, question):
        plan = answers.plan
        hits = find_seeds(view, [question], plan)
        seeds = entry_points(
            view,
            question,
            hits.seeds,
            plan.retriever.k,
        )
        graph = _candidates(
            view,
            question,
            answers,
            seeds,
            candidates,
        )
        best = best_paths(
            view,
            graph,
            M,
            L,
            relation_boosts,
            seeds=seeds,
            rules=answers.tools.rules.path,
        )
        document = show(
            view,
            QuickCounts(answers.tools.tokenizer),
            best.paths,
            (),
            (),
        )
        paths = [path.model_dump(mode="json") for path in document.paths]
        return {
            "paths": paths,
            "bridge_hits": best.bridges,
            "reasons": list(view.turn.reasons),
        }


def personalized_pagerank(
    answers: Answers,
    query_nodes: Restart,
    alpha: float = 0.85,
    max_iter: int = 100,
    tol: float = EPSILON,
    *,
    damping: float | None = None,
    top: int = 100,
) -> JsonObject:
    """Scores of the nodes that a walk from these ids or names reaches, best first (E3, E13).

    The scores of all nodes sum to 1; `rest` is what those after the first `top` have. `residue` is
    the share that the walk had not placed when it ended, before scores were divided by their sum,
    and `bound` the greatest error of a score for each unit of degree. Topics are left out, as in
    the recipes. `max_iter` bounds the work: that many passes over all edges of the graph.
    """
    with _open_turn(answers, near=query_nodes) as (view, _):
        start = _known_nodes(view, query_nodes)
        damping = alpha if damping is None else damping
        walk = _run_pagerank(
            view,
            start,
            damping=damping,
            max_iter=max_iter,
            epsilon=tol,
            top=top,
        )
        shares = walk.scores / walk.scores.sum()
        scores = _score_documents(
            view,
            walk.numbers[:top],
            shares[:top].tolist(),
        )
        return {
            "scores": scores,
            "rest": float(shares[top:].sum()),
            "bound": walk.bound,
            "residue": walk.residue,
            "capped": walk.capped,
            "unknown": start.unknown,
        }


def rank_chunks_by_ppr(
    answers: Answers,
    ppr_scores: Restart | Mapping[str, Any] = (),
    top_k: int = 10,
) -> JsonObject:
    """Passages with their text by the scores of a walk (E3, E11).

    `ppr_scores` are scores by id or the result of `personalized_pagerank`. A passage counts its own
    score and the sum of those of the entities that it mentions over the root of their number, so
    that a long one does not win (X-84).
    """
    scores: Any = ppr_scores
    if isinstance(ppr_scores, Mapping):
        scores = ppr_scores.get("scores", ppr_scores)
    if not isinstance(scores, Mapping) and scores and isinstance(scores[0], Mapping):
        scores = {row["id"]: row["score"] for row in scores}

    with _open_turn(answers, near=scores) as (view, _):
        known_nodes = _known_nodes(view, scores)
        ranked = _rank_passages(
            view,
            known_nodes.numbers,
            known_nodes.weights,
            top_k,
        )
        return _passages_document(view, answers, ranked) | {"unknown": known_nodes.unknown}


def _rank_passages(
    view: MeteredView,
    numbers: Numbers,
    weights: Floats,
    most: int,
) -> list[FoundPassage]:
    """Passages by their own mass and by that of the entities that they mention."""
    is_chunk = view.kinds(numbers) == CHUNK
    chunks = numbers[is_chunk].tolist()
    scores: dict[int, float] = dict(zip(chunks, weights[is_chunk].tolist(), strict=True))
    mentions = view.expand(
        numbers[~is_chunk],
        direction=IN,
        types=[MENTIONS],
    )
    entity_weights = weights[~is_chunk][mentions.row]
    passages, passage_index = np.unique(mentions.target, return_inverse=True)
    shares = np.bincount(passage_index, entity_weights) / np.sqrt(np.bincount(passage_index))

    for node, share in zip(passages.tolist(), shares.tolist(), strict=True):
        scores[node] = scores.get(node, 0.0) + share

    ranked = sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))[:most]
    return [FoundPassage(node, score, {"ppr": score}) for node, score in ranked]


def retrieve(
    answers: Answers,
    query: str,
    top_k: int = 10,
    alpha: float | None = None,
) -> JsonObject:
    """Passages for a question by personalized PageRank (E2); `alpha` is the damping of the walk."""
    walk = answers.tools.walk
    if alpha is not None:
        walk = walk.model_copy(update={"damping": alpha})

    return _search_by_walk(
        answers,
        query,
        HippoRules(walk, limit=top_k),
    )


def retrieve_multi_hop(
    answers: Answers,
    query: str,
    max_hops: int = 3,
    top_k: int = 10,
) -> JsonObject:
    """The same by walks that go on from what they found (E2)."""
    rules = replace(
        MULTI_HOP,
        walk=answers.tools.walk,
        hops=max_hops,
        limit=top_k,
    )
    return _search_by_walk(answers, query, rules)


def multi_hop_search(
    answers: Answers,
    start_nodes: str | Sequence[str] = "",
    max_hops: int = 3,
    top_k: int = 10,
    *,
    query: str = "",
) -> JsonObject:
    """Passages by several hops (E18). For a question, walks go on from what they found; the restart
    decays hop by hop.

    For ids, a walk from them and from what lies within `max_hops` edges, each hop counting half of
    the one before.
    """
    if query or isinstance(start_nodes, str):
        return retrieve_multi_hop(
            answers,
            query or str(start_nodes),
            max_hops,
            top_k,
        )

    with _open_turn(answers, near=start_nodes) as (view, _):
        start = _known_nodes(view, start_nodes)
        mass = dict(zip(start.numbers.tolist(), start.weights.tolist(), strict=True))
        nearby = np.array(list(mass), np.int64)
        share = 1.0

        for _ in range(max_hops):
            share /= 2
            edges = view.expand(
                nearby,
                direction=ANY,
                types=PATH_TYPES,
                fanout=16,
            )
            targets = np.unique(edges.target).tolist()

            new_nodes = []
            for node in targets:
                if node not in mass:
                    new_nodes.append(node)

            mass |= dict.fromkeys(new_nodes, share)
            nearby = np.array(new_nodes, np.int64)

        reached_nodes = KnownNodes(np.array(list(mass), np.int64), np.array(list(mass.values())))
        ranked = rank_walk(
            view,
            _run_pagerank(view, reached_nodes),
            top_k,
        )
        passages = _passages_document(view, answers, ranked)
        entities = _score_documents(
            view,
            reached_nodes.numbers,
            reached_nodes.weights.tolist(),
        )
        return {
            **passages,
            "entities": entities,
            "unknown": start.unknown,
        }


def _search_by_walk(
    answers: Answers,
    query: str,
    rules: HippoRules,
) -> JsonObject:
    caps = WalkCaps.of(answers.plan)
    caps = replace(caps, passages=max(caps.passages, rules.limit))
    with _open_turn(answers, query) as (view, question):
        passages, seeds = hippo_search(
            view,
            question,
            replace(rules, caps=caps),
        )
        nodes = np.array([seed.node for seed in seeds], np.int64)
        entities = _score_documents(
            view,
            nodes,
            [seed.score for seed in seeds],
        )
        return {
            **_passages_document(view, answers, passages),
            "entities": entities,
        }


def expand_with_synonyms(answers: Answers, entity_nodes: Restart) -> JsonObject:
    """The ids with other names of the same things, mass shared among them."""
    with _open_turn(answers, near=entity_nodes) as (view, _):
        nodes = _known_nodes(view, entity_nodes)
        mass = dict(zip(nodes.numbers.tolist(), nodes.weights.tolist(), strict=True))
        shared = share_with_synonyms(view, mass)
        scores = _score_documents(
            view,
            np.array(list(shared), np.int64),
            list(shared.values()),
        )
        return {
            "mass": scores,
            "unknown": nodes.unknown,
        }


def get_entity_neighborhood(
    answers: Answers,
    entity: str = "",
    *,
    hops: int = 1,
    fanout: int = 16,
    entity_id: str = "",
) -> JsonObject:
    """The edges around an entity, heaviest first; `entity_id` is another name of `entity`."""
    entity = entity or entity_id
    if not entity:
        raise HadesError("no entity is named; give the id or the name of one as `entity`")

    with _open_turn(answers, near=[entity]) as (view, _):
        nodes = _known_nodes(view, [entity])
        edge_numbers = edges_around(
            view,
            int(nodes.numbers[0]),
            hops=hops,
            fanout=fanout,
        )
        edges = [_edge_document(edge) for edge in view.edges(edge_numbers)]
        return {
            "entity": entity,
            "edges": edges,
            "reasons": list(view.turn.reasons),
        }


def _edge_document(edge: EdgeFacts) -> JsonObject:
    return {
        "id": edge.id,
        "from": edge.source,
        "to": edge.target,
        "type": edge.type,
        "weight": edge.weight,
        "provenance": {
            "doc": edge.document,
            "span": edge.span,
        },
    }


@contextmanager
def _open_turn(
    answers: Answers,
    query: str = "",
    near: Restart = (),
) -> Iterator[tuple[MeteredView, Question]]:
    """The graph around a question or these ids, through a meter with the plan's caps, in one stage.

    With the question, embedded where the graph has the like. Who asks is not known here, so a home
    where some documents are not for everybody refuses it.
    """
    if answers.rights is not None and answers.rights.restrict_any():
        raise HadesError(
            "this function reads the whole graph, and some of its documents are not for "
            "everybody; ask by `retrieve` with as_user and groups, or as_owner"
        )

    turn = Turn(caps_of(answers.plan), answers.tools.clock)
    graph = answers.view
    if query:
        recipe = recipe_named(DEFAULT)
        questions = embedded(
            turn,
            graph.info,
            query,
            answers.tools,
            recipe,
            plan=answers.plan,
        )
    else:
        names = filter(None, map(_words_of_id, near))
        questions = [Question(", ".join(names))]

    view = fetch_neighbourhood(
        graph,
        turn,
        questions,
        list(near),
    )
    with turn.stage("function"):
        yield MeteredView(view, turn), questions[0]


def _run_pagerank(
    view: MeteredView,
    start: KnownNodes,
    *,
    damping: float = 0.85,
    max_iter: int = 100,
    epsilon: float = EPSILON,
    top: int | None = None,
) -> Ppr:
    edge_count = max(1, sum(view.info.edges.values()))
    max_work = min(view.turn.work_left, max_iter * 2 * edge_count)
    return walk_from(
        view,
        start.numbers,
        start.weights,
        damping=damping,
        epsilon=epsilon,
        factors=NO_TOPICS,
        top=top,
        max_work=max_work,
        stop=view.turn.expired,
    )


def _candidates(
    view: MeteredView,
    question: Question,
    answers: Answers,
    seeds: Sequence[Seed],
    ids: Sequence[str] | None,
) -> CandidateGraph:
    """Those named; else the question's; else, without topics, the seeds and what is next to
    them.
    """
    rules = answers.tools.rules
    if ids is not None:
        numbers = _known_nodes(view, ids).numbers
        return CandidateGraph(numbers, np.ones(len(numbers), np.float32))

    graph = narrow(view, question, rules)
    if graph is not None:
        return graph

    starts = np.array([seed.node for seed in seeds], np.int64)
    neighbours = view.expand(
        starts,
        direction=ANY,
        types=PATH_TYPES,
        fanout=rules.cand_cap // 8,
    )
    numbers = np.union1d(starts, neighbours.target)[: rules.cand_cap]
    return CandidateGraph(numbers, np.ones(len(numbers), np.float32))


@dataclass(frozen=True)
class KnownNodes:
    """Nodes that ids and names mean, each once with its mass; what means none, with the reason."""

    numbers: Numbers
    weights: Floats
    unknown: list[dict[str, str]] = field(default_factory=list)


def _known_nodes(view: MeteredView, restart: Restart) -> KnownNodes:
    """The nodes of ids such as `entities/python`, and of names such as `python` and
    `machine_learning`; equal masses for a list.

    The mass of a name that several entities have is shared among them. What is no node is left out;
    it is an error where nothing is left.
    """
    if isinstance(restart, Mapping):
        mass = restart
    else:
        mass = dict.fromkeys(restart, 1.0)

    by_id = view.number(list(mass)).tolist()
    by_name = view.match_whole([_words_of_id(id_) for id_ in mass])
    weights: dict[int, float] = {}

    unknown = []
    for (id_, weight), number, named_nodes in zip(mass.items(), by_id, by_name, strict=True):
        nodes = [number] if number >= 0 else named_nodes.tolist()
        for node in nodes:
            weights[node] = weights.get(node, 0.0) + weight / len(nodes)

        if not nodes:
            reason = f"{id_!r} is neither a node nor a name of snapshot {view.info.snapshot}"
            unknown.append({"id": id_, "reason": reason})

    if unknown and not weights:
        raise HadesError(f"{unknown[0]['reason']}; ids look like entities/name")

    numbers = np.array(list(weights), np.int64)
    return KnownNodes(
        numbers,
        np.array(list(weights.values()), np.float64),
        unknown,
    )


def _words_of_id(id_: str) -> str:
    """The words of an id without its collection: `entities/machine_learning` says machine learning;
    empty for an id of another collection.
    """
    collection, _, key = id_.rpartition("/")
    if collection in ("", "entities"):
        return key.replace("_", " ")

    return ""


def _score_documents(
    view: MeteredView,
    numbers: Numbers,
    scores: Sequence[float],
) -> list[JsonObject]:
    documents = []
    for node, score in zip(view.ids(numbers), scores, strict=True):
        documents.append({"id": node, "score": float(score)})

    return documents


def _passages_document(
    view: MeteredView,
    answers: Answers,
    passages: Sequence[FoundPassage],
) -> JsonObject:
    """E7: chunk id, text, score and rank, with what leads back to the document."""
    document = show(
        view,
        QuickCounts(answers.tools.tokenizer),
        (),
        passages,
        (),
    )
    return {
        "passages": [passage.model_dump(mode="json") for passage in document.passages],
        "reasons": list(view.turn.reasons),
    }


def search_memories(
    memory: Memory,
    query: str,
    time_window: Sequence[datetime | None] | None = None,
    limit: int | None = None,
    *,
    mask: Mask = Mask(),
) -> JsonObject:
    """Topics near to a question, nearest first, each as it is now (D47)."""
    if time_window is not None and len(time_window) != 2:
        raise MemoryRefused(
            f"a time window has two ends, not {len(time_window)}; leave an open one None"
        )

    if time_window is None:
        window = None
    else:
        window = (time_window[0], time_window[1])

    matches = memory.search(
        query,
        window,
        limit=limit,
        mask=mask,
    )
    return {
        "query": query,
        "results": plain(matches),
        "count": len(matches),
    }


def graph_enhanced_retrieval(
    memory: Memory,
    query: str,
    depth: int = 2,
    *,
    matches: int = graph.MATCHES,
    mask: Mask = Mask(),
) -> JsonObject:
    """What a question finds, related states by edge strength, and three versions before (D48)."""
    return {
        "query": query,
        **plain(
            memory.graph_enhanced_retrieval(
                query,
                depth,
                matches=matches,
                mask=mask,
            )
        ),
    }


def retrieve_within_budget(
    memory: Memory,
    query: str,
    max_tokens: int = MAX_TOKENS,
    *,
    mask: Mask = Mask(),
) -> JsonObject:
    """The context for a question, and the tokens of each part (D50)."""
    return memory.retrieve_within_budget(
        query,
        max_tokens,
        mask=mask,
    ).as_dict()


def get_relevant_subgraph(
    memory: Memory,
    query_embedding: Sequence[float],
    max_nodes: int = 100,
    *,
    mask: Mask = Mask(),
) -> JsonObject:
    """The versions worth reading for a vector, ranked, then cut (D52)."""
    subgraph = memory.get_relevant_subgraph(
        query_embedding,
        max_nodes,
        mask=mask,
    )
    return {
        **plain(subgraph),
        "nodes": [
            {
                **plain(state),
                "score": round(score, 6),
            }
            for state, score in subgraph.nodes
        ],
    }
