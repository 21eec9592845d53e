"""Explain an answer, judge it, and report on the questions that were asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import Field, model_validator

from hades.surfaces.capabilities.capability import Capability, Cli, OmittedSurface, Request, Rest, Shell, Task
from hades.surfaces.capabilities.context import CallContext
from hades.surfaces.capabilities.fields import Id, Moment

if TYPE_CHECKING:
    from schemas.telemetry import QueryLog

QueryId = Annotated[Id, Shell(metavar="QUERY_ID")]
Rank = Annotated[int, Field(ge=1, le=1000)]
_QUERY_ID = "Id that the answer carries."


class ExplainRequest(Request):
    """Explain why each path was kept, and why a node was not reached: cap, threshold, mask, or not connected."""

    query_id: QueryId = Field(description=_QUERY_ID, examples=["q_3f2a9c"])
    missing: Annotated[Id, Shell(metavar="NODE")] | None = Field(
        None, description="A node that was expected, by id or name."
    )


class Ranks(Request):
    """Ranks in an answer, counted from 1."""

    paths: tuple[Rank, ...] = Field((), max_length=100, description="Rank of a path, from 1; may be repeated.")
    passages: tuple[Rank, ...] = Field((), max_length=100, description="Rank of a passage, from 1; may be repeated.")


class FeedbackRequest(Request):
    """Judge the paths and passages of an answer; builds learn from it. A later judgement of a rank replaces it."""

    query_id: QueryId = Field(description=_QUERY_ID, examples=["q_3f2a9c"])
    good: Annotated[Ranks, Shell(parts=(("paths", "--good"), ("passages", "--good-passage")))] = Field(
        Ranks(), description="Ranks that helped."
    )
    bad: Annotated[Ranks, Shell(parts=(("paths", "--bad"), ("passages", "--bad-passage")))] = Field(
        Ranks(), description="Ranks that did not help."
    )

    @model_validator(mode="after")
    def has_a_rank(self) -> Self:
        """A judgement names at least one rank."""
        if not any((self.good.paths, self.good.passages, self.bad.paths, self.bad.passages)):
            raise ValueError("no rank was given; name what was good or bad, for example --good 1 --bad 3")
        return self


class QueriesRequest(Request):
    """Write reports/queries.html: what the logged questions cost, stage by stage, and what was cut."""

    since: Moment | None = Field(None, description="Only questions asked since this time, for example 2026-01-31.")


def explain(request: ExplainRequest, context: CallContext) -> dict[str, Any]:
    """Read the log of the turn and search again around what is missing."""
    from hades.retrieval.answer.explain_turn import explained

    log = context.find_turn(request.query_id)
    with context.answers.lease() as view:
        return explained(view, context.answers.tools, log, request.missing)


def give_feedback(request: FeedbackRequest, context: CallContext) -> dict[str, Any]:
    """Add the judgement to the log of the turn."""
    from hades.ports.clock import utc_now
    from hades.retrieval.turn.query_log import judge
    from schemas.telemetry import JudgedRanks

    context.flush_turns()
    turn = context.find_turn(request.query_id)
    good, bad = (JudgedRanks(paths=ranks.paths, passages=ranks.passages) for ranks in (request.good, request.bad))
    feedback = judge(context.writable, request.query_id, good=good, bad=bad, at=utc_now())
    _judge_memory(request, turn, context)
    return {"query_id": request.query_id, "feedback": feedback.model_dump(mode="json")}


def _judge_memory(request: FeedbackRequest, turn: QueryLog, context: CallContext) -> None:
    """Move the importance of the remembered states among the passages that were judged for the first time."""
    from hades.memory.upkeep.learning import judge_states
    from schemas.telemetry import Feedback, ShownResults

    before = Feedback.model_validate(turn.feedback) if turn.feedback else None
    known = {*before.good.passages, *before.bad.passages} if before else set()
    shown = {one.rank: one.id for one in ShownResults.model_validate(turn.results).passages}
    good, bad = (
        [shown[rank] for rank in ranks.passages if rank not in known and shown[rank].startswith("memory_states/")]
        for ranks in (request.good, request.bad)
    )
    if good or bad:
        judge_states(context.memory, good, bad, who=context.who, why=f"judged in the answer {request.query_id}")


def report_queries(request: QueriesRequest, context: CallContext) -> dict[str, Any]:
    """Write the page over the logged questions."""
    from hades.retrieval.answer.query_report import write_dashboard

    return write_dashboard(context.readable, context.settings.home / "reports" / "queries.html", request.since)


_NOT_FOR_AGENTS = "agents ask; people explain and judge with the query id that every tool returns"
EXPLAIN = Capability(
    name="explain",
    mode="ro",
    request=ExplainRequest,
    call=explain,
    cli=Cli(("explain",), ("query_id",), view="hades.surfaces.cli.query_views:show_explanation", is_audited=True),
    rest=Rest("GET", "/queries/{query_id}/explain", "questions", "Explain an answer"),
    mcp=OmittedSurface(_NOT_FOR_AGENTS),
    task=OmittedSurface("a flow asks; a person explains"),
)
FEEDBACK = Capability(
    name="feedback",
    mode="rw",
    request=FeedbackRequest,
    call=give_feedback,
    cli=Cli(("feedback",), ("query_id",), view="hades.surfaces.cli.query_views:show_feedback", is_audited=True),
    rest=Rest("POST", "/queries/{query_id}/feedback", "questions", "Judge an answer", part="feedback",
              reply="schemas.telemetry:Feedback", examples=({"good": {"paths": [1]}, "bad": {"passages": [3]}},)),
    mcp=OmittedSurface(_NOT_FOR_AGENTS),
    task=OmittedSurface("a flow asks; a person judges"),
)  # fmt: skip
QUERIES = Capability(
    name="queries",
    mode="ro",
    request=QueriesRequest,
    call=report_queries,
    cli=Cli(("queries",), view="hades.surfaces.cli.query_views:show_query_report"),
    rest=OmittedSurface("writes a page into HADES_HOME/reports of the machine that runs it"),
    mcp=OmittedSurface("writes a page into HADES_HOME/reports of the machine that runs it"),
    task=Task("report queries"),
)
