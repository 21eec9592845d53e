"""Query, answer, explain, feedback."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from hades.memory.upkeep.learn import judge_states
from hades.ports.services import utc_now
from hades.retrieval.answer.overview import write_dashboard
from hades.retrieval.answer.write_answer import AnswerLimits, stream_answer
from hades.retrieval.core.types import DEFAULT, LEVELS, MODES, NAMES_OF_RECIPES, PASSAGE, PlanError
from hades.retrieval.explain import explained
from hades.retrieval.pipeline import BadQuestion
from hades.retrieval.turn_result import judge
from hades.surfaces.capabilities.capability import (
    AS_OF,
    ID_CHARACTERS,
    KNOWN_AT,
    QUESTION_CHARACTERS,
    CallContext,
    Capability,
    Cli,
    FreeForm,
    Id,
    JsonReply,
    Mcp,
    Moment,
    OmittedSurface,
    Request,
    Rest,
    Shell,
    Task,
)
from hades.wiring import open_language_model
from schemas.answer import Retrieval
from schemas.telemetry import Feedback, JudgedRanks, ShownResults

if TYPE_CHECKING:
    from hades.retrieval.answer.write_answer import AnswerEvent
    from schemas.telemetry import QueryLog


# Ask a question.


Question = Annotated[str, Field(max_length=QUESTION_CHARACTERS)]  # an empty one is refused by the turn itself
RecipeName = Literal[NAMES_OF_RECIPES]  # type: ignore[valid-type]
NexusMode = Literal[MODES]  # type: ignore[valid-type]
Level = Literal[LEVELS]  # type: ignore[valid-type]


def read_plan(path: str) -> dict[str, Any]:
    """A plan from a JSON or YAML file."""
    import json

    import yaml

    file = Path(path)
    text = file.read_text(encoding="utf-8")
    try:
        raw = json.loads(text) if file.suffix == ".json" else yaml.safe_load(text)
    except (ValueError, yaml.YAMLError) as error:
        raise PlanError(f"{path} is neither JSON nor YAML: {' '.join(str(error).split())}; fix the file") from None
    if not isinstance(raw, dict):
        raise PlanError(f"{path} must hold a mapping such as {{'retriever': {{'k': 6}}}}, not {type(raw).__name__}")
    return raw


PlanField = Annotated[
    FreeForm,
    Shell(metavar="FILE", read=read_plan, help="JSON or YAML file with a plan; values above the caps are lowered."),
]
_LISTED_DOMAINS = 20


class QueryRequest(Request):
    """Answer a question with cited paths and passages, inside the plan's budget; reasons say what was cut."""

    query: Annotated[Question, Shell(metavar="TEXT")] = Field(
        description="The question, in plain words.", examples=["which classes does EmailMessage extend?"]
    )
    recipe: RecipeName = Field(DEFAULT, description="Retrieval recipe.")
    plan: PlanField | None = Field(None, description="What the turn may spend; values above the caps are lowered.")
    as_of: Moment | None = Field(None, description=AS_OF)
    known_at: Moment | None = Field(None, description=KNOWN_AT)
    max_paths: Annotated[int, Field(ge=0, le=100), Shell(flags=("--paths",))] | None = Field(
        None, description="Maximum number of paths."
    )
    mode: NexusMode = Field(MODES[0], description="Mode of the nexus recipe.")
    near: tuple[Id, ...] = Field(
        (), max_length=16, description="Id of a document or node to search around; may be repeated."
    )
    domain: Annotated[str, Field(max_length=ID_CHARACTERS)] | None = Field(
        None,
        description="Only what belongs to this domain: folder, category, language, corpus or `ingest --domain`.",
    )
    anyway: bool = Field(False, description="Show weak evidence that the default recipe would hold back.")
    level: Level = Field(
        PASSAGE,
        description="Also rank the files or the symbols (path:Qualified.name) of a workspace.",
    )


class QueryView(Request):
    """How an answer is printed."""

    format: Literal["text", "prompt"] = Field("text", description="text, or the prompt for a language model.")


def turn_arguments(request: QueryRequest) -> dict[str, Any]:
    """The arguments of `Answers.retrieve` beside the question and the plan, by name."""
    return {name: value for name, value in request.arguments().items() if name not in ("query", "plan")}


def ask(request: QueryRequest, context: CallContext) -> JsonReply:
    """Answer the question in the caller's context."""
    reply = context.ask(request)
    if request.domain is not None and not reply.document["paths"] and not reply.document["passages"]:
        require_domain(request.domain, context)
    return reply


def require_domain(domain: str, context: CallContext) -> None:
    """Name the domains where nothing belongs to the one that was asked for."""
    with context.answers.lease() as view:
        known = view.domains()
    if known and domain.casefold() not in {name.casefold() for name in known}:
        shown = ", ".join(known[:_LISTED_DOMAINS]) + (", ..." if len(known) > _LISTED_DOMAINS else "")
        raise BadQuestion(f"no document belongs to the domain {domain!r}; use one of {shown}")


