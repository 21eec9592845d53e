"""Tasks that answer questions and read the graph."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from prefect import task
from prefect.context import TaskRunContext

from hades.build_state import digest_of
from hades.compat import functions
from hades.retrieval.answer.prompt import format_path_prompt as prompt_of
from hades.retrieval.answers import Answers
from hades.retrieval.walks import flow
from hades.retrieval.walks.pagerank import EPSILON
from hades.settings.load import load_settings
from hades.surfaces.access.contexts import CallContext
from hades.surfaces.capabilities.capability import Capability, document_of
from hades.surfaces.capabilities.questions import queries, query
from hades.wiring import open_answers
from tasks import policies
from tasks.unit import FLOW, Unit, unit


def capability_task(capability: Capability, policy: dict[str, Any], **options: Any) -> Unit[dict[str, Any]]:
    """The task of a capability, named as it is declared."""
    return unit(capability.task_name, policy, **options)(_function_of(capability))


def perform(capability: Capability, values: dict[str, Any]) -> dict[str, Any]:
    """Call a capability with the open graph of this process."""
    context = CallContext(load_settings(), FLOW, lend_answers=open_graph, logs_turns=False)
    try:
        return document_of(capability.call(capability.check(values), context))
    finally:
        context.close()


def _function_of(capability: Capability) -> Callable[..., dict[str, Any]]:
    fields = capability.request.model_fields
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [
        inspect.Parameter(name, kind, annotation=Any, default=inspect.Parameter.empty)
        for name, field in fields.items()
        if field.is_required()
    ] + [
        inspect.Parameter(name, kind, annotation=Any, default=field.get_default(call_default_factory=True))
        for name, field in fields.items()
        if not field.is_required()
    ]
    signature = inspect.Signature(parameters, return_annotation=dict[str, Any])

    def call(*given: Any, **named: Any) -> dict[str, Any]:
        bound = signature.bind(*given, **named)
        return perform(capability, dict(bound.arguments))

    call.__signature__ = signature  # type: ignore[attr-defined]
    call.__name__ = capability.task_name.replace(" ", "_")
    call.__qualname__ = call.__name__
    call.__doc__ = capability.help
    call.__module__ = "tasks.unit"
    return call


# The open graph of this process: opening the model costs more than an answer, so tasks share it.


def open_graph() -> Answers:
    """The graph of the settings; other settings open another one."""
    return _open(digest_of(load_settings().masked()))


@cache
def _open(settings: str) -> Answers:
    return open_answers(load_settings())


# Retrieval as tasks: for flows, and with `.delay()` for a served worker. A question of one snapshot is asked once.
# A worker for delayed tasks is `prefect.task_worker.serve(*DELAYABLE)`; `tasks.unit.wait_for` waits for a result.


def by_snapshot(context: TaskRunContext, parameters: dict[str, Any]) -> str:
    """The same call of the same snapshot with the same settings has the same answer; a new snapshot has a new one."""
    shown = load_settings().masked()
    settings = {name: shown[name] for name in ("HADES_EMBEDDER", "HADES_VIEW", "plan", "hirag_pathrag")}
    return digest_of(context.task.name, open_graph().view.info.snapshot, settings, parameters)


_ASKED: dict[str, Any] = {**policies.LOCAL, "cache_key_fn": by_snapshot, "persist_result": True}
retrieve = capability_task(query, _ASKED)


@task(name="retrieve paths", **_ASKED)
def retrieve_paths(
    query: str, max_paths: int = 5, domain_filter: str | None = None, as_of_version: str | None = None
) -> functions.FoundPaths | functions.FailedCall:
    """Paths for a question."""
    return functions.retrieve_paths(open_graph(), query, max_paths, domain_filter, as_of_version)


@task(name="retrieve and format", **_ASKED)
def retrieve_and_format(
    query: str, max_paths: int = 5, domain_filter: str | None = None, as_of_version: str | None = None
) -> functions.FoundPrompt | functions.FailedCall:
    """The prompt for a question."""
    return functions.retrieve_and_format(open_graph(), query, max_paths, domain_filter, as_of_version)


@task(name="get hierarchy candidates", **_ASKED)
def get_hierarchy_candidates(
    query: str | Sequence[float], k_topic: int = 8, thresholds: Mapping[int, float] | None = None
) -> dict[str, Any]:
    """The nodes worth searching and the topics that led there."""
    return functions.get_hierarchy_candidates(open_graph(), query, k_topic, thresholds)


@task(name="get best paths", **_ASKED)
def get_best_paths(
    query: str, M: int = 6, L: int = 5, relation_boosts: Mapping[str, float] | None = None
) -> dict[str, Any]:
    """The best paths between seeds."""
    return functions.get_best_paths(open_graph(), query, M, L, relation_boosts)


@task(name="format path prompt", **policies.LOCAL)
def format_path_prompt(paths: Sequence[str | Mapping[str, Any]], hierarchy_summary: str = "") -> str:
    """Paths as a model is told them."""
    return prompt_of(paths, hierarchy_summary, tokenizer=open_graph().tools.tokenizer)


@task(name="personalized pagerank", **_ASKED)
def personalized_pagerank(
    query_nodes: functions.Restart, alpha: float = 0.85, max_iter: int = 100, tol: float = EPSILON, top: int = 100
) -> dict[str, Any]:
    """Where a walk from these ids is."""
    return functions.personalized_pagerank(open_graph(), query_nodes, alpha, max_iter, tol, top=top)


@task(name="rank chunks by ppr", **_ASKED)
def rank_chunks_by_ppr(ppr_scores: functions.Restart | Mapping[str, Any], top_k: int = 10) -> dict[str, Any]:
    """Passages by the scores of a walk."""
    return functions.rank_chunks_by_ppr(open_graph(), ppr_scores, top_k)


@task(name="multi hop search", **_ASKED)
def multi_hop_search(start_nodes: str | Sequence[str], max_hops: int = 3, top_k: int = 10) -> dict[str, Any]:
    """Passages by walks that go on from what they found, for a question or from these ids."""
    return functions.multi_hop_search(open_graph(), start_nodes, max_hops, top_k)


@task(name="expand with synonyms", **_ASKED)
def expand_with_synonyms(entity_nodes: functions.Restart) -> dict[str, Any]:
    """The ids with other names of the same things."""
    return functions.expand_with_synonyms(open_graph(), entity_nodes)


@task(name="calculate path score", **policies.LOCAL)
def calculate_path_score(
    path: Mapping[str, Any] | None,
    source_node: Mapping[str, Any] | str | None = None,
    decay_rate: float = flow.DECAY_RATE,
) -> float:
    """The reliability of a path given as a document."""
    return flow.calculate_path_score(path, source_node, decay_rate)


@task(name="prune paths", **policies.LOCAL)
def prune_paths(
    candidate_paths: Sequence[Mapping[str, Any]], pruning_threshold: float = flow.PRUNING_THRESHOLD
) -> list[dict[str, Any]]:
    """The paths whose reliability reaches the threshold, most reliable first."""
    return flow.prune_paths(candidate_paths, pruning_threshold)


@task(name="get entity neighborhood", **_ASKED)
def get_entity_neighborhood(entity: str, hops: int = 1, fanout: int = 16) -> dict[str, Any]:
    """The edges around an entity."""
    return functions.get_entity_neighborhood(open_graph(), entity, hops=hops, fanout=fanout)


report_queries = capability_task(queries, policies.LOCAL)
DELAYABLE = (
    retrieve,
    retrieve_paths,
    retrieve_and_format,
    get_hierarchy_candidates,
    get_best_paths,
    format_path_prompt,
    personalized_pagerank,
    rank_chunks_by_ppr,
    multi_hop_search,
    expand_with_synonyms,
    get_entity_neighborhood,
    calculate_path_score,
    prune_paths,
)
