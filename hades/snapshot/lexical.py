"""Search by words: the BM25 index of one collection in a snapshot."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Self

import numpy as np

from hades.ports.graph import Numbers, Weights
from hades.snapshot.files import Arrays, Folder, Hashes, best, find, hash_texts
from hades.text.words import Vocabulary, terms, with_search_words
from models.arrays import Ints
from models.bm25 import Bm25, fit_bm25, rarity
from schemas.record import JsonObject

_PARTS = ("starts", "row", "share", "rarity")


@dataclass(frozen=True, eq=False)
class WordCounts:
    """How many texts there are, how many words one has on average, and in how many each word
    stands, by its hash.
    """

    texts: int
    mean_words: float
    hashes: Hashes
    holders: Ints

    def as_json(self) -> JsonObject:
        """What `from_json` reads."""
        arrays = {
            "hashes": self.hashes.astype("<u8"),
            "holders": self.holders.astype("<i4"),
        }

        packed = {}
        for name, values in arrays.items():
            packed[name] = b64encode(values.tobytes()).decode()

        return {
            "texts": self.texts,
            "mean_words": self.mean_words,
            **packed,
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """Counts as a build left them in the store."""
        hashes, holders = (
            np.frombuffer(b64decode(stored[name]), kind)
            for name, kind in (("hashes", "<u8"), ("holders", "<i4"))
        )
        return cls(
            stored["texts"],
            stored["mean_words"],
            hashes,
            holders,
        )


@dataclass(eq=False)
class PartWords:
    """What is known of a collection of which the texts to come are a growing part: its words, the
    texts read before.
    """

    whole: WordCounts | None
    vocabulary: Vocabulary = field(default_factory=Vocabulary)
    read: dict[str, Ints] = field(default_factory=dict)
    _hashes: Hashes = field(default_factory=lambda: np.zeros(0, np.uint64))

    def hashes(self) -> Hashes:
        """Of every term so far."""
        new = islice(
            self.vocabulary.terms,
            len(self._hashes),
            None,
        )
        self._hashes = np.concatenate([self._hashes, hash_texts(new)])
        return self._hashes

    def numbers(self, text: str) -> Ints:
        """The term of each word of a text."""
        if text not in self.read:
            self.read[text] = np.array(self.vocabulary.numbers(text), np.int32)
        return self.read[text]


def write_words(
    folder: Folder,
    name: str,
    texts: Sequence[str],
    part: PartWords | None = None,
) -> WordCounts:
    """Write the index of these texts, rows in their order and terms in the order of their hashes;
    what was counted.
    """
    part = PartWords(None) if part is None else part
    whole = part.whole
    words = [part.numbers(text) for text in texts]
    hashes = part.hashes()
    order = np.argsort(hashes)
    term = np.argsort(order)[np.concatenate([np.zeros(0, np.int32), *words])]
    row = np.repeat(np.arange(len(words)), [len(numbers) for numbers in words])

    if whole is None:
        mean = len(term) / max(1, len(words))
    else:
        mean = whole.mean_words

    index = fit_bm25(
        term,
        row,
        np.ones(len(term), np.float32),
        len(hashes),
        len(words),
        mean,
    )
    counted = WordCounts(
        len(words),
        mean,
        hashes[order],
        np.diff(index.starts).astype(np.int32),
    )
    if whole is not None:
        holders = counted.holders.copy()
        term_places, whole_places = find(whole.hashes, counted.hashes)
        holders[term_places] = np.maximum(holders[term_places], whole.holders[whole_places])
        index = replace(
            index,
            rarity=rarity(holders.astype(np.float64), max(whole.texts, len(words))),
        )

    folder.write_arrays(
        name,
        {
            "hash": hashes[order],
            **{part_name: getattr(index, part_name) for part_name in _PARTS},
        },
    )
    return counted


def hash_words(text: str) -> Hashes:
    """What the words of a text are found by in an index."""
    return hash_texts(terms(with_search_words(text)))


def search_words(
    arrays: Arrays,
    name: str,
    rows: int,
    text: str,
    limit: int,
) -> tuple[Numbers, Weights]:
    """Rows of an index that share a word with a text, and their scores, best first, then by row."""
    _, known = find(arrays[f"{name}.hash"], hash_words(text))
    starts, row, share, rarity = (arrays[f"{name}.{part}"] for part in _PARTS)
    index = Bm25(starts, row, share, rarity, rows)
    scores = index.score(dict.fromkeys(known.tolist(), 1.0)).astype(np.float32)
    matching = np.flatnonzero(scores)
    rows_by_score = matching[best(scores[matching], matching, limit)]
    return rows_by_score, scores[rows_by_score]
