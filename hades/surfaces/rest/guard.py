"""Size, time, host, token, rate; problem+json."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Mapping
from urllib.parse import urlsplit

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hades.errors import (
    HadesError,
    NotProvisioned,
    QueryTimeout,
    ReadOnly,
    SnapshotError,
    StoreBusy,
    StoreUnavailable,
    plain_message,
)
from hades.memory.history.rows import UnknownMemory
from hades.ports.store import Mode
from hades.retrieval.explain import CannotExplain
from hades.retrieval.turn_result import UnknownQuery
from hades.surfaces.access.limits import LIMITED_NEXT, Caller, CallerRefused, covers, without_tokens
from hades.surfaces.access.uploads import MAX_FILE_BYTES
from hades.surfaces.rest.services import CALL, CALLER, Call, Services

# Errors as `application/problem+json`: what went wrong, what was expected, what to do next; never a
# traceback.
MEDIA_TYPE = "application/problem+json"
_STATUS: tuple[tuple[type[HadesError], int], ...] = (
    (UnknownQuery, 404),
    (UnknownMemory, 404),
    (CannotExplain, 409),
    (SnapshotError, 409),
    (NotProvisioned, 409),
    (ReadOnly, 403),
    (CallerRefused, 403),
    (StoreBusy, 503),
    (StoreUnavailable, 503),
    (QueryTimeout, 503),
)
_NEXT = {
    401: "send `Authorization: Bearer TOKEN`; `hades token add NAME` makes one",
    404: "read /v1/openapi.json for the paths of this service",
    405: "read /v1/openapi.json for the methods of this path",
    408: "send the request without pausing",
    413: "send less",
    415: "send Content-Type: application/json",
    429: "retry after the seconds of Retry-After",
    500: "report it with the time; the service's log has the details",
    503: "retry after the seconds of Retry-After",
    504: "ask for less, or with a smaller plan",
}


class Problem(BaseModel):
    """What every error looks like."""

    status: int = Field(examples=[404])
    error: str = Field(
        description="a name for programs",
        examples=["UnknownQuery"],
    )
    message: str = Field(
        description="what went wrong",
        examples=["no query has the id 'q_1'"],
    )
    expectation: str = Field(
        "",
        description="what was expected",
        examples=["an id as an answer carried it"],
    )
    next: str = Field(
        "",
        description="what to do",
        examples=["ask again and use the new id"],
    )


def problem(
    status: int,
    error: str,
    message: str,
    *,
    expectation: str = "",
    next_step: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> JSONResponse:
    """The response."""
    body = {
        "status": status,
        "error": error,
        "message": _sendable(message),
        "expectation": _sendable(expectation),
        "next": _sendable(_NEXT.get(status, "") if next_step is None else next_step),
    }
    return JSONResponse(body, status, headers, MEDIA_TYPE)


def of_error(error: HadesError) -> JSONResponse:
    """The response for an error of ours: its first sentence, and what it says to do."""
    status = next(
        (code for kind, code in _STATUS if isinstance(error, kind)),
        getattr(error, "http_status", 400),
    )
    message, _, advice = str(error).partition("; ")
    headers = {"Retry-After": "1"} if status == 503 else None
    return problem(
        status,
        type(error).__name__,
        message,
        next_step=advice or None,
        headers=headers,
    )


def register(app: FastAPI) -> None:
    """Send every error of ours as a problem; the guard handles unexpected ones."""

    async def respond(_: Request, error: Exception) -> JSONResponse:
        if isinstance(error, RequestValidationError):
            return _validation_problem(error)

        if isinstance(error, HTTPException):
            return problem(
                error.status_code,
                f"Http{error.status_code}",
                str(error.detail),
                headers=error.headers,
            )

        assert isinstance(error, HadesError)
        return of_error(error)

    for kind in (HadesError, RequestValidationError, HTTPException):
        app.add_exception_handler(kind, respond)


def _validation_problem(error: RequestValidationError) -> JSONResponse:
    """The response for a request that does not have the shape of its route; the first problem
    speaks for all.
    """
    problem_found = error.errors()[0]
    place = ".".join(str(part) for part in problem_found["loc"])
    messages = {
        "missing": f"{place} is missing",
        "json_invalid": f"the body is not JSON: {problem_found.get('ctx', {}).get('error')}",
    }
    return problem(
        422,
        "BadRequest",
        messages.get(problem_found["type"], f"{place} cannot be used"),
        expectation=plain_message(str(problem_found["msg"])),
        next_step="fix the request; /v1/openapi.json shows the shape",
    )


def _sendable(text: str) -> str:
    """Text that can be sent: what is no letter of any alphabet is replaced."""
    return text.encode("utf-8", "replace").decode("utf-8")


# What every request passes before a route sees it: size, time, host, token, rate; and what is kept
# of it.
logger = logging.getLogger(__name__)
# The page and the health of the service may be seen by whoever reaches the port.
NEEDS_TOKEN = ("/v1", "/metrics")
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": (
        "default-src 'self'; img-src 'self' data: blob:; style-src 'self' 'unsafe-inline'; "
        "frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
    ),
}
_PATH_CHARACTERS = 200


class Guard:
    """Wraps the app of one door."""

    def __init__(self, app: ASGIApp, services: Services) -> None:
        self._app = app
        self._services = services
        self._door = services.door

    async def __call__(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
    ) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            else:
                await send(
                    {
                        "type": "websocket.close",
                        "code": 1008,
                    }
                )

            return

        began = time.perf_counter()
        scope[CALL] = Call()
        scope[CALLER] = Caller(_address(scope), self._door.mode)
        response = _TrackedResponse(send)

        try:
            async with asyncio.timeout(self._services.limits.request_seconds):
                refusal = self._refuse(scope)
                body = b""
                if refusal is None:
                    body, refusal = await self._read_body(scope, receive)

                if refusal is not None:
                    await refusal(scope, receive, response)
                else:
                    await self._app(scope, _replay(body, receive), response)
        except TimeoutError:
            response.status = response.status or 504
            if not response.began:
                seconds = self._services.limits.request_seconds
                await problem(
                    504,
                    "TooSlow",
                    f"no answer within {seconds:g} s",
                )(
                    scope,
                    receive,
                    response,
                )
        except Exception:  # the outermost edge: the caller learns nothing of it, the log everything
            logger.exception(
                "%s %s failed",
                scope["method"],
                without_tokens(scope["path"])[:_PATH_CHARACTERS],
            )
            response.status = response.status or 500
            if not response.began:
                await problem(500, "Unexpected", "internal error")(
                    scope,
                    receive,
                    response,
                )
        finally:
            self._record(
                scope,
                response,
                time.perf_counter() - began,
            )

    def _refuse(self, scope: Scope) -> Response | None:
        """The answer to a request that may not come in; None when it may."""
        headers = Headers(scope=scope)
        if (foreign := self._refuse_foreign(headers)) is not None:
            return foreign

        caller = self._caller_of(scope, headers)
        wait_seconds = self._services.rates.wait(_address(scope) if caller is None else caller.name)
        if wait_seconds > 0:
            return problem(
                429,
                "TooMany",
                "Rate limit exceeded",
                headers={"Retry-After": str(math.ceil(wait_seconds))},
            )

        if caller is None:
            return problem(
                401,
                "NotAuthenticated",
                "Not authenticated",
                expectation="a token of this service",
                headers={"WWW-Authenticate": "Bearer"},
            )

        if caller.tenant != self._door.tenant:
            return problem(
                403,
                "OtherTenant",
                "this token belongs to another tenant",
                next_step="ask its own service",
            )

        if caller.limit is not None and scope["path"] == "/metrics":
            return problem(
                403,
                "CallerRefused",
                "figures count the whole corpus",
                next_step=LIMITED_NEXT,
            )

        scope[CALLER] = caller
        return None

    def _refuse_foreign(self, headers: Headers) -> Response | None:
        """The answer to a browser that another site's page sent, or that has a wrong address for
        this host.
        """
        hosts = self._door.hosts
        if hosts is None:
            return None

        host = _host(f"//{headers.get('host', '')}")
        origin = headers.get("origin")
        if host in hosts and (origin is None or _host(origin) in hosts):
            return None

        return problem(
            403,
            "OtherHost",
            "this door answers to its own host only",
            expectation=f"one of {', '.join(sorted(hosts))}",
            next_step="call it by that name, or serve with a token",
        )

    def _caller_of(self, scope: Scope, headers: Headers) -> Caller | None:
        if not self._door.needs_token:
            return self._services.local_caller(_address(scope), self._door.tenant)

        caller = self._services.token_caller(headers)
        path = scope["path"]
        is_open = not path.startswith(NEEDS_TOKEN) and scope["method"] in ("GET", "HEAD")

        if caller is None and is_open:
            return Caller(
                _address(scope),
                Mode.READ_ONLY,
                self._door.tenant,
            )

        return caller

    async def _read_body(self, scope: Scope, receive: Receive) -> tuple[bytes, Response | None]:
        """The whole body, or the answer to one that is too large."""
        is_upload = scope["method"] == "PUT" and scope["path"].startswith("/v1/uploads/")
        limit = self._services.limits.body_bytes

        if is_upload and covers(scope[CALLER].mode, Mode.READ_WRITE):
            limit = MAX_FILE_BYTES

        stated_length = Headers(scope=scope).get("content-length", "0")
        if not stated_length.isdigit() or int(stated_length[:20]) > limit:
            return b"", _too_large(limit)

        parts = []
        size = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return b"", problem(400, "Disconnected", "the client went away")

            part = message.get("body", b"")
            size += len(part)
            if size > limit:
                return b"", _too_large(limit)

            parts.append(part)
            if not message.get("more_body", False):
                return b"".join(parts), None

    def _record(
        self,
        scope: Scope,
        response: _TrackedResponse,
        seconds: float,
    ) -> None:
        """The audit line and the figures of a request; only what was matched names a route, so that
        labels stay few.
        """
        call: Call = scope[CALL]
        who = scope[CALLER].name
        route = getattr(scope.get("route"), "path", "none")
        mode = self._door.mode.value
        status = response.status or 499
        details = {
            "who": who,
            "door": mode,
            "method": scope["method"][:16],
        }

        if call.query_id:
            details["query_id"] = without_tokens(call.query_id)[:_PATH_CHARACTERS]

        path = without_tokens(scope["path"])[:_PATH_CHARACTERS]
        self._services.audit.write(
            call.mode,
            path,
            str(status),
            seconds * 1000,
            **details,
        )
        self._services.exposition.request(
            mode,
            route,
            status,
            seconds,
        )


class _TrackedResponse:
    """Passes a response on, adds the headers that every one has, and remembers its status; 0: none
    was begun.
    """

    def __init__(self, send: Send) -> None:
        self._send = send
        self.status = 0
        self.began = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.began = True
            headers = MutableHeaders(scope=message)

            for name, value in _HEADERS.items():
                headers.setdefault(name, value)

            headers.setdefault("Cache-Control", "no-store")

        await self._send(message)


def _too_large(limit: int) -> Response:
    return problem(
        413,
        "TooLarge",
        "the body is too large",
        expectation=f"at most {limit:,} bytes",
    )


def _replay(body: bytes, receive: Receive) -> Receive:
    """The body once, then whatever the connection says: that it was closed."""
    is_sent = False

    async def again() -> Message:
        nonlocal is_sent
        if is_sent:
            return await receive()

        is_sent = True
        return {
            "type": "http.request",
            "body": body,
            "more_body": False,
        }

    return again


def _address(scope: Scope) -> str:
    """Where a request comes from: a host, or the user at the other end of a Unix socket."""
    client = scope.get("client")
    return client[0] if client else "unknown"


def _host(address: str) -> str | None:
    try:
        return urlsplit(address).hostname
    except ValueError:
        return None
