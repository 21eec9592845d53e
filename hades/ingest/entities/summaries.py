"""A summary of each entity: one whole sentence of the corpus that says what it is, quoted as it stands.

In this order: the opening sentence of the document that the entity titles, a sentence of the form "X is a ...", a
sentence that begins with the entity, the sentence that names it most often and does not begin with a word such as "he"
or "this". Nothing is written that no document says.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from hades.ingest.entities.linking import LinkedCorpus
from hades.ingest.readings.kept_answers import KeptAnswers, Signatures
from hades.text.arrays import Flags, Longs

MAX_CHARS = 400
MIN_CHARS = 20
_OPENING = 12  # sentences, headings and lines of a document among which its opening sentence is looked for
_PARTS = 6  # of a sentence that are joined before and after the one that names the entity
_CANDIDATES = 8  # sentences of one entity that are read
_DEFINES = re.compile(
    r"(?:\s*\([^()]{0,160}\)|\s*,[^,.;]{1,80},)?\s+"
    r"(?:(?:is|was|are|were|remains|became)\s+(?:an?|the|one)\b|(?:refers\s+to|denotes|means|stands\s+for)\s)"
)
# "He was born in London" says nothing of London to a reader who does not know of whom it speaks.
_POINTS_BACK = re.compile(
    r"(?:he|she|it|they|his|her|its|their|this|that|these|those|such|both|we|our|i|my|you|there|here)\b", re.IGNORECASE
)
_OPENS, _CLOSES, _ENDS = "\"'“‘«([", "\"'”’»)]", ".!?…。！？"
_AFTER = frozenset(_CLOSES + _ENDS)
_NO_PROSE = ("://", "{", "}", "<", ">", "|", "=", "\\")  # in markup, code and tables
_BULLETS = tuple("-*#~`$+")


def entity_summaries(linked: LinkedCorpus, kept: KeptAnswers | None = None) -> list[str]:
    """The summary of each entity, empty where no whole sentence of the corpus names it."""
    reader = _SentenceReader(linked)
    summaries = _openings(linked, reader, kept)
    sentence, subject, first = _rank_sentences(linked, np.array([not one for one in summaries], dtype=np.bool_))
    size = np.minimum(np.diff(first), _CANDIDATES)
    entity = np.flatnonzero(size)
    begin, end = first[entity], first[entity] + size[entity]

    def choose(places: list[int]) -> list[str]:
        spans = zip(begin[places].tolist(), end[places].tolist(), strict=True)
        rows = (zip(sentence[one:last].tolist(), subject[one:last].tolist(), strict=True) for one, last in spans)
        return list(map(reader.choose, rows))

    if kept is None:
        chosen = choose([*range(len(entity))])
    else:
        sizes = end - begin
        runs = np.cumsum(sizes) - sizes
        rows = np.repeat(begin - runs, sizes) + np.arange(int(sizes.sum()))
        signed = reader.sign(sentence[rows], subject[rows]).join_runs(runs)
        chosen = kept.answer("summaries", __name__, signed, choose)
    for one, summary in zip(entity.tolist(), chosen, strict=True):
        summaries[one] = summary
    return summaries


def _openings(linked: LinkedCorpus, reader: _SentenceReader, kept: KeptAnswers | None) -> list[str]:
    """The opening sentence of the first document that each entity titles: the first that is whole and prose."""
    corpus, chunk_of = linked.corpus, linked.reading.sentence_chunk
    opening = corpus.opening_chunks()
    document = np.flatnonzero((linked.title >= 0) & (opening >= 0))
    chunk = opening[document]
    begins, ends = (np.searchsorted(chunk_of, chunk, side=side) for side in ("left", "right"))

    def read(places: list[int]) -> list[str]:
        spans = zip(begins[places].tolist(), ends[places].tolist(), strict=True)
        ranges = (range(first, min(last, first + _OPENING)) for first, last in spans)
        return [next(filter(None, map(reader.read, sentences)), "") for sentences in ranges]

    if kept is None:
        answers = read([*range(len(document))])
    else:
        answers = kept.answer("openings", __name__, corpus.signatures().take(chunk), read)
    found = [""] * linked.n_entities
    for entity, answer in zip(linked.title[document].tolist(), answers, strict=True):
        found[entity] = found[entity] or answer
    return found


def _rank_sentences(linked: LinkedCorpus, wanted: Flags) -> tuple[Longs, Flags, Longs]:
    """Sentences that name each wanted entity, best first; whether the entity begins them; where each entity's begin."""
    reading = linked.reading
    mention = np.flatnonzero(wanted[linked.entity]) if len(linked.entity) else np.zeros(0, dtype=np.int64)
    sentence = reading.sentence[mention]
    length = reading.sentence_end[sentence] - reading.sentence_begin[sentence]
    fits = length <= MAX_CHARS
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
        subject_end = np.zeros(len(reading.sentence_begin), dtype=np.int64)
        opens = np.flatnonzero(reading.start == reading.sentence_begin[reading.sentence])
        subject_end[reading.sentence[opens]] = reading.end[opens]
        self._sentences = reading.sentence_chunk, reading.sentence_begin, subject_end
        self._signatures = linked.corpus.signatures
        self._chunk, self._subject_end = reading.sentence_chunk.tolist(), subject_end.tolist()
        self._begin, self._end = reading.sentence_begin.tolist(), reading.sentence_end.tolist()
        self._known: dict[int, str] = {}

    def sign(self, sentence: Longs, is_subject: Flags) -> Signatures:
        """Signatures of all that `choose` reads of candidates: the text, the place and the end of the subject."""
        chunk, begin, subject_end = (column[sentence] for column in self._sentences)
        return self._signatures().take(chunk).mix(begin * 2 + is_subject).mix(subject_end)

    def choose(self, candidates: Iterable[tuple[int, bool]]) -> str:
        """The first candidate that defines its subject, else the first whole sentence that is clear by itself."""
        best = ""
        for sentence, is_subject in candidates:
            if best and not is_subject:
                return best
            said = self.read(sentence)
            if said and is_subject and self._defines(sentence):
                return said
            if not best and (is_subject or not _POINTS_BACK.match(said)):
                best = said
        return best

    def read(self, sentence: int) -> str:
        """The sentence as it stands; empty when it is not whole.

        The reader of names also parts texts at semicolons, brackets and lines that begin with a capital, so the parts
        before and after are joined up to where a sentence begins and ends.
        """
        said = self._known.get(sentence)
        if said is None:
            chunk, first, last = self._chunk[sentence], sentence, sentence
            text = self._texts[chunk]
            begin, end = _with_opening(text, self._begin[first]), _with_closing(text, self._end[last])
            while sentence - first < _PARTS and not _begins_here(text, begin) and self._is_in(chunk, first - 1):
                first -= 1
                begin = _with_opening(text, self._begin[first])
            while last - sentence < _PARTS and not _ends_here(text, end) and self._is_in(chunk, last + 1):
                last += 1
                end = _with_closing(text, self._end[last])
            said = self._known[sentence] = whole_sentence(text, begin, end)
        return said

    def _is_in(self, chunk: int, sentence: int) -> bool:
        return 0 <= sentence < len(self._chunk) and self._chunk[sentence] == chunk

    def _defines(self, sentence: int) -> bool:
        text = self._texts[self._chunk[sentence]]
        return _DEFINES.match(text, self._subject_end[sentence]) is not None


