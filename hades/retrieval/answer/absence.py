"""A certificate of absence: what a turn that abstains searched, what came nearest, and what found nothing."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from hades.ports.graph import KINDS, DocumentFilter, Kind
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
_CHANNELS = {LEXICAL: "words", VECTOR: "vectors", "ppr": "the graph", "code": "code", "memory": "memory"}


def certify_absence(
    view: MeteredView,
    question: Question,
    read: Sequence[FoundPassage | CitedPassage],
    shown: Sequence[CitedPassage],
    memory: bool,
) -> AbsenceCertificate:
    """What was searched for a question that nothing answers; `read` are the passages that were ranked."""
    with view.turn.stage("absence") as stage:
        found = Counter(channel for one in read for channel in one.tiers)
        searched = [LEXICAL, *([VECTOR] if question.vector is not None else []), *(["memory"] if memory else [])]
        named = view.match_names(question.text)
        spans = list(zip(named.starts.tolist(), named.ends.tolist(), strict=True))
        spoken_words = dict.fromkeys(_WORD.findall(question.text))
        asked = [one for one in spoken_words if one.lower() not in FUNCTION_WORDS and content_words(one)]
        unknown = [one for one in asked if not view.holds_word(one)]
        spoken = time_asked(question.text, question.mask.as_of)
        scope = _count_passages(view)
        certificate = AbsenceCertificate(
            channels={name: found[name] for name in dict.fromkeys([*searched, *found])},
            passages=scope,
            read=len(read),
            names=tuple(dict.fromkeys(question.text[start:end] for start, end in spans)),
            unknown_names=tuple(_unknown_names(question.text, spans)),
            unknown_words=() if view.turn.expired() else tuple(unknown),
            filters=written_filters(view.only),
            times=() if spoken is None else tuple("" if one is None else iso(one) for one in spoken),
            nearest=tuple(_misses(asked, shown[:NEAREST])),
        )
        stage.taken, stage.given = len(asked), len(unknown)
    return certificate.model_copy(update={"sentence": _sentence(certificate)})


def written_filters(only: DocumentFilter | None) -> dict[str, Any]:
    """The filters of a question by name, as JSON; those that are not given are left out."""
    given = {} if only is None else {**asdict(only), "within": written_filters(only.within)}
    texts = {name: iso(value) if name in ("since", "until") and value else value for name, value in given.items()}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in texts.items() if value}


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


def _unknown_names(text: str, spans: Sequence[tuple[int, int]]) -> Iterator[str]:
    """Words with capitals, the first word and "I" aside, that no entity is called."""
    for run in _NAME.finditer(text):
        begin = run.start() if run.start() else run.start() + len(run[0].split()[0])
        name = text[begin : run.end()].strip()
        if content_words(name) and not any(start < run.end() and begin < end for start, end in spans):
            yield name


def _misses(asked: Sequence[str], shown: Iterable[CitedPassage]) -> Iterator[NearestMiss]:
    """The nearest passages, each with the words of the question that it does not hold."""
    stems = {one: {base(stem(word)) for word in content_words(one)} for one in asked}
    for one in shown:
        held = set(map(base, passage_body(one.title, one.text).content_stems))
        lacks = tuple(word for word in asked if not stems[word] <= held)
        where = f"{one.path}:{one.lines[0]}" if one.path and one.lines else ", ".join(one.headings)
        yield NearestMiss(id=one.id, document=one.document, title=one.title, where=where, score=one.score, lacks=lacks)


def _sentence(told: AbsenceCertificate) -> str:
    """The certificate in words."""
    by = [f"{_CHANNELS.get(name, name)} ({count})" for name, count in told.channels.items()]
    size = "The passages" if told.passages is None else f"{told.passages:,} passages"
    said = [f"{size} were searched and {told.read} of them read, found by {', '.join(by)}"]
    asked = {name: value for name, value in told.filters.items() if name != "within"}
    if asked:
        limits = (f"{name} {value if isinstance(value, str) else ', '.join(value)}" for name, value in asked.items())
        said.append(f"The question was limited to {'; '.join(limits)}")
    if told.unknown_words:
        said.append(f"No passage holds: {', '.join(told.unknown_words)}")
    if told.unknown_names:
        said.append(f"Nothing is called: {', '.join(told.unknown_names)}")
    if told.nearest and told.nearest[0].lacks:
        said.append(f"The nearest passage lacks: {', '.join(told.nearest[0].lacks)}")
    return ". ".join(said) + "."
