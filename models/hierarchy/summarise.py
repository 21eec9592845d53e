"""What to call a topic and what to quote for it: characteristic terms, and sentences that use them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from models.hierarchy.arrays import NONE, Labels
from models.hierarchy.stop_words import STOP_WORDS

_WORD = re.compile(r"\w+", re.UNICODE)
_TERM = re.compile(r"(?u)\b[^\W\d_]\w+\b")
_FINISHED = re.compile(r"(?:[!?]|(?<!\b[A-Z])\.)[\"\u201d\u2019')\]]*$")
MIN_SENTENCE, MAX_SENTENCE = 40, 320


@dataclass(frozen=True)
class TermCounts:
    """Every term that names say, as often as they say it: the name's row and the term's code.

    A word has its place in `words` as its code; a pair of words has one beyond them.
    """

    rows: NDArray[np.int64]
    codes: NDArray[np.int64]
    words: list[str]

    def term(self, code: int) -> str:
        """The term of a code."""
        if code < len(self.words):
            return self.words[code]
        first, second = divmod(code - len(self.words), len(self.words))
        return f"{self.words[first]} {self.words[second]}"


def term_counts(names: Sequence[str]) -> TermCounts:
    """Words and word pairs of names, without stop words and numbers; there may be none."""
    numbers: dict[str, int] = {}
    said: list[int] = []
    lengths: list[int] = []
    for name in names:
        before = len(said)
        said += [
            numbers.setdefault(word, len(numbers)) for word in _TERM.findall(name.lower()) if word not in STOP_WORDS
        ]
        lengths.append(len(said) - before)
    words = np.array(said, np.int64)
    rows = np.repeat(np.arange(len(names)), lengths)
    paired = np.flatnonzero(rows[1:] == rows[:-1])
    pairs = len(numbers) * (words[paired] + 1) + words[paired + 1]
    return TermCounts(np.concatenate([rows, rows[paired]]), np.concatenate([words, pairs]), list(numbers))


def characteristic_terms(
    said: TermCounts, labels: Labels, groups: int, limit: int, wanted: Sequence[int] | None = None
) -> dict[int, dict[str, float]]:
    """For each wanted group, or each, the terms that mark it, heaviest first: how often against how common they are.

    Class-based TF-IDF (Grootendorst 2022): frequency in the group times log(1 + mean group length / frequency overall).
    """
    label = labels[said.rows]
    label, codes = label[label != NONE], said.codes[label != NONE]
    terms, places, overall = np.unique(codes, return_inverse=True, return_counts=True)
    weigh = np.log1p(len(codes) / max(1, groups) / np.maximum(overall, 1))
    found = {}
    for group in range(groups) if wanted is None else wanted:
        held, counts = np.unique(places[label == group], return_counts=True)
        found[group] = _top(said, terms[held], np.round(counts * weigh[held], 4), limit)
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
    best = max(candidates, key=lambda span: (_says(text[slice(*span)], terms), -span[0]))
    return best if short else _cut(text, best)


def _is_finished(sentence: str) -> bool:
    """Whether a text ends like a sentence: with a full stop that is not that of an initial, and opens with a word."""
    return _FINISHED.search(sentence) is not None and not sentence[:1].islower()


def _top(said: TermCounts, codes: NDArray[np.int64], scores: NDArray[np.float64], limit: int) -> dict[str, float]:
    """The heaviest terms; equal ones in alphabetical order."""
    if len(codes) > limit:
        least = np.partition(scores, len(scores) - limit)[len(scores) - limit]
        codes, scores = codes[scores >= least], scores[scores >= least]
    told = [(-score, said.term(code)) for score, code in zip(scores.tolist(), codes.tolist(), strict=True)]
    return {term: -score for score, term in sorted(told)[:limit]}


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
