"""Routes made from capabilities: a field of the request is read from the path, the query string or the body."""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import cache
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Body, Path, Query
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, ValidationError, create_model
from pydantic.fields import FieldInfo
from starlette.responses import Response

from hades.ports.store import Mode
from hades.surfaces.capabilities.capability import Capability, JsonReply, Reply, Request, Rest, load
from hades.surfaces.capabilities.registry import capabilities
from hades.surfaces.rest.services import Call, CalledBy, Noted, Served, Services

_IN_PATH = re.compile(r"\{(\w+)(?::path)?\}")


def capability_routers() -> list[tuple[Mode, APIRouter]]:
    """A router for each mode, with the routes of the capabilities that need it."""
    routers = {mode: APIRouter() for mode in Mode}
    for capability in capabilities():
        if isinstance(capability.rest, Rest):
            _add_route(routers[Mode(capability.mode)], capability, capability.rest)
            if capability.rest.is_also_get:
                also = replace(capability.rest, method="GET")
                _add_route(routers[Mode(capability.mode)], capability, also)
    return list(routers.items())


def _add_route(router: APIRouter, capability: Capability, rest: Rest) -> None:
    reply = load(rest.reply) if rest.reply else None
    about: dict[str, Any] = {"description": "The answer; the header X-Hades-Answer says `cached` or `computed`."}
    router.add_api_route(
        rest.path,
        make_endpoint(capability, rest),
        methods=[rest.method],
        tags=[rest.tag],
        summary=rest.summary,
        description=capability.help,
        status_code=rest.status,
        response_model=None,
        response_class=Response if reply else _Json,
        responses={rest.status: {"model": reply, **(about if capability.name == "query" else {})}} if reply else {},
        name=capability.name,
    )


class _Json(Response):
    media_type = "application/json"


def make_endpoint(capability: Capability, rest: Rest) -> Callable[..., Awaitable[Response]]:
    """The coroutine of a route, with the signature that FastAPI reads."""
    in_path = _IN_PATH.findall(rest.path)
    fields = capability.request.model_fields
    others = [name for name in fields if name not in in_path]
    body = body_of(capability) if rest.method == "POST" and others else None

    async def endpoint(**given: Any) -> Response:
        services, call, caller = given.pop("services"), given.pop("call"), given.pop("caller")
        sent = given.pop("body", None)
        values = {**given, **(sent.arguments() if sent is not None else {})}
        request = _check(capability, values)
        call.query_id = str(values.get("query_id", ""))
        context = services.context(caller, Mode(capability.mode))
        run = services.work if capability.mode == "ro" else services.change
        return _respond(services, call, rest, await run(capability.call, request, context))

    parameters = [_parameter(name, fields[name], Path) for name in in_path]
    if body is not None:
        parameters.append(_keyword("body", Annotated[body, Body()]))
    elif rest.method == "GET":
        parameters += [_parameter(name, fields[name], Query) for name in others]
    parameters += [_keyword("services", Served), _keyword("call", Noted), _keyword("caller", CalledBy)]
    endpoint.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    endpoint.__annotations__ = {}
    endpoint.__name__ = capability.name.replace(".", "_")
    return endpoint


@cache
def body_of(capability: Capability) -> type[Request]:
    """The body of a route: the request without what stands in the path."""
    rest, base = capability.rest, capability.request
    assert isinstance(rest, Rest)
    in_path = _IN_PATH.findall(rest.path)
    fields: Any = {name: (field.annotation, field) for name, field in base.model_fields.items() if name not in in_path}
    extra: dict[str, Any] = {"examples": [dict(one) for one in rest.examples]} if rest.examples else {}
    named = base.__name__.removesuffix("Request") + "Body"
    made: type[Request] = create_model(named, __base__=_Body, __doc__=base.__doc__, **fields)
    if extra:
        made.model_config["json_schema_extra"] = extra
        made.model_rebuild(force=True)
    return made


class _Body(Request):
    """A body is built at once: FastAPI reads it when the service starts."""

    model_config = ConfigDict(defer_build=False)


def _parameter(name: str, field: FieldInfo, place: Any) -> inspect.Parameter:
    told = place(description=field.description, examples=field.examples)
    annotation = typing.cast(Any, Annotated).__class_getitem__((field.annotation, *field.metadata, told))
    default = inspect.Parameter.empty if field.is_required() else field.get_default(call_default_factory=True)
    return _keyword(name, annotation, list(default) if isinstance(default, tuple) else default)


def _keyword(name: str, annotation: Any, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _check(capability: Capability, values: dict[str, Any]) -> BaseModel:
    """The whole request: rules that span several fields are checked here."""
    try:
        return capability.check(values)
    except ValidationError as error:
        raise RequestValidationError(error.errors()) from None


def _respond(services: Services, call: Call, rest: Rest, reply: Reply) -> Response:
    if isinstance(reply, JsonReply):
        call.query_id = reply.query_id
        if reply.is_cached:
            services.exposition.hit("answers")
        source = "cached" if reply.is_cached else "computed"
        return Response(reply.text, media_type="application/json", headers={"X-Hades-Answer": source})
    document = reply if rest.part is None else reply[rest.part]
    return _Json(orjson.dumps(document, default=str), rest.status)
