"""A training-free embedder: words and their character n-grams, hashed with signs.

For tests, for machines without the model, and for corpora where speed matters more than meaning. All sums
are of whole numbers, so no order of addition and no processor changes a bit of the result."""

from __future__ import annotations

import math
import re
import threading
from collections import Counter
from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from hades.ports.services import EmbeddingModel, Progress, Vectors, check_texts

VERSION = "1"  # raise it with any change of the features: vectors of two versions are not compared
WINDOW_TEXTS = 512
MAX_WORD, GRAM = 24, 4
FEATURES = 1 + MAX_WORD + 2 - GRAM + 1  # the word itself, then the n-grams of "<word>"
WORD_WEIGHT, GRAM_WEIGHT, STOP_DIVISOR = 24, 8, 8
MAX_FREQUENCY = 1023  # more of the same word says nothing new
MAX_VOCABULARY = 200_000  # words remembered, 40 MB
CJK = "\u3040-\u30ff\u3400-\u9fff"  # written without spaces: each sign is a word
WORD = re.compile(rf"[{CJK}]|[^\W_{CJK}]{{1,{MAX_WORD}}}")
ASCII_WORD = re.compile(rf"[a-z0-9]{{1,{MAX_WORD}}}")  # finds the same in folded ASCII, faster
STOP_WORDS = """
    a about all also an and any are as at be been between both but by can do does each for from had has have
    he her his how i if in into is it its may more most no not of on only or other our out s she so some such
    t than that the their them then there these they this to up was we were what when where which while who
    will with you
"""


