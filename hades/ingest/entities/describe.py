"""Summaries, domains and the log of merged names.

A summary is one whole sentence of the corpus that says what an entity is, quoted as it stands. In
this order: the opening sentence of the document that the entity titles, a sentence of the form "X
is a ...", a sentence that begins with the entity, the sentence that names it most often and does
not begin with a word such as "he" or "this". Nothing is written that no document says.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hades.ingest.entities.links import DocumentNames, LinkedCorpus
from hades.ingest.entities.meanings import NameMeanings
from hades.ingest.entities.tables import fill
from hades.text.sentences import sentences
from models.arrays import Flags, Longs, rows_of
from schemas.ids import content_key

MAX_CHARS = 400
MIN_CHARS = 20
_OPENING = 12  # first sentences of a document, one of which is its opening sentence
_CANDIDATES = 8  # sentences of one entity that are read
_DEFINES = re.compile(
    r"(?:\s*\([^()]{0,160}\)|\s*,[^,.;]{1,80},)?\s+"
    r"(?:(?:is|was|are|were|remains|became)\s+(?:an?|the|one)\b|(?:refers\s+to|denotes|means"
    r"|stands\s+for)\s)"
)
# "He was born in London" says nothing of London to a reader who does not know who "he" is.
_POINTS_BACK = re.compile(
    r"(?:he|she|it|they|his|her|its|their|this|that|these|those|such|both|we|our|i|my|you|there"
    r"|here)\b",
    re.IGNORECASE,
)
_OPENS, _CLOSES, _ENDS = "\"'“‘«([", "\"'”’»)]", ".!?…。！？"
_NO_PROSE = ("://", "{", "}", "<", ">", "|", "=", "\\")  # in markup, code and tables
_LETTER = re.compile(r"\w")
_BULLETS = tuple("-*#~`$+")


def entity_summaries(linked: LinkedCorpus) -> list[str]:
    """The summary of each entity, empty where no whole sentence of the corpus names it."""
    all_sentences = _read_sentences(linked)
    summaries = _openings(linked, all_sentences)
    needs_summary = np.array([not summary for summary in summaries], np.bool_)
    sentence, subject, first = _rank_sentences(
        linked,
        all_sentences,
        needs_summary,
    )

    for entity in np.flatnonzero(np.diff(first)).tolist():
        rows = slice(first[entity], min(first[entity + 1], first[entity] + _CANDIDATES))
        summaries[entity] = _choose(all_sentences, rows_of(sentence[rows], subject[rows]))

    return summaries


@dataclass(frozen=True)
class _Sentences:
    """The sentences of all texts, one row each, and the row of each mention."""

    texts: Sequence[str]
    chunk: Longs
    begin: Longs
    end: Longs
    of_mention: Longs
    is_subject: Flags  # mentions that begin their sentence
    subject_end: Longs  # where that mention ends, 0 for none

    def quote(self, row: int) -> str:
        """The sentence as it stands; empty when it is not whole or no prose."""
        return quote_sentence(self.texts[self.chunk[row]][self.begin[row] : self.end[row]])


def _read_sentences(linked: LinkedCorpus) -> _Sentences:
    texts = linked.corpus.texts
    reading = linked.reading
    chunk, begin, end, first = np.fromiter(_places(texts), np.int64).reshape(-1, 4).T
    width = 1 + max(map(len, texts), default=0)
    places = reading.chunk * np.int64(width) + reading.start
    of_mention = np.searchsorted(chunk * width + begin, places, "right") - 1
    is_subject = reading.start == first[of_mention]
    subject_end = np.zeros(len(chunk), np.int64)
    subject_end[of_mention[is_subject]] = reading.end[is_subject]
    return _Sentences(
        texts=texts,
        chunk=chunk,
        begin=begin,
        end=end,
        of_mention=of_mention,
        is_subject=is_subject,
        subject_end=subject_end,
    )


def _places(texts: Sequence[str]) -> Iterator[int]:
    """Text, begin, end and first word of every sentence, one number after the other."""
    for number, text in enumerate(texts):
        for begin, end in sentences(text):
            word = _LETTER.search(text, begin)
            yield from (number, begin, end, word.start() if word else begin)


def _openings(linked: LinkedCorpus, all_sentences: _Sentences) -> list[str]:
    """The opening sentence of the first document that each entity titles: the first that is whole
    and prose.
    """
    opening = linked.corpus.opening_chunks
    document = np.flatnonzero((linked.title >= 0) & (opening >= 0))
    begins = np.searchsorted(all_sentences.chunk, opening[document])
    ends = np.searchsorted(
        all_sentences.chunk,
        opening[document],
        "right",
    )
    openings = [""] * linked.n_entities

    for entity, first, last in rows_of(linked.title[document], begins, ends):
        if not openings[entity]:
            quotes = map(all_sentences.quote, range(first, min(last, first + _OPENING)))
            openings[entity] = next(filter(None, quotes), "")

    return openings


def _rank_sentences(
    linked: LinkedCorpus,
    all_sentences: _Sentences,
    needs_summary: Flags,
) -> tuple[Longs, Flags, Longs]:
    """Sentences that name each wanted entity, best first; whether the entity begins them; where
    each entity's begin.
    """
    sentence = all_sentences.of_mention
    fits = (all_sentences.end - all_sentences.begin <= MAX_CHARS)[sentence]
    mention = np.flatnonzero(needs_summary[linked.entity] & fits)
    size = max(1, len(all_sentences.chunk))
    mentioned = linked.entity[mention] * size + sentence[mention]
    codes, row, count = np.unique(
        mentioned,
        return_inverse=True,
        return_counts=True,
    )
    subject = np.zeros(len(codes), np.bool_)
    subject[row[all_sentences.is_subject[mention]]] = True
    entity = codes // size
    order = np.lexsort((codes, -count, ~subject, entity))
    first = np.searchsorted(entity[order], np.arange(linked.n_entities + 1))
    return (codes % size)[order], subject[order], first


def _choose(all_sentences: _Sentences, candidates: Iterable[tuple[int, bool]]) -> str:
    """The first candidate that defines its subject, else the first whole sentence that is clear by
    itself.
    """
    best = ""
    for row, is_subject in candidates:
        if best and not is_subject:
            return best

        sentence = all_sentences.quote(row)
        text = all_sentences.texts[all_sentences.chunk[row]]
        if sentence and is_subject and _DEFINES.match(text, all_sentences.subject_end[row]):
            return sentence
        if not best and (is_subject or not _POINTS_BACK.match(sentence)):
            best = sentence

    return best


def quote_sentence(sentence: str) -> str:
    """The sentence on one line; empty when it is no prose, too short or too long."""
    if not MIN_CHARS <= len(sentence) <= MAX_CHARS:
        return ""
    if not sentence.rstrip(_CLOSES).endswith(tuple(_ENDS)) or "\n\n" in sentence:
        return ""
    if sentence.lstrip(_OPENS)[:1].islower() or sentence.count("(") != sentence.count(")"):
        return ""

    if (
        sentence.count('"') % 2
        or sentence.startswith(_BULLETS)
        or any(map(sentence.__contains__, _NO_PROSE))
    ):
        return ""

    return " ".join(sentence.split())


def is_clear(sentence: str) -> bool:
    """Whether a sentence is whole prose that a reader understands without the one before."""
    points_back = _POINTS_BACK.match(sentence)
    is_by_authors = points_back and points_back.group().casefold() in ("we", "our")

    if points_back and not is_by_authors:
        return False

    return bool(quote_sentence(sentence)) and '"""' not in sentence


