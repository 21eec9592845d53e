"""Search by words: the BM25 index of one collection in a snapshot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hades.ports.graph import Numbers, Weights
from hades.snapshot.files import Folder, best, find, hash_texts
from hades.text.words import Vocabulary, terms, with_search_words
from models.bm25 import Bm25, fit_bm25, rarity

_PARTS = ("starts", "row", "share", "rarity")


@dataclass(frozen=True)
class WordCounts:
    """Of the whole graph, where only a part is indexed: texts, words of one on average, texts that have a word."""

    texts: int
    mean_words: float
    holders: Mapping[str, int]


def write_words(folder: Folder, name: str, texts: Sequence[str], whole: WordCounts | None = None) -> None:
    """Write the index of these texts, rows in their order and terms in the order of their hashes."""
    vocabulary = Vocabulary()
    words = [np.array(vocabulary.numbers(text), np.int32) for text in texts]
    hashes = hash_texts(vocabulary.terms)
    order = np.argsort(hashes)
    term = np.argsort(order)[np.concatenate([np.zeros(0, np.int32), *words])]
    row = np.repeat(np.arange(len(words)), [len(one) for one in words])
    index = fit_bm25(
        term, row, np.ones(len(term), np.float32), len(hashes), len(words), None if whole is None else whole.mean_words
    )
    if whole is not None:
        here = np.diff(index.starts).tolist()
        spelled = np.array(list(vocabulary.terms), object)[order].tolist()
        holders = [max(count, whole.holders.get(one, count)) for one, count in zip(spelled, here, strict=True)]
        index = replace(index, rarity=rarity(np.array(holders, np.float64), whole.texts))
    folder.write_arrays(name, {"hash": hashes[order], **{part: getattr(index, part) for part in _PARTS}})


def search_words(
    arrays: Mapping[str, NDArray[Any]], name: str, rows: int, text: str, limit: int
) -> tuple[Numbers, Weights]:
    """Rows of an index that share a word with a text, and their scores, best first, then by row."""
    _, known = find(arrays[f"{name}.hash"], hash_texts(terms(with_search_words(text))))
    starts, row, share, rarity = (arrays[f"{name}.{part}"] for part in _PARTS)
    index = Bm25(starts, row, share, rarity, rows)
    scores = index.score(dict.fromkeys(known.tolist(), 1.0)).astype(np.float32)
    found = np.flatnonzero(scores)
    kept = found[best(scores[found], found, limit)]
    return kept, scores[kept]
