"""What texts say by themselves: their words, where sentences begin, the names and acronyms that they propose.

Nothing here looks beyond one text, so the reading of a text is made once and kept (`kept_readings.py`), in any process
and beside any other texts: readings of some texts are joined, taken apart and put in another order as plain arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hades.ingest.entities.acronyms import find_definitions
from hades.ingest.entities.candidates import N_RULES, Mark, candidate_spans
from hades.ingest.workers.arrow_bytes import from_bytes, to_bytes
from hades.text.arrays import Bits, Flags, Hashes, Ints, Longs, encode, running
from hades.text.boundaries import fragments, sentence_starts
from hades.text.tokens import Words, span_hashes, tokenize

OPENS, PIECE = 32, 64  # bits of `shape` beside those of `hades/text/tokens.py`
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
