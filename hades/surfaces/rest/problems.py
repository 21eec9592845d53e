"""Errors as `application/problem+json`: what went wrong, what was expected, what to do next; never a traceback."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from hades.errors import (
    HadesError,
    LostUpdate,
    NotProvisioned,
    QueryTimeout,
    ReadOnly,
    SnapshotError,
    StoreBusy,
    StoreUnavailable,
)
from hades.memory.history.names import UnknownMemory
from hades.retrieval.answer.explain_turn import CannotExplain
from hades.retrieval.turn.query_log import UnknownQuery
from hades.surfaces.access.callers import CallerRefused

MEDIA_TYPE = "application/problem+json"
_STATUS: tuple[tuple[type[HadesError], int], ...] = (
    (UnknownQuery, 404),
    (UnknownMemory, 404),
    (CannotExplain, 409),
    (SnapshotError, 409),
    (LostUpdate, 409),
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
    error: str = Field(description="a name for programs", examples=["UnknownQuery"])
    message: str = Field(description="what went wrong", examples=["no query has the id 'q_1'"])
    expectation: str = Field("", description="what was expected", examples=["an id as an answer carried it"])
    next: str = Field("", description="what to do", examples=["ask again and use the new id"])


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
        "message": _plain(message),
        "expectation": _plain(expectation),
        "next": _plain(_NEXT.get(status, "") if next_step is None else next_step),
    }
    return JSONResponse(body, status, headers, MEDIA_TYPE)


def of_error(error: HadesError) -> JSONResponse:
    """The response for an error of ours: its first sentence, and what it says to do."""
    status = next((code for kind, code in _STATUS if isinstance(error, kind)), getattr(error, "http_status", 400))
    message, _, advice = str(error).partition("; ")
    headers = {"Retry-After": "1"} if status == 503 else None
    return problem(status, type(error).__name__, message, next_step=advice or None, headers=headers)


def register(app: FastAPI) -> None:
    """Send every error of ours as a problem; the guard handles unexpected ones."""

    async def ours(_: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, HadesError)
        return of_error(error)

    async def invalid(_: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, RequestValidationError)
        return of_validation(error.errors())

    async def http(_: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, HTTPException)
        return problem(error.status_code, f"Http{error.status_code}", str(error.detail), headers=error.headers)

    app.add_exception_handler(HadesError, ours)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, http)


def of_validation(problems: Sequence[Any]) -> JSONResponse:
    """The response for a request that does not have the shape of its route; the first problem speaks for all."""
    first = problems[0]
    place = ".".join(str(part) for part in first["loc"])
    return problem(
        422,
        "BadRequest",
        f"{place} cannot be used",
        expectation=str(first["msg"]).removeprefix("Value error, "),
        next_step="fix the request; /v1/openapi.json shows the shape",
    )


def _plain(text: str) -> str:
    """Text that can be sent: what is no letter of any alphabet is replaced."""
    return text.encode("utf-8", "replace").decode("utf-8")
