"""What an answer needs of each source, what a turn says without one, and what the next question
carries of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
from pydantic import TypeAdapter

from hades.errors import HadesError
from hades.ports.graph import DocumentFilter
from hades.ports.services import Embedder
from hades.retrieval.answer.absence_certificate import written_filters
from hades.retrieval.answer.write_answer import MIN_SHARE, number_sources, quote_sources, share_held
from hades.retrieval.core.words import content_words, stem
from hades.retrieval.pipeline import Tools, retrieve
from hades.snapshot.remote import OpenView
from hades.text.word_lists import FUNCTION_WORDS, RELATIONAL_WORDS, TERM_BREAKERS
from schemas.answer import AnswerSentence, AnswerSource, Carried, CitedPassage, Retrieval
from schemas.ids import Mask
from schemas.plan import Plan
from schemas.telemetry import QueryLog, ShownResults

CHECK_MS = 200  # for the one replay behind the needs of an answer
_MOST_SOURCES = 24
_FILTER = TypeAdapter(DocumentFilter)
_NAMED = {"rank", "id", "document", "title", "headings"}  # what a list says of a passage
Replay = Callable[[tuple[str, ...]], Retrieval]


class UnknownSource(HadesError):
    """A source that an answer does not have."""


def weigh_sources(
    answer: Retrieval,
    sentences: Sequence[AnswerSentence],
    replay: Replay,
) -> dict[int, dict[str, Any]]:
    """The need of each passage of an answer by its rank, from one replay without all of them.

    `needed` is how much of the answer's support is lost without it, in [0, 1]: its share of the
    ranking's odds, and nothing where another passage, shown or brought up by the replay, states
    what the answer cites of it. `carries`: the answer cites it and no other passage states that;
    else `instead` is a passage that does.
    """
    if not answer.passages:
        return {}

    replayed = replay(tuple(passage.id for passage in answer.passages))
    odds = np.array([passage.score / max(2.0 - passage.score, 1e-9) for passage in answer.passages])
    shares = odds / odds.sum() if odds.sum() else odds
    cited = _cited_texts(answer, sentences)

    needs: dict[int, dict[str, Any]] = {}
    for passage, share in zip(answer.passages, shares.tolist(), strict=True):
        text = cited.get(passage.rank, "")
        covered = 0.0
        instead = ""

        for candidate in (*answer.passages, *replayed.passages):
            if not text or candidate.id == passage.id:
                continue

            held = share_held(
                text,
                f"{candidate.title} {candidate.text}",
                answer.query,
            )
            if held >= MIN_SHARE and held > covered:
                covered = held
                instead = candidate.id

        needs[passage.rank] = {
            "needed": round(share * (1.0 - covered), 4),
            "carries": bool(text) and not instead,
            "instead": instead,
        }

    return needs


def _cited_texts(
    answer: Retrieval,
    sentences: Sequence[AnswerSentence],
) -> dict[int, str]:
    """What an answer cites of each passage, by its rank: the words that decide, else the whole
    sentence.
    """
    passages = passages_by_number(answer)

    texts: dict[int, list[str]] = {}
    for sentence in sentences:
        for number in sentence.citations:
            if number in passages:
                cited = texts.setdefault(passages[number].rank, [])
                cited += sentence.marks or (sentence.text,)

    return {rank: " ".join(cited) for rank, cited in texts.items()}


def passages_by_number(answer: Retrieval) -> dict[int, CitedPassage]:
    """The passages of an answer by the number under which it cites them."""
    by_rank = {}
    for passage in answer.passages:
        by_rank[passage.rank] = passage

    sources = number_sources(answer, _MOST_SOURCES)
    return {source.number: by_rank[source.rank] for source in sources if source.kind == "passage"}


def mark_sources(
    sources: Sequence[AnswerSource],
    needs: Mapping[int, dict[str, Any]],
) -> tuple[AnswerSource, ...]:
    """The sources with their needs; a path has none."""
    marked = []
    for source in sources:
        if source.kind == "passage":
            need = needs.get(source.rank)
        else:
            need = None

        marked.append(source.model_copy(update=need))

    return tuple(marked)


def replay_of(
    view: OpenView,
    tools: Tools,
    log: QueryLog,
    latency_ms: int | None = None,
) -> Replay:
    """Ask a logged question again of the same graph without some documents or passages; with none,
    as it was.
    """
    shown = ShownResults.model_validate(log.results)
    plan = Plan.model_validate(log.plan)

    if latency_ms is not None:
        plan = limit_time(plan, latency_ms)

    only, near = read_filters(shown.filters)
    return replay_on(
        view,
        tools,
        log.query,
        plan,
        only,
        at=log.at,
        recipe=log.recipe,
        mask=Mask(shown.as_of, shown.known_at),
        near=near,
        anyway=True,
    )


def replay_on(
    view: OpenView,
    tools: Tools,
    text: str,
    plan: Plan,
    only: DocumentFilter | None = None,
    **options: Any,
) -> Replay:
    """A question of a graph that can be asked without some documents or passages; `options` are
    those of a turn.
    """

    def replay(without: tuple[str, ...]) -> Retrieval:
        documents = replace(only or DocumentFilter(), without=without) if without else only
        return retrieve(
            view,
            text,
            tools,
            plan=plan,
            only=documents,
            **options,
        )

    return replay


def limit_time(plan: Plan, latency_ms: int) -> Plan:
    """The plan with at most so much time for the whole turn; its stages share it as before."""
    share = min(1.0, latency_ms / plan.budget.latency_ms)
    latency = int(share * plan.budget.latency_ms)
    parts: dict[str, Any] = {"budget": plan.budget.model_copy(update={"latency_ms": latency})}

    for name in ("retriever", "graph", "reranker"):
        stage = getattr(plan, name)
        timeout = int(share * stage.timeout_ms)
        parts[name] = stage.model_copy(update={"timeout_ms": timeout})

    return plan.model_copy(update=parts)


def read_filters(filters: Mapping[str, Any]) -> tuple[DocumentFilter | None, tuple[str, ...]]:
    """The filters of a logged question, and where it was asked from."""
    near = tuple(filters.get("near", ()))

    limits = {}
    for name, value in filters.items():
        if name != "near":
            limits[name] = value

    return _FILTER.validate_python(limits) if limits else None, near


def explain_needs(
    view: OpenView,
    tools: Tools,
    log: QueryLog,
) -> list[dict[str, Any]]:
    """The passages of a logged turn, each with its need, and the `number` under which an answer
    cites it.
    """
    answer = replay_of(view, tools, log)(())
    sentences = quote(answer, tools.embedder)
    needs = weigh_sources(
        answer,
        sentences,
        replay_of(view, tools, log, CHECK_MS),
    )

    numbers = {}
    for number, passage in passages_by_number(answer).items():
        numbers[passage.rank] = number

    return [
        passage.model_dump(include=_NAMED)
        | needs[passage.rank]
        | {"number": numbers.get(passage.rank)}
        for passage in answer.passages
    ]


def explain_without(
    view: OpenView,
    tools: Tools,
    log: QueryLog,
    source: str,
) -> dict[str, Any]:
    """What a logged turn says without a source: the rank or id of a passage, or a document; whether
    it still stands.
    """
    replay = replay_of(view, tools, log)
    full_answer = replay(())
    masked = _ids_of(full_answer, source)
    reduced_answer = replay(masked)
    full_sentences = quote(full_answer, tools.embedder)
    reduced_sentences = quote(reduced_answer, tools.embedder)

    texts = []
    for passage in reduced_answer.passages:
        texts.append(f"{passage.title} {passage.text}")

    reduced_text = " ".join(texts)
    claims = chain.from_iterable(sentence.marks or (sentence.text,) for sentence in full_sentences)
    stands = reduced_answer.is_answered and all(
        share_held(claim, reduced_text, log.query) >= MIN_SHARE for claim in claims
    )
    full_ids = {passage.id for passage in full_answer.passages}
    reduced_ids = {passage.id for passage in reduced_answer.passages}

    new = []
    for passage in reduced_answer.passages:
        if passage.id not in full_ids:
            new.append(passage)

    return {
        "source": source,
        "masked": list(masked),
        "stands": stands,
        "abstains": not reduced_answer.is_answered,
        "confidence": [full_answer.confidence, reduced_answer.confidence],
        "answer": [_texts_of(full_sentences), _texts_of(reduced_sentences)],
        "lost": [passage.id for passage in full_answer.passages if passage.id not in reduced_ids],
        "new": [passage.model_dump(include=_NAMED) for passage in new],
    }


def _texts_of(sentences: Sequence[AnswerSentence]) -> list[str]:
    return [sentence.text for sentence in sentences]


def quote(answer: Retrieval, embedder: Embedder | None) -> tuple[AnswerSentence, ...]:
    """The quoted answer of a turn; none where it abstains."""
    return quote_sources(
        answer,
        number_sources(answer, _MOST_SOURCES),
        embedder,
    )


def _ids_of(answer: Retrieval, source: str) -> tuple[str, ...]:
    """What to mask: a passage by its rank or id, or every text of a document that the answer
    shows.
    """
    for passage in answer.passages:
        if source in (str(passage.rank), passage.id):
            return (passage.id,)
        if source in (passage.document, passage.document_id, passage.path, passage.title):
            return (passage.document_id or passage.id,)

    shown = ", ".join(dict.fromkeys(passage.document for passage in answer.passages))
    raise UnknownSource(
        f"{source!r} is no source of this answer; give a rank, or one of {shown or 'none'}"
    )


_MOST_WORDS = 12  # the newest stand first, so that a long conversation forgets its beginning
_GOES_ON = re.compile(
    r"\s*(?:and|or|but|what about|how about|what if|also|same|und|oder|et|ou|y|e|и|а)\b",
    re.I,
)
_REFERS = re.compile(
    r"\b(?:it|its|they|them|their|this|these|those|he|she|him|her)\b"
    r"|\b(?:about|after|before|by|did|do|does|for|from|in|is|like|of|on|than|to|was|with) that\b"
    r"|\bthat\W*$|\b(?:which|that|this|other|another) ones?\b"
    r"|(?<!\bis )(?<!\bare )(?<!\bwas )\bthere\b(?! is\b| are\b)",
    re.I,
)
_POSSESSIVES = ("its", "their")
_CLAUSE = re.compile(
    r",|\b(?:when|if|while|because|before|after|once|unless|until|and|but)\b",
    re.I,
)
_NOUN_PHRASE = re.compile(r"\b(?:an?|the|each|every|my|our)\s+([\w-]+)", re.I)
_NO_SUBJECT = frozenset(map(stem, TERM_BREAKERS | RELATIONAL_WORDS))
_WORD = re.compile(r"[\w-](?:[\w./:'-]*\w)?")
# Filters as people name them, where that is another name.
_FIELDS = {
    "paths": "path",
    "sources": "source",
    "types": "type",
    "tags": "tag",
    "authors": "author",
}


def follow_up(
    text: str,
    last: QueryLog,
    only: DocumentFilter | None,
    drop: Collection[str] = (),
) -> tuple[str, DocumentFilter | None, Carried]:
    """The question as it is asked, what it is limited to, and what both have from the last one.

    Words are carried where the question names no subject of its own. Filters that it does not set
    are carried too. What `drop` names, a word or a filter, is left out.
    """
    left_out = {name.casefold() for name in drop}
    words = _words_of(last.query, text) if _leans(text) else []
    words = [word for word in words if word.casefold() not in left_out]
    shown = dict(ShownResults.model_validate(last.results).filters)
    shown.pop("within", None)
    last_filters = written_filters(read_filters(shown)[0])
    own_filters = written_filters(only)

    carried_filters = {}
    for name, value in last_filters.items():
        if name not in own_filters and _FIELDS.get(name, name) not in left_out:
            carried_filters[name] = value

    earlier = read_filters(carried_filters)[0]
    if earlier is not None and only is not None:
        earlier = replace(earlier, **{name: getattr(only, name) for name in own_filters})

    filters = {}
    for name, value in carried_filters.items():
        filters[_FIELDS.get(name, name)] = value

    carried = Carried(
        follows=last.key,
        words=tuple(words),
        filters=filters,
    )
    return " ".join([text, *words]), earlier or only, carried


def _leans(text: str) -> bool:
    """Whether a question lacks a subject of its own: it goes on ("and for files?"), refers to what
    it does not name ("what does it cost?"), or asks only what any subject has ("what is the
    default?").
    """
    if _GOES_ON.match(text) or not _names_subject(text):
        return True

    reference = _REFERS.search(text)
    return reference is not None and not _is_resolved(text[: reference.start()], reference[0])


def _names_subject(text: str) -> bool:
    return any(stem(word) not in _NO_SUBJECT for word in content_words(text))


def _is_resolved(preceding: str, reference: str) -> bool:
    """Whether what a pronoun stands for is named before it: in another clause, as in "does the
    server stop when it fails?", or as what owns, as in "when does a pool free its slots?".
    """
    *clauses, last_clause = _CLAUSE.split(preceding)
    resolvable = " ".join(clauses)

    if reference.casefold() in _POSSESSIVES:
        resolvable += f" {last_clause}"

    return any(_names_subject(noun) for noun in _NOUN_PHRASE.findall(resolvable))


def _words_of(last: str, text: str) -> list[str]:
    """The words of the last question that carry meaning and that the new one does not say, as
    written.
    """
    said_stems = set(map(stem, content_words(text)))

    words: dict[str, str] = {}
    for word in _WORD.findall(last):
        terms = []
        for term in content_words(word):
            if term not in FUNCTION_WORDS:
                terms.append(term)

        if terms and not said_stems.issuperset(map(stem, terms)):
            words.setdefault(word.casefold(), word)

    return list(words.values())[:_MOST_WORDS]
