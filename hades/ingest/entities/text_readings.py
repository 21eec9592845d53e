"""What each text proposes, kept between runs."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
from numpy.typing import NDArray

from hades.ingest.entities.candidates import N_RULES, Mark, candidate_spans, find_definitions
from hades.ingest.entities.corpus import Corpus
from hades.ingest.workers import WorkerPool, from_bytes, read_file, replace_file, to_bytes, write_file
from hades.text.sentences import fragments, sentence_starts
from hades.text.words import Bits, Flags, Hashes, Ints, Longs, Words, encode, running, span_hashes, tokenize

# What texts say by themselves: their words, where sentences begin, the names and acronyms that they propose.
# Nothing here looks beyond one text, so the reading of a text is made once and kept (`kept_readings.py`), in any
# process and beside any other texts: readings of some texts are joined, taken apart and put in another order as
# plain arrays.


OPENS, PIECE = 32, 64  # bits of `shape` beside those of `hades/text/words.py`
LONG_FORM, ACRONYM = N_RULES, N_RULES + 1  # rules beside those of `candidate_spans`


@dataclass(frozen=True)
class TextReadings:
    """Some texts in order: one row a word, one row a proposed name; `word`s and `first`s count over all the texts.

    Proposals stand in the order of the rules that found them, those of one rule in order of place. Long forms that
    texts explain and the acronyms of them are as many, in the same order.
    """

    n_words: Ints  # of each text
    start: Ints  # [start, end) of each word in characters of its text
    end: Ints
    word: Ints  # a row of `vocabulary`
    shape: Bits  # how it is written; OPENS: it opens a sentence; PIECE: alone it is only part of a name
    vocabulary: Hashes  # sorted, each word of the texts once
    folded: pa.StringArray  # beside `vocabulary`
    first: Ints  # of each proposed name the row of its first word
    size: Bits  # in words
    mark: Bits
    rule: Bits  # of `candidate_spans`; LONG_FORM and ACRONYM of what texts explain
    identity: Hashes

    def __len__(self) -> int:
        return len(self.n_words)

    def words(self) -> Words:
        """The words with the text that each stands in."""
        text = np.repeat(np.arange(len(self.n_words), dtype=np.int32), self.n_words)
        folded = tuple(self.folded.to_pylist())
        return Words(text, self.start, self.end, self.word, self.shape, self.vocabulary, folded)

    def opens(self) -> Flags:
        """Which words open a sentence."""
        opens: Flags = (self.shape & OPENS) != 0
        return opens

    def pieces(self) -> Flags:
        """Which words, taken alone, are only a piece of a longer name."""
        pieces: Flags = (self.shape & PIECE) != 0
        return pieces


def read_texts(texts: Sequence[str]) -> TextReadings:
    """The reading of each text; the same for a text whatever stands beside it."""
    tokens = tokenize(texts)
    starts = sentence_starts(tokens)
    shape = tokens.shape | np.where(starts, OPENS, 0).astype(np.uint8)
    shape |= np.where(fragments(tokens, starts), PIECE, 0).astype(np.uint8)
    spans, definitions = candidate_spans(tokens, starts), find_definitions(tokens, starts)
    n_explained = len(definitions.short)
    first = np.concatenate([spans.first, definitions.first, definitions.short])
    last = np.concatenate([spans.last, definitions.last, definitions.short + 1])
    explained = np.full(2 * n_explained, int(Mark.NAME | Mark.DEFINED))
    rules = np.repeat(np.array([LONG_FORM, ACRONYM]), n_explained)
    return TextReadings(
        np.bincount(tokens.text, minlength=len(texts)).astype(np.int32),
        tokens.start,
        tokens.end,
        tokens.word,
        shape,
        tokens.vocabulary,
        pa.array(tokens.folded, pa.string()),
        first.astype(np.int32),
        (last - first).astype(np.uint8),
        np.concatenate([spans.mark, explained]).astype(np.uint8),
        np.concatenate([spans.rule, rules]).astype(np.uint8),
        span_hashes(tokens, first, last),
    )


def join_readings(parts: Sequence[TextReadings]) -> TextReadings:
    """The readings of the texts of all parts, in their order."""
    if len(parts) == 1:
        return parts[0]
    sizes = [len(part.vocabulary) for part in parts]
    which, vocabulary = encode(np.concatenate([part.vocabulary for part in parts]))
    example = np.zeros(len(vocabulary), dtype=np.int64)
    example[which] = np.arange(len(which))
    numbers = np.split(which, np.cumsum(sizes)[:-1])
    offsets = np.cumsum([0, *(len(part.word) for part in parts)])
    rule = np.concatenate([part.rule for part in parts])
    order = np.argsort(rule, kind="stable")
    first = np.concatenate([part.first + np.int32(offset) for part, offset in zip(parts, offsets, strict=False)])
    return TextReadings(
        np.concatenate([part.n_words for part in parts]),
        np.concatenate([part.start for part in parts]),
        np.concatenate([part.end for part in parts]),
        np.concatenate([number[part.word] for part, number in zip(parts, numbers, strict=True)]),
        np.concatenate([part.shape for part in parts]),
        vocabulary,
        pa.concat_arrays([part.folded for part in parts]).take(pa.array(example)),
        first[order],
        np.concatenate([part.size for part in parts])[order],
        np.concatenate([part.mark for part in parts])[order],
        rule[order],
        np.concatenate([part.identity for part in parts])[order],
    )


def take_texts(read: TextReadings, texts: Longs) -> TextReadings:
    """The readings of some of the texts, in the order given, one text perhaps twice; words of no other text stay."""
    begins = np.cumsum(read.n_words) - read.n_words
    n_words = read.n_words[texts]
    rows = find_ranges(begins[texts], n_words)
    is_used = np.zeros(len(read.vocabulary), dtype=np.bool_)
    is_used[read.word[rows]] = True
    used, word = np.flatnonzero(is_used), running(is_used)[read.word[rows]]
    text_of = np.repeat(np.arange(len(read)), read.n_words)[read.first]
    by_text = np.argsort(text_of, kind="stable")
    counts = np.bincount(text_of, minlength=len(read))
    spans = by_text[find_ranges((np.cumsum(counts) - counts)[texts], counts[texts])]
    moved = np.repeat(np.cumsum(n_words) - n_words - begins[texts], counts[texts])
    order = np.argsort(read.rule[spans], kind="stable")
    spans = spans[order]
    return TextReadings(
        n_words,
        read.start[rows],
        read.end[rows],
        word,
        read.shape[rows],
        read.vocabulary[used],
        read.folded.take(pa.array(used)),
        (read.first[spans] + moved[order]).astype(np.int32),
        read.size[spans],
        read.mark[spans],
        read.rule[spans],
        read.identity[spans],
    )


def find_ranges(begins: NDArray[np.integer], sizes: NDArray[np.integer]) -> Longs:
    """The numbers of all ranges, one after the other."""
    ends = np.cumsum(sizes)
    total = int(ends[-1]) if len(ends) else 0
    return np.repeat(begins.astype(np.int64) - (ends - sizes), sizes) + np.arange(total)


def pack_readings(read: TextReadings) -> pa.Table:
    """The columns as one row of lists, since they differ in length."""
    columns = {field.name: _as_array(getattr(read, field.name)) for field in fields(read)}
    lists = [pa.LargeListArray.from_arrays(pa.array([0, len(one)], pa.int64()), one) for one in columns.values()]
    return pa.Table.from_arrays(lists, names=list(columns))


def unpack_readings(table: pa.Table) -> TextReadings:
    """What `pack_readings` packed, without a copy."""
    columns = {field.name: table.column(field.name).chunk(0).values for field in fields(TextReadings)}
    folded = columns.pop("folded")
    return TextReadings(**{name: one.to_numpy() for name, one in columns.items()}, folded=folded)


def read_bytes(texts: bytes) -> bytes:
    """`read_texts` as a worker process calls it: a table with the column `text`, and packed readings."""
    return to_bytes(pack_readings(read_texts(from_bytes(texts).column("text").to_pylist())))


def _as_array(values: pa.Array | NDArray[np.generic]) -> pa.Array:
    return values if isinstance(values, pa.Array) else pa.array(values)


# Readings of texts, kept in the scratch folder in segments: runs of documents in the order of their keys. A reading
# is known by the digest of its text, so what is kept belongs to no state of the store. A segment that is absent,
# damaged or made by other code costs the time to read its texts again, never a result. Segments hold the words of
# their texts: what no document says any more is taken out when the corpus is next read.


# The modules that decide what a reading holds: what another version of them read is read again.
Digests = NDArray[np.bytes_]  # 32 hexadecimal digits each
_STATE = "state.json"
_DIGITS = 32


@dataclass(frozen=True)
class Segment:
    """The readings of the texts of documents from one key on, with the digest of each text; "" is before all keys."""

    begin: str
    digests: Digests
    readings: TextReadings

    def name(self) -> str:
        """The file of a segment: the same digests are the same readings."""
        return f"{blake2b(self.digests.tobytes(), digest_size=16).hexdigest()}.arrow"


class KeptReadings:
    """Segments below one folder, one file each, in the order of their first keys."""

    def __init__(self, scratch: Path) -> None:
        self._folder = scratch / "text-readings"
        self._files: dict[str, int] = {}  # with their checksums

    def load(self) -> list[Segment]:
        """The segments that can be trusted, mapped into memory; the first begins before all keys."""
        try:
            state = orjson.loads((self._folder / _STATE).read_bytes())
            rows = list(state["segments"]) if state["readers"] == readers_digest() else []
        except (OSError, ValueError, KeyError, TypeError):
            rows = []
        found = [segment for row in rows if (segment := self._load_segment(row)) is not None]
        if found:
            found[0] = Segment("", found[0].digests, found[0].readings)
        return found

    def keep(self, segments: list[Segment]) -> None:
        """Keep these segments and nothing else; where they cannot be written, keep none."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._write(segments)
        except OSError:  # a second derivation of the same home removes files that it does not know
            self._remove_others(set())

    def _write(self, segments: list[Segment]) -> None:
        """Files that hold a segment already are left alone."""
        rows: list[tuple[str, str, int]] = []
        for one in segments:
            file = one.name()
            if file not in self._files:
                table = pack_readings(one.readings)
                digests = pa.LargeListArray.from_arrays(
                    pa.array([0, len(one.digests)], pa.int64()), pa.array(one.digests)
                )
                self._files[file] = write_file(self._folder / file, table.append_column("digests", digests))
            rows.append((one.begin, file, self._files[file]))
        replace_file(self._folder / _STATE, orjson.dumps({"readers": readers_digest(), "segments": rows}))
        self._remove_others({_STATE, *(row[1] for row in rows)})

    def _load_segment(self, row: list[Any]) -> Segment | None:
        try:
            begin, file, checksum = str(row[0]), str(row[1]), int(row[2])
            table = read_file(self._folder / file, checksum)
            digests = np.array(table.column("digests").chunk(0).values.to_pylist(), dtype=f"S{_DIGITS}")
            segment = Segment(begin, digests, unpack_readings(table))
        except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError, pa.ArrowException):
            return None
        self._files[file] = checksum
        return segment

    def _remove_others(self, names: set[str]) -> None:
        for file in list(self._folder.glob("*")):
            if file.name not in names:
                with suppress(OSError):  # another process may hold or have removed it
                    file.unlink()


