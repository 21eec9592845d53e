"""A certificate of absence: what a turn that abstains searched, what came nearest, and what found
nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from hades.ports.graph import KINDS, DocumentFilter, Kind
from hades.retrieval.answer.assemble import place_of
from hades.retrieval.core.metered_view import MeteredView
from hades.retrieval.core.types import LEXICAL, VECTOR, FoundPassage, Question
from hades.retrieval.core.words import content_words, passage_body, stem
from hades.retrieval.ranking.select import base
from hades.text.dates import time_asked
from hades.text.word_lists import FUNCTION_WORDS
from schemas.answer import AbsenceCertificate, CitedPassage, NearestMiss
from schemas.ids import iso

NEAREST = 3
_WORD = re.compile(r"\w+")
_NAME = re.compile(r"[^\W\d_a-z][\w'’-]*(?:\s+[^\W\d_a-z][\w'’-]*)*")
_CHANNELS = {
    LEXICAL: "words",
    VECTOR: "vectors",
    "ppr": "the graph",
    "code": "code",
    "memory": "memory",
}


def certify_absence(
    view: MeteredView,
    question: Question,
    read: Sequence[FoundPassage | CitedPassage],
    shown: Sequence[CitedPassage],
    memory: bool,
) -> AbsenceCertificate:
    """What was searched for a question that nothing answers; `read` are the passages that were
    ranked.
    """
    with view.turn.stage("absence") as stage:
        channels = {LEXICAL: 0}
        if question.vector is not None:
            channels[VECTOR] = 0
        if memory:
            channels["memory"] = 0

        for passage in read:
            for channel in passage.tiers:
                channels[channel] = channels.get(channel, 0) + 1

        name_matches = view.match_names(question.text)
        spans = list(zip(name_matches.starts.tolist(), name_matches.ends.tolist(), strict=True))
        names = dict.fromkeys(question.text[start:end] for start, end in spans)

        question_words = []
        for word in dict.fromkeys(_WORD.findall(question.text)):
            if word.lower() not in FUNCTION_WORDS and content_words(word):
                question_words.append(word)

        unknown = []
        for word in question_words:
            if not view.holds_word(word):
                unknown.append(word)

        interval = time_asked(question.text, question.mask.as_of) or ()
        times = tuple("" if moment is None else iso(moment) for moment in interval)
        certificate = AbsenceCertificate(
            channels=channels,
            passages=_count_passages(view),
            read=len(read),
            names=tuple(names),
            unknown_names=tuple(_unknown_names(question.text, spans, unknown)),
            unknown_words=tuple(unknown),
            filters=written_filters(view.only),
            times=times,
            nearest=tuple(_find_misses(question_words, shown[:NEAREST])),
        )
        stage.taken, stage.given = len(question_words), len(unknown)

        if view.turn.expired():  # what was not looked up is not known to be missing
            unlooked = {
                "names": (),
                "unknown_names": (),
                "unknown_words": (),
            }
            certificate = certificate.model_copy(update=unlooked)

    return certificate.model_copy(update={"sentence": _write_sentence(certificate)})


def written_filters(only: DocumentFilter | None) -> dict[str, Any]:
    """The filters of a question by name, as JSON; those that are not given are left out."""
    if only is None:
        filters = {}
    else:
        filters = {
            **vars(only),
            "within": written_filters(only.within),
        }

    texts = {}
    for name, value in filters.items():
        texts[name] = iso(value) if name in ("since", "until", "as_of") and value else value

    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in texts.items()
        if value
    }


def _count_passages(view: MeteredView) -> int | None:
    """The passages that the filters leave; None where only a part of the graph is in memory."""
    counts = [view.info.nodes.get(kind.value, 0) for kind in KINDS]
    place = KINDS.index(Kind.CHUNK)

    if view.only is None:
        return counts[place]
    if view.info.is_part:
        return None

    first = sum(counts[:place])
    return int(view.is_inside(np.arange(first, first + counts[place])).sum())


def _unknown_names(
    text: str,
    spans: Sequence[tuple[int, int]],
    unknown: Collection[str],
) -> Iterator[str]:
    """Words with capitals, the first word and "I" aside, that no entity is called, where no passage
    holds one of them.
    """
    for run in _NAME.finditer(text):
        if run.start():
            begin = run.start()
        else:
            begin = run.start() + len(run[0].split()[0])

        name = text[begin : run.end()].strip()
        is_named = any(start < run.end() and begin < end for start, end in spans)
        if not (is_named or set(unknown).isdisjoint(_WORD.findall(name))):
            yield name


def _find_misses(
    question_words: Sequence[str],
    shown: Iterable[CitedPassage],
) -> Iterator[NearestMiss]:
    """The nearest passages, each with the words of the question that it does not hold."""
    stems = {}
    for word in question_words:
        stems[word] = _stems(word)

    for passage in shown:
        passage_stems = set(map(base, passage_body(passage.title, passage.text).content_stems))
        lacks = tuple(word for word in question_words if not stems[word] <= passage_stems)
        yield NearestMiss(
            id=passage.id,
            document=passage.document,
            title=passage.title,
            where=place_of(passage),
            score=passage.score,
            lacks=lacks,
        )


def _stems(question_word: str) -> set[str]:
    stems = set()
    for word in content_words(question_word):
        stems.add(base(stem(word)))

    return stems


def _write_sentence(certificate: AbsenceCertificate) -> str:
    """The certificate in words, what nothing names first."""
    clauses = []
    if certificate.unknown_names:
        clauses.append(f"No passage names {', '.join(certificate.unknown_names)}")

    by = []
    for name, count in certificate.channels.items():
        by.append(f"{_CHANNELS.get(name, name)} ({count})")

    if certificate.passages is None:
        size = "The passages"
    else:
        size = f"{certificate.passages:,} passages"

    clauses.append(
        f"{size} were searched and {certificate.read} of them read, found by {', '.join(by)}"
    )
    filters = {name: value for name, value in certificate.filters.items() if name != "within"}
    if filters:
        limits = []
        for name, value in filters.items():
            limits.append(f"{name} {value if isinstance(value, str) else ', '.join(value)}")

        clauses.append(f"The question was limited to {'; '.join(limits)}")

    named = set(_WORD.findall(" ".join(certificate.unknown_names)))
    further = []
    for word in certificate.unknown_words:
        if word not in named:
            further.append(word)

    if further:
        clauses.append(f"No passage holds: {', '.join(further)}")
    if certificate.nearest and certificate.nearest[0].lacks:
        clauses.append(f"The nearest passage lacks: {', '.join(certificate.nearest[0].lacks)}")

    return ". ".join(clauses) + "."
