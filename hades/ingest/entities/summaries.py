"""A summary of each entity: one whole sentence of the corpus that says what it is, quoted as it stands.

In this order: the opening sentence of the document that the entity titles, a sentence of the form "X is a ...", a
sentence that begins with the entity, the sentence that names it most often. Nothing is written that no document says.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise

import numpy as np

from hades.ingest.entities.linking import LinkedCorpus
from hades.text.arrays import Flags, Longs
from hades.text.sentences import each_sentence

MAX_CHARS = 400
MIN_CHARS = 20
_OPENING_CHARS = 4 * MAX_CHARS  # of a document, in which its opening sentence is looked for
_CANDIDATES = 8  # sentences of one entity that are read
_DEFINES = re.compile(
    r"(?:\s*\([^()]{0,160}\)|\s*,[^,.;]{1,80},)?\s+"
    r"(?:(?:is|was|are|were|remains|became)\s+(?:an?|the|one)\b|(?:refers\s+to|denotes|means|stands\s+for)\s)"
)
_OPENS, _CLOSES, _ENDS = "\"'“‘«([", "\"'”’»)]", ".!?…。！？"
_NO_PROSE = ("://", "{", "}", "<", ">", "|", "=", "\\")  # in markup, code and tables
_BULLETS = tuple("-*#~`$+")


def entity_summaries(linked: LinkedCorpus) -> list[str]:
    """The summary of each entity, empty where no whole sentence of the corpus names it."""
    summaries = _openings(linked)
    sentence, subject, first = _rank_sentences(linked, np.array([not one for one in summaries], dtype=np.bool_))
    reader = _SentenceReader(linked)
    chosen, opens = sentence.tolist(), subject.tolist()
    for entity, (begin, end) in enumerate(pairwise(first.tolist())):
        if end - begin == 1:
            summaries[entity] = reader.read(chosen[begin])
        elif end > begin:
            last = min(end, begin + _CANDIDATES)
            summaries[entity] = reader.choose(zip(chosen[begin:last], opens[begin:last], strict=True))
    return summaries


def _openings(linked: LinkedCorpus) -> list[str]:
    """The opening sentence of the first document that each entity titles."""
    corpus = linked.corpus
    found = [""] * linked.n_entities
    chunk = np.searchsorted(corpus.document_of, np.arange(len(corpus.documents))).tolist()
    for document, entity in enumerate(linked.title.tolist()):
        here = chunk[document]
        if entity < 0 or found[entity] or here >= len(corpus.texts) or corpus.document_of[here] != document:
            continue
        found[entity] = opening_sentence(corpus.texts[here])
    return found


def opening_sentence(text: str) -> str:
    """The first whole sentence of a text that is prose; headings, list items and code are passed over."""
    head = text[:_OPENING_CHARS]
    for begin, end in each_sentence(head):
        if said := "" if end == len(head) < len(text) else _whole(head[begin:end]):
            return said
    return ""


def _rank_sentences(linked: LinkedCorpus, wanted: Flags) -> tuple[Longs, Flags, Longs]:
    """Sentences that name each wanted entity, best first; whether the entity begins them; where each entity's begin."""
    reading = linked.reading
    mention = np.flatnonzero(wanted[linked.entity]) if len(linked.entity) else np.zeros(0, dtype=np.int64)
    sentence = reading.sentence[mention]
    length = reading.sentence_end[sentence] - reading.sentence_begin[sentence]
    fits = (length >= MIN_CHARS) & (length <= MAX_CHARS)
    mention, sentence = mention[fits], sentence[fits]
    size = max(1, len(reading.sentence_begin))
    codes, row = np.unique(linked.entity[mention] * size + sentence, return_inverse=True)
    count = np.bincount(row, minlength=len(codes))
    subject = np.zeros(len(codes), dtype=np.bool_)
    subject[row[reading.start[mention] == reading.sentence_begin[sentence]]] = True
    entity = codes // size
    order = np.lexsort((codes, -count, ~subject, entity))
    first = np.searchsorted(entity[order], np.arange(linked.n_entities + 1))
    return (codes % size)[order], subject[order], first


class _SentenceReader:
    """Sentences of the corpus as text, each read once."""

    def __init__(self, linked: LinkedCorpus) -> None:
        reading = linked.reading
        self._texts = linked.corpus.texts
        chunk, subject_end = np.zeros((2, len(reading.sentence_begin)), dtype=np.int64)
        chunk[reading.sentence] = reading.chunk
        opens = np.flatnonzero(reading.start == reading.sentence_begin[reading.sentence])
        subject_end[reading.sentence[opens]] = reading.end[opens]
        self._chunk, self._subject_end = chunk.tolist(), subject_end.tolist()
        self._begin, self._end = reading.sentence_begin.tolist(), reading.sentence_end.tolist()
        self._known: dict[int, str] = {}

    def choose(self, candidates: Iterable[tuple[int, bool]]) -> str:
        """The first candidate that defines its subject, else the first that is a whole sentence."""
        best = ""
        for sentence, is_subject in candidates:
            if best and not is_subject:
                return best
            said = self.read(sentence)
            if said and is_subject and self._defines(sentence):
                return said
            best = best or said
        return best

    def read(self, sentence: int) -> str:
        """The sentence as it stands; empty when it is not whole."""
        if sentence not in self._known:
            text = self._texts[self._chunk[sentence]]
            begin, end = self._begin[sentence], self._end[sentence]
            while begin and text[begin - 1] in _OPENS:
                begin -= 1
            while end < len(text) and text[end] in _CLOSES + _ENDS:
                end += 1
            self._known[sentence] = _whole(text[begin:end])
        return self._known[sentence]

    def _defines(self, sentence: int) -> bool:
        text = self._texts[self._chunk[sentence]]
        return _DEFINES.match(text, self._subject_end[sentence]) is not None


def _whole(text: str) -> str:
    """The sentence on one line; empty when it is not prose, not closed, too short or too long."""
    said = " ".join(text.split())
    if not MIN_CHARS <= len(said) <= MAX_CHARS or said.startswith(_BULLETS) or any(map(said.__contains__, _NO_PROSE)):
        return ""
    is_closed = said[-1] in _ENDS or said.rstrip(_CLOSES)[-1:] in tuple(_ENDS)
    begins = not said.lstrip(_OPENS)[:1].islower()
    return said if is_closed and begins and said.count("(") == said.count(")") else ""