@cache
def readers_digest() -> str:
    """A digest of the code that reads texts."""
    return "1"


# The readings of all chunks of a corpus: those that are kept, and those of new texts, of many in worker processes.


SEGMENT_CHARS = 1 << 20
SMALL_CHARS = 16 << 20  # a child takes a second to start: less than this is read here


@dataclass(frozen=True)
class _Range:
    """Chunks [first, last), the segment that held them until now, and the new texts among them."""

    begin: str
    first: int
    last: int
    held: Segment | None
    new: tuple[int, ...]


def read_chunks(corpus: Corpus, pool: WorkerPool, kept: KeptReadings | None = None) -> TextReadings:
    """The reading of every chunk in the order of the corpus; the same with and without what is kept."""
    digests = corpus.digests
    ranges = list(_find_ranges(corpus, digests, kept.load() if kept else []))
    segments = [_build(one, digests, fresh) for one, fresh in _read_new(corpus, ranges, pool)]
    pool.end_idle_children()  # what follows needs memory more than a quick start
    if kept is not None:
        kept.keep(segments)
    return join_readings([one.readings for one in segments]) if segments else read_texts(())


def _find_ranges(corpus: Corpus, digests: Digests, held: Sequence[Segment]) -> Iterator[_Range]:
    """The corpus in ranges of whole documents: where segments were, and cut where new texts made one too long."""
    keys = corpus.documents.keys
    starts = [bisect_left(keys, one.begin) for one in held[1:]]
    cuts = [0, *np.searchsorted(corpus.document_of, starts).tolist(), len(corpus.texts)]
    lengths = np.cumsum([0, *map(len, corpus.texts)])
    for place in range(len(cuts) - 1):
        first, last = cuts[place], cuts[place + 1]
        segment = held[place] if held else None
        begin = segment.begin if segment else ""
        if segment and np.array_equal(digests[first:last], segment.digests):
            yield _Range(begin, first, last, segment, ())
            continue
        known = set(segment.digests.tolist()) if segment else set()
        for begin_chunk, end_chunk in _cut(corpus, lengths, first, last):
            begin = begin if begin_chunk == first else keys[corpus.document_of[begin_chunk]]
            rows = range(begin_chunk, end_chunk)
            new = tuple(row for row in rows if digests[row] not in known)
            yield _Range(begin, begin_chunk, end_chunk, segment, new)


