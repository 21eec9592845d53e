"""Tools made from capabilities: a field of the request becomes a parameter."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any, cast

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp_types import CallToolResult, ToolAnnotations
from pydantic import Field, create_model
from pydantic.fields import FieldInfo

from hades.memory.history.names import UnknownMemory
from hades.ports.store import Mode
from hades.surfaces.access.callers import Caller, covers
from hades.surfaces.capabilities.capability import Capability, JsonReply, Mcp, load
from hades.surfaces.capabilities.registry import capabilities
from hades.surfaces.mcp.calls import ToolOutcome, answer, required
from hades.surfaces.mcp.replies import ToolReply
from hades.surfaces.mcp.service import Service

WRITING_TOOLS = frozenset(
    one.mcp.name for one in capabilities() if isinstance(one.mcp, Mcp) and one.mode != "ro"
)  # fmt: skip


def add_tools(server: MCPServer[Any], service: Service) -> None:
    """Register the tool of every capability that the mode of the service covers."""
    for capability in capabilities():
        if isinstance(capability.mcp, Mcp) and covers(service.door.mode, Mode(capability.mode)):
            _add_tool(server, service, capability, capability.mcp)


def _add_tool(server: MCPServer[Any], service: Service, capability: Capability, tool: Mcp) -> None:
    reads = capability.mode == "ro"
    hints = ToolAnnotations(
        read_only_hint=reads,
        destructive_hint=None if reads else False,
        idempotent_hint=tool.is_idempotent,
        open_world_hint=False,
    )
    function = make_tool(service, capability, tool)
    server.add_tool(function, name=tool.name, title=tool.title, description=capability.help, annotations=hints)


def make_tool(service: Service, capability: Capability, tool: Mcp) -> Callable[..., Awaitable[CallToolResult]]:
    """The coroutine of a tool, with the signature that the SDK reads."""
    reply_type = _reply_type(tool)

    async def call(context: Context[Any, Any], **given: Any) -> CallToolResult:
        def work(caller: Caller) -> ToolOutcome:
            if "query" in given:
                given["query"] = required(given["query"])
            request = capability.check(given)
            called = service.context(caller, Mode(capability.mode))
            try:
                reply = capability.call(request, called)
            except UnknownMemory:
                if tool.null_when_unknown is None:
                    raise
                reply = {"topic": given.get("topic"), tool.null_when_unknown: None}
            return _outcome(reply_type, tool, reply.document if isinstance(reply, JsonReply) else reply)

        return await answer(service, context, work, needs=Mode(capability.mode))

    fields = capability.request.model_fields
    parameters = [_parameter(name, field) for name, field in fields.items() if field.is_required()]
    parameters.append(_keyword("context", Context[Any, Any]))
    parameters += [_parameter(name, field) for name, field in fields.items() if not field.is_required()]
    returned = cast(Any, Annotated).__class_getitem__((CallToolResult, reply_type))
    call.__signature__ = inspect.Signature(parameters, return_annotation=returned)  # type: ignore[attr-defined]
    call.__annotations__ = {one.name: one.annotation for one in parameters} | {"return": returned}
    call.__name__ = tool.name
    return call


def _reply_type(tool: Mcp) -> type[ToolReply]:
    """The result class; a record of the library gets `success` and `error` like every other result."""
    found = load(tool.reply)
    if issubclass(found, ToolReply):
        return cast(type[ToolReply], found)
    fields: Any = {name: (field.annotation | None, None) for name, field in found.model_fields.items()}
    return create_model(f"{found.__name__}Reply", __base__=ToolReply, __doc__=found.__doc__, **fields)


def _outcome(reply_type: type[ToolReply], tool: Mcp, document: Mapping[str, Any]) -> ToolOutcome:
    reply = reply_type.model_validate({"success": True, **document})
    text = document.get(tool.text) if tool.text is not None else None
    return ToolOutcome(reply, text, str(document.get("query_id", "")))


def _parameter(name: str, field: FieldInfo) -> inspect.Parameter:
    described = Field(description=field.description, examples=field.examples)
    annotation = cast(Any, Annotated).__class_getitem__((field.annotation, *field.metadata, described))
    default = inspect.Parameter.empty if field.is_required() else field.get_default(call_default_factory=True)
    return _keyword(name, annotation, default)


def _keyword(name: str, annotation: Any, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
