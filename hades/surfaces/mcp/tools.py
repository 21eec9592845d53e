"""Capability -> tool; one call; result classes."""

from __future__ import annotations

import asyncio
import getpass
import inspect
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from math import ceil
from typing import Annotated, Any, cast

import anyio
from mcp.server import MCPServer
from mcp.server.context import CallNext, HandlerResult, ServerMiddleware, ServerRequestContext
from mcp.server.mcpserver import Context
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, TextContent, ToolAnnotations
from pydantic import AliasChoices, BaseModel, ConfigDict, Field, create_model
from pydantic.fields import FieldInfo

from hades.errors import HadesError
from hades.memory.history.rows import UnknownMemory
from hades.ports.services import Embedder
from hades.ports.store import GraphStore, Mode
from hades.retrieval.answers import Answers
from hades.retrieval.turn_result import TurnLog
from hades.settings.tree import Settings
from hades.surfaces.access.contexts import Questions, ServiceContext, open_questions
from hades.surfaces.access.limits import Caller, Door, Limits, Rates, Tokens, covers, require, without_tokens
from hades.surfaces.capabilities.capability import Capability, JsonReply, Mcp, load
from hades.surfaces.capabilities.registry import capabilities
from hades.telemetry.logs import Audit, CallMode
from hades.telemetry.turn import Stage, watched
from hades.wiring import open_answers, open_embedder, open_store
from schemas.answer import Path

# One audit line for every call, also for one that never reached its tool: {mode, path, status, ms} and who.


_SHOWN = 120
_PATHS = {"tools/call": ("tool", "name"), "resources/read": ("resource", "uri")}


@dataclass
class Note:
    """What a call says of itself on the way; a tool that is not reached leaves it as it is."""

    mode: CallMode = "RO"
    who: str = ""
    status: str = ""
    query_id: str = ""


_note: ContextVar[Note] = ContextVar("note of a call")


def noted() -> Note:
    """The note of the call that is being answered."""
    found = _note.get(None)
    return Note() if found is None else found


