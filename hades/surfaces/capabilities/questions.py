"""Ask a question for paths and passages, or for an answer in sentences; explain and judge an
answer.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import orjson
import yaml
from annotated_types import Ge, Le
from pydantic import Field, model_validator

from hades.errors import StoreError
from hades.memory.upkeep.learn import judge_states
from hades.ports.graph import DocumentFilter
from hades.ports.services import utc_now
from hades.ports.store import RowStore
from hades.retrieval import necessity
from hades.retrieval.answer.overview import write_dashboard
from hades.retrieval.answer.write_answer import AnswerEvent, AnswerLimits
from hades.retrieval.cached_answers import CachedTurn
from hades.retrieval.core.types import (
    DEFAULT,
    LEVELS,
    MODES,
    NAMES_OF_RECIPES,
    PASSAGE,
    PlanError,
)
from hades.retrieval.explain import explained
from hades.retrieval.pipeline import BadQuestion
from hades.retrieval.turn_result import judge
from hades.retrieval.written_answers import write_events
from hades.surfaces.access.contexts import CallContext
from hades.surfaces.capabilities import replies
from hades.surfaces.capabilities.capability import (
    ID_CHARACTERS,
    AsOf,
    Cli,
    FreeForm,
    Id,
    KnownAt,
    Mcp,
    Moment,
    Question,
    Request,
    Rest,
    Shell,
    capability,
    field,
)
from hades.wiring import open_language_model, require_prompt_rows, tell_feedback
from schemas.answer import Carried, Retrieval, WrittenAnswer
from schemas.telemetry import Feedback, JudgedRanks, QueryLog, ShownResults

_LISTED_DOMAINS = 20


def read_plan(path: str) -> dict[str, Any]:
    """A plan from a JSON or YAML file."""
    file = Path(path)
    text = file.read_text(encoding="utf-8")

    try:
        if file.suffix == ".json":
            plan = json.loads(text)
        else:
            plan = yaml.safe_load(text)
    except (ValueError, yaml.YAMLError) as error:
        raise PlanError(
            f"{path} is neither JSON nor YAML: {' '.join(str(error).split())}; fix the file"
        ) from None

    if not isinstance(plan, dict):
        raise PlanError(
            f"{path} must hold a mapping such as {{'retriever': {{'k': 6}}}}, not "
            f"{type(plan).__name__}"
        )

    return plan


_RECIPE = Field(description="Retrieval recipe.")
RecipeName = Annotated[Literal[NAMES_OF_RECIPES], _RECIPE]  # type: ignore[valid-type]
NexusMode = Literal[MODES]  # type: ignore[valid-type]
Level = Literal[LEVELS]  # type: ignore[valid-type]
Plan = Annotated[
    FreeForm | None,
    Shell(
        metavar="FILE",
        read=read_plan,
        help="JSON or YAML file with a plan; values above the caps are lowered.",
    ),
    Field(description="What the turn may spend; values above the caps are lowered."),
]
Domain = Annotated[str, Field(max_length=ID_CHARACTERS)]
PLAIN_QUESTION = "The question, in plain words."
_Values = tuple[Annotated[str, Field(min_length=1, max_length=ID_CHARACTERS)], ...]


class DocumentLimits(Request):
    """Which documents a question is asked of."""

    path: _Values = Field(
        (),
        max_length=16,
        description="Only documents whose path fits, such as docs/*.md.",
    )
    source: _Values = Field(
        (),
        max_length=16,
        description="Only documents of this folder, corpus or source.",
    )
    type: _Values = Field(
        (),
        max_length=16,
        description="Only this kind of file: markdown, python, pdf, ...",
    )
    tag: _Values = Field(
        (),
        max_length=16,
        description="Only documents that state this tag.",
    )
    author: _Values = Field(
        (),
        max_length=16,
        description="Only documents that state this author.",
    )
    since: Moment | None = Field(
        None,
        description="Only documents dated at this time or later.",
    )
    until: Moment | None = Field(
        None,
        description="Only documents dated before this time.",
    )


class QuestionLimits(DocumentLimits):
    """The same with a domain, and the question that this one follows."""

    domain: Domain | None = Field(
        None,
        description="Only what belongs to this domain: folder, category, language, corpus or "
        "`ingest --domain`.",
    )
    follow: Annotated[Id | None, Shell(metavar="QUERY_ID")] = Field(
        None,
        description="Id of an earlier question that this one follows: its words and filters are "
        "carried on.",
    )
    drop: _Values = Field(
        (),
        max_length=32,
        description="A carried word or filter to leave out; may be repeated.",
    )


class QueryView(Request):
    """How an answer is printed."""

    format: Literal["text", "prompt"] = Field(
        "text",
        description="text, or the prompt for a language model.",
    )


@capability(
    "query",
    Cli("query", options=QueryView),
    Rest(
        "POST",
        "/query",
        "Answer a question",
        tag="questions",
        reply=Retrieval,
        examples=(
            {"query": "which classes does EmailMessage extend?"},
            {
                "query": "which classes does EmailMessage extend?",
                "recipe": "pathrag",
                "plan": {
                    "graph": {"hops": 2},
                    "budget": {"docs_max": 80},
                },
                "as_of": "2026-01-31T00:00:00Z",
                "max_paths": 3,
            },
        ),
    ),
    task="retrieve",
    also=QuestionLimits,
)
def query(
    context: CallContext,
    *,
    query: Question = field(
        PLAIN_QUESTION,
        metavar="TEXT",
        examples=["which classes does EmailMessage extend?"],
    ),
    recipe: RecipeName = DEFAULT,
    plan: Plan = None,
    as_of: AsOf = None,
    known_at: KnownAt = None,
    max_paths: int | None = field(
        "Maximum number of paths.",
        None,
        "--paths",
        ge=0,
        le=100,
    ),
    mode: NexusMode = field("Mode of the nexus recipe.", MODES[0]),
    near: tuple[Id, ...] = field(
        "Id of a document or node to search around; may be repeated.",
        (),
        max_length=16,
    ),
    anyway: bool = field("Do not abstain: weak evidence counts as an answer.", False),
    level: Level = field(
        "Also rank the files or the symbols (path:Qualified.name) of a workspace.",
        PASSAGE,
    ),
    **limits: Any,
) -> CachedTurn:
    """Answer a question with cited paths and passages, inside the plan's budget; reasons say what
    was cut.
    """
    text, only, carried = _follow(context, query, **limits)
    reply = context.ask(
        text,
        plan=plan,
        recipe=recipe,
        as_of=as_of,
        known_at=known_at,
        max_paths=max_paths,
        mode=mode,
        near=near,
        only=only,
        anyway=anyway,
        level=level,
    )

    if carried is not None:
        document = {
            **reply.document,
            "carried": carried.model_dump(mode="json"),
        }
        reply = replace(reply, text=orjson.dumps(document))

    has_results = reply.document["paths"] or reply.document["passages"]
    if limits["domain"] is not None and context.limit is None and not has_results:
        require_domain(limits["domain"], context)

    return reply


def limit_documents(domain: str | None, **limits: Any) -> DocumentFilter | None:
    """What the question is limited to; None where it is asked of everything."""
    only = DocumentFilter(domain, *(limits[name] for name in DocumentLimits.model_fields))
    return None if only == DocumentFilter() else only


def _follow(
    context: CallContext, query: str, *, follow: str | None, drop: Sequence[str], **limits: Any
) -> tuple[str, DocumentFilter | None, Carried | None]:
    """The question with what it carries from the one it follows, limited to what the caller may
    see.
    """
    only = limit_documents(**limits)
    carried = None

    if follow is not None:
        query, only, carried = necessity.follow_up(
            query,
            context.find_turn(follow),
            only,
            drop,
        )

    return query, context.limited(only), carried


def require_domain(domain: str, context: CallContext) -> None:
    """Name the domains where nothing belongs to the one that was asked for."""
    with context.answers.read() as view:
        known = view.domains()

    if known and domain.casefold() not in {name.casefold() for name in known}:
        names = ", ".join(known[:_LISTED_DOMAINS])
        if len(known) > _LISTED_DOMAINS:
            names += ", ..."
        raise BadQuestion(f"no document belongs to the domain {domain!r}; use one of {names}")


@capability(
    "answer",
    Cli("query"),
    Rest(
        "POST",
        "/answer",
        "Answer in sentences",
        tag="questions",
        reply=WrittenAnswer,
        examples=({"query": "what does EmailMessage extend?"},),
    ),
    Mcp(
        "hades_answer",
        "Answer in sentences with citations",
        WrittenAnswer,
        text="text",
    ),
    also=QuestionLimits,
)
def answer(
    context: CallContext,
    *,
    query: Question = field(
        PLAIN_QUESTION,
        metavar="TEXT",
        examples=["what does EmailMessage extend?"],
    ),
    recipe: RecipeName = DEFAULT,
    as_of: AsOf = None,
    known_at: KnownAt = None,
    max_sources: int = field(
        "Passages and paths that may be cited.",
        8,
        ge=1,
        le=24,
    ),
    max_tokens: int = field(
        "Longest reply of the language model.",
        512,
        ge=16,
        le=4096,
    ),
    token_cap: int = field(
        "Tokens that the call may cost in all; fewer sources are sent where they do not fit.",
        8_000,
        ge=256,
        le=200_000,
    ),
    quote: bool = field("Quote sentences, also where a language model is set.", False),
    estimate: bool = field("Only say what the call would cost.", False),
    **options: Any,
) -> dict[str, Any]:
    """Answer a question in sentences, each with the numbers of the sources that state it.

    With HADES_LLM_BASE_URL a language model writes it and every sentence is checked against what it
    cites; without one, sentences of the found passages are quoted.
    """
    limits = {
        "max_sources": max_sources,
        "max_tokens": max_tokens,
        "token_cap": token_cap,
    }
    options |= {
        "recipe": recipe,
        "as_of": as_of,
        "known_at": known_at,
        "quote": quote,
        "estimate": estimate,
    }
    *_, last = stream_events(context, query, **limits, **options)
    document: dict[str, Any] = last.value.model_dump(mode="json")
    return document


def stream_events(
    context: CallContext,
    query: str,
    *,
    max_sources: int,
    max_tokens: int,
    token_cap: int,
    **settings: Any,
) -> Iterator[AnswerEvent]:
    """The events of a written answer: ask the graph, then write."""
    quote = settings.pop("quote")
    estimate = settings.pop("estimate")
    options = {name: settings.pop(name) for name in ("recipe", "as_of", "known_at")}
    query, only, carried = _follow(context, query, **settings)
    retrieval = Retrieval.model_validate(context.ask(query, only=only, **options).document)
    events = write_events(
        context.answers,
        retrieval,
        lambda: _prompt_rows(context),
        only=only,
        model=None if quote else open_language_model(context.settings),
        limits=AnswerLimits(max_sources, max_tokens, token_cap),
        estimate_only=estimate,
    )

    for event in events:
        if event.name == "answer":
            event = AnswerEvent(event.name, event.value.model_copy(update={"carried": carried}))
        yield event


def _prompt_rows(context: CallContext) -> RowStore | None:
    """The rows of the store where it answers at once: an answer does not wait for an overview."""
    try:
        require_prompt_rows(context.settings, "documents")
    except StoreError:
        return None

    return context.readable


QueryId = Annotated[
    Id,
    Shell(metavar="QUERY_ID"),
    Field(
        description="Id that the answer carries.",
        examples=["q_3f2a9c"],
    ),
]
Rank = Annotated[int, Ge(1), Le(1000)]


class Ranks(Request):
    """Ranks in an answer, counted from 1."""

    paths: tuple[Rank, ...] = Field(
        (),
        max_length=100,
        description="Rank of a path, from 1; may be repeated.",
    )
    passages: tuple[Rank, ...] = Field(
        (),
        max_length=100,
        description="Rank of a passage, from 1; may be repeated.",
    )


class Judgement(Request):
    """A judgement names at least one rank."""

    @model_validator(mode="after")
    def has_a_rank(self) -> Self:
        """Refuse a judgement of nothing."""
        values = dict(self)
        if not any(ranks.paths or ranks.passages for ranks in (values["good"], values["bad"])):
            raise ValueError(
                "no rank was given; name what was good or bad, for example --good 1 --bad 3"
            )

        return self


@capability(
    "explain",
    Cli("query_id"),
    Rest(
        "GET",
        "/queries/{query_id}/explain",
        "Explain an answer",
        tag="questions",
    ),
    Mcp(
        "hades_explain",
        "Explain an answer",
        replies.ExplanationReply,
    ),
)
def explain(
    context: CallContext,
    *,
    query_id: QueryId,
    missing: Id | None = field(
        "A node that was expected, by id or name.",
        None,
        metavar="NODE",
    ),
    without: Id | None = field(
        "Replay without this source: rank or id of a passage, or a document.",
        None,
        metavar="SOURCE",
    ),
) -> dict[str, Any]:
    """Explain why each path was kept, and why a node was not reached: cap, threshold, mask, or not
    connected.

    Also how far the answer needs each source, and what it says without one.
    """
    log = context.find_turn(query_id)
    tools = context.answers.tools

    with context.answers.lease() as view:
        document = explained(view, tools, log, missing)
        document["sources"] = necessity.explain_needs(view, tools, log)
        document["without"] = None

        if without is not None:
            document["without"] = necessity.explain_without(view, tools, log, without)

    return document


@capability(
    "feedback",
    "rw",
    Cli("query_id"),
    Rest(
        "POST",
        "/queries/{query_id}/feedback",
        "Judge an answer",
        part="feedback",
        tag="questions",
        reply=Feedback,
        examples=(
            {
                "good": {"paths": [1]},
                "bad": {"passages": [3]},
            },
        ),
    ),
    base=Judgement,
)
def feedback(
    context: CallContext,
    *,
    query_id: QueryId,
    good: Ranks = field(
        "Ranks that helped.",
        Ranks(),
        parts=(("paths", "--good"), ("passages", "--good-passage")),
    ),
    bad: Ranks = field(
        "Ranks that did not help.",
        Ranks(),
        parts=(("paths", "--bad"), ("passages", "--bad-passage")),
    ),
) -> dict[str, Any]:
    """Judge the paths and passages of an answer; builds learn from it. A later judgement of a rank
    replaces it.
    """
    context.flush_turns()
    turn = context.find_turn(query_id)
    path_count = len(ShownResults.model_validate(turn.results).paths)
    good_ranks = _split_numbers(good, path_count)
    bad_ranks = _split_numbers(bad, path_count)
    judgement = judge(
        context.writable,
        query_id,
        good=good_ranks,
        bad=bad_ranks,
        at=utc_now(),
    )
    _judge_memory(context, turn, good_ranks, bad_ranks)
    feedback = judgement.model_dump(mode="json")
    verdicts = {
        "good": feedback["good"],
        "bad": feedback["bad"],
    }
    tell_feedback(
        context.settings,
        query_id,
        verdicts,
        context.who,
    )
    return {
        "query_id": query_id,
        "feedback": feedback,
    }


def _split_numbers(ranks: Ranks, path_count: int) -> JudgedRanks:
    """A prompt numbers passages on from the last path: a number beyond the paths is a passage."""
    beyond = tuple(rank - path_count for rank in ranks.paths if rank > path_count)
    return JudgedRanks(
        paths=tuple(rank for rank in ranks.paths if rank <= path_count),
        passages=(*ranks.passages, *beyond),
    )


def _judge_memory(
    context: CallContext,
    turn: QueryLog,
    good: JudgedRanks,
    bad: JudgedRanks,
) -> None:
    """Move the importance of the remembered states among the passages that were judged for the
    first time.
    """
    judged_before: set[int] = set()
    if turn.feedback:
        previous = Feedback.model_validate(turn.feedback)
        judged_before = {*previous.good.passages, *previous.bad.passages}

    passages = ShownResults.model_validate(turn.results).passages
    states = {}
    for passage in passages:
        if passage.rank not in judged_before and passage.id.startswith("memory_states/"):
            states[passage.rank] = passage.id

    helpful_states = []
    for rank in good.passages:
        if rank in states:
            helpful_states.append(states[rank])

    unhelpful_states = []
    for rank in bad.passages:
        if rank in states:
            unhelpful_states.append(states[rank])

    if helpful_states or unhelpful_states:
        judge_states(
            context.memory,
            helpful_states,
            unhelpful_states,
            who=context.who,
            why=f"judged in the answer {turn.key}",
        )


@capability("queries", Cli(), task="report queries")
def queries(
    context: CallContext,
    *,
    since: Moment | None = field(
        "Only questions asked since this time, for example 2026-01-31.", None
    ),
) -> dict[str, Any]:
    """Write reports/queries.html: what the logged questions cost, stage by stage, and what was
    cut.
    """
    return write_dashboard(
        context.readable,
        context.settings.home / "reports" / "queries.html",
        since,
    )
