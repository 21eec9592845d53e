"""Answer a question in sentences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from hades.retrieval.turn.recipes import DEFAULT
from hades.surfaces.capabilities.capability import Capability, Cli, Mcp, OmittedSurface, Request, Rest, Shell
from hades.surfaces.capabilities.context import CallContext
from hades.surfaces.capabilities.fields import AS_OF, KNOWN_AT, Moment
from hades.surfaces.capabilities.query import QueryRequest, Question, RecipeName

if TYPE_CHECKING:
    from hades.retrieval.answer.write_answer import AnswerEvent


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
    from hades.retrieval.answer.write_answer import AnswerLimits, stream_answer
    from hades.wiring import open_language_model
    from schemas.retrieval import Retrieval

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
    cli=Cli(("answer",), ("query",), view="hades.surfaces.cli.answer_views:show_written_answer", is_audited=True),
    rest=Rest("POST", "/answer", "questions", "Answer in sentences", reply="schemas.answer:WrittenAnswer",
              examples=({"query": "what does EmailMessage extend?"},)),
    mcp=Mcp("hades_answer", "Answer in sentences with citations", "schemas.answer:WrittenAnswer", text="text"),
    task=OmittedSurface("a flow retrieves and writes with its own model; the library function is write_answer"),
)  # fmt: skip