def auditing(audit: Audit, writing: frozenset[str]) -> ServerMiddleware[Any]:
    """Writes the line of each call when it ends, whichever way it ends."""

    async def middleware(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        if ctx.method not in _PATHS or ctx.request_id is None:
            return await call_next(ctx)
        note = Note("RW" if _name_of(ctx) in writing else "RO")
        token = _note.set(note)
        began, ended = time.perf_counter(), ""
        try:
            result = await call_next(ctx)
            ended = "BadCall" if _is_error(result) else "ok"
            return result
        except BaseException as error:
            ended = "Cancelled" if isinstance(error, anyio.get_cancelled_exc_class()) else type(error).__name__
            raise
        finally:
            _note.reset(token)
            more = {name: said for name, said in (("who", note.who), ("query_id", note.query_id)) if said}
            ms = (time.perf_counter() - began) * 1000
            audit.write(note.mode, _path(ctx), note.status or ended, ms, **more)

    return middleware


def _is_error(result: HandlerResult) -> bool:
    return bool(result.get("isError") if isinstance(result, dict) else getattr(result, "is_error", False))


def _name_of(context: ServerRequestContext[Any, Any]) -> str:
    return str((context.params or {}).get(_PATHS[context.method][1], ""))


def _path(context: ServerRequestContext[Any, Any]) -> str:
    named = "".join(one if one.isprintable() else "?" for one in _name_of(context)[:_SHOWN])
    return f"mcp/{_PATHS[context.method][0]}/{without_tokens(named)}"


# Results of the tools. A field that does not apply is left out: a failure has `success` and `error` alone.


class ToolReply(BaseModel):
    """What every tool returns: whether the call succeeded, and if not, why and what to do."""

    model_config = ConfigDict(extra="ignore", populate_by_name=True, serialize_by_alias=True)

    success: bool = Field(description="whether the call succeeded")
    error: str | None = Field(None, description="what failed, and what to do")


class PathsReply(ToolReply):
    """Of `pathrag_retrieve`; with `format_for_llm` only `success` and `formatted_prompt`."""

    query: str | None = Field(None, description="the question as it was asked")
    paths: list[Path] | None = Field(None, description="best first; each with its text, nodes, edges and sources")
    count: int | None = Field(None, description="how many paths; none at all is a success")
    pruned_from: int | None = Field(None, description="how many paths were found before the best were chosen")
    reason: str | None = Field(None, description="`no_paths` when there is none")
    reasons: list[str] | None = Field(None, description="what cut the turn: codes of docs/reference/settings.md")
    query_id: str | None = Field(None, description="for `hades explain` and `hades feedback`")
    snapshot: str | None = Field(None, description="the published graph that answered")
    tier: str | None = Field(None, description="which tier of the cache gave the answer; RAID5 is the graph itself")
    formatted_prompt: str | None = Field(None, description="what a language model is told, within the token budget")


class RetrievalResult(BaseModel):
    """One passage."""

    chunk_id: str = Field(description="id of the passage")
    text: str = Field(description="its text")
    score: float = Field(description="comparable within one answer")
    rank: int = Field(description="1 is best")
    entities: list[str] = Field(description="names of the entities it mentions, most important first")
    metadata: dict[str, Any] = Field(description="document, title, span, and which searches found it")


class PassagesReply(ToolReply):
    """Of `hipporag_retrieve`."""

    query: str | None = Field(None, description="the question as it was asked")
    results: list[RetrievalResult] | None = Field(None, description="best first")
    count: int | None = Field(None, description="how many")
    reasons: list[str] | None = Field(None, description="what cut the turn")
    query_id: str | None = Field(None, description="for `hades explain` and `hades feedback`")
    snapshot: str | None = Field(None, description="the published graph that answered")


class Citation(BaseModel):
    """Where one edge of a path was read."""

    edge: str = Field(description="id of the edge")
    doc: str = Field(description="id of the document, as it came in; empty for an edge that was measured, not read")
    span: tuple[int, int] | None = Field(description="characters of it")


class PathString(BaseModel):
    """A path for a person and for a citation."""

    rank: int
    score: float
    text: str = Field(description="A --[relation; snippet]--> B")
    nodes: list[str] = Field(description="ids of its nodes, in order")
    citations: list[Citation] = Field(description="one for each edge, in order")


class PathStringsReply(ToolReply):
    """Of `graph_query_paths`."""

    query: str | None = Field(None, description="the question as it was asked")
    paths: list[PathString] | None = Field(None, description="cheapest first")
    count: int | None = Field(None, description="how many")
    reasons: list[str] | None = Field(None, description="what cut the turn")
    snapshot: str | None = Field(None, description="the published graph that answered")


class EntityEditReply(ToolReply):
    """Of `graph_entity_update`."""

    edit: str | None = Field(None, description="id of the edit, for `hades entity undo`; empty when nothing changed")
    entity: str | None = Field(None, description="id of the entity")
    state: str | None = Field(None, description="applied, or pending until a second person approves")
    changed: bool | None = Field(None, description="whether this call changed anything")
    fields: dict[str, Any] | None = Field(None, description="what was changed")
    before: dict[str, Any] | None = Field(None, description="what those fields said")
    needs: list[str] | None = Field(None, description="why another person must approve")
    approvals_missing: int | None = Field(None, description="how many approvals are missing")
    note: str | None = Field(None, description="when questions see it")


class MemoryVersion(BaseModel):
    """One version of what is known about a topic."""

    id: str = Field(description="id of the version")
    topic: str
    content: str
    version: int = Field(description="1 is the first")
    timestamp: datetime = Field(description="when it was said")
    valid_from: datetime | None = Field(description="since when it holds")
    valid_until: datetime | None = Field(description="until when it held; null: it still does")
    tags: list[str]
    confidence: float
    metadata: dict[str, Any]


class MemoryStateReply(ToolReply):
    """Of `memory_add`, `memory_latest` and `memory_at`; without a state nothing is known."""

    topic: str | None = Field(None, description="the topic asked for")
    state: MemoryVersion | None = Field(None, description="null: nothing is or was known")


class MemorySearchHit(BaseModel):
    """A state and how near it is to what was asked."""

    score: float = Field(
        description="similarity, comparable within one answer", validation_alias=AliasChoices("score", "similarity")
    )
    state: MemoryVersion


class MemorySearchReply(ToolReply):
    """Of `memory_search`."""

    query: str | None = Field(None, description="what was searched for")
    results: list[MemorySearchHit] | None = Field(None, description="newest version of each topic, nearest first")
    count: int | None = Field(None, description="how many")


class MemoryRecallReply(ToolReply):
    """Of `memory_recall`."""

    query: str | None = Field(None, description="what was asked")
    text: str | None = Field(None, description="the contexts of all passes")
    intent: str | None = Field(None, description="what kind of question it is")
    steps: list[str] | None = Field(None, description="what was looked for")
    missing: list[str] | None = Field(None, description="steps that found nothing")
    grounded: bool | None = Field(None, description="whether there is something to answer from")


class MemoryErasureReply(ToolReply):
    """Of `memory_erase`: the certificate that the command prints."""

    model_config = ConfigDict(extra="allow", populate_by_name=True, serialize_by_alias=True)

    complete: bool | None = Field(None, description="whether no row, file or byte of it is left")
    commands: list[str] | None = Field(None, description="commands that remove what is left")


# What the tools work with, opened once for the life of the process and shared by all sessions.


@dataclass
class Service:
    """Everything behind the tools. `writable` is None in a read-only service."""

    settings: Settings
    door: Door
    limits: Limits
    embedder: Embedder
    answers: Answers
    readable: GraphStore
    writable: GraphStore | None
    questions: Questions
    tokens: Tokens
    audit: Audit
    rates: Rates

    @cached_property
    def limiter(self) -> anyio.CapacityLimiter:
        """How many calls run at the same time; the others wait."""
        return anyio.CapacityLimiter(self.limits.answering)

    def context(self, caller: Caller, mode: Mode) -> ServiceContext:
        """The context of one call that needs this mode."""
        return ServiceContext(
            self.settings, f"mcp:{caller.name}", mode, self.answers, self.readable, self.writable, self.questions
        )

    def close(self) -> None:
        """Finish running calls and close everything."""
        self.questions.close()
        self.answers.close()
        self.readable.close()
        if self.writable is not None:
            self.writable.close()


def open_service(settings: Settings, door: Door, limits: Limits = Limits()) -> Service:
    """Open what a service behind this door needs: one that only reads never holds a handle that could write."""
    embedder = open_embedder(settings)
    readable = open_store(settings, Mode.READ_ONLY)
    writable = None if door.mode is Mode.READ_ONLY else open_store(settings, Mode.READ_WRITE)
    answers = open_answers(settings, embedder)
    return Service(
        settings=settings,
        door=door,
        limits=limits,
        embedder=embedder,
        answers=answers,
        readable=readable,
        writable=writable,
        questions=open_questions(settings, door.mode, answers, TurnLog(readable, writable), limits.cache_bytes),
        tokens=Tokens(settings.home),
        audit=Audit(settings.home / "logs"),
        rates=Rates(limits.per_second, limits.burst),
    )


# One call of a tool: authentication, progress after each stage, cancellation, audit.


NOT_AUTHENTICATED = "Not authenticated"
QUERY_REQUIRED = "Query is required"
LISTS = frozenset({"tools/list", "resources/list", "resources/templates/list", "prompts/list"})
REFUSED_CODE = -32001  # of the range that JSON-RPC leaves to servers


class CallRefused(HadesError):
    """A call that fails with `success: false` and this text."""


class CallStopped(Exception):
    """The caller cancelled; raised in the thread of the call, between two stages."""


@dataclass(frozen=True)
class ToolOutcome:
    """The result of a tool: the reply, the text a model reads in its place where there is one, and the query id."""

    reply: ToolReply
    text: str | None = None
    query_id: str = ""


async def answer(
    service: Service, context: Context[Any, Any], work: Callable[[Caller], ToolOutcome], *, needs: Mode = Mode.READ_ONLY
) -> CallToolResult:
    """Run the work of a tool in a thread and return its result for the protocol; failures are results too."""
    note = noted()
    try:
        caller = caller_of(service, context)
        require(caller, needs)
        reply = await _in_thread(service, context, lambda: work(caller), may_stop=needs is Mode.READ_ONLY)
        note.status, note.query_id = "ok", reply.query_id
        return _result(reply)
    except HadesError as error:
        note.status = type(error).__name__
        return _result(ToolOutcome(ToolReply(success=False, error=str(error))))


def caller_of(service: Service, context: Context[Any, Any]) -> Caller:
    """The caller: over stdio the user who started this process, over HTTP the owner of the token."""
    headers = context.headers
    if headers is None and not service.door.needs_token:
        caller = _local_caller(service.door)
    else:
        caller = _remote_caller(service, headers or {})
    noted().who = caller.name
    return caller


def admitting(service: Service) -> ServerMiddleware[Any]:
    """Refuses lists to a caller without a token where one is needed: what a server offers is told to its users only."""

    async def middleware(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        if ctx.method in LISTS and service.door.needs_token:
            try:
                _remote_caller(service, getattr(ctx.request, "headers", None) or {})
            except CallRefused as error:
                raise MCPError(REFUSED_CODE, str(error)) from None
        return await call_next(ctx)

    return middleware


def _local_caller(door: Door) -> Caller:
    return Caller(getpass.getuser(), door.mode, door.tenant)


def _remote_caller(service: Service, headers: Mapping[str, str]) -> Caller:
    door = service.door
    kind, _, text = headers.get("authorization", "").partition(" ")
    caller = service.tokens.caller(text.strip()) if kind.lower() == "bearer" else None
    if caller is None and not door.needs_token:
        caller = Caller("loopback", door.mode, door.tenant)
    if caller is None or caller.tenant not in (None, door.tenant):
        raise CallRefused(NOT_AUTHENTICATED)
    if (seconds := service.rates.wait(caller.name)) > 0:
        raise CallRefused(f"Rate limit exceeded; retry in {max(1, ceil(seconds))} s.")
    return caller


def required(query: str) -> str:
    """The question without surrounding space, or the refusal that clients expect."""
    if not query.strip():
        raise CallRefused(QUERY_REQUIRED)
    return query.strip()


async def _in_thread(
    service: Service, context: Context[Any, Any], work: Callable[[], ToolOutcome], *, may_stop: bool
) -> ToolOutcome:
    """Run in a thread and report stages. A cancelled read stops after its stage; a cancelled write is finished."""
    loop, ended = asyncio.get_running_loop(), asyncio.Queue[Stage | None]()
    stopped = threading.Event()

    def watch(stage: Stage) -> None:
        if stopped.is_set():
            raise CallStopped
        loop.call_soon_threadsafe(ended.put_nowait, stage)

    def watched_work() -> ToolOutcome:
        with watched(watch):
            return work()

    async def report() -> None:
        number = 0
        while (stage := await ended.get()) is not None:
            number += 1
            await context.report_progress(number, None, f"{stage.name}: {stage.given} found in {stage.ms:.0f} ms")

    reporter = asyncio.create_task(report())
    try:
        reply = await anyio.to_thread.run_sync(watched_work, abandon_on_cancel=may_stop, limiter=service.limiter)
        ended.put_nowait(None)
        await reporter
    finally:
        stopped.set()
        reporter.cancel()
    return reply


def _result(outcome: ToolOutcome) -> CallToolResult:
    reply = outcome.reply
    text = outcome.text if outcome.text is not None else reply.model_dump_json(exclude_unset=True)
    return CallToolResult(
        content=[TextContent(type="text", text=text)],
        structured_content=reply.model_dump(mode="json", exclude_unset=True),
        is_error=not reply.success,
        _meta={"query_id": outcome.query_id} if outcome.query_id else None,
    )


# Tools made from capabilities: a field of the request becomes a parameter.


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