_MOST = 32  # domains of one entity; of more, those of the most documents


def entity_domains(
    linked: LinkedCorpus,
    stated_names: DocumentNames,
) -> list[tuple[str | None, tuple[str, ...]]]:
    """For each entity the first domain of most of its documents, and the domains of all of them,
    sorted.
    """
    titled = np.flatnonzero(linked.title >= 0)
    stating, stated = stated_names
    entity = np.concatenate([linked.entity, linked.title[titled], stated]).astype(np.int64)
    document = np.concatenate([linked.reading.document.astype(np.int64), titled, stating])
    n_documents = max(1, len(linked.corpus.documents))

    groups: list[Counter[tuple[str, ...]]] = []
    for _ in range(linked.n_entities):
        groups.append(Counter())

    for code in np.unique(entity * n_documents + document).tolist():  # a document counts once
        domains = linked.corpus.documents[code % n_documents].domains
        groups[code // n_documents][domains] += 1

    return [choose_domains(documents) for documents in groups]


def choose_domains(documents: Mapping[tuple[str, ...], int]) -> tuple[str | None, tuple[str, ...]]:
    """The main domain and all domains, from those that documents have together, and how many
    documents have them.
    """
    main: Counter[str] = Counter()

    every: Counter[str] = Counter()
    for names, count in documents.items():
        main.update(dict.fromkeys(names[:1], count))
        every.update(dict.fromkeys(names, count))

    if not main:
        return None, ()

    most_frequent = sorted(every, key=lambda name: (-every[name], name))[:_MOST]
    return min(main, key=lambda name: (-main[name], name)), tuple(sorted(most_frequent))


def merge_log_table(meanings: NameMeanings) -> pa.Table:
    """Every decision that let one spelling stand for another; what is said twice keeps its better
    score.
    """
    scores: dict[tuple[str, str, str], float] = {}
    for alias, canonical, rule, score in _log_rows(meanings):
        if alias != canonical:
            scores[alias, canonical, rule] = max(score, scores.get((alias, canonical, rule), score))

    rows = sorted(scores)
    merges = zip(*rows, strict=True) if rows else ((), (), ())
    columns = dict(zip(("alias", "canonical", "rule"), map(pa.array, merges), strict=True))
    columns["_key"] = pa.array([content_key("merge", *row) for row in rows])
    columns["score"] = pa.array([scores[row] for row in rows])
    return fill("merge_log", len(rows), columns)


def _log_rows(meanings: NameMeanings) -> Iterator[tuple[str, str, str, float]]:
    """(alias, canonical, rule, score) of names folded, qualifiers dropped, documents consulted."""
    resolved = meanings.resolved
    shown = meanings.shown
    names = [sense.name for sense in resolved.senses]

    for merge in meanings.merged.log:
        yield shown[merge.alias], names[resolved.of_name[merge.canonical]], merge.rule, merge.score

    for row, spellings in meanings.written.items():
        for text in spellings.keys() - {shown[row]}:
            yield text, names[resolved.of_name[row]], "spelling", 1.0

    for sense in resolved.senses:
        yield sense.stem, sense.name, "qualifier", 1.0

    for text, sense_row, rule in resolved.decisions:
        yield text, names[sense_row], rule, 1.0
