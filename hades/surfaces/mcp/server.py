"""The MCP server: tools made from capabilities, resources, one call, and running it."""

from __future__ import annotations

import asyncio
import getpass
import inspect
import json
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import closing, contextmanager
from contextvars import ContextVar
from dataclasses import asdict
from functools import cached_property
from importlib.metadata import version
from math import ceil
from operator import methodcaller
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any, cast

import anyio
from mcp.server import MCPServer
from mcp.server.context import CallNext, HandlerResult, ServerMiddleware, ServerRequestContext
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError, ToolError
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, InputRequiredResult, TextContent, ToolAnnotations
from pydantic import Field, ValidationError, create_model
from pydantic.fields import FieldInfo

from hades.budget import TurnStage, watched
from hades.errors import HadesError, explain_problems
from hades.memory.history.rows import UnknownMemory
from hades.ports.store import Mode
from hades.retrieval.answers import Answers
from hades.retrieval.walks.neighbourhood import UnknownNode, node_shown
from hades.settings.tree import Settings
from hades.surfaces.access.contexts import Service, ServiceContext
from hades.surfaces.access.limits import (
    LIMITED_NEXT,
    Caller,
    Door,
    Limits,
    covers,
    require,
    without_tokens,
)
from hades.surfaces.capabilities.capability import (
    Capability,
    Mcp,
    document_of,
    field_parameter,
    keyword,
)
from hades.surfaces.capabilities.registry import CAPABILITIES
from hades.surfaces.capabilities.replies import ToolReply
from hades.surfaces.rest.app import run_app
from hades.telemetry.logs import Audit, CallMode

# One audit line for every call, also for one that never reached its tool: {mode, path, status, ms}
# and who.
_SHOWN = 120
_PATHS = {
    "tools/call": ("tool", "name"),
    "resources/read": ("resource", "uri"),
}

# What a call says of itself on the way: status, who, query_id. A tool that is not reached says
# nothing.
_note: ContextVar[dict[str, str]] = ContextVar("note of a call")


def auditing(audit: Audit, writing: frozenset[str]) -> ServerMiddleware[Any]:
    """Writes the line of each call when it ends, whichever way it ends."""

    async def middleware(
        ctx: ServerRequestContext[Any, Any],
        call_next: CallNext,
    ) -> HandlerResult:
        if ctx.method not in _PATHS or ctx.request_id is None:
            return await call_next(ctx)

        mode: CallMode = "RW" if _name_of(ctx) in writing else "RO"
        note: dict[str, str] = {}
        token = _note.set(note)
        began = time.perf_counter()
        status = ""

        try:
            result = await call_next(ctx)
            if isinstance(result, dict):
                has_failed = result.get("isError")
            else:
                has_failed = getattr(result, "is_error", False)

            status = "BadCall" if has_failed else "ok"
            return result
        except BaseException as error:
            is_cancelled = isinstance(error, anyio.get_cancelled_exc_class())
            if is_cancelled:
                status = "Cancelled"
            else:
                status = type(error).__name__

            raise
        finally:
            _note.reset(token)
            ms = (time.perf_counter() - began) * 1000
            audit.write(
                mode,
                _audit_path(ctx),
                note.pop("status", status),
                ms,
                **note,
            )

    return middleware


def _name_of(context: ServerRequestContext[Any, Any]) -> str:
    return str((context.params or {}).get(_PATHS[context.method][1], ""))


def _audit_path(context: ServerRequestContext[Any, Any]) -> str:
    """The path of a call in the audit, in printable characters."""
    name = _name_of(context)[:_SHOWN]
    printable = "".join(character if character.isprintable() else "?" for character in name)
    return f"mcp/{_PATHS[context.method][0]}/{without_tokens(printable)}"


# What the tools work with, opened once for the life of the process and shared by all sessions.


class ToolService(Service):
    """Everything behind the tools."""

    @cached_property
    def limiter(self) -> anyio.CapacityLimiter:
        """How many calls run at the same time; the others wait."""
        return anyio.CapacityLimiter(self.limits.answering)


# One call of a tool: authentication, progress after each stage, cancellation, audit.
NOT_AUTHENTICATED = "Not authenticated"
QUERY_REQUIRED = "Query is required"
LISTS = frozenset({"tools/list", "resources/list", "resources/templates/list", "prompts/list"})
REFUSED_CODE = -32001  # of the range that JSON-RPC leaves to servers


class CallRefused(HadesError):
    """A call that fails with `success: false` and this text."""


