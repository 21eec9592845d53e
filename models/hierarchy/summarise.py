"""What to call a topic and what to quote for it: characteristic terms, and sentences that use them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from models.hierarchy.arrays import NONE, Labels

_WORD = re.compile(r"\w+", re.UNICODE)
MIN_SENTENCE, MAX_SENTENCE = 40, 320


@dataclass(frozen=True)
class TermCounts:
    """How often each name says each term: (names, terms) sparse, and the terms in alphabetical order."""

    counts: Any
    terms: NDArray[np.str_]


def term_counts(names: Sequence[str]) -> TermCounts:
    """Words and word pairs of names, without stop words and numbers; there may be none."""
    from sklearn.feature_extraction.text import CountVectorizer

    counter = CountVectorizer(ngram_range=(1, 2), stop_words="english", token_pattern=r"(?u)\b[^\W\d_]\w+\b")
    if not any(map(counter.build_analyzer(), names)):
        return TermCounts(sparse.csr_matrix((len(names), 0)), np.zeros(0, str))
    counts = counter.fit_transform(names)
    return TermCounts(counts, counter.get_feature_names_out())


def characteristic_terms(said: TermCounts, labels: Labels, groups: int, limit: int) -> list[dict[str, float]]:
    """For each group the terms that mark it, heaviest first: how often it says them against how common they are.

    Class-based TF-IDF (Grootendorst 2022): frequency in the group times log(1 + mean group length / frequency overall).
    """
    held = np.flatnonzero(labels != NONE)
    member = sparse.csr_matrix((np.ones(len(held)), (labels[held], held)), shape=(groups, len(labels)))
    by_group = (member @ said.counts).tocsr()
    by_group.sort_indices()
    overall = np.asarray(by_group.sum(axis=0)).ravel()
    weigh = np.log1p(by_group.sum() / max(1, groups) / np.maximum(overall, 1))
    return [_top(by_group[group], weigh, said.terms, limit) for group in range(groups)]


def topic_name(terms: Mapping[str, float], parts: int = 3) -> str:
    """The heaviest terms that do not repeat each other, joined by commas; empty when there are none."""
    chosen: list[str] = []
    for term in terms:
        words = set(term.split())
        if not any(words & set(other.split()) for other in chosen):
            chosen.append(term)
        if len(chosen) == parts:
            break
    return ", ".join(chosen)


def best_sentence(text: str, spans: Sequence[tuple[int, int]], terms: Mapping[str, float]) -> tuple[int, int] | None:
    """Of the sentences of a text, the one that says most of the topic's terms for its length.

    Long ones are cut after a word. Headings, which do not end like a sentence, and very short ones are quoted only
    where there is nothing else. No sentences give None.
    """
    if not spans:
        return None
    long_enough = [span for span in spans if span[1] - span[0] >= MIN_SENTENCE]
    finished = [span for span in long_enough if text[span[1] - 1] in ".!?"]
    candidates = finished or long_enough or [max(spans, key=lambda span: (span[1] - span[0], -span[0]))]
    best = max(candidates, key=lambda span: (_says(text[slice(*span)], terms), -span[0]))
    return _cut(text, best)


def _top(row: Any, weigh: np.ndarray, terms: NDArray[np.str_], limit: int) -> dict[str, float]:
    score = np.round(row.data * weigh[row.indices], 4)
    heaviest = np.argsort(-score, kind="stable")[:limit]  # equal ones in alphabetical order, as the columns are
    return {str(terms[row.indices[place]]): float(score[place]) for place in heaviest}


def _says(sentence: str, terms: Mapping[str, float]) -> float:
    found = [word.lower() for word in _WORD.findall(sentence)]
    pairs = {f"{first} {second}" for first, second in pairwise(found)}
    said = sum(weight for term, weight in terms.items() if term in pairs or term in found)
    return round(said / math.sqrt(10 + len(found)), 9)


def _cut(text: str, span: tuple[int, int]) -> tuple[int, int]:
    start, end = span
    if end - start <= MAX_SENTENCE:
        return span
    cut = text.rfind(" ", start + MIN_SENTENCE, start + MAX_SENTENCE)
    return start, cut if cut > 0 else start + MAX_SENTENCE
