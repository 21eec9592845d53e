"""What to call a topic and what to quote for it: characteristic terms, and sentences that use them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from models.topics.cluster import Labels, members_matrix

_WORD = re.compile(r"\w+", re.UNICODE)
_TERM = r"(?u)\b[^\W\d_]\w+\b"
_FINISHED = re.compile(r"(?:[!?]|(?<!\b[A-Z])\.)[\"\u201d\u2019')\]]*$")
MIN_SENTENCE, MAX_SENTENCE = 40, 320


def term_counts(names: Sequence[str]) -> tuple[Any, Sequence[str]]:
    """(names, terms) sparse counts of words and word pairs, and these in alphabetical order; there may be none.

    Stop words and numbers are left out.
    """
    from sklearn.feature_extraction.text import CountVectorizer

    counter = CountVectorizer(ngram_range=(1, 2), stop_words="english", token_pattern=_TERM)
    try:
        counts = counter.fit_transform(names)
    except ValueError:  # no name has a word
        return sparse.csr_matrix((len(names), 0)), ()
    return counts, counter.get_feature_names_out().tolist()


def characteristic_terms(
    counts: Any, terms: Sequence[str], labels: Labels, groups: int, limit: int
) -> list[dict[str, float]]:
    """For each group the terms that mark it, heaviest first, equal ones in alphabetical order.

    Class-based TF-IDF (Grootendorst 2022): frequency in the group times log(1 + mean group length / frequency overall).
    """
    by_group = (members_matrix(labels, groups).T @ counts).tocsr()
    overall = np.asarray(by_group.sum(axis=0)).ravel()
    weigh = np.log1p(overall.sum() / max(1, groups) / np.maximum(overall, 1))
    found = []
    for group in range(groups):
        row = by_group[group]
        scores = np.round(row.data * weigh[row.indices], 4)
        best = np.lexsort((row.indices, -scores))[:limit]
        found.append({terms[row.indices[place]]: float(scores[place]) for place in best})
    return found


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

    It is quoted whole. One of more than `MAX_SENTENCE` characters is quoted only where no other ends like a sentence.
    Headings and very short sentences are quoted only where there is nothing else, and are cut after a word. No
    sentences give None.
    """
    if not spans:
        return None
    long_enough = [span for span in spans if span[1] - span[0] >= MIN_SENTENCE]
    finished = [span for span in long_enough if _is_finished(text[slice(*span)])]
    short = [span for span in finished if span[1] - span[0] <= MAX_SENTENCE]
    if finished and not short:
        return min(finished, key=lambda span: (span[1] - span[0], span[0]))
    candidates = short or long_enough or [max(spans, key=lambda span: (span[1] - span[0], -span[0]))]
    best = max(candidates, key=lambda span: (_score(text[slice(*span)], terms), -span[0]))
    return best if short else _cut(text, best)


def _is_finished(sentence: str) -> bool:
    """Whether a text ends like a sentence: with a full stop that is not that of an initial, and opens with a word."""
    return _FINISHED.search(sentence) is not None and not sentence[:1].islower()


def _score(sentence: str, terms: Mapping[str, float]) -> float:
    words = [word.lower() for word in _WORD.findall(sentence)]
    pairs = {f"{first} {second}" for first, second in pairwise(words)}
    weight = sum(weight for term, weight in terms.items() if term in pairs or term in words)
    return round(weight / math.sqrt(10 + len(words)), 9)


def _cut(text: str, span: tuple[int, int]) -> tuple[int, int]:
    start, end = span
    if end - start <= MAX_SENTENCE:
        return span
    cut = text.rfind(" ", start + MIN_SENTENCE, start + MAX_SENTENCE)
    return start, cut if cut > 0 else start + MAX_SENTENCE
