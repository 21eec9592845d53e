"""Acronyms that a text itself explains: "support vector machine (SVM)".

The letters must be the initials of the words before it, small words skipped: the algorithm of Schwartz and Hearst
(2003), restricted to initials. A definition is the best evidence there is that the long form is a name.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hades.text.arrays import Flags, Longs
from hades.text.letters import CLOSE, OPEN
from hades.text.tokens import ALL_CAPS, CAPITAL, CODE_LIKE, Tokens

_SKIPPED = frozenset(["of", "the", "and", "for", "in", "on", "to", "a", "an", "with", "by", "de", "la"])
_LONGEST = 8


@dataclass(frozen=True)
class Definitions:
    """Where texts explain acronyms: the row of the acronym, and the rows [first, last) of what it stands for."""

    short: Longs
    first: Longs
    last: Longs


def find_definitions(tokens: Tokens, starts: Flags) -> Definitions:
    """Every acronym in parentheses whose letters are the initials of the words before them."""
    rows = _find_bracketed(tokens)
    sentence = np.maximum.accumulate(np.where(starts, np.arange(len(tokens)), 0)) if len(tokens) else rows
    short: list[int] = []
    first: list[int] = []
    for row, begin in zip(rows.tolist(), sentence[np.maximum(rows - 1, 0)].tolist(), strict=True):
        letters = tokens.folded[tokens.word[row]]
        plural = letters.endswith("s") and not tokens.shape[row] & ALL_CAPS
        found = _long_form(tokens, row, begin, letters[:-1] if plural else letters)
        if found is not None:
            short.append(row)
            first.append(found)
    return Definitions(
        np.array(short, dtype=np.int64), np.array(first, dtype=np.int64), np.array(short, dtype=np.int64)
    )


def _find_bracketed(tokens: Tokens) -> Longs:
    """Rows of single words in parentheses that are written as acronyms."""
    if len(tokens) < 2:
        return np.zeros(0, dtype=np.int64)
    opened = (tokens.gap & OPEN) != 0
    closed = np.zeros(len(tokens), dtype=np.bool_)
    closed[:-1] = (tokens.gap[1:] & CLOSE) != 0
    closed[:-1] |= tokens.text[1:] != tokens.text[:-1]  # whatever stands after the last word of a text closes it
    closed[-1] = True
    mixed = ((tokens.shape & CODE_LIKE) != 0) & ((tokens.shape & CAPITAL) != 0)
    acronym = ((tokens.shape & ALL_CAPS) != 0) | mixed
    size = tokens.end - tokens.start
    rows: Longs = np.flatnonzero(opened & closed & acronym & (size >= 2) & (size <= _LONGEST))
    return rows[rows > 0]


def _long_form(tokens: Tokens, row: int, begin: int, letters: str) -> int | None:
    """The row where the long form begins, letters read backwards against the words; None when they do not fit."""
    left = len(letters) - 1
    at = row - 1
    words = 0
    while at >= begin and words <= 2 * len(letters):
        word = tokens.folded[tokens.word[at]]
        if word[0] == letters[left]:
            left -= 1
            if left < 0:
                return at if row - at > 1 else None
        elif word not in _SKIPPED:
            return None
        at -= 1
        words += 1
    return None
