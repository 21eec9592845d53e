"""BM25 over an inverted index."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from hades.ports.graph import Numbers, Weights
from hades.snapshot.files import ArrayReader, Folder, Hashes, best, find, hash_texts
from hades.text.words import Vocabulary, terms, with_identifiers
from models.kernels import compile_loop

# Texts that an earlier publishing analysed: the terms of each, by the hash of the text. Cutting texts into words
# and stemming them is most of what publishing costs. The file beside the snapshots holds what the last publishing
# met and nothing else, so words of a forgotten document leave it with the next one. It is a cache: a missing or
# unreadable file, or one of another analyser, costs time and changes nothing.


DIGEST_BYTES = 16
MOST_WORDS = 32_000_000  # of one collection; the terms of a larger one are not kept


class AnalysedTexts:
    """The terms of known texts; `terms` are the names of the numbers, `hashes` what a search finds them by."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.terms: tuple[str, ...] = ()
        self.hashes: NDArray[np.uint64] = np.zeros(0, np.uint64)  # of the terms
        self._rows: dict[bytes, int] = {}
        self._ends: NDArray[np.int64] = np.zeros(1, np.int64)
        self._words: NDArray[np.int32] = np.zeros(0, np.int32)
        with suppress(OSError, ValueError, KeyError, BadZipFile):
            self._load()

    def places(self, digests: Sequence[bytes]) -> NDArray[np.int64]:
        """Where each text stands among the known ones, by its digest; -1 for one that is not known."""
        return np.array([self._rows.get(digest, -1) for digest in digests], np.int64)

    def lengths(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """How many words the texts at these places have."""
        return self._ends[places + 1] - self._ends[places]

    def words(self, places: NDArray[np.int64]) -> NDArray[np.int32]:
        """The term of each word of the texts at these places, one text after the other."""
        lengths = self.lengths(places)
        shift = self._ends[places] - (np.cumsum(lengths) - lengths)
        found: NDArray[np.int32] = self._words[np.repeat(shift, lengths) + np.arange(int(lengths.sum()))]
        return found

    def keep(
        self,
        digests: Sequence[bytes],
        lengths: Sequence[int],
        words: NDArray[np.int32],
        terms: Sequence[str],
        hashes: NDArray[np.uint64],
    ) -> None:
        """Hold these texts from now on, with the terms that they use; nothing is written where nothing is new."""
        if len(words) > MOST_WORDS or (len(digests) == len(self._rows) and all(map(self._rows.__contains__, digests))):
            return
        is_used = np.zeros(len(terms), np.bool_)
        is_used[words] = True
        used, numbers = np.flatnonzero(is_used), np.cumsum(is_used, dtype=np.int32) - 1
        spelled = "\n".join(terms[number] for number in used.tolist()).encode()
        partial = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        with suppress(OSError), partial.open("wb") as file:
            np.savez(
                file,
                version=np.frombuffer(_version(), np.uint8),
                digests=np.frombuffer(b"".join(digests), np.uint8),
                lengths=np.array(lengths, np.int32),
                words=numbers[words].astype(np.int32),
                terms=np.frombuffer(spelled, np.uint8),
                hashes=hashes[used],
            )
            partial.replace(self._path)

    def _load(self) -> None:
        with np.load(self._path, allow_pickle=False) as held:
            if held["version"].tobytes() != _version():
                return
            flat, lengths = held["digests"].tobytes(), held["lengths"]
            self._words, spelled, hashes = held["words"], held["terms"].tobytes().decode(), held["hashes"]
        self._ends = np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))
        self.terms, self.hashes = (tuple(spelled.split("\n")), hashes) if spelled else ((), hashes)
        steps = range(0, len(flat), DIGEST_BYTES)
        self._rows = {flat[step : step + DIGEST_BYTES]: row for row, step in enumerate(steps)}


