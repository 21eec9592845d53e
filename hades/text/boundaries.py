"""Where sentences begin and which words hang together, read from what stands between words."""

from __future__ import annotations

import numpy as np

from hades.text.arrays import Flags
from hades.text.letters import DOT, LINK, QUOTE, SPACE, STOP
from hades.text.tokens import CAPITAL, SINGLE, Tokens
from hades.text.word_lists import ABBREVIATIONS, CONNECTORS, FUNCTION_WORDS, HONORIFICS


def sentence_starts(tokens: Tokens) -> Flags:
    """Which words open a sentence, a line or a quotation after a stop."""
    gap = tokens.gap
    dot = ((gap & DOT) != 0) & ((gap & (SPACE | QUOTE)) != 0)
    short = np.zeros(len(tokens), dtype=np.bool_)
    if len(tokens) > 1:
        abbreviated = tokens.among(ABBREVIATIONS)[:-1]
        initial = (tokens.shape[:-1] & (SINGLE | CAPITAL)) == (SINGLE | CAPITAL)
        short[1:] = abbreviated | initial
    starts: Flags = ((gap & STOP) != 0) | (dot & ~short)
    return starts


def join_to_last(tokens: Tokens, starts: Flags) -> Flags:
    """Which words may continue a name that the word before began."""
    plain = (tokens.gap & ~np.uint16(SPACE | LINK | DOT)) == 0
    dotted = (tokens.gap & DOT) != 0
    spaced = (tokens.gap & SPACE) != 0
    after_short = dotted & ~starts
    joined: Flags = plain & ~starts & (~dotted | ~spaced | after_short)
    return joined


def fragments(tokens: Tokens, starts: Flags) -> Flags:
    """Which words, taken alone, are only a piece of a longer capitalised name: Peter in "Peter Andreas Thiel"."""
    joined = join_to_last(tokens, starts)
    capital = ((tokens.shape & CAPITAL) != 0) & ~tokens.among(FUNCTION_WORDS)
    piece = np.zeros(len(tokens), dtype=np.bool_)
    if len(tokens) < 2:
        return piece
    after = capital[1:] & joined[1:]
    piece[:-1] |= after
    bridged = joined[1:-1] & tokens.among(CONNECTORS)[1:-1] & after[1:]
    piece[:-2] |= bridged
    title = starts | tokens.among(HONORIFICS)
    piece[1:] |= capital[:-1] & joined[1:] & ~title[:-1]
    return piece
