"""Summaries, domains, merge log."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import pyarrow as pa

from hades.ingest.entities.links import DocumentNames, LinkedCorpus
from hades.ingest.entities.meanings import NameMeanings
from hades.ingest.entities.tables import fill
from hades.text.words import Flags, Longs
from schemas.ids import content_key

# A summary of each entity: one whole sentence of the corpus that says what it is, quoted as it stands. In this
# order: the opening sentence of the document that the entity titles, a sentence of the form "X is a ...", a
# sentence that begins with the entity, the sentence that names it most often and does not begin with a word such as
# "he" or "this". Nothing is written that no document says.


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


def entity_summaries(linked: LinkedCorpus) -> list[str]:
    """The summary of each entity, empty where no whole sentence of the corpus names it."""
    reader = _SentenceReader(linked)
    summaries = _openings(linked, reader)
    sentence, subject, first = _rank_sentences(linked, np.array([not one for one in summaries], dtype=np.bool_))
    for one in np.flatnonzero(np.diff(first)).tolist():
        rows = slice(first[one], min(first[one + 1], first[one] + _CANDIDATES))
        summaries[one] = reader.choose(zip(sentence[rows].tolist(), subject[rows].tolist(), strict=True))
    return summaries


def _openings(linked: LinkedCorpus, reader: _SentenceReader) -> list[str]:
    """The opening sentence of the first document that each entity titles: the first that is whole and prose."""
    chunk_of = linked.reading.sentence_chunk
    opening = linked.corpus.opening_chunks
    document = np.flatnonzero((linked.title >= 0) & (opening >= 0))
    begins, ends = (np.searchsorted(chunk_of, opening[document], side=side).tolist() for side in ("left", "right"))
    found = [""] * linked.n_entities
    for entity, first, last in zip(linked.title[document].tolist(), begins, ends, strict=True):
        if not found[entity]:
            sentences = range(first, min(last, first + _OPENING))
            found[entity] = next(filter(None, map(reader.read, sentences)), "")
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
        self._chunk, self._subject_end = reading.sentence_chunk.tolist(), subject_end.tolist()
        self._begin, self._end = reading.sentence_begin.tolist(), reading.sentence_end.tolist()
        self._known: dict[int, str] = {}

    def choose(self, candidates: Iterable[tuple[int, bool]]) -> str:
        """The first candidate that defines its subject, else the first whole sentence that is clear by itself."""
        best = ""
        for sentence, is_subject in candidates:
            if best and not is_subject:
                return best
            said = self.read(sentence)
            text = self._texts[self._chunk[sentence]]
            if said and is_subject and _DEFINES.match(text, self._subject_end[sentence]):
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
            begins, ends = _begins_here(text, begin), _ends_here(text, end)
            while not begins and sentence - first < _PARTS and self._is_in(chunk, first - 1):
                first -= 1
                begin = _with_opening(text, self._begin[first])
                begins = _begins_here(text, begin)
            while not ends and last - sentence < _PARTS and self._is_in(chunk, last + 1):
                last += 1
                end = _with_closing(text, self._end[last])
                ends = _ends_here(text, end)
            said = self._known[sentence] = quote_sentence(text[begin:end]) if begins and ends else ""
        return said

    def _is_in(self, chunk: int, sentence: int) -> bool:
        return 0 <= sentence < len(self._chunk) and self._chunk[sentence] == chunk


def quote_sentence(said: str) -> str:
    """The sentence on one line; empty when it is no prose, too short or too long."""
    if not MIN_CHARS <= len(said) <= MAX_CHARS:
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
    if not begin:
        return True
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


# Domains of entities: those of the documents that mention them or state them beside their text.


_MOST = 32  # domains of one entity; of more, those of the most documents


def entity_domains(linked: LinkedCorpus, given: DocumentNames) -> list[tuple[str | None, tuple[str, ...]]]:
    """For each entity the first domain of most of its documents, and the domains of all of them, sorted."""
    titled = np.flatnonzero(linked.title >= 0)
    entity = np.concatenate([linked.entity, linked.title[titled], given[1]]).astype(np.int64)
    document = np.concatenate([linked.reading.document.astype(np.int64), titled, given[0]])
    n_documents = max(1, len(linked.corpus.documents))
    groups: list[Counter[tuple[str, ...]]] = [Counter() for _ in range(linked.n_entities)]
    for code in np.unique(entity * n_documents + document).tolist():  # a document counts once
        groups[code // n_documents][linked.corpus.documents[code % n_documents].domains] += 1
    return [choose_domains(one) for one in groups]


def choose_domains(documents: Mapping[tuple[str, ...], int]) -> tuple[str | None, tuple[str, ...]]:
    """The main domain and all domains, from those that documents have together, and how many documents have them."""
    main: Counter[str] = Counter()
    every: Counter[str] = Counter()
    for names, count in documents.items():
        main.update(dict.fromkeys(names[:1], count))
        every.update(dict.fromkeys(names, count))
    if not main:
        return None, ()
    kept = sorted(every, key=lambda name: (-every[name], name))[:_MOST]
    return min(main, key=lambda name: (-main[name], name)), tuple(sorted(kept))


# The log of names folded into others.


_SAID = ("alias", "canonical", "rule")


def merge_log_table(meanings: NameMeanings) -> pa.Table:
    """Every decision that let one spelling stand for another; what is said twice keeps its better score."""
    scores: dict[tuple[str, str, str], float] = {}
    for alias, canonical, rule, score in _log_rows(meanings):
        if alias != canonical:
            scores[alias, canonical, rule] = max(score, scores.get((alias, canonical, rule), score))
    rows = sorted(scores)
    columns = {name: pa.array([row[i] for row in rows], pa.string()) for i, name in enumerate(_SAID)}
    columns["_key"] = pa.array([content_key("merge", *row) for row in rows], pa.string())
    columns["score"] = pa.array([scores[row] for row in rows], pa.float64())
    return fill("merge_log", len(rows), columns)


def _log_rows(meanings: NameMeanings) -> Iterator[tuple[str, str, str, float]]:
    """(alias, canonical, rule, score) of names folded, qualifiers dropped, documents consulted."""
    resolved, shown = meanings.resolved, meanings.shown
    names = [sense.name for sense in resolved.senses]
    for one in meanings.merged.log:
        yield shown[one.alias], names[resolved.of_name[one.canonical]], one.rule, one.score
    for row, spellings in meanings.written.items():
        for text in spellings.keys() - {shown[row]}:
            yield text, names[resolved.of_name[row]], "spelling", 1.0
    for sense in resolved.senses:
        yield sense.stem, sense.name, "qualifier", 1.0
    for text, meant, rule in resolved.decisions:
        yield text, names[meant], rule, 1.0
