"""Summaries, domains, merge log."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hades.ingest.entities.aliases import Alias
from hades.ingest.entities.known_names import Names
from hades.ingest.entities.links import DocumentNames, LinkedCorpus
from hades.ingest.entities.previous_run import OWNER
from hades.ingest.entities.resolve import SenseResolution
from hades.ingest.entities.tables import fill
from hades.ingest.entities.text_readings import find_ranges
from hades.text.words import Flags, Hashes, Longs, distinct
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
_FEW = 64  # sentences to an entity
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
    size = np.minimum(np.diff(first), _CANDIDATES)
    entity = np.flatnonzero(size)
    rows = find_ranges(first[entity], size[entity])
    candidates = zip(sentence[rows].tolist(), subject[rows].tolist(), strict=True)
    for one, count in zip(entity.tolist(), size[entity].tolist(), strict=True):
        summaries[one] = reader.choose(list(islice(candidates, count)))
    return summaries


def _openings(linked: LinkedCorpus, reader: _SentenceReader) -> list[str]:
    """The opening sentence of the first document that each entity titles: the first that is whole and prose."""
    chunk_of = linked.reading.sentence_chunk
    opening = linked.corpus.opening_chunks()
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
        columns = (reading.sentence_chunk, reading.sentence_begin, reading.sentence_end, subject_end)
        if linked.n_entities * _FEW > len(subject_end):  # lists are read faster, but take time to make
            columns = tuple(column.tolist() for column in columns)
        self._chunk, self._begin, self._end, self._subject_end = columns
        self._known: dict[int, str] = {}

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

    def _defines(self, sentence: int) -> bool:
        text = self._texts[self._chunk[sentence]]
        return _DEFINES.match(text, self._subject_end[sentence]) is not None


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


@dataclass(frozen=True)
class EntityDomains:
    """The first domain of most of its documents, and the domains of all of them, sorted."""

    main: str | None
    every: tuple[str, ...]


def entity_domains(linked: LinkedCorpus, given: DocumentNames) -> list[EntityDomains]:
    """For each entity the domains of its documents; a document counts once, however often it names the entity."""
    documents = linked.corpus.documents
    n_documents = max(1, len(documents))
    titled = np.flatnonzero(linked.title >= 0)
    entity = np.concatenate([linked.entity, linked.title[titled], given.entity]).astype(np.int64)
    document = np.concatenate([linked.reading.document.astype(np.int64), titled, given.document])
    pairs = np.unique(entity * n_documents + document)
    used = distinct(document)
    held = documents.domains(used)
    labels = sorted(set(held))
    code = {one: place for place, one in enumerate(labels)}
    label_of = np.zeros(n_documents, dtype=np.int64)
    label_of[used] = [code[one] for one in held]
    grouped, counts = (
        np.unique(pairs // n_documents * len(labels) + label_of[pairs % n_documents], return_counts=True)
        if len(pairs)
        else (pairs, pairs)
    )
    owner, label = np.divmod(grouped, max(1, len(labels)))
    return join_domains(labels, owner, label, counts, linked.n_entities)


def join_domains(
    labels: Sequence[tuple[str, ...]], owner: Longs, label: Longs, counts: Longs, n_owners: int
) -> list[EntityDomains]:
    """For each owner the answer of `choose_domains`: `counts` of its documents have the domains of a label.

    Rows are in order of owners. Sets of domains are bits of few numbers, so
    that each set is made once, however many owners have it.
    """
    found = [EntityDomains(None, ())] * n_owners
    present, owner = np.unique(owner, return_inverse=True)
    if not len(present):
        return found
    names = sorted({name for one in labels for name in one})
    place = {name: number for number, name in enumerate(names)}
    begins = np.searchsorted(owner, np.arange(len(present)))
    union = np.bitwise_or.reduceat(_as_bits(labels, place)[label], begins, axis=0)
    first = np.array([place[one[0]] if one else len(names) for one in labels], dtype=np.int64)
    main = _choose_main(owner, first[label], counts, len(names))
    example, of_owner = _number_rows([main.astype(np.uint64), *union.T])
    small = (np.bitwise_count(union[example]).sum(axis=1) <= _MOST).tolist()
    known = [
        EntityDomains(names[one] if one < len(names) else None, _names_of(bits, names)) if is_small else None
        for one, bits, is_small in zip(main[example].tolist(), union[example].tolist(), small, strict=True)
    ]
    ends = np.append(begins[1:], len(owner))
    for number, (entity, row) in enumerate(zip(present.tolist(), of_owner.tolist(), strict=True)):
        held = range(begins[number], ends[number]) if known[row] is None else ()
        found[entity] = known[row] or choose_domains([(labels[label[one]], int(counts[one])) for one in held])
    return found


def _as_bits(labels: Sequence[tuple[str, ...]], place: dict[str, int]) -> Hashes:
    """One row a label: the bits of its domains in numbers of 64 bits."""
    bits = np.zeros((len(labels), max(1, -(-len(place) // 64))), dtype=np.uint64)
    for row, one in enumerate(labels):
        for name in one:
            word, bit = divmod(place[name], 64)
            bits[row, word] |= np.uint64(1 << bit)
    return bits


def _choose_main(owner: Longs, first: Longs, counts: Longs, nothing: int) -> Longs:
    """The first domain of most documents of each owner, of several the first by name; `nothing` where none has any."""
    codes, which = np.unique(owner * (nothing + 1) + first, return_inverse=True)
    total = np.zeros(len(codes), dtype=np.int64)
    np.add.at(total, which, counts)
    who, domain = np.divmod(codes, nothing + 1)
    order = np.lexsort((domain, -total, domain == nothing, who))
    chosen: Longs = domain[order[np.flatnonzero(np.diff(who[order], prepend=-1))]]
    return chosen


def _number_rows(columns: Sequence[Hashes]) -> tuple[Longs, Longs]:
    """Where each different row is met first, and the number of each row among them."""
    which = np.zeros(len(columns[0]), dtype=np.int64)
    example = which
    for column in columns:
        known, value = np.unique(column, return_inverse=True)
        _, example, which = np.unique(which * len(known) + value, return_index=True, return_inverse=True)
    return example, which


def _names_of(bits: Sequence[int], names: Sequence[str]) -> tuple[str, ...]:
    found: list[str] = []
    for word, value in enumerate(bits):
        while value:
            lowest = value & -value
            found.append(names[64 * word + lowest.bit_length() - 1])
            value ^= lowest
    return tuple(found)


def choose_domains(groups: Sequence[tuple[tuple[str, ...], int]]) -> EntityDomains:
    """The domains of an entity from those that its documents have together, and how many documents have them."""
    main: dict[str, int] = {}
    every: dict[str, int] = {}
    for names, count in groups:
        if names:
            main[names[0]] = main.get(names[0], 0) + count
        for name in dict.fromkeys(names):
            every[name] = every.get(name, 0) + count
    if not main:
        return EntityDomains(None, ())
    kept = every if len(every) <= _MOST else sorted(every, key=lambda name: (-every[name], name))[:_MOST]
    return EntityDomains(min(main, key=lambda name: (-main[name], name)), tuple(sorted(kept)))


# The log of names folded into others. Each row can be undone alone: put its (alias, canonical) into `kept_apart`.


LogRow = tuple[int, str, str, str, float]  # a name that it hangs on (identity), alias, canonical, rule, score
_SAID = ("alias", "canonical", "rule")


def log_rows(
    names: Names,
    owners: Sequence[int],
    folded: Sequence[Alias],
    resolved: SenseResolution,
    shown: Sequence[str],
    written: Mapping[int, Mapping[str, int]],
) -> Iterator[LogRow]:
    """Every decision that let one spelling stand for another: names folded, qualifiers dropped, documents consulted.

    `owners` are the identities of the names that the senses hang on.
    """
    senses, identity = resolved.senses, names.identity.tolist()
    for one in folded:
        yield identity[one.alias], shown[one.alias], senses[resolved.of_name[one.canonical]].name, one.rule, one.score
    for row, spellings in written.items():
        name = senses[resolved.of_name[row]].name
        for text in spellings:
            if text != shown[row]:
                yield identity[row], text, name, "spelling", 1.0
    for number, sense in enumerate(senses):
        if sense.stem != sense.name:
            yield owners[number], sense.stem, sense.name, "qualifier", 1.0
    for text, meant, rule in resolved.decisions:
        yield owners[meant], text, senses[meant].name, rule, 1.0


def log_table(rows: Iterable[LogRow]) -> pa.Table:
    """The rows with their keys; one that several names lead to stands there several times."""
    listed = [row for row in rows if row[1] != row[2]]
    return pa.table(
        {
            OWNER: pa.array([row[0] for row in listed], pa.uint64()),
            "_key": pa.array([content_key("merge", *row[1:4]) for row in listed], pa.string()),
            "alias": pa.array([row[1] for row in listed], pa.string()),
            "canonical": pa.array([row[2] for row in listed], pa.string()),
            "rule": pa.array([row[3] for row in listed], pa.string()),
            "score": pa.array([row[4] for row in listed], pa.float64()),
        }
    )


def merge_log_table(logged: pa.Table) -> pa.Table:
    """What was logged as a table of the catalogue, sorted; what is said twice keeps its better score."""
    order = [*((name, "ascending") for name in _SAID), ("score", "descending")]
    rows = logged.take(pc.sort_indices(logged, sort_keys=order)).combine_chunks()
    keys = rows.column("_key").combine_chunks()
    fresh = np.ones(len(keys), dtype=np.bool_)
    if len(keys) > 1:
        fresh[1:] = pc.not_equal(keys.slice(1), keys.slice(0, len(keys) - 1)).to_numpy(zero_copy_only=False)
    rows = rows.filter(pa.array(fresh))
    columns = {name: rows.column(name).combine_chunks() for name in ("_key", *_SAID, "score")}
    return fill("merge_log", rows.num_rows, columns)