def digest_text(text: str) -> bytes:
    """What a text is known by."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=DIGEST_BYTES).digest()


def _version() -> bytes:
    """The analyser itself: what another one made of a text is not used."""
    return hashlib.sha256(b"1").digest()


# Search by words: an inverted index that holds each posting's finished BM25 share, so that a query only adds. The
# index is built in blocks that are put aside on the disk: memory holds the vocabulary and one block, not the
# corpus.


K1 = 1.2
B = 0.75
_BLOCK_WORDS = 4_000_000
_PORTION_TEXTS = 1_024  # that are looked up together
_COMMON = 16  # a word in more than one of this number of rows is worth avoiding
_LOOK_UP = 8  # what looking a row up in a posting costs, in entries of the posting that are added
_ADDED = 500_000  # entries of postings that machine code adds faster than a common word is skipped
POSTINGS = "hades.snapshot.lexical"  # the machine code; it is not worth loading for one question
_ROUNDING = 1.0001  # sums of float32 may come out a little higher than their bound
_CACHED_QUESTIONS = 256  # a turn searches several collections for its question and each clause


class LexicalWriter:
    """Takes the texts of a collection in row order, then writes `<name>.hash`, `.starts`, `.row`, `.share`, `.top`."""

    def __init__(self, scratch: Path, name: str, known: AnalysedTexts | None = None) -> None:
        self._scratch, self._name, self._known = scratch, name, known
        self._vocabulary = Vocabulary()
        if known is not None:
            self._vocabulary.terms.update((term, number) for number, term in enumerate(known.terms))
        self._digests: list[bytes] = []
        self._kept: list[NDArray[np.int32]] = []
        self._lengths: list[int] = []
        self._words: list[NDArray[np.int32]] = []
        self._n_words = 0
        self._first_row = 0
        self._blocks: list[Path] = []
        self._rows_with: NDArray[np.int64] = np.zeros(0, np.int64)

    def append(self, texts: Iterable[str]) -> None:
        """Index more rows."""
        waiting = iter(texts)
        while portion := list(islice(waiting, _PORTION_TEXTS)):
            words, lengths = self._analyse(portion)
            self._lengths += lengths.tolist()
            self._words.append(words)
            self._n_words += len(words)
            if self._n_words >= _BLOCK_WORDS:
                self._put_aside()

    def write(self, folder: Folder) -> None:
        """Merge the blocks. A term's share is idf * tf * (k1 + 1) / (tf + k1 * (1 - b + b * length / mean length))."""
        self._put_aside()
        hashes = self._hash_terms()
        if self._known is not None:
            words = np.concatenate([np.zeros(0, np.int32), *self._kept])
            self._known.keep(self._digests, self._lengths, words, tuple(self._vocabulary.terms), hashes)
        lengths = np.array(self._lengths, np.float64)
        order = np.argsort(hashes, kind="stable")
        order = order[self._rows_with[order] > 0]  # a term of an earlier publishing may be in no text of this one
        rows_with = self._rows_with[order]
        starts = np.concatenate(([0], np.cumsum(rows_with)))
        rarity = np.log1p((len(lengths) - self._rows_with + 0.5) / (self._rows_with + 0.5))
        mean = lengths.mean() if lengths.any() else 1.0
        penalty = K1 * (1 - B + B * lengths / mean)
        folder.whole(f"{self._name}.hash", hashes[order])
        folder.whole(f"{self._name}.starts", starts)
        next_free = np.zeros(len(hashes), np.int64)
        next_free[order] = starts[:-1]
        with (
            folder.scratch_array(f"{self._name}.row", np.int32, int(starts[-1])) as rows,
            folder.scratch_array(f"{self._name}.share", np.float32, int(starts[-1])) as shares,
        ):
            for block in self._blocks:
                term, row, times = np.load(block)
                block.unlink()
                fresh = np.concatenate(([True], term[1:] != term[:-1]))
                run = np.flatnonzero(fresh)
                lasts = np.diff(np.append(run, len(term)))
                place = next_free[term] + np.arange(len(term)) - np.repeat(run, lasts)
                rows[place] = row
                shares[place] = rarity[term] * times * (K1 + 1) / (times + penalty[row])
                next_free[term[run]] += lasts
            top = np.maximum.reduceat(shares, starts[:-1]) if len(order) else np.empty(0, np.float32)
            folder.whole(f"{self._name}.top", np.asarray(top))

    def _analyse(self, texts: list[str]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """The term of each word, and how many words each text has; of texts that are known, as it was found then."""
        if self._known is None:
            return _join([self._vocabulary.numbers(text) for text in texts])
        digests = [digest_text(text) for text in texts]
        self._digests += digests
        places = self._known.places(digests)
        is_known = places >= 0
        new, new_lengths = _join([self._vocabulary.numbers(texts[row]) for row in np.flatnonzero(~is_known).tolist()])
        lengths = np.zeros(len(texts), np.int64)
        lengths[is_known], lengths[~is_known] = self._known.lengths(places[is_known]), new_lengths
        words = np.empty(int(lengths.sum()), np.int32)
        from_known = np.repeat(is_known, lengths)
        words[from_known], words[~from_known] = self._known.words(places[is_known]), new
        return words, lengths

    def _hash_terms(self) -> Hashes:
        """The hash of each term; those of known terms, which are the first, were kept."""
        if self._known is None:
            return hash_texts(self._vocabulary.terms)
        new = list(self._vocabulary.terms)[len(self._known.terms) :]
        return np.concatenate([self._known.hashes, hash_texts(new)])

    def _put_aside(self) -> None:
        """Count the words since the last block and keep (term, row, times) on the disk, by term, then row."""
        rows = np.arange(self._first_row, len(self._lengths), dtype=np.int64)
        row = np.repeat(rows, np.array(self._lengths[self._first_row :], np.int64))
        found = np.concatenate([np.zeros(0, np.int32), *self._words])
        if self._known is not None:
            self._kept.append(found)
        pairs, times = np.unique(found.astype(np.int64) << 32 | row, return_counts=True)
        self._first_row, self._words, self._n_words = len(self._lengths), [], 0
        term = pairs >> 32
        counts = np.bincount(term, minlength=len(self._vocabulary.terms))
        counts[: len(self._rows_with)] += self._rows_with
        self._rows_with = counts
        if len(pairs):
            self._blocks.append(self._scratch / f"{self._name}.{len(self._blocks)}.npy")
            np.save(self._blocks[-1], np.stack([term, pairs & 0xFFFF_FFFF, times]))


def _join(found: list[list[int]]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """The words of texts one after the other, and how many each has."""
    words = np.array([number for text in found for number in text], np.int32)
    return words, np.array([len(text) for text in found], np.int64)


@lru_cache(_CACHED_QUESTIONS)
def _hash_words(text: str) -> Hashes:
    hashes = hash_texts(terms(with_identifiers(text)))
    hashes.setflags(write=False)
    return hashes


class LexicalIndex:
    """Answers from the arrays."""

    def __init__(self, arrays: ArrayReader, name: str, rows: int) -> None:
        self._hash: NDArray[Any] = arrays[f"{name}.hash"]
        self._starts: NDArray[np.int64] = arrays[f"{name}.starts"]
        self._top: NDArray[np.float32] = arrays[f"{name}.top"]
        self._row: NDArray[np.int32] = arrays[f"{name}.row"]
        self._share: NDArray[np.float32] = arrays[f"{name}.share"]
        self._rows = rows

    def search(self, text: str, limit: int) -> tuple[Numbers, Weights]:
        """Rows and scores, best first, then by row. Exact: a common word is skipped only where it cannot matter."""
        place = find(self._hash, _hash_words(text)).first
        if not len(place):
            return np.empty(0, np.int64), np.empty(0, np.float32)
        lengths = self._starts[place + 1] - self._starts[place]
        order = np.lexsort((place, lengths))  # rare words first, in one order for equal sums
        place, lengths = place[order], lengths[order]
        if lengths.sum() <= _ADDED and POSTINGS in sys.modules:
            rows, scores = add_postings(
                self._row, self._share, self._starts[place], self._starts[place + 1], self._rows
            )
            kept = best(scores, rows, limit)
            return rows[kept].astype(np.int64), scores[kept]
        bounds = zip(self._starts[place].tolist(), self._starts[place + 1].tolist(), strict=True)
        postings = [slice(start, end) for start, end in bounds]
        if int(lengths.sum()) * 4 < self._rows:
            rows, scores = self._add_few(postings)
        else:
            still_to_gain = np.cumsum(self._top[place][::-1], dtype=np.float64)[::-1]
            rows, scores = self._add_many(postings, still_to_gain, limit)
        kept = best(scores, rows, limit)
        return rows[kept].astype(np.int64), scores[kept]

    def _add_few(self, postings: list[slice]) -> tuple[NDArray[np.int32], Weights]:
        """By sorting what was found, so that a rare word costs little in a large collection."""
        rows, group = np.unique(np.concatenate([self._row[one] for one in postings]), return_inverse=True)
        scores = np.zeros(len(rows), np.float32)
        start = 0
        for one in postings:
            stop = start + one.stop - one.start
            scores[group[start:stop]] += self._share[one]  # a row stands once in a term's postings
            start = stop
        return rows, scores

    def _add_many(
        self, postings: list[slice], still_to_gain: NDArray[np.float64], limit: int
    ) -> tuple[NDArray[np.int32], Weights]:
        """By adding into an array of all rows, until the words that are left cannot bring a new row among the best.

        This is the MaxScore rule of Turtle and Flood (1995).
        """
        scores = np.zeros(self._rows, np.float32)
        for turn, one in enumerate(postings):
            if (one.stop - one.start) * _COMMON > self._rows:
                rows = np.flatnonzero(scores).astype(np.int32)
                if len(rows) >= limit:
                    bar = np.partition(scores[rows], len(rows) - limit)[len(rows) - limit]
                    gain = still_to_gain[turn] * _ROUNDING
                    if gain < bar:
                        rows = rows[scores[rows] + gain >= bar]
                        return rows, self._add_to(rows, scores, postings[turn:])
            scores[self._row[one]] += self._share[one]
        rows = np.flatnonzero(scores).astype(np.int32)
        return rows, scores[rows]

    def _add_to(self, rows: NDArray[np.int32], scores: Weights, postings: list[slice]) -> Weights:
        """By looking a few rows up in long postings, which are sorted; short ones are added as a whole.

        `scores` are those of all rows; the answer is that of `rows`, which were summed in the same order either way.
        """
        for one in postings:
            held = self._row[one]
            if len(rows) * _LOOK_UP > len(held):
                scores[held] += self._share[one]
                continue
            place = np.minimum(np.searchsorted(held, rows), len(held) - 1)
            there = held[place] == rows
            scores[rows[there]] += self._share[one][place[there]]
        return scores[rows]


# Sums of postings, as machine code; loaded when a process asks on.


Longs = NDArray[np.int64]


def add_postings(
    rows: NDArray[np.int32], shares: NDArray[np.float32], starts: Longs, ends: Longs, n_rows: int
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """The rows that stand in any of the postings [start, end), in no order, and the sum of the shares of each.

    Shares are greater than 0 and are added posting by posting.
    """
    scores = np.zeros(n_rows, np.float32)
    found = np.empty(min(n_rows, int((ends - starts).sum())), np.int32)
    held = found[: _add(rows, shares, starts, ends, scores, found)]
    return held, scores[held]


def _add_in_python(  # pragma: no cover
    rows: Any, shares: Any, starts: Any, ends: Any, scores: Any, found: Any
) -> int:
    count = 0
    for place in range(len(starts)):
        for at in range(starts[place], ends[place]):
            row = rows[at]
            if scores[row] == 0:
                found[count] = row
                count += 1
            scores[row] += shares[at]
    return count


_add = compile_loop(_add_in_python)
