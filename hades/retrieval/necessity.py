"""What an answer needs of each source, what a turn says without one, and what the next question carries of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from pydantic import TypeAdapter

from hades.errors import HadesError
from hades.ports.graph import DocumentFilter
from hades.ports.services import Embedder
from hades.retrieval.answer.absence import written_filters
from hades.retrieval.answer.write_answer import MIN_SHARE, number_sources, quote_sources, share_held
from hades.retrieval.core.words import content_words, stem
from hades.retrieval.pipeline import Tools, retrieve
from hades.snapshot.remote import OpenView
from hades.text.word_lists import FUNCTION_WORDS
from schemas.answer import AnswerSentence, AnswerSource, Carried, CitedPassage, Retrieval
from schemas.ids import Mask
from schemas.plan import Plan, Reason
from schemas.telemetry import QueryLog, ShownResults

CHECK_MS = 200  # for the one replay behind the needs of an answer
_MOST_SOURCES = 24
_FILTER = TypeAdapter(DocumentFilter)
_NAMED = {"rank", "id", "document", "title", "headings"}  # what a list says of a passage
Replay = Callable[[tuple[str, ...]], Retrieval]


class UnknownSource(HadesError):
    """A source that an answer does not have."""


def weigh_sources(found: Retrieval, sentences: Sequence[AnswerSentence], replay: Replay) -> dict[int, dict[str, Any]]:
    """The need of each passage of an answer by its rank, from one replay without all of them.

    `needed` is how much of the answer's support is lost without it, in [0, 1]: its share of the ranking's odds, and
    nothing where another passage, shown or brought up by the replay, states what the answer cites of it. `carries`:
    the answer cites it and no other passage states that; else `instead` is a passage that does.
    """
    if not found.passages:
        return {}
    rest = replay(tuple(one.id for one in found.passages))
    odds = np.array([one.score / max(2.0 - one.score, 1e-9) for one in found.passages])
    shares = odds / odds.sum() if odds.sum() else odds
    cited = _cited_texts(found, sentences)
    needs: dict[int, dict[str, Any]] = {}
    for passage, share in zip(found.passages, shares.tolist(), strict=True):
        text = cited.get(passage.rank, "")
        others = [one for one in (*found.passages, *rest.passages) if text and one.id != passage.id]
        shares_held = [(share_held(text, f"{one.title} {one.text}", found.query), one.id) for one in others]
        held, instead = max(shares_held, default=(0.0, ""), key=lambda one: one[0])
        is_held = held >= MIN_SHARE
        needs[passage.rank] = {
            "needed": round(share * (1.0 - held if is_held else 1.0), 4),
            "carries": bool(text) and not is_held,
            "instead": instead if is_held else "",
        }
    return needs


def _cited_texts(found: Retrieval, sentences: Sequence[AnswerSentence]) -> dict[int, str]:
    """What an answer cites of each passage, by its rank: the words that decide, else the whole sentence."""
    passages = passages_by_number(found)
    texts: dict[int, list[str]] = {}
    for sentence in sentences:
        for number in sentence.citations:
            if number in passages:
                texts.setdefault(passages[number].rank, []).extend(sentence.marks or (sentence.text,))
    return {rank: " ".join(said) for rank, said in texts.items()}


def passages_by_number(found: Retrieval) -> dict[int, CitedPassage]:
    """The passages of an answer by the number under which it cites them."""
    by_rank = {one.rank: one for one in found.passages}
    sources = number_sources(found, _MOST_SOURCES)
    return {one.number: by_rank[one.rank] for one in sources if one.kind == "passage"}


def mark_sources(sources: Sequence[AnswerSource], needs: Mapping[int, dict[str, Any]]) -> tuple[AnswerSource, ...]:
    """The sources with their needs; a path has none."""
    return tuple(
        one.model_copy(update=needs[one.rank]) if one.kind == "passage" and one.rank in needs else one
        for one in sources
    )


def replay_of(view: OpenView, tools: Tools, log: QueryLog, latency_ms: int | None = None) -> Replay:
    """Ask a logged question again of the same graph without some documents or passages; with none, as it was."""
    shown, plan = ShownResults.model_validate(log.results), Plan.model_validate(log.plan)
    only, near = read_filters(shown.filters)
    return replay_on(
        view, tools, log.query, plan if latency_ms is None else limit_time(plan, latency_ms), only,
        at=log.at, recipe=log.recipe, mask=Mask(shown.as_of, shown.known_at), near=near, anyway=True,
    )  # fmt: skip


def replay_on(
    view: OpenView, tools: Tools, text: str, plan: Plan, only: DocumentFilter | None = None, **options: Any
) -> Replay:
    """A question of a graph that can be asked without some documents or passages; `options` are those of a turn."""

    def replay(without: tuple[str, ...]) -> Retrieval:
        kept = replace(only or DocumentFilter(), without=without) if without else only
        return retrieve(view, text, tools, plan=plan, only=kept, **options)

    return replay


def limit_time(plan: Plan, latency_ms: int) -> Plan:
    """The plan with at most so much time for the whole turn; its stages share it as before."""
    share = min(1.0, latency_ms / plan.budget.latency_ms)
    parts = {
        name: getattr(plan, name).model_copy(update={"timeout_ms": int(share * getattr(plan, name).timeout_ms)})
        for name in ("retriever", "graph", "reranker")
    }
    budget = plan.budget.model_copy(update={"latency_ms": int(share * plan.budget.latency_ms)})
    return plan.model_copy(update={**parts, "budget": budget})


def read_filters(filters: Mapping[str, Any]) -> tuple[DocumentFilter | None, tuple[str, ...]]:
    """The filters of a logged question, and where it was asked from."""
    given = {name: value for name, value in filters.items() if name != "near"}
    return _FILTER.validate_python(given) if given else None, tuple(filters.get("near", ()))


def explain_needs(view: OpenView, tools: Tools, log: QueryLog) -> list[dict[str, Any]]:
    """The passages of a logged turn, each with its need, and the `number` under which an answer cites it."""
    found = replay_of(view, tools, log)(())
    needs = weigh_sources(found, quote(found, tools.embedder), replay_of(view, tools, log, CHECK_MS))
    numbers = {one.rank: number for number, one in passages_by_number(found).items()}
    return [
        one.model_dump(include=_NAMED) | needs[one.rank] | {"number": numbers.get(one.rank)} for one in found.passages
    ]


def explain_without(view: OpenView, tools: Tools, log: QueryLog, source: str) -> dict[str, Any]:
    """What a logged turn says without a source: the rank or id of a passage, or a document; whether it still stands."""
    replay = replay_of(view, tools, log)
    before = replay(())
    masked = _ids_of(before, source)
    after = replay(masked)
    said, now = quote(before, tools.embedder), quote(after, tools.embedder)
    held = " ".join(f"{one.title} {one.text}" for one in after.passages)
    stands = Reason.ABSTAINED not in after.reasons and all(
        share_held(text, held, log.query) >= MIN_SHARE for one in said for text in one.marks or (one.text,)
    )
    kept, shown = {one.id for one in after.passages}, {one.id for one in before.passages}
    return {
        "source": source,
        "masked": list(masked),
        "stands": stands,
        "abstains": Reason.ABSTAINED in after.reasons,
        "confidence": [before.confidence, after.confidence],
        "answer": [[one.text for one in each] for each in (said, now)],
        "lost": [one.id for one in before.passages if one.id not in kept],
        "new": [one.model_dump(include=_NAMED) for one in after.passages if one.id not in shown],
    }


def quote(found: Retrieval, embedder: Embedder | None) -> tuple[AnswerSentence, ...]:
    """The quoted answer of a turn; none where it abstains."""
    if Reason.ABSTAINED in found.reasons:
        return ()
    return quote_sources(found.query, number_sources(found, _MOST_SOURCES), embedder)


def _ids_of(found: Retrieval, source: str) -> tuple[str, ...]:
    """What to mask: a passage by its rank or id, or every text of a document that the answer shows."""
    for one in found.passages:
        if source in (str(one.rank), one.id):
            return (one.id,)
        if source in (one.document, one.document_id, one.path, one.title):
            return (one.document_id or one.id,)
    shown = ", ".join(dict.fromkeys(one.document for one in found.passages))
    raise UnknownSource(f"{source!r} is no source of this answer; give a rank, or one of {shown or 'none'}")


_MOST_WORDS = 12  # the newest stand first, so that a long conversation forgets its beginning
_ENOUGH = 3  # content words of a question that stands by itself
_GOES_ON = re.compile(r"\s*(?:and|or|but|what about|how about|what if|also|same|und|oder|et|ou|y|e|и|а)\b", re.I)
_REFERS = re.compile(r"\b(?:it|its|they|them|their|this|that|these|those|there|one|ones|he|she|him|her)\b", re.I)
_WORD = re.compile(r"[\w-](?:[\w./:'-]*\w)?")
# Filters as people name them, where that is another name.
_FIELDS = {"paths": "path", "sources": "source", "types": "type", "tags": "tag", "authors": "author"}


def follow_up(
    text: str, last: QueryLog, only: DocumentFilter | None, drop: Collection[str] = ()
) -> tuple[str, DocumentFilter | None, Carried]:
    """The question as it is asked, what it is limited to, and what both have from the last one.

    Words are carried where the question leans on the last one: it goes on, refers to something, or is short. Filters
    that it does not set are carried too. What `drop` names, a word or a filter, is left out.
    """
    left_out = {one.casefold() for one in drop}
    leans = _GOES_ON.match(text) or _REFERS.search(text) or len(content_words(text)) < _ENOUGH
    words = [word for word in _words_of(last.query, text) if word.casefold() not in left_out] if leans else []
    shown = {name: one for name, one in ShownResults.model_validate(last.results).filters.items() if name != "within"}
    before = written_filters(read_filters(shown)[0])
    given = written_filters(only)
    kept = {
        name: value for name, value in before.items() if name not in given and _FIELDS.get(name, name) not in left_out
    }
    earlier = read_filters(kept)[0]
    if earlier is not None and only is not None:
        earlier = replace(earlier, **{name: getattr(only, name) for name in given})
    filters = {_FIELDS.get(name, name): value for name, value in kept.items()}
    carried = Carried(follows=last.key, words=tuple(words), filters=filters)
    return " ".join([text, *words]), earlier or only, carried


def _words_of(last: str, text: str) -> list[str]:
    """The words of the last question that carry meaning and that the new one does not say, as written."""
    said = {stem(word) for word in content_words(text)}
    found: dict[str, str] = {}
    for word in _WORD.findall(last):
        own = [one for one in content_words(word) if one not in FUNCTION_WORDS]
        if own and not said.issuperset(map(stem, own)):
            found.setdefault(word.casefold(), word)
    return list(found.values())[:_MOST_WORDS]
