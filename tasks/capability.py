"""Prefect tasks made from capabilities: the parameters are the fields of the request, the result is the reply."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from hades.settings import load_settings
from hades.surfaces.access.local_context import LocalContext
from hades.surfaces.capabilities.capability import Capability, document_of
from tasks.graph import open_graph
from tasks.unit import Unit, unit

FLOW = "flow"  # who is responsible for what a task writes


def capability_task(capability: Capability, policy: dict[str, Any], **options: Any) -> Unit[dict[str, Any]]:
    """The task of a capability, named as it is declared."""
    return unit(capability.task_name, policy, **options)(_function_of(capability))


def perform(capability: Capability, values: dict[str, Any]) -> dict[str, Any]:
    """Call a capability with the open graph of this process."""
    context = LocalContext(load_settings(), FLOW, answers=open_graph, logs_turns=False)
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
    call.__module__ = "tasks.capability"
    return call
