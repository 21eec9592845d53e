"""The routes of the OpenAI protocol that chat front ends call: HADES as a model that answers with
sources.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence
from typing import Any, Literal

import orjson
from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response, StreamingResponse

from hades.errors import HadesError
from hades.providers.tokens import MiniLmTokenizer
from hades.retrieval.answer.write_answer import separate, write_sentence
from hades.retrieval.core.types import DEFAULT, NAMES_OF_RECIPES
from hades.surfaces.capabilities.capability import QUESTION_CHARACTERS, Request
from hades.surfaces.capabilities.questions import answer as ANSWER
from hades.surfaces.rest.guard import MEDIA_TYPE, Problem, of_error
from hades.surfaces.rest.routes import answer_events
from hades.surfaces.rest.services import Call, CalledBy, Noted, Served
from schemas.answer import AnswerSource, WrittenAnswer

reading = APIRouter(tags=["chat front ends"])
MODEL = "hades"
_END = b"data: [DONE]\n\n"
_TOKENIZER = MiniLmTokenizer()


class TextPart(BaseModel):
    """A part of a message; parts that are not text are left out."""

    model_config = ConfigDict(extra="allow")
    type: str
    text: str = ""


class Message(BaseModel):
    """One message of the conversation; fields of other uses are ignored."""

    model_config = ConfigDict(extra="allow")
    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[TextPart] | None = None

    def text(self) -> str:
        """The words of the message."""
        if isinstance(self.content, list):
            return "\n".join(part.text for part in self.content if part.type == "text")
        return self.content or ""


class StreamOptions(BaseModel):
    """What a stream also tells."""

    model_config = ConfigDict(extra="allow")
    include_usage: bool = Field(False, description="Also `usage`, as the last chunk.")


class ChatBody(BaseModel):
    """A chat request. HADES reads the model, the last message of the user, `stream` with its
    options and `max_tokens`; of the other messages it counts the tokens.
    """

    model_config = ConfigDict(extra="allow")
    model: str = Field(
        MODEL,
        max_length=100,
        description=f"`{MODEL}`, or `{MODEL}/RECIPE`.",
    )
    messages: list[Message] = Field(min_length=1, max_length=1000)
    stream: bool = False
    stream_options: StreamOptions = StreamOptions()
    max_tokens: int | None = Field(
        None,
        ge=1,
        description="Longest reply of the language model, 16 to 4096.",
    )


class ChatProblem(BaseModel):
    """An error of the answer; one of the request or the caller is a `Problem`."""

    error: dict[str, str] = Field(
        description="`message`, `type` and `code`, as clients of the protocol read them"
    )


class UnknownModel(HadesError, ValueError):
    """A model that this service does not have."""

    http_status = 404


@reading.get(
    "/models",
    summary="Models that a chat front end may choose",
)
async def models() -> dict[str, Any]:
    """`hades` answers with the default recipe; `hades/RECIPE` with another."""
    names = (MODEL, *(f"{MODEL}/{recipe}" for recipe in NAMES_OF_RECIPES))

    models = []
    for name in names:
        models.append(
            {
                "id": name,
                "object": "model",
                "created": 0,
                "owned_by": MODEL,
            }
        )

    return {"object": "list", "data": models}


@reading.post(
    "/chat/completions",
    summary="Answer the last message of a conversation",
    response_model=None,
    responses={
        "4XX": {
            "model": ChatProblem | Problem,
            "description": "The request cannot be answered as it is.",
        }
    },
)
async def complete(
    body: ChatBody,
    services: Served,
    call: Noted,
    caller: CalledBy,
) -> Response:
    """The written answer in the form of the OpenAI protocol; sources follow the text and stand in
    `sources`.
    """
    try:
        events = answer_events(services, caller, _request(body))
        if body.stream:
            return StreamingResponse(
                _chunks(body, call, events),
                media_type="text/event-stream",
            )
        answer: WrittenAnswer = [event async for event in events][-1].value
    except HadesError as error:
        return Response(
            orjson.dumps(_failure(error)),
            of_error(error).status_code,
            media_type=MEDIA_TYPE,
        )

    call.query_id = answer.query_id
    return Response(
        orjson.dumps(_completion(body, answer)),
        media_type="application/json",
    )


def _completion(body: ChatBody, answer: WrittenAnswer) -> dict[str, Any]:
    content = answer.text + list_sources(answer)
    message = {
        "role": "assistant",
        "content": content,
    }
    choice = {
        "index": 0,
        "message": message,
        "finish_reason": "stop",
    }
    head = _head(
        body.model,
        "chat.completion",
        answer.query_id,
    )
    usage = _usage(body, answer, content)
    return {
        **head,
        "choices": [choice],
        "usage": usage,
        "sources": _sources(answer),
    }


def _usage(
    body: ChatBody,
    answer: WrittenAnswer,
    content: str,
) -> dict[str, int]:
    """Tokens as the language model counted them; where none wrote the answer, word pieces of the
    messages and of the reply.
    """
    conversation = "\n".join(message.text() for message in body.messages)
    prompt = answer.cost.prompt_tokens or _TOKENIZER.count(conversation)
    completion = answer.cost.completion_tokens or _TOKENIZER.count(content)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
    }


def _failure(error: HadesError) -> dict[str, Any]:
    kind = type(error).__name__
    return {
        "error": {
            "message": str(error),
            "type": kind,
            "code": kind,
        }
    }


def list_sources(answer: WrittenAnswer) -> str:
    """The sources that the sentences cite, as a list under the answer."""
    cited = set().union(*(sentence.citations for sentence in answer.sentences))

    lines = []
    for source in answer.sources:
        if source.number in cited:
            lines.append(f"[{source.number}] {_place(source)}")

    if lines:
        return "\n\n" + "\n".join(("Sources:", *lines))

    return ""


def _request(body: ChatBody) -> Request:
    """The question of the last message of the user, for the recipe that the model names."""
    name, _, recipe = body.model.partition("/")
    recipe = recipe or DEFAULT

    if name != MODEL or recipe not in NAMES_OF_RECIPES:
        raise UnknownModel(f"there is no model {body.model!r}; GET /v1/models lists them")

    question = next(
        (message.text() for message in reversed(body.messages) if message.role == "user"),
        "",
    )
    values: dict[str, Any] = {
        "query": question[:QUESTION_CHARACTERS],
        "recipe": recipe,
    }
    if body.max_tokens is not None:
        values["max_tokens"] = min(max(body.max_tokens, 16), 4096)

    return ANSWER.check(values)


async def _chunks(
    body: ChatBody,
    call: Call,
    events: AsyncIterator[Any],
) -> AsyncIterator[bytes]:
    """Each sentence when it is checked, then the sources, then the tokens where they are wanted,
    then the end.
    """
    model = body.model
    usage = None

    try:
        yield _chunk(model, {"role": "assistant", "content": ""})
        has_text = False
        async for event in events:
            if event.name == "sentence":
                separator = separate(event.value) if has_text else ""
                yield _chunk(model, {"content": separator + write_sentence(event.value)})
                has_text = True
            elif event.name == "answer":
                answer: WrittenAnswer = event.value
                call.query_id = answer.query_id
                source_list = list_sources(answer)
                usage = _usage(body, answer, answer.text + source_list)
                tail = source_list if has_text else answer.text + source_list
                yield _chunk(
                    model,
                    {"content": tail},
                    sources=_sources(answer),
                )

        yield _chunk(model, {}, finish="stop")
        if body.stream_options.include_usage:
            head = _head(model, "chat.completion.chunk", "chunk")
            yield (
                b"data: "
                + orjson.dumps(
                    {
                        **head,
                        "choices": [],
                        "usage": usage,
                    }
                )
                + b"\n\n"
            )
    except HadesError as error:
        yield b"data: " + orjson.dumps(_failure(error)) + b"\n\n"

    yield _END


def _chunk(
    model: str,
    delta: dict[str, str],
    *,
    finish: str | None = None,
    sources: Sequence[dict[str, Any]] = (),
) -> bytes:
    choice = {
        "index": 0,
        "delta": delta,
        "finish_reason": finish,
    }
    document = {
        **_head(model, "chat.completion.chunk", "chunk"),
        "choices": [choice],
    }
    if sources:
        document["sources"] = list(sources)

    return b"data: " + orjson.dumps(document) + b"\n\n"


def _head(model: str, kind: str, name: str) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{name}",
        "object": kind,
        "created": int(time.time()),
        "model": model,
    }


def _sources(answer: WrittenAnswer) -> list[dict[str, Any]]:
    """The sources in the form that Open WebUI shows beside an answer."""
    documents = []
    for source in answer.sources:
        place = _place(source)
        metadata = {
            "source": place,
            "document": source.document,
            "rank": source.rank,
            "kind": source.kind,
        }
        documents.append(
            {
                "source": {
                    "id": str(source.number),
                    "name": place,
                },
                "document": [source.text],
                "metadata": [metadata],
            }
        )

    return documents


def _place(source: AnswerSource) -> str:
    return ", ".join(
        part for part in (source.document or source.title or source.id, source.where) if part
    )
