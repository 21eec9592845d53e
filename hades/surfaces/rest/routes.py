"""Capability -> route; the few by hand."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import asdict, replace
from functools import cache
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Body, Path, Query
from fastapi import Request as HttpRequest
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError, create_model
from pydantic.fields import FieldInfo
from starlette.responses import Response, StreamingResponse

from hades.budget import TurnStage, watched
from hades.errors import HadesError
from hades.ports.store import Mode
from hades.retrieval.answer.write_answer import AnswerEvent
from hades.retrieval.cached_answers import CachedTurn
from hades.snapshot.rights_file import rights_of
from hades.surfaces.access.limits import Caller
from hades.surfaces.capabilities.capability import (
    Capability,
    Reply,
    Request,
    Rest,
    field_parameter,
    keyword,
)
from hades.surfaces.capabilities.questions import answer as ANSWER
from hades.surfaces.capabilities.questions import query as QUERY
from hades.surfaces.capabilities.questions import stream_events
from hades.surfaces.capabilities.registry import CAPABILITIES
from hades.surfaces.rest.guard import Problem, of_error
from hades.surfaces.rest.services import CONTENT_TYPE, Call, CalledBy, Noted, Served, Services

# Routes made from capabilities: a field of the request is read from the path, the query string or
# the body.
_IN_PATH = re.compile(r"\{(\w+)(?::path)?\}")


def capability_routers() -> list[tuple[Mode, APIRouter]]:
    """A router for each mode, with the routes of the capabilities that need it; the most specific
    path comes first.
    """
    routers = {mode: APIRouter() for mode in Mode}
    offers = [
        (capability, capability.rest) for capability in CAPABILITIES if capability.rest is not None
    ]
    offers += [
        (capability, replace(route, method="GET"))
        for capability, route in offers
        if route.is_also_get
    ]

    for capability, route in sorted(offers, key=lambda offer: _generality(offer[1].path)):
        _add_route(
            routers[Mode(capability.mode)],
            capability,
            route,
        )

    return list(routers.items())


def _generality(path: str) -> tuple[bool, int]:
    """How much a path leaves open: whether a field takes slashes too, and the number of fields."""
    return ":path}" in path, path.count("{")


def _add_route(
    router: APIRouter,
    capability: Capability,
    route: Rest,
) -> None:
    responses: dict[int | str, dict[str, Any]] = {}
    if route.reply:
        responses[route.status] = {"model": route.reply}
        if capability.name == "query":
            responses[route.status]["description"] = (
                "The answer; the header X-Hades-Answer says `cached` or `computed`."
            )

    router.add_api_route(
        route.path,
        make_endpoint(capability, route),
        methods=[route.method],
        tags=[route.tag or route.path.split("/")[1]],
        summary=route.summary,
        description=capability.help,
        status_code=route.status,
        response_model=None,
        response_class=Response if route.reply else _Json,
        responses=responses,
        name=capability.name,
    )


class _Json(Response):
    media_type = "application/json"


def make_endpoint(
    capability: Capability,
    route: Rest,
) -> Callable[..., Awaitable[Response]]:
    """The coroutine of a route, with the signature that FastAPI reads."""
    in_path = _IN_PATH.findall(route.path)
    fields = capability.request.model_fields
    not_in_path = [name for name in fields if name not in in_path]

    if route.method == "POST" and not_in_path:
        body = body_of(capability)
    else:
        body = None

    async def endpoint(**arguments: Any) -> Response:
        services = arguments.pop("services")
        call = arguments.pop("call")
        caller = arguments.pop("caller")
        body_fields = arguments.pop("body", None)
        values = {
            **arguments,
            **dict(body_fields or {}),
        }
        request = _check(capability, values)
        call.query_id = str(values.get("query_id", ""))
        context = services.context(caller, Mode(capability.mode))
        reply = await services.work(
            capability.call,
            request,
            context,
            writes=capability.mode != "ro",
        )
        return _respond(services, call, route, reply)

    parameters = [_parameter(name, fields[name], Path) for name in in_path]
    if body is not None:
        parameters.append(keyword("body", Annotated[body, Body()]))
    elif route.method == "GET":
        parameters += [_parameter(name, fields[name], Query) for name in not_in_path]

    parameters += [keyword("services", Served), keyword("call", Noted), keyword("caller", CalledBy)]
    endpoint.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    endpoint.__annotations__ = {}
    endpoint.__name__ = capability.name.replace(".", "_")
    return endpoint


@cache
def body_of(capability: Capability) -> type[Request]:
    """The body of a route: the request without what stands in the path."""
    route = capability.rest
    base = capability.request
    assert route is not None
    in_path = _IN_PATH.findall(route.path)
    fields: Any = {
        name: (field.annotation, field)
        for name, field in base.model_fields.items()
        if name not in in_path
    }
    name = base.__name__.removesuffix("Request") + "Body"
    body: type[Request] = create_model(
        name,
        __base__=Request,
        __doc__=base.__doc__,
        **fields,
    )

    if route.examples:
        examples: list[Any] = [dict(example) for example in route.examples]
        body.model_config["json_schema_extra"] = {"examples": examples}
        body.model_rebuild(force=True)

    return body


def _parameter(
    name: str,
    field: FieldInfo,
    place: Any,
) -> inspect.Parameter:
    description = place(description=field.description, examples=field.examples)
    parameter = field_parameter(name, field, description)
    if isinstance(parameter.default, tuple):
        return parameter.replace(default=list(parameter.default))

    return parameter


def _check(capability: Capability, values: dict[str, Any]) -> BaseModel:
    """The whole request: rules that span several fields are checked here."""
    try:
        return capability.check(values)
    except ValidationError as error:
        raise RequestValidationError(error.errors()) from None


def _respond(
    services: Services,
    call: Call,
    route: Rest,
    reply: Reply,
) -> Response:
    if isinstance(reply, CachedTurn):
        call.query_id = reply.query_id
        if reply.is_cached:
            services.exposition.hits.labels("answers").inc()

        source = "cached" if reply.is_cached else "computed"
        return Response(
            reply.text,
            media_type="application/json",
            headers={"X-Hades-Answer": source},
        )

    document = reply if route.part is None else reply[route.part]
    return _Json(orjson.dumps(document, default=str), route.status)


# Questions as server-sent events. The whole answers are routes made from the capabilities.
reading = APIRouter(tags=["questions"])
QueryBody: Any = body_of(QUERY)
AnswerBody: Any = body_of(ANSWER)
_NAMES = {"taken": "in", "given": "out"}  # as an answer's telemetry calls them


def _describe_events(*names: str) -> dict[str, Any]:
    """What the description of a route says of its events."""
    description = {"description": f"Events {', '.join(names)}, then `answer` or `problem`."}
    content = {"content": {"text/event-stream": {"schema": {"type": "string"}}}}
    return {
        "responses": {200: description | content},
        "response_class": StreamingResponse,
    }


@reading.post(
    "/query/stream",
    summary="Answer, stage by stage",
    **_describe_events("`stage` as they end"),
)
async def stream_query(
    body: QueryBody,
    services: Served,
    call: Noted,
    caller: CalledBy,
) -> StreamingResponse:
    """Server-sent events: each stage when it ends, with its cost, then the whole answer."""
    request = QUERY.check(dict(body))
    context = services.context(caller, Mode.READ_ONLY)

    def work(hand_out: Callable[[AnswerEvent], None]) -> None:
        # A cached answer has no stages, and those of a caller who sees a part count the rest.
        def hand_stage(stage: TurnStage) -> None:
            if context.limit is None:
                hand_out(AnswerEvent("stage", stage))

        with watched(hand_stage):
            reply = QUERY.call(request, context)

        hand_out(AnswerEvent("answer", reply))

    return _event_stream(call, _events_of_thread(services, work))


@reading.post(
    "/answer/stream",
    summary="Answer, by sentences",
    **_describe_events(
        "`sources`",
        "`cost`",
        "`sentence` as each is checked",
    ),
)
async def stream_answer(
    body: AnswerBody,
    services: Served,
    call: Noted,
    caller: CalledBy,
) -> StreamingResponse:
    """Server-sent events: the sources, the cost, each sentence when it is checked, then the whole
    answer.
    """
    return _event_stream(
        call,
        answer_events(
            services,
            caller,
            ANSWER.check(dict(body)),
        ),
    )


async def answer_events(
    services: Services,
    caller: Caller,
    request: Request,
) -> AsyncIterator[AnswerEvent]:
    """The events of a written answer; a caller that leaves ends the work at the next sentence."""
    context = services.context(caller, Mode.READ_ONLY)
    has_left = False

    def work(hand_out: Callable[[AnswerEvent], None]) -> None:
        for event in stream_events(context, **dict(request)):
            if has_left:
                return
            hand_out(event)

    try:
        async for event in _events_of_thread(services, work):
            yield event
    finally:
        has_left = True


async def _events_of_thread(
    services: Services,
    work: Callable[[Callable[[AnswerEvent], None]], None],
) -> AsyncIterator[AnswerEvent]:
    """What a call hands out while it works in a thread that answers, each at once."""
    loop = asyncio.get_running_loop()
    events: asyncio.Queue[AnswerEvent | None] = asyncio.Queue()
    turn = asyncio.ensure_future(
        services.work(
            work,
            lambda event: loop.call_soon_threadsafe(events.put_nowait, event),
        )
    )
    turn.add_done_callback(lambda _: events.put_nowait(None))

    while (event := await events.get()) is not None:
        yield event

    await turn


def _event_stream(call: Call, events: AsyncIterator[AnswerEvent]) -> StreamingResponse:
    """Each event with its data as JSON on one line; an error is the last one."""

    async def written() -> AsyncIterator[bytes]:
        try:
            async for event in events:
                if event.name == "answer":
                    call.query_id = event.value.query_id
                yield _write_event(event.name, _encode(event.value))
        except HadesError as error:
            yield _write_event("problem", bytes(of_error(error).body))

    return StreamingResponse(written(), media_type="text/event-stream")


def _write_event(name: str, text: bytes) -> bytes:
    return b"event: " + name.encode() + b"\ndata: " + text + b"\n\n"


def _encode(value: Any) -> bytes:
    if isinstance(value, CachedTurn):
        return value.text
    if isinstance(value, TurnStage):
        value = {_NAMES.get(name, name): part for name, part in asdict(value).items()}
    return orjson.dumps(
        value,
        default=lambda record: record.model_dump(mode="json"),
    )


# Routes that take files in: announce them, send each, finish; or name a folder of this machine.
writing = APIRouter(tags=["uploads"])


AnnouncedFiles = Annotated[
    dict[str, int],
    Body(
        embed=True,
        description="Bytes of each file by its path below a folder.",
        examples=[{"install.md": 2048}],
    ),
]
FolderPath = Annotated[
    str,
    Body(
        embed=True,
        min_length=1,
        max_length=4096,
        description="Below a folder of `--allow-folder`.",
    ),
]


@writing.post(
    "/uploads",
    status_code=201,
    summary="Announce files",
)
async def begin_upload(files: AnnouncedFiles, services: Served) -> dict[str, str]:
    """Check names, types, sizes and number; one that cannot be taken refuses all of them."""
    return {
        "upload": await services.work(
            services.uploads.begin,
            files,
            writes=True,
        )
    }


@writing.put(
    "/uploads/{upload}/files/{path:path}",
    status_code=204,
    summary="Send a file",
)
async def put_file(
    upload: str,
    path: str,
    request: HttpRequest,
    services: Served,
) -> None:
    """The content of an announced file as the body; one that is refused ends the upload."""
    await services.work(
        services.uploads.put,
        upload,
        path,
        await request.body(),
        writes=True,
    )


@writing.post(
    "/uploads/{upload}/finish",
    status_code=202,
    summary="Keep the files and read them",
)
async def finish_upload(upload: str, services: Served) -> dict[str, int]:
    """Reading goes on after the reply; `GET /v1/uploads` tells how far it is."""
    return {
        "files": await services.work(
            services.uploads.finish,
            upload,
            writes=True,
        )
    }


@writing.post(
    "/uploads/folder",
    status_code=202,
    summary="Read a folder of this machine",
)
async def read_folder(path: FolderPath, services: Served) -> dict[str, Any]:
    """Only folders that the service was started with."""
    await services.work(
        services.uploads.read_folder,
        path,
        writes=True,
    )
    return {"path": path}


@writing.get("/uploads", summary="How far reading is")
async def upload_status(services: Served) -> dict[str, Any]:
    """`state` is idle, reading (with `stage`, `done` and `total`), ready or failed (with
    `problem`).
    """
    return await services.work(services.uploads.status)


# Whether the service lives, whether it can answer, and its figures.
read_health = APIRouter(tags=["service"])


@read_health.get("/health", summary="Whether the process lives")
async def health() -> dict[str, str]:
    """Always the same while the process answers at all."""
    return {"status": "ok"}


@read_health.get(
    "/ready",
    summary="Whether questions can be answered",
    responses={
        409: {"model": Problem},
        503: {"model": Problem},
    },
)
async def ready(services: Served) -> dict[str, Any]:
    """Opens what would answer the next question; an error says why it cannot."""

    def look() -> dict[str, Any]:
        with services.answers.lease() as view:
            info = view.info

        # Anybody may ask this, and counts tell of what not everybody may read.
        has_rights = rights_of(services.settings.home).restrict_any()
        return {
            "status": "ready",
            "snapshot": info.snapshot,
            "degraded": info.degraded_from,
            "nodes": {} if has_rights else info.nodes,
        }

    return await services.work(look)


@read_health.get(
    "/metrics",
    summary="Figures for Prometheus",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
async def metrics(services: Served) -> Response:
    """Requests, turns, reasons, the snapshot and its age."""
    text = await services.work(services.exposition.text, services.settings.home)
    return Response(text, media_type=CONTENT_TYPE)