def _cut(corpus: Corpus, lengths: Longs, first: int, last: int) -> list[tuple[int, int]]:
    """[first, last) as one range or, where it is more than twice as long as a segment, as ranges of whole documents."""
    if lengths[last] - lengths[first] <= 2 * SEGMENT_CHARS:
        return [(first, last)] if last > first else []
    cuts = [first]
    openings = np.flatnonzero(np.diff(corpus.document_of[first:last])) + first + 1
    for chunk in openings.tolist():
        if lengths[chunk] - lengths[cuts[-1]] >= SEGMENT_CHARS:
            cuts.append(chunk)
    return list(zip(cuts, [*cuts[1:], last], strict=True))


def _read_new(
    corpus: Corpus, ranges: Sequence[_Range], pool: WorkerPool
) -> Iterator[tuple[_Range, TextReadings | None]]:
    """Each range with the readings of its new texts, None where it has none."""

    def send() -> Iterator[tuple[int, tuple[object, ...]]]:
        for one in ranges:
            texts = [corpus.texts[row] for row in one.new]
            if texts:
                yield sum(map(len, texts)), (to_bytes(pa.table({"text": pa.array(texts, pa.string())})),)

    answers = pool.map_large(read_bytes, send(), SMALL_CHARS)
    for one in ranges:
        yield one, unpack_readings(from_bytes(next(answers))) if one.new else None


def _build(one: _Range, digests: Digests, fresh: TextReadings | None) -> Segment:
    """The segment of a range from what was held and what is new."""
    wanted = digests[one.first : one.last]
    if one.held is None or len(one.new) == len(wanted):
        assert fresh is not None
        return Segment(one.begin, wanted, fresh)
    if np.array_equal(wanted, one.held.digests):
        return one.held
    parts = [one.held.readings, *([fresh] if fresh is not None else [])]
    known = [*one.held.digests.tolist(), *digests[list(one.new)].tolist()]
    place = {digest: row for row, digest in enumerate(known)}
    rows = np.array([place[digest] for digest in wanted.tolist()], dtype=np.int64)
    return Segment(one.begin, wanted, take_texts(join_readings(parts), rows))
