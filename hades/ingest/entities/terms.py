"""Noun phrases in lower case: "machine learning", "support vector machine", "Markov chain".

A light chunker: a term is two to four words that hang together, none of them a function word, a common verb or an
adverb, the last one able to be a noun by its ending. Which terms are worth knowing is decided by `gazetteer`, from in
how many texts and how much more than by chance the words meet.
"""

from __future__ import annotations

import numpy as np

from hades.text.arrays import Flags, Longs
from hades.text.letters import LINK, SPACE
from hades.text.tokens import ALL_CAPS, CAPITAL, CODE_LIKE, DIGIT_FIRST, Tokens
from hades.text.word_lists import FUNCTION_WORDS, TERM_BREAKERS

MAX_TERM_WORDS = 4
_SHORTEST = 3
_NOT_LAST = ("ed", "ly", "ous", "ful", "ive", "ible", "able", "ical", "less", "ize", "ise")
_LAST_ANYWAY = frozenset(
    ("adjective", "archive", "bed", "exercise", "feed", "need", "noise", "premise", "seed", "speed")
)


def term_spans(tokens: Tokens, starts: Flags) -> tuple[Longs, Longs]:
    """Every run of two to four words that could be a term, as rows [first, last) of the tokens."""
    inner, final = _inner_words(tokens, starts), _final_words(tokens)
    follows = ((tokens.gap & ~np.uint16(SPACE | LINK)) == 0) & ~starts
    firsts: list[Longs] = []
    lasts: list[Longs] = []
    run = np.flatnonzero(inner)
    for size in range(2, MAX_TERM_WORDS + 1):
        run = run[run + size <= len(tokens)]
        tail = run + size - 1
        alive = inner[tail] & follows[tail]
        run, tail = run[alive], tail[alive]
        ended = final[tail]
        firsts.append(run[ended])
        lasts.append(tail[ended] + 1)
    return np.concatenate(firsts), np.concatenate(lasts)


def _inner_words(tokens: Tokens, starts: Flags) -> Flags:
    """Words that may stand in a term; a capital is allowed inside a sentence, where it is no accident of position."""
    shape = tokens.shape
    plain = tokens.where(_may_be_inside)
    capital = (shape & CAPITAL) != 0
    allowed: Flags = plain & ((shape & (DIGIT_FIRST | CODE_LIKE)) == 0) & ~(capital & starts)
    return allowed


def _final_words(tokens: Tokens) -> Flags:
    """Words that may end a term: written in lower case, with the ending of a noun."""
    final: Flags = tokens.where(_may_be_last) & ((tokens.shape & (CAPITAL | ALL_CAPS)) == 0)
    return final


def _may_be_inside(word: str) -> bool:
    return (
        len(word) >= _SHORTEST
        and word not in FUNCTION_WORDS
        and word not in TERM_BREAKERS
        and not word.endswith("ly")
        and not word.isdigit()
    )


def _may_be_last(word: str) -> bool:
    return len(word) > _SHORTEST and (not word.endswith(_NOT_LAST) or word in _LAST_ANYWAY)
