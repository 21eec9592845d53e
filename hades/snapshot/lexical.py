"""Search by words: the BM25 index of one collection in a snapshot."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from hades.ports.graph import Numbers, Weights
from hades.snapshot.files import ArrayReader, Folder, best, find, hash_texts
from hades.text.words import Vocabulary, terms, with_identifiers
from models.bm25 import Bm25, fit_bm25


class LexicalWriter:
    """Takes the texts of a collection in row order, then writes `<name>.hash`, `.starts`, `.row`, `.share`, `.rarity`.

    Terms stand in the order of their hashes.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._vocabulary = Vocabulary()
        self._words: list[NDArray[np.int32]] = []

    def append(self, texts: Iterable[str]) -> None:
        """Index more rows."""
        self._words += [np.array(self._vocabulary.numbers(text), np.int32) for text in texts]

    def write(self, folder: Folder) -> None:
        """Write the index of all rows."""
        hashes = hash_texts(self._vocabulary.terms)
        order = np.argsort(hashes)
        place = np.argsort(order)
        term = place[np.concatenate([np.zeros(0, np.int32), *self._words])]
        row = np.repeat(np.arange(len(self._words)), [len(words) for words in self._words])
        index = fit_bm25(term, row, np.ones(len(term), np.float32), len(hashes), len(self._words))
        folder.whole(f"{self._name}.hash", hashes[order])
        for part in ("starts", "row", "share", "rarity"):
            folder.whole(f"{self._name}.{part}", getattr(index, part))


class LexicalIndex:
    """Answers from the arrays."""

    def __init__(self, arrays: ArrayReader, name: str, rows: int) -> None:
        self._hash = arrays[f"{name}.hash"]
        self._index = Bm25(*(arrays[f"{name}.{part}"] for part in ("starts", "row", "share", "rarity")), rows)

    def search(self, text: str, limit: int) -> tuple[Numbers, Weights]:
        """Rows and scores, best first, then by row."""
        known = find(self._hash, hash_texts(terms(with_identifiers(text)))).first
        scores = self._index.score(dict.fromkeys(known.tolist(), 1.0)).astype(np.float32)
        rows = np.flatnonzero(scores)
        kept = rows[best(scores[rows], rows, limit)]
        return kept, scores[kept]
