"""A written answer to a question: by a language model whose sentences are checked, or by quotation without one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from hades.errors import HadesError
from hades.ports.text import Embedder, LanguageModel, ProviderError, Tokenizer
from hades.retrieval.answer.answer_sources import NO_ANSWER, fit_sources, number_sources, write_prompt
from hades.retrieval.answer.check_support import check_sentence, close_length, split_reply
from hades.retrieval.answer.code_places import name_places
from hades.retrieval.answer.extract_answer import extract_sentences
from schemas.answer import AnswerCost, AnswerSentence, AnswerSource, WrittenAnswer
from schemas.plan import Reason
from schemas.retrieval import Retrieval


class AnswerBudgetError(HadesError, ValueError):
    """A question whose answer would cost more than it may."""


@dataclass(frozen=True)
class AnswerLimits:
    """What a written answer may spend; `total_tokens` caps prompt and reply together."""

    sources: int = 8
    completion_tokens: int = 512
    total_tokens: int = 8_000


@dataclass(frozen=True)
class AnswerEvent:
    """One step of a streamed answer: `sources`, `cost`, `sentence` for each that was checked, at the end `answer`."""

    name: str
    value: Any


def stream_answer(
    found: Retrieval,
    *,
    tokenizer: Tokenizer,
    embedder: Embedder | None,
    model: LanguageModel | None,
    limits: AnswerLimits = AnswerLimits(),
    estimate_only: bool = False,
) -> Iterator[AnswerEvent]:
    """The events of one answer. Where a model fails or writes nothing, sentences are quoted and the reason is told."""
    sources = number_sources(found, limits.sources)
    cost = AnswerCost()
    if model is not None:
        sources, cost = _within_budget(found.query, sources, tokenizer, limits)
    yield AnswerEvent("sources", sources)
    yield AnswerEvent("cost", cost)
    if estimate_only:
        yield AnswerEvent("answer", _answer(found, "estimate", sources, (), cost, model))
        return
    problem = ""
    if model is not None and sources:
        try:
            yield from _write(found, sources, cost, model, tokenizer, limits)
        except ProviderError as error:
            problem = str(error)
        else:
            return
    quoted: tuple[AnswerSentence, ...] = ()
    if Reason.ABSTAINED not in found.reasons:
        quoted = name_places(sources) or extract_sentences(found.query, sources, embedder)
    for sentence in quoted:
        yield AnswerEvent("sentence", sentence)
    mode = "extracted" if quoted else "no_answer"
    yield AnswerEvent("answer", _answer(found, mode, sources, quoted, cost, None, problem=problem))


def write_answer(found: Retrieval, **options: Any) -> WrittenAnswer:
    """The answer of `stream_answer`, whole."""
    *_, last = stream_answer(found, **options)
    answer: WrittenAnswer = last.value
    return answer


def _within_budget(
    question: str, sources: Sequence[AnswerSource], tokenizer: Tokenizer, limits: AnswerLimits
) -> tuple[tuple[AnswerSource, ...], AnswerCost]:
    """The sources that fit, and what the call costs at most; refused before any call when nothing fits."""
    room = limits.total_tokens - limits.completion_tokens
    kept = fit_sources(question, sources, tokenizer, room)
    if sources and not kept:
        needed = tokenizer.count(write_prompt(question, sources[:1])) + limits.completion_tokens
        raise AnswerBudgetError(
            f"the answer may cost {limits.total_tokens} tokens, but a prompt with one source and the reply need "
            f"{needed}; raise token_cap or lower max_tokens"
        )
    return kept, AnswerCost(
        prompt_tokens=tokenizer.count(write_prompt(question, kept)), completion_tokens_at_most=limits.completion_tokens
    )


def _write(
    found: Retrieval,
    sources: Sequence[AnswerSource],
    cost: AnswerCost,
    model: LanguageModel,
    tokenizer: Tokenizer,
    limits: AnswerLimits,
) -> Iterator[AnswerEvent]:
    """Sentences as they are finished, each checked against the sources that it cites."""
    checked: list[AnswerSentence] = []
    cited: list[int] = []
    reply, done, problem = "", 0, ""

    def check(text: str) -> Iterator[AnswerEvent]:
        for sentence, citations in split_reply(text):
            cited.extend(citations)
            checked.append(check_sentence(sentence, citations, sources, found.query))
            yield AnswerEvent("sentence", checked[-1])

    try:
        for piece in model.stream(write_prompt(found.query, sources), max_tokens=limits.completion_tokens):
            reply += piece
            ready = done + close_length(reply[done:])
            yield from check(reply[done:ready])
            done = ready
    except ProviderError as error:
        if not checked:
            raise
        problem = f"the reply broke off: {error}"
    else:
        yield from check(reply[done:])
    if not checked:
        raise ProviderError(f"{model.model} wrote no sentence")
    numbers = {source.number for source in sources}
    unknown = tuple(number for number in dict.fromkeys(cited) if number not in numbers)
    spent = cost.model_copy(update={"completion_tokens": tokenizer.count(reply)})
    yield AnswerEvent(
        "answer", _answer(found, "written", sources, checked, spent, model, unknown=unknown, problem=problem)
    )


def _answer(
    found: Retrieval,
    mode: str,
    sources: Sequence[AnswerSource],
    sentences: Sequence[AnswerSentence],
    cost: AnswerCost,
    model: LanguageModel | None,
    *,
    unknown: tuple[int, ...] = (),
    problem: str = "",
) -> WrittenAnswer:
    are_places = mode == "extracted" and bool(name_places(sources))
    text = ("\n" if are_places else " ").join(map(write_sentence, sentences))
    return WrittenAnswer.model_validate(
        {
            **{name: getattr(found, name) for name in ("query_id", "query", "recipe", "snapshot", "reasons")},
            "mode": mode,
            "model": model.model if model is not None else "",
            "text": text or ("" if mode == "estimate" else NO_ANSWER),
            "sentences": tuple(sentences),
            "sources": tuple(sources),
            "unknown_citations": unknown,
            "cost": cost,
            "problem": problem,
        }
    )


def write_sentence(sentence: AnswerSentence) -> str:
    """The sentence with its citations; one that the sources do not support is marked."""
    marks = "".join(f"[{number}]" for number in sentence.citations)
    warning = "" if sentence.is_supported else " (unsupported)"
    return f"{sentence.text} {marks}".rstrip() + warning
