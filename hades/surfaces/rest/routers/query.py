"""Questions: ask, watch the stages, explain, judge."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response, StreamingResponse

from hades.ports.clock import utc_now
from hades.retrieval.answer.explain_turn import explained
from hades.retrieval.turn.query_log import judge
from hades.surfaces.access.questions import Answered, Asked
from hades.surfaces.rest.services import Call, Noted, Served, Services
from hades.surfaces.rest.shapes import ID_CHARACTERS, FeedbackBody, Id, QueryBody
from hades.surfaces.rest.streaming import events_of
from schemas.retrieval import Retrieval
from schemas.telemetry import Feedback, Judged

reading = APIRouter(tags=["questions"])
writing = APIRouter(tags=["questions"])

QueryId = Annotated[str, Path(min_length=1, max_length=ID_CHARACTERS, examples=["q_3f2a9c"])]
_Responses = dict[int | str, dict[str, Any]]
_ANSWER: _Responses = {
    200: {"model": Retrieval, "description": "The answer; the header X-Hades-Answer says `kept` or `fresh`."}
}
_EVENTS = {"text/event-stream": {"schema": {"type": "string"}}}
_STREAM: _Responses = {
    200: {"description": "Events `stage` as they end, then `answer` or `problem`.", "content": _EVENTS}
}


@reading.post("/query", responses=_ANSWER, response_class=Response, summary="Answer a question")
async def ask(body: QueryBody, request: Request, services: Served, call: Noted) -> Response:
    """Short cited paths and passages from the snapshot that serves, inside the plan's budget."""
    answered = await services.work(services.questions.ask, asked_of(body), await request.body())
    count(services, call, answered)
    kept = "kept" if answered.was_kept else "fresh"
    return Response(answered.text, media_type="application/json", headers={"X-Hades-Answer": kept})


@reading.post("/query/stream", responses=_STREAM, response_class=StreamingResponse, summary="Answer, stage by stage")
async def stream(body: QueryBody, services: Served, call: Noted) -> StreamingResponse:
    """Server-sent events: each stage as it ends, with what it spent, then the whole answer."""
    return StreamingResponse(events_of(services, call, asked_of(body)), media_type="text/event-stream")


@reading.get("/queries/{query_id}/explain", summary="Why an answer is as it is")
async def explain(
    query_id: QueryId,
    services: Served,
    call: Noted,
    missing: Annotated[Id | None, Query(description="a node that was expected, by id or name")] = None,
) -> dict[str, Any]:
    """Why each path was kept; with `missing`, why that node was not reached."""
    call.query_id = query_id
    return await services.work(_explained, services, query_id, missing)


@writing.post("/queries/{query_id}/feedback", summary="Judge an answer")
async def feedback(query_id: QueryId, body: FeedbackBody, services: Served, call: Noted) -> Feedback:
    """Which paths and passages helped; builds learn from it. A later word about a rank replaces an earlier one."""
    call.query_id = query_id
    return await services.change(_judged, services, query_id, body)


def asked_of(body: QueryBody) -> Asked:
    """The question behind a body."""
    return Asked(**{name: getattr(body, name) for name in type(body).model_fields})


def count(services: Services, call: Call, answered: Answered) -> None:
    """Note a turn for the audit and the figures."""
    call.query_id = answered.query_id
    if answered.was_kept:
        services.exposition.hit("answers")


def _explained(services: Services, query_id: str, missing: str | None) -> dict[str, Any]:
    log = services.questions.turns.find(query_id)
    with services.answers.lease() as view:
        return explained(view, services.answers.tools, log, missing)


def _judged(services: Services, query_id: str, body: FeedbackBody) -> Feedback:
    assert services.writable is not None
    services.questions.turns.flush()
    good, bad = (Judged(paths=ranks.paths, passages=ranks.passages) for ranks in (body.good, body.bad))
    return judge(services.writable, query_id, good=good, bad=bad, at=utc_now())