class CallStopped(Exception):
    """The caller cancelled; raised in the thread of the call, between two stages."""


async def answer(
    service: ToolService,
    context: Context[Any, Any],
    work: Callable[[Caller], CallToolResult],
    needs: Mode,
) -> CallToolResult:
    """Run the work of a tool in a thread and return its result for the protocol; failures are
    results too.
    """
    note = _note.get({})
    try:
        caller = caller_of(service, context)
        require(caller, needs)
        result = await _in_thread(
            service,
            context,
            lambda: work(caller),
            may_stop=needs is Mode.READ_ONLY,
            counts=caller.limit is None,
        )
        note |= {"status": "ok", **(result.meta or {})}
        return result
    except HadesError as error:
        note["status"] = type(error).__name__
        return _tool_result(ToolReply(success=False, error=str(error)))


def caller_of(service: ToolService, context: Context[Any, Any]) -> Caller:
    """The caller: over stdio the user who started this process, over HTTP the owner of the
    token.
    """
    headers = context.headers
    if headers is None and not service.door.needs_token:
        caller = service.local_caller(getpass.getuser(), service.door.tenant)
    else:
        caller = _remote_caller(service, headers or {})

    _note.get({})["who"] = caller.name
    return caller


def admitting(service: ToolService) -> ServerMiddleware[Any]:
    """Refuses lists to a caller without a token where one is needed: only its users learn what a
    server offers.
    """

    async def middleware(
        ctx: ServerRequestContext[Any, Any],
        call_next: CallNext,
    ) -> HandlerResult:
        if ctx.method in LISTS and service.door.needs_token:
            try:
                _remote_caller(service, getattr(ctx.request, "headers", None) or {})
            except CallRefused as error:
                raise MCPError(REFUSED_CODE, str(error)) from None

        return await call_next(ctx)

    return middleware


def _remote_caller(service: ToolService, headers: Mapping[str, str]) -> Caller:
    door = service.door
    caller = service.token_caller(headers)
    if caller is None and not door.needs_token:
        caller = service.local_caller("loopback", door.tenant)
    if caller is None or caller.tenant not in (None, door.tenant):
        raise CallRefused(NOT_AUTHENTICATED)
    if (seconds := service.rates.wait(caller.name)) > 0:
        raise CallRefused(f"Rate limit exceeded; retry in {max(1, ceil(seconds))} s.")

    return caller


async def _in_thread(
    service: ToolService,
    context: Context[Any, Any],
    work: Callable[[], CallToolResult],
    *,
    may_stop: bool,
    counts: bool,
) -> CallToolResult:
    """Run in a thread and report stages, with `counts` what they found. A cancelled read stops
    after its stage; a cancelled write is finished.
    """
    loop = asyncio.get_running_loop()
    stop = threading.Event()
    reports: list[Future[None]] = []

    def watch(stage: TurnStage) -> None:
        if stop.is_set():
            raise CallStopped

        message = stage.name
        if counts:
            message += f": {stage.given} found in {stage.ms:.0f} ms"

        report = context.report_progress(
            len(reports) + 1,
            None,
            message,
        )
        reports.append(asyncio.run_coroutine_threadsafe(report, loop))

    def watched_work() -> CallToolResult:
        with watched(watch):
            return work()

    try:
        reply = await anyio.to_thread.run_sync(
            watched_work,
            abandon_on_cancel=may_stop,
            limiter=service.limiter,
        )
        await asyncio.gather(*map(asyncio.wrap_future, reports))
    finally:
        stop.set()

    return reply


def _tool_result(
    reply: ToolReply,
    text: str | None = None,
    query_id: str = "",
) -> CallToolResult:
    """A reply for the protocol; the text is what a model reads in place of JSON."""
    if text is None:
        content = reply.model_dump_json(exclude_unset=True)
    else:
        content = text

    return CallToolResult(
        content=[TextContent(type="text", text=content)],
        structured_content=reply.model_dump(mode="json", exclude_unset=True),
        is_error=not reply.success,
        _meta={"query_id": query_id} if query_id else None,
    )


# Tools made from capabilities: a field of the request becomes a parameter.
WRITING_TOOLS = frozenset(
    capability.mcp.name
    for capability in CAPABILITIES
    if capability.mcp is not None and capability.mode != "ro"
)


