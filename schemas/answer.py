"""A written answer: sentences with the numbers of the sources that support them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from schemas.plan import Reason
from schemas.retrieval import Shape


class AnswerSource(Shape):
    """A passage or path of this turn under the number that sentences cite."""

    number: int = Field(ge=1)
    kind: Literal["passage", "path"]
    rank: int = Field(ge=1, description="its rank among the passages or paths of the turn, for feedback")
    id: str = Field(description="id of the passage; for a path, ids of its nodes with blanks between")
    document: str = Field("", description="the id that came in with the corpus")
    title: str = ""
    where: str = Field("", description="path:line of code; else page, slide, cells, cell, time or headings")
    span: tuple[int, int] = (0, 0)
    code: str = Field("", description="of code: function, method, class or module; else empty")
    symbol: str = Field("", description="of code: the name of the function or class, with that of its class")
    text: str


class AnswerSentence(Shape):
    """One sentence; `citations` are numbers of sources. An unsupported one says why."""

    text: str
    citations: tuple[int, ...] = ()
    quote: str = Field("", description="a quotation as it stands in its source, with its markup")
    is_supported: bool = True
    problem: str = ""


class AnswerCost(Shape):
    """Tokens of the call to the language model: estimated before, counted after. Zero where none was called."""

    prompt_tokens: int = 0
    completion_tokens_at_most: int = 0
    completion_tokens: int = 0


class WrittenAnswer(Shape):
    """An answer in sentences. `mode` says whether a language model wrote them or they are quotations."""

    query_id: str
    query: str
    recipe: str
    snapshot: str
    mode: Literal["written", "extracted", "estimate", "no_answer"]
    model: str = ""
    text: str = Field("", description="the sentences with their citations as [number]")
    sentences: tuple[AnswerSentence, ...] = ()
    sources: tuple[AnswerSource, ...] = ()
    unknown_citations: tuple[int, ...] = Field((), description="numbers that the model cited and that no source has")
    cost: AnswerCost = AnswerCost()
    reasons: tuple[Reason, ...] = Field((), description="what the turn says about itself, as in a query")
    problem: str = Field("", description="why no language model wrote it although one is set")
