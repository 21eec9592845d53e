"""Which states hold which word, and BM25 over them."""

from __future__ import annotations

import math
from array import array
from collections import Counter

import numpy as np
from numpy.typing import NDArray

from hades.text.analyzer import stem_word, terms, words

K1, B = 1.2, 0.75  # BM25, the usual constants
_COMMON = 0.1  # share of the states that hold a word from which it is left out beside rarer ones
_FEW = 2_000  # states that hold a word up to which it always counts


class WordIndex:
    """Postings by stem: places in rising order, and how often the word stands in each."""

    def __init__(self) -> None:
        self._postings: dict[str, tuple[array[int], array[int]]] = {}

    def add(self, place: int, text: str) -> int:
        """The words of a state; how many there are."""
        found = Counter(map(stem_word, words(text.replace("_", " "))))
        for term, count in found.items():
            posting = self._postings.get(term)
            if posting is None:
                posting = self._postings[term] = array("I"), array("I")
            posting[0].append(place)
            posting[1].append(count)
        return sum(found.values())

    def scores(self, text: str, lengths: NDArray[np.float32], mean: float, total: int) -> NDArray[np.float32]:
        """BM25 of every place; `lengths` in words, `total` states that count."""
        scores = np.zeros(len(lengths), np.float32)
        found = [self._postings[term] for term in terms(text.replace("_", " ")) if term in self._postings]
        rarest = min((len(posting[0]) for posting in found), default=0)
        for posting in found:
            if len(posting[0]) > max(_COMMON * total, rarest, _FEW):  # beside a rarer word it moves no result
                continue
            places, counts = (np.frombuffer(part, np.uint32) for part in posting)
            weight = np.float32(math.log1p(total / (len(places) + 0.5)) * (K1 + 1))
            counted = counts.astype(np.float32)
            share = lengths[places]
            share *= np.float32(K1 * B / max(mean, 1e-9))
            share += counted
            share += np.float32(K1 * (1 - B))
            counted *= weight
            counted /= share
            scores[places] += counted
        return scores