def add_tools(server: MCPServer[Any], service: ToolService) -> None:
    """Register the tool of every capability that the mode of the service covers."""
    for capability in CAPABILITIES:
        if capability.mcp is None or not covers(service.door.mode, Mode(capability.mode)):
            continue

        tool = capability.mcp
        reads = capability.mode == "ro"
        hints = ToolAnnotations(
            read_only_hint=reads,
            destructive_hint=None if reads else False,
            idempotent_hint=tool.is_idempotent,
            open_world_hint=False,
        )
        function = make_tool(service, capability, tool)
        server.add_tool(
            function,
            name=tool.name,
            title=tool.title,
            description=capability.help,
            annotations=hints,
        )


def make_tool(
    service: ToolService,
    capability: Capability,
    tool: Mcp,
) -> Callable[..., Awaitable[CallToolResult]]:
    """The coroutine of a tool, with the signature that the SDK reads."""
    reply_type = _reply_type(tool)

    async def call(context: Context[Any, Any], **arguments: Any) -> CallToolResult:
        def work(caller: Caller) -> CallToolResult:
            if "query" in arguments:
                arguments["query"] = arguments["query"].strip()
                if not arguments["query"]:
                    raise CallRefused(QUERY_REQUIRED)

            try:
                request = capability.check(arguments)
            except ValidationError as error:
                raise CallRefused(explain_problems(error.errors(), tool.name)) from None

            service_context = ServiceContext(
                service,
                f"mcp:{caller.name}",
                Mode(capability.mode),
                caller.limit,
                caller.asker,
            )
            try:
                reply = capability.call(request, service_context)
            except UnknownMemory:
                if tool.null_when_unknown is None:
                    raise
                reply = {
                    "topic": arguments.get("topic"),
                    tool.null_when_unknown: None,
                }

            document = document_of(reply)
            if tool.text is not None:
                text = document.get(tool.text)
            else:
                text = None

            tool_reply = reply_type.model_validate({"success": True, **document})
            return _tool_result(
                tool_reply,
                text,
                str(document.get("query_id", "")),
            )

        return await answer(
            service,
            context,
            work,
            Mode(capability.mode),
        )

    fields = capability.request.model_fields
    parameters = [_parameter(name, field) for name, field in fields.items() if field.is_required()]
    parameters.append(keyword("context", Context[Any, Any]))
    parameters += [
        _parameter(name, field) for name, field in fields.items() if not field.is_required()
    ]
    return_type = cast(Any, Annotated)[(CallToolResult, reply_type)]
    signature = inspect.Signature(parameters, return_annotation=return_type)
    call.__signature__ = signature  # type: ignore[attr-defined]

    annotations = {}
    for parameter in parameters:
        annotations[parameter.name] = parameter.annotation

    call.__annotations__ = annotations | {"return": return_type}
    call.__name__ = tool.name
    return call


def _reply_type(tool: Mcp) -> type[ToolReply]:
    """The result class; a record of the library gets `success` and `error` like every other
    result.
    """
    reply = tool.reply
    if issubclass(reply, ToolReply):
        return reply

    kinds: dict[str, Any] = {}
    for name, field in reply.model_fields.items():
        kinds[name] = field.annotation

    fields: Any = {}
    for name, kind in kinds.items():
        fields[name] = (kind | None, None)

    return create_model(
        f"{reply.__name__}Reply",
        __base__=ToolReply,
        __doc__=reply.__doc__,
        **fields,
    )


def _parameter(name: str, field: FieldInfo) -> inspect.Parameter:
    description = Field(description=field.description, examples=field.examples)
    return field_parameter(name, field, description)


# What an agent may read without asking a question: the published snapshot, and a node of it.


def add_resources(server: MCPServer[Any], service: ToolService) -> None:
    """Register `hades://snapshot/{version}` and `hades://nodes/{collection}/{key}`."""

    @server.resource(
        "hades://snapshot/{version}",
        title="The published graph",
        description="Sizes, models and id of a snapshot; `current` is the one that serves.",
        mime_type="application/json",
    )
    def snapshot(version: str, context: Context[Any, Any]) -> str:
        with _open_graph(service, context) as answers, answers.lease() as view:
            if version not in ("current", view.info.snapshot):
                raise ResourceNotFoundError(
                    f"snapshot {version} does not serve; read hades://snapshot/current"
                )

            return json.dumps(asdict(view.info), default=str)

    @server.resource(
        "hades://nodes/{collection}/{key}",
        title="A node of the graph",
        description="Its facts, degrees and topic, and its text where it has one; ids are as paths "
        "show them.",
        mime_type="application/json",
    )
    def node(
        collection: str,
        key: str,
        context: Context[Any, Any],
    ) -> str:
        with (
            _open_graph(service, context) as answers,
            answers.read([f"{collection}/{key}"]) as view,
        ):
            return json.dumps(node_shown(view, f"{collection}/{key}"), default=str)