_EXAMPLES: tuple[Mapping[str, Any], ...] = (
    {"query": "which classes does EmailMessage extend?"},
    {
        "query": "which classes does EmailMessage extend?",
        "recipe": "pathrag",
        "plan": {"graph": {"hops": 2}, "budget": {"docs_max": 80}},
        "as_of": "2026-01-31T00:00:00Z",
        "max_paths": 3,
    },
)
QUERY = Capability(
    name="query",
    mode="ro",
    request=QueryRequest,
    call=ask,
    cli=Cli(("query",), ("query",), view="hades.surfaces.cli.show_answers:show_answer", options=QueryView,
            is_audited=True),
    rest=Rest("POST", "/query", "questions", "Answer a question", reply="schemas.answer:Retrieval",
              examples=_EXAMPLES),
    mcp=OmittedSurface("agents choose among pathrag_retrieve, hipporag_retrieve and graph_query_paths"),
    task=Task("retrieve", is_snapshot_bound=True),
)  # fmt: skip


# Answer a question in sentences.


class AnswerRequest(Request):
    """Answer a question in sentences, each with the numbers of the sources that state it.

    With HADES_LLM_BASE_URL a language model writes it and every sentence is checked against what it cites; without one,
    sentences of the found passages are quoted.
    """

    query: Annotated[Question, Shell(metavar="TEXT")] = Field(
        description="The question, in plain words.", examples=["what does EmailMessage extend?"]
    )
    recipe: RecipeName = Field(DEFAULT, description="Retrieval recipe.")
    as_of: Moment | None = Field(None, description=AS_OF)
    known_at: Moment | None = Field(None, description=KNOWN_AT)
    max_sources: Annotated[int, Field(ge=1, le=24)] = Field(8, description="Passages and paths that may be cited.")
    max_tokens: Annotated[int, Field(ge=16, le=4096)] = Field(512, description="Longest reply of the language model.")
    token_cap: Annotated[int, Field(ge=256, le=200_000)] = Field(
        8_000, description="Tokens that the call may cost in all; fewer sources are sent where they do not fit."
    )
    quote: bool = Field(False, description="Quote sentences, also where a language model is set.")
    estimate: bool = Field(False, description="Only say what the call would cost.")


def stream_events(request: AnswerRequest, context: CallContext) -> Iterator[AnswerEvent]:
    """Ask the graph, then write: the events of the answer."""
    asked = QueryRequest(query=request.query, recipe=request.recipe, as_of=request.as_of, known_at=request.known_at)
    tools = context.answers.tools
    found = Retrieval.model_validate(context.ask(asked).document)
    return stream_answer(
        found,
        tokenizer=tools.tokenizer,
        embedder=tools.embedder,
        model=None if request.quote else open_language_model(context.settings),
        limits=AnswerLimits(request.max_sources, request.max_tokens, request.token_cap),
        estimate_only=request.estimate,
    )


def answer_question(request: AnswerRequest, context: CallContext) -> dict[str, Any]:
    """The whole answer."""
    *_, last = stream_events(request, context)
    document: dict[str, Any] = last.value.model_dump(mode="json")
    return document


ANSWER = Capability(
    name="answer",
    mode="ro",
    request=AnswerRequest,
    call=answer_question,
    cli=Cli(("answer",), ("query",), view="hades.surfaces.cli.show_answers:show_written_answer", is_audited=True),
    rest=Rest("POST", "/answer", "questions", "Answer in sentences", reply="schemas.answer:WrittenAnswer",
              examples=({"query": "what does EmailMessage extend?"},)),
    mcp=Mcp("hades_answer", "Answer in sentences with citations", "schemas.answer:WrittenAnswer", text="text"),
    task=OmittedSurface("a flow retrieves and writes with its own model; the library function is write_answer"),
)  # fmt: skip
# Explain an answer, judge it, and report on the questions that were asked.
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
    log = context.find_turn(request.query_id)
    with context.answers.lease() as view:
        return explained(view, context.answers.tools, log, request.missing)


def give_feedback(request: FeedbackRequest, context: CallContext) -> dict[str, Any]:
    """Add the judgement to the log of the turn."""
    context.flush_turns()
    turn = context.find_turn(request.query_id)
    good, bad = (JudgedRanks(paths=ranks.paths, passages=ranks.passages) for ranks in (request.good, request.bad))
    feedback = judge(context.writable, request.query_id, good=good, bad=bad, at=utc_now())
    _judge_memory(request, turn, context)
    return {"query_id": request.query_id, "feedback": feedback.model_dump(mode="json")}


def _judge_memory(request: FeedbackRequest, turn: QueryLog, context: CallContext) -> None:
    """Move the importance of the remembered states among the passages that were judged for the first time."""
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
    return write_dashboard(context.readable, context.settings.home / "reports" / "queries.html", request.since)


_NOT_FOR_AGENTS = "agents ask; people explain and judge with the query id that every tool returns"
EXPLAIN = Capability(
    name="explain",
    mode="ro",
    request=ExplainRequest,
    call=explain,
    cli=Cli(("explain",), ("query_id",), view="hades.surfaces.cli.show_answers:show_explanation", is_audited=True),
    rest=Rest("GET", "/queries/{query_id}/explain", "questions", "Explain an answer"),
    mcp=OmittedSurface(_NOT_FOR_AGENTS),
    task=OmittedSurface("a flow asks; a person explains"),
)
FEEDBACK = Capability(
    name="feedback",
    mode="rw",
    request=FeedbackRequest,
    call=give_feedback,
    cli=Cli(("feedback",), ("query_id",), view="hades.surfaces.cli.show_answers:show_feedback", is_audited=True),
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
    cli=Cli(("queries",), view="hades.surfaces.cli.show_answers:show_query_report"),
    rest=OmittedSurface("writes a page into HADES_HOME/reports of the machine that runs it"),
    mcp=OmittedSurface("writes a page into HADES_HOME/reports of the machine that runs it"),
    task=Task("report queries"),
)
