"""Ask a question."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from hades.retrieval.turn.recipes import DEFAULT, LEVELS, MODES, NAMES_OF_RECIPES, PASSAGE
from hades.surfaces.capabilities.capability import (
    Capability,
    Cli,
    JsonReply,
    OmittedSurface,
    Request,
    Rest,
    Shell,
    Task,
)
from hades.surfaces.capabilities.context import CallContext
from hades.surfaces.capabilities.fields import AS_OF, ID_CHARACTERS, KNOWN_AT, QUESTION_CHARACTERS, FreeForm, Id, Moment

Question = Annotated[str, Field(max_length=QUESTION_CHARACTERS)]  # an empty one is refused by the turn itself
RecipeName = Literal[NAMES_OF_RECIPES]  # type: ignore[valid-type]
NexusMode = Literal[MODES]  # type: ignore[valid-type]
Level = Literal[LEVELS]  # type: ignore[valid-type]


def read_plan(path: str) -> dict[str, Any]:
    """A plan from a JSON or YAML file."""
    import json

    import yaml

    from hades.retrieval.turn.plan import PlanError

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
    from hades.retrieval.turn.pipeline import BadQuestion

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
    cli=Cli(("query",), ("query",), view="hades.surfaces.cli.query_views:show_answer", options=QueryView,
            is_audited=True),
    rest=Rest("POST", "/query", "questions", "Answer a question", reply="schemas.retrieval:Retrieval",
              examples=_EXAMPLES),
    mcp=OmittedSurface("agents choose among pathrag_retrieve, hipporag_retrieve and graph_query_paths"),
    task=Task("retrieve", is_snapshot_bound=True),
)  # fmt: skip