@contextmanager
def _open_graph(service: ToolService, context: Context[Any, Any]) -> Iterator[Answers]:
    """The published graph for a caller who may read it; failures in the words of the protocol."""
    try:
        if caller_of(service, context).limit is not None:
            raise CallRefused(f"nodes are shown to tokens that see everything; {LIMITED_NEXT}")
        yield service.answers
    except UnknownNode as error:
        raise ResourceNotFoundError(str(error)) from error
    except HadesError as error:
        raise ResourceError(str(error)) from error


# The server of one mode: it has the tools that the mode covers.
INSTRUCTIONS = """A knowledge graph of documents, papers and code that answers with short, cited
paths.

Ask pathrag_retrieve how things are connected, hipporag_retrieve for passages, graph_query_paths
for bare paths with citations. The memory_* tools store what is learned about
topics, with its history. Every answer names its snapshot.
Cite documents by the ids given. An answer without paths is valid.
"""


class ToolServer(MCPServer[Any]):
    """A server that says in a sentence which argument of a call cannot be used."""

    async def call_tool(
        self,
        name: str,
        arguments: dict[str, Any],
        context: Context[Any, Any] | None = None,
    ) -> CallToolResult | InputRequiredResult:
        """The result of a tool; arguments outside its schema are named with what was expected."""
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            if not isinstance(error.__cause__, ValidationError):
                raise

            problems = explain_problems(error.__cause__.errors())
            raise ToolError(f"{name} was not called: {problems}") from error.__cause__


def build_server(service: ToolService) -> MCPServer[Any]:
    """A server over an open service; the caller closes the service."""
    server = ToolServer(
        "hades",
        title=f"HADES ({service.door.mode.value})",
        instructions=INSTRUCTIONS,
        version=version("hades-graphrag"),
        log_level="WARNING",
        subscriptions=False,
        middleware=[auditing(service.audit, WRITING_TOOLS), admitting(service)],
    )
    add_tools(server, service)
    add_resources(server, service)
    return server


# Running the server: over the streams of this process, or on a socket that is open already.
PATH = "/mcp"
SESSIONS = 256
IDLE_SECONDS = 1800.0


def serve_stdio(settings: Settings, door: Door) -> None:
    """Answer on stdin and stdout until the client closes them; everything else of this process goes
    to stderr.
    """
    with closing(ToolService(settings, door)) as service:
        build_server(service).run("stdio")


def serve_http(
    settings: Settings,
    door: Door,
    listening: socket.socket,
    limits: Limits = Limits(),
) -> None:
    """Answer streamable HTTP on the socket until the process gets a signal to stop."""
    with closing(ToolService(settings, door, limits)) as service:
        app = build_server(service).streamable_http_app(
            streamable_http_path=PATH,
            max_request_body_size=limits.body_bytes,
            session_idle_timeout=IDLE_SECONDS,
            max_sessions=SESSIONS,
            transport_security=_security(door),
        )
        run_app(app, listening, limits)


def _security(door: Door) -> TransportSecuritySettings:
    """A door without tokens answers to its own names only, so that no page of another site can talk
    through it.
    """
    if door.hosts is None:
        return TransportSecuritySettings(enable_dns_rebinding_protection=False)

    names = sorted(f"[{host}]" if ":" in host else host for host in door.hosts)
    return TransportSecuritySettings(
        allowed_hosts=[f"{name}:*" for name in names],
        allowed_origins=[f"http://{name}:*" for name in names],
    )


# The tools and resources as plain data, for the generated reference; no store is opened, nothing is
# written.


def describe(mode: Mode) -> dict[str, Any]:
    """What a server of this mode offers: its tools as clients list them, and its resources."""
    server = build_server(
        cast(
            ToolService,
            SimpleNamespace(door=Door(mode), audit=Audit(Path("nowhere"))),
        )
    )
    tools = anyio.run(server.list_tools)
    resources = anyio.run(server.list_resource_templates)
    dump = methodcaller(
        "model_dump",
        mode="json",
        by_alias=True,
        exclude_none=True,
    )
    return {
        "tools": list(map(dump, tools)),
        "resources": list(map(dump, resources)),
    }
