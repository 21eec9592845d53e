"""A turn in sentences: written or quoted, with what was searched where nothing answers, and which
of its sources the answer needs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from hades.budget import Turn
from hades.ports.graph import DocumentFilter
from hades.ports.services import LanguageModel, utc_now
from hades.ports.store import RowStore
from hades.retrieval import necessity
from hades.retrieval.answer.absence_certificate import certify_absence
from hades.retrieval.answer.overview import asks_overview, summarise_corpus
from hades.retrieval.answer.table_answer import answer_from_tables
from hades.retrieval.answer.write_answer import AnswerEvent, AnswerLimits, stream_answer
from hades.retrieval.answers import Answers
from hades.retrieval.core.metered_view import MeteredView
from hades.retrieval.core.types import Question, caps_of
from hades.retrieval.pipeline import fetch_neighbourhood
from hades.retrieval.turn_result import log_of
from schemas.answer import (
    AbsenceCertificate,
    AnswerSentence,
    AnswerSource,
    Retrieval,
    WrittenAnswer,
)
from schemas.ids import Mask


def write_events(
    answers: Answers,
    retrieval: Retrieval,
    open_store: Callable[[], RowStore | None],
    *,
    only: DocumentFilter | None,
    model: LanguageModel | None,
    limits: AnswerLimits = AnswerLimits(),
    estimate_only: bool = False,
) -> Iterator[AnswerEvent]:
    """The events of `stream_answer` for a turn. The store is opened for a question about the whole
    corpus; where there is none, the passages answer that as well.
    """
    stands_now = retrieval.as_of is None and retrieval.known_at is None
    is_overview = only is None and stands_now and asks_overview(retrieval.query)
    rows = open_store() if is_overview else None

    if rows is not None:
        prepared = summarise_corpus(rows)
    else:
        prepared = _ask_tables(answers, retrieval)

    events = stream_answer(
        retrieval,
        tokenizer=answers.tools.tokenizer,
        embedder=answers.tools.embedder,
        model=model,
        limits=limits,
        estimate_only=estimate_only,
        certify=lambda: _certify(answers, retrieval, only),
        prepared=prepared,
    )
    for event in events:
        if event.name == "answer" and not prepared[1]:
            event = AnswerEvent(event.name, _check_needs(answers, retrieval, event.value))
        yield event


def _ask_tables(
    answers: Answers,
    retrieval: Retrieval,
) -> tuple[tuple[AnswerSource, ...], tuple[AnswerSentence, ...]]:
    """The rows of a table that a question means, of documents that the answer shows."""
    documents = []
    for passage in retrieval.passages:
        if passage.document_id:
            documents.append(passage.document_id)

    if not retrieval.snapshot or not documents:
        return (), ()

    with answers.read(documents) as view:
        return answer_from_tables(
            retrieval.query,
            retrieval.passages,
            view.sources,
        )


def _certify(
    answers: Answers,
    retrieval: Retrieval,
    only: DocumentFilter | None,
) -> AbsenceCertificate:
    """What was searched for a question whose passages hold no sentence that answers."""
    with answers.lease() as graph:
        turn = Turn(caps_of(answers.plan), answers.tools.clock)
        question = Question(
            retrieval.query,
            mask=Mask(retrieval.as_of, retrieval.known_at),
        )
        view = fetch_neighbourhood(graph, turn, [question])
        metered = MeteredView(view, turn, only, question.mask)
        memory = answers.tools.memory is not None
        return certify_absence(
            metered,
            question,
            retrieval.passages,
            retrieval.passages,
            memory=memory,
        )


def _check_needs(
    answers: Answers,
    retrieval: Retrieval,
    answer: WrittenAnswer,
) -> WrittenAnswer:
    """The answer with the need of each source it has, from one replay; one that cites nothing needs
    nothing, and states of another time are not replayed.
    """
    changed = retrieval.changes is not None and bool(retrieval.changes.statements)
    if not answer.sentences or not retrieval.snapshot or changed:
        return answer

    began = time.perf_counter()
    with answers.lease() as view:
        if view.info.snapshot != retrieval.snapshot:
            return answer

        log = log_of(retrieval, utc_now())
        replay = necessity.replay_of(
            view,
            answers.tools,
            log,
            necessity.CHECK_MS,
        )
        needs = necessity.weigh_sources(
            retrieval,
            answer.sentences,
            replay,
        )

    sources = necessity.mark_sources(answer.sources, needs)
    ms = round((time.perf_counter() - began) * 1000, 1)
    return answer.model_copy(update={"sources": sources, "check_ms": ms})
