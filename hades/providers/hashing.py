"""A training-free embedder: words and their character n-grams, hashed with signs by scikit-learn.

For tests, for machines without the model, and for corpora where speed matters more than meaning.
All sums are of whole numbers, so no order of addition and no processor changes a bit of the result.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np

from hades.ports.services import EmbeddingModel, Progress, Vectors, check_texts
from hades.providers.tokens import encodable

VERSION = "2"  # raise it with any change of the features: vectors of two versions are not compared
WINDOW_TEXTS = 512
MAX_WORD, GRAM = 24, 4
WORD_WEIGHT, GRAM_WEIGHT, STOP_DIVISOR = 24, 8, 8
CJK = "\u3040-\u30ff\u3400-\u9fff"  # written without spaces: each sign is a word
WORD = re.compile(rf"[{CJK}]|[^\W_{CJK}]{{1,{MAX_WORD}}}")
STOP_WORDS = """
    a about all also an and any are as at be been between both but by can do does each for from had
    has have he her his how i if in into is it its may more most no not of on only or other our out
    s she so some such t than that the their them then there these they this to up was we were what
    when where which while who will with you
"""
_STOP = frozenset(STOP_WORDS.split())


class HashingEmbedder:
    """Embeds by feature hashing (Weinberger et al. 2009) with sublinear term frequency."""

    def __init__(self, dimension: int = 256) -> None:
        # It takes a second to load, and the default embedder needs none of it.
        from sklearn.feature_extraction import FeatureHasher

        if dimension < 1:
            raise ValueError(f"dimension is {dimension}; expected 1 or more")

        self.model = EmbeddingModel("hashing", VERSION, dimension)
        self._hasher = FeatureHasher(dimension, input_type="pair")

    def embed(self, texts: Sequence[str], *, progress: Progress | None = None) -> Vectors:
        """(n_texts, dimension) float32, rows unit length."""
        check_texts(texts)
        vectors = np.empty((len(texts), self.model.dimension), np.float32)

        for first in range(0, len(texts), WINDOW_TEXTS):
            window = texts[first : first + WINDOW_TEXTS]
            sums = self._hasher.transform(map(_features, window)).toarray()
            sums[~sums.any(axis=1), 0] = (
                1  # signs that cancel to nothing point along the first axis
            )
            vectors[first : first + len(window)] = sums / np.sqrt(
                np.square(sums).sum(axis=1, keepdims=True)
            )

            if progress:
                progress(first + len(window), len(texts))

        return vectors


def _features(text: str) -> Iterator[tuple[str, int]]:
    """Each word and the n-grams of "<word>" with whole weights, which grow with the logarithm of
    the frequency.
    """
    # A text without letters or digits is the set of its signs: it is not blank, so it has a vector.
    readable = encodable(text).casefold()
    counts = Counter(WORD.findall(readable) or [sign for sign in readable if not sign.isspace()])

    for word, times in counts.items():
        frequency = round(16 * (1 + math.log(times)))
        for feature, weight in _word_features(word):
            yield feature, weight * frequency


@lru_cache(1 << 16)
def _word_features(word: str) -> tuple[tuple[str, int], ...]:
    divisor = STOP_DIVISOR if word in _STOP else 1
    marked = f"<{word}>"

    grams = []
    for place in range(len(marked) - GRAM + 1):
        grams.append(marked[place : place + GRAM])

    return (f"={word}", WORD_WEIGHT // divisor), *((gram, GRAM_WEIGHT // divisor) for gram in grams)