class HashingEmbedder:
    """Embeds by feature hashing (Weinberger et al. 2009) with sublinear term frequency."""

    def __init__(self, dimension: int = 256) -> None:
        if dimension < 1:
            raise ValueError(f"dimension is {dimension}; expected 1 or more")
        self.model = EmbeddingModel("hashing", VERSION, dimension)
        self._vocabulary = _Vocabulary(dimension)
        self._alone = threading.Lock()

    def embed(self, texts: Sequence[str], *, progress: Progress | None = None) -> Vectors:
        """(n_texts, dimension) float32, rows unit length."""
        check_texts(texts)
        vectors = np.empty((len(texts), self.model.dimension), dtype=np.float32)
        for first in range(0, len(texts), WINDOW_TEXTS):
            window = texts[first : first + WINDOW_TEXTS]
            with self._alone:
                vectors[first : first + len(window)] = _to_unit_length(self._sum_features(window))
            if progress:
                progress(first + len(window), len(texts))
        return vectors

    def _sum_features(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """(n_texts, dimension) whole numbers."""
        words, counts, sizes = _count_words(texts)
        slots, weights = self._vocabulary.features(words)
        frequency = _sublinear()[np.minimum(counts, MAX_FREQUENCY)]
        dimension = self.model.dimension
        rows = np.repeat(np.arange(len(texts)) * dimension, sizes)
        cells = (slots + rows[:, None]).ravel()
        amounts = (weights * frequency[:, None]).ravel().astype(np.float64)
        sums = np.bincount(cells, amounts, minlength=len(texts) * dimension)
        return np.asarray(sums, dtype=np.float64).reshape(len(texts), dimension)


class _Vocabulary:
    """Features of words seen so far: slot and signed weight of each, nothing that depends on other words."""

    def __init__(self, dimension: int) -> None:
        self._dimension = dimension
        self._ids: dict[str, int] = {}
        self._slots = np.empty((0, FEATURES), dtype=np.int32)  # both grow by doubling
        self._weights = np.empty((0, FEATURES), dtype=np.int32)

    def features(self, words: list[str]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Slots and weights, (n_words, features) each; a weight of 0 is no feature."""
        new = sorted(set(words).difference(self._ids))
        if len(self._ids) + len(new) > MAX_VOCABULARY:
            self._ids = {}
            new = sorted(set(words))
        if new:
            first, size = len(self._ids), len(self._ids) + len(new)
            if size > len(self._slots):
                self._slots, self._weights = (_widen(held, 2 * size) for held in (self._slots, self._weights))
            self._slots[first:size], self._weights[first:size] = _hash_words(new, self._dimension)
            self._ids.update(zip(new, range(first, size), strict=True))
        ids = np.fromiter(map(self._ids.__getitem__, words), dtype=np.int64, count=len(words))
        return self._slots[ids], self._weights[ids]


def _widen(rows: NDArray[np.int32], size: int) -> NDArray[np.int32]:
    """The same rows with room for more."""
    wide = np.empty((size, FEATURES), dtype=np.int32)
    wide[: len(rows)] = rows
    return wide


def _count_words(texts: Sequence[str]) -> tuple[list[str], list[int], list[int]]:
    """Distinct words of each text one after another, how often each occurs, and how many each text has."""
    words: list[str] = []
    counts: list[int] = []
    sizes: list[int] = []
    for text in texts:
        pattern = ASCII_WORD if text.isascii() else WORD
        # A text without letters or digits is the set of its signs: it is not blank, so it has a vector.
        found = Counter(pattern.findall(text.casefold()) or [sign for sign in text if not sign.isspace()])
        words += found.keys()
        counts += found.values()
        sizes.append(len(found))
    return words, counts, sizes


def _hash_words(words: list[str], dimension: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Slot and signed weight of each word and of the n-grams of "<word>"."""
    letters = np.zeros((len(words), MAX_WORD + 2), dtype=np.uint64)
    lengths = np.array([len(word) for word in words])
    letters[:, 1:-1] = np.array(words, dtype=f"<U{MAX_WORD}").view("<u4").reshape(len(words), MAX_WORD)
    letters[:, 0] = ord("<")
    letters[np.arange(len(words)), lengths + 1] = ord(">")
    hashes = np.empty((len(words), FEATURES), dtype=np.uint64)
    hashes[:, 0] = _hash_letters(letters)
    hashes[:, 1:] = _hash_letters(np.lib.stride_tricks.sliding_window_view(letters, GRAM, axis=1))
    weights = np.full(hashes.shape, GRAM_WEIGHT, dtype=np.int32)
    weights[:, 0] = WORD_WEIGHT
    stop_words = set(STOP_WORDS.split())
    weights[np.array([word in stop_words for word in words])] //= STOP_DIVISOR
    weights[:, 1:][np.arange(FEATURES - 1) > (lengths + 2 - GRAM)[:, None]] = 0
    signs = 1 - 2 * (hashes >> np.uint64(63)).astype(np.int32)
    slots = (hashes & np.uint64(2**63 - 1)) % np.uint64(dimension)
    return slots.astype(np.int32), weights * signs


def _hash_letters(letters: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """64-bit hash along the last axis: FNV-1a by letter, then splitmix64's finisher for even bits."""
    mixed = np.full(letters.shape[:-1], 0xCBF29CE484222325 + letters.shape[-1], dtype=np.uint64)
    for column in range(letters.shape[-1]):
        mixed = (mixed ^ letters[..., column]) * np.uint64(0x100000001B3)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def _to_unit_length(sums: NDArray[np.float64]) -> Vectors:
    """Whole numbers to unit rows; a row whose signs cancel to nothing points along the first axis."""
    cancelled = ~sums.any(axis=1)
    sums[cancelled, 0] = 1
    # Squares of whole numbers add exactly below 2**53; root and quotient are correctly rounded everywhere.
    lengths = np.sqrt(np.square(sums).sum(axis=1, keepdims=True))
    return np.asarray(sums / lengths, dtype=np.float32)


@cache
def _sublinear() -> NDArray[np.int32]:
    """16 (1 + ln tf) in whole numbers, by tf."""
    grown = [round(16 * (1 + math.log(tf))) for tf in range(1, MAX_FREQUENCY + 1)]
    return np.array([0, *grown], dtype=np.int32)