def whole_sentence(text: str, begin: int, end: int) -> str:
    """The sentence between two places, on one line; empty when it is not whole, no prose, too short or too long."""
    said = text[begin:end]
    if not MIN_CHARS <= len(said) <= MAX_CHARS or not _begins_here(text, begin) or not _ends_here(text, end):
        return ""
    if "\n\n" in said or said.lstrip(_OPENS)[:1].islower() or said.count("(") != said.count(")"):
        return ""
    if said.count('"') % 2 or said.startswith(_BULLETS) or any(map(said.__contains__, _NO_PROSE)):
        return ""
    return " ".join(said.split())


def _with_opening(text: str, begin: int) -> int:
    while begin and text[begin - 1] in _OPENS:
        begin -= 1
    return begin


def _with_closing(text: str, end: int) -> int:
    while end < len(text) and text[end] in _AFTER:
        end += 1
    return end


def _begins_here(text: str, begin: int) -> bool:
    """Whether a sentence, a paragraph or the text ends before this place."""
    lead = text[max(0, begin - 8) : begin]
    before = lead.rstrip()
    if not before or text[begin].islower():
        return not before
    return before[-1] in _ENDS or "\n\n" in lead[len(before) :] or before.rstrip(_CLOSES)[-1:] in tuple(_ENDS)


def _ends_here(text: str, end: int) -> bool:
    """Whether the mark before this place ends a sentence; a full stop before a small letter is an abbreviation's."""
    if text[end : end + 4].lstrip()[:1].islower():
        return False
    if text[end - 1] in _ENDS:
        return True
    return text[end - 1] in _CLOSES and text[max(0, end - 6) : end].rstrip(_CLOSES)[-1:] in tuple(_ENDS)
