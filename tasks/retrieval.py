"""Tasks that answer questions and read the graph."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from functools import cache
from typing import Any

from prefect import Task, task
from prefect.context import TaskRunContext

from hades.compat import functions
from hades.retrieval.answer import prompt
from hades.retrieval.answers import Answers
from hades.retrieval.walks import flow
from hades.settings.load import load_settings
from hades.settings.tree import Settings
from hades.stage_ledger import digest_of
from hades.surfaces.access.contexts import CallContext
from hades.surfaces.capabilities.capability import Capability, document_of, field_parameter
from hades.surfaces.capabilities.questions import queries, query
from hades.wiring import open_answers
from tasks import policies
from tasks.unit import Unit, unit


def capability_task(
    capability: Capability, policy: dict[str, Any], **options: Any
) -> Unit[dict[str, Any]]:
    """The task of a capability, named as it is declared."""
    return unit(capability.task, policy, **options)(_task_function(capability))


def perform(
    capability: Capability,
    values: dict[str, Any],
    settings: Settings | None = None,
) -> dict[str, Any]:
    """Call a capability with the open graph of this process."""
    settings = settings or load_settings()
    request = capability.check(values)

    with closing(
        CallContext(
            settings,
            "flow",
            lend_answers=open_graph,
            logs_turns=False,
        )
    ) as context:
        return document_of(capability.call(request, context))


def _task_function(capability: Capability) -> Callable[..., dict[str, Any]]:
    fields = sorted(
        capability.request.model_fields.items(),
        key=lambda field: not field[1].is_required(),
    )
    parameters = [field_parameter(name, field, None) for name, field in fields]

    positional = []
    for parameter in parameters:
        positional.append(
            parameter.replace(
                kind=inspect.Parameter.POSITIONAL_OR_KEYWORD,
                annotation=Any,
            )
        )

    signature = inspect.Signature(positional, return_annotation=dict[str, Any])

    def call(*args: Any, **kwargs: Any) -> dict[str, Any]:
        bound = signature.bind(*args, **kwargs)
        return perform(capability, dict(bound.arguments))

    call.__signature__ = signature  # type: ignore[attr-defined]
    call.__name__ = capability.task.replace(" ", "_")
    call.__qualname__ = call.__name__
    call.__doc__ = capability.help
    call.__module__ = "tasks.unit"
    return call


def open_graph() -> Answers:
    """The graph of the settings, which the tasks of this process share: opening the model costs
    more than an answer.
    """
    return _open_answers(digest_of(load_settings().masked()))


@cache
def _open_answers(settings: str) -> Answers:
    return open_answers(load_settings())


# Retrieval as tasks: for flows, and with `.delay()` for a served worker. A question of one snapshot
# is asked once. A worker for delayed tasks is `prefect.task_worker.serve(*DELAYABLE)`;
# `tasks.unit.wait_for` waits for a result.


def by_snapshot(context: TaskRunContext, parameters: dict[str, Any]) -> str:
    """The same call of the same snapshot with the same settings has the same answer; a new snapshot
    has a new one.
    """
    masked = load_settings().masked()
    names = ("HADES_EMBEDDER", "HADES_VIEW", "plan", "hirag_pathrag")
    settings = {name: masked[name] for name in names}
    snapshot = open_graph().view.info.snapshot
    return digest_of(
        context.task.name,
        snapshot,
        settings,
        parameters,
    )


_CACHED: dict[str, Any] = {
    **policies.LOCAL,
    "cache_key_fn": by_snapshot,
    "persist_result": True,
}
retrieve = capability_task(query, _CACHED)


def function_task(function: Callable[..., Any]) -> Any:
    """The task of a function of the open graph, with its name and its arguments after the graph."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return function(open_graph(), *args, **kwargs)

    return task(name=function.__name__.replace("_", " "), **_CACHED)(name_after(function, call))


def name_after(function: Callable[..., Any], call: Any) -> Any:
    """A call with the name, the text and the arguments of a function, but for its first."""
    signature = inspect.signature(function)
    call.__signature__ = signature.replace(parameters=list(signature.parameters.values())[1:])
    call.__name__ = call.__qualname__ = function.__name__
    call.__doc__ = function.__doc__
    return call


retrieve_paths = function_task(functions.retrieve_paths)
retrieve_and_format = function_task(functions.retrieve_and_format)
get_hierarchy_candidates = function_task(functions.get_hierarchy_candidates)
get_best_paths = function_task(functions.get_best_paths)
personalized_pagerank = function_task(functions.personalized_pagerank)
rank_chunks_by_ppr = function_task(functions.rank_chunks_by_ppr)
multi_hop_search = function_task(functions.multi_hop_search)
expand_with_synonyms = function_task(functions.expand_with_synonyms)
get_entity_neighborhood = function_task(functions.get_entity_neighborhood)
calculate_path_score = task(name="calculate path score", **policies.LOCAL)(
    flow.calculate_path_score
)
prune_paths = task(name="prune paths", **policies.LOCAL)(flow.prune_paths)
format_paths_for_prompt = task(name="format paths for prompt", **policies.LOCAL)(
    prompt.format_paths_for_prompt
)


@task(name="format path prompt", **policies.LOCAL)
def format_path_prompt(
    paths: Sequence[str | Mapping[str, Any]],
    hierarchy_summary: str = "",
) -> str:
    """Paths as a prompt shows them to a model."""
    return prompt.format_path_prompt(
        paths,
        hierarchy_summary,
        tokenizer=open_graph().tools.tokenizer,
    )


DELAYABLE = tuple(value for value in list(vars().values()) if isinstance(value, Task))
report_queries = capability_task(queries, policies.LOCAL)
