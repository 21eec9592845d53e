"""Finds every known name in every text: the word trie of Aho and Corasick, advanced from all positions at once.

Aho-Corasick keeps failure links because one automaton reads the text in order. Here every word of the corpus is a start
and all starts take their next step together in one array operation, so no failure links are needed. The answer is the
same leftmost-longest one (tests hold it against pyahocorasick), at a tenth of the time on millions of words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hades.text.words import CAPITAL, Bits, Flags, Hashes, Ints, Longs, Words, running

ANY_CASE, CAPITALISED, INSIDE_SENTENCE = 0, 1, 2
_SIEVE_BITS = 20
_SIEVE = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class MentionMatches:
    """Mentions in order of place: which name, and its rows [first, last) of the tokens."""

    name: Ints
    first: Longs
    last: Longs


@dataclass(frozen=True)
class _Level:
    """Steps from states of one depth to the next, as sorted `state * words + word`."""

    keys: Longs
    name: Ints  # the name that ends in each state, or -1
    ends: Flags  # whether one does
    sieve: Flags


@dataclass(frozen=True)
class Trie:
    """All known names as paths of words; `case` says how each name must be written to be meant."""

    words: Hashes  # sorted
    levels: tuple[_Level, ...]
    case: Bits


def build_trie(words: Hashes, offsets: Longs, case: Bits, sought: Flags) -> Trie:
    """The trie over names given as runs of word hashes: name i is `words[offsets[i]:offsets[i + 1]]`, where sought."""
    known, ids = np.unique(words, return_inverse=True)
    sizes = np.where(sought, np.diff(offsets), 0)
    state = np.zeros(len(sizes), dtype=np.int64)
    levels: list[_Level] = []
    for depth in range(int(sizes.max(initial=0))):
        alive = np.flatnonzero(sizes > depth)
        steps = state[alive] * len(known) + ids[offsets[alive] + depth]
        keys, state[alive] = np.unique(steps, return_inverse=True)
        name = np.full(len(keys), -1, dtype=np.int32)
        ends = alive[sizes[alive] == depth + 1]
        name[state[ends]] = ends
        sieve = np.zeros(1 << _SIEVE_BITS, dtype=np.bool_)
        sieve[_sift(keys)] = True
        levels.append(_Level(keys, name, name >= 0, sieve))
    return Trie(known, tuple(levels), case)


def find_mentions(tokens: Words, trie: Trie, starts: Flags, pieces: Flags) -> MentionMatches:
    """The leftmost-longest mentions of known names; none crosses the end of a sentence.

    `pieces` are words that are only part of a longer name, and so no mentions of what they would be alone.
    """
    length, name = _longest(tokens, trie, starts)
    length[(length == 1) & pieces] = 0
    first = np.flatnonzero(length)
    return _without_overlap(name[first], first, first + length[first])


def add_proposals(found: MentionMatches, name: Longs, first: Longs, last: Longs, n_rows: int) -> MentionMatches:
    """The mentions and, where none of them stands, the longest of the proposed spans [first, last)."""
    taken = np.zeros(n_rows + 1, dtype=np.int32)
    taken[found.first] = 1
    taken[found.last] -= 1
    covered = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(np.cumsum(taken[:-1]))])
    free = np.flatnonzero(covered[last] == covered[first])
    order = free[np.lexsort((-last[free], first[free]))]
    extra = _without_overlap(name[order].astype(np.int32), first[order], last[order])
    place = np.argsort(np.concatenate([found.first, extra.first]), kind="stable")
    return MentionMatches(
        np.concatenate([found.name, extra.name])[place],
        np.concatenate([found.first, extra.first])[place],
        np.concatenate([found.last, extra.last])[place],
    )


def _without_overlap(name: Ints, first: Longs, last: Longs) -> MentionMatches:
    """Reads spans in order and keeps each that begins after the last one kept has ended."""
    reach = np.maximum.accumulate(last)
    clear = np.ones(len(first), dtype=np.bool_)
    clear[1:] = first[1:] >= reach[:-1]
    kept = clear.copy()
    # Only spans that some earlier one reaches into must be read one by one.
    crowded = np.flatnonzero(~clear)
    free = 0
    ends, begins = last.tolist(), first.tolist()
    for index in crowded.tolist():
        if clear[index - 1]:
            free = ends[index - 1]
        if begins[index] >= free:
            kept[index] = True
            free = ends[index]
    return MentionMatches(name[kept], first[kept], last[kept])


def _longest(tokens: Words, trie: Trie, starts: Flags) -> tuple[Ints, Ints]:
    """For each row the words and the number of the longest known name that begins there; zero words where none does."""
    length = np.zeros(len(tokens), dtype=np.int32)
    name = np.full(len(tokens), -1, dtype=np.int32)
    if not trie.levels or not len(tokens):
        return length, name
    known = _known_words(tokens, trie)
    going = np.append((known >= 0)[tokens.word] & ~starts, False)
    capitals = running((tokens.shape & CAPITAL) != 0)
    first = np.where(known >= 0, _step(trie.levels[0], np.maximum(known, 0)), -1)
    row = np.flatnonzero((first >= 0)[tokens.word])
    state = first[tokens.word[row]]
    for depth, level in enumerate(trie.levels):
        if depth:
            state = _step(level, state * len(trie.words) + known[tokens.word[row + depth]])
            row, state = row[state >= 0], state[state >= 0]
        whole = np.flatnonzero(level.ends[state])
        begin, ended = row[whole], level.name[state[whole]]
        rule = trie.case[ended]
        written = capitals[begin + depth + 1] - capitals[begin]
        good = (rule == ANY_CASE) | (written > (rule == INSIDE_SENTENCE) * starts[begin])
        length[begin[good]], name[begin[good]] = depth + 1, ended[good]
        on = going[row + depth + 1]
        row, state = row[on], state[on]
    return length, name


def _step(level: _Level, keys: Longs) -> Longs:
    """The state each step leads to, -1 for nowhere; the sieve spares most of the look-ups."""
    state = np.full(len(keys), -1, dtype=np.int64)
    maybe = np.flatnonzero(level.sieve[_sift(keys)])
    place = np.minimum(np.searchsorted(level.keys, keys[maybe]), len(level.keys) - 1)
    hit = level.keys[place] == keys[maybe]
    state[maybe[hit]] = place[hit]
    return state


def _known_words(tokens: Words, trie: Trie) -> Longs:
    """Each distinct word of the texts as a number of the trie, or -1."""
    place = np.minimum(np.searchsorted(trie.words, tokens.vocabulary), len(trie.words) - 1)
    return np.where(trie.words[place] == tokens.vocabulary, place, -1)


def _sift(keys: Longs) -> Longs:
    """A short hash of each step, to turn away nearly all steps that lead nowhere before the exact look-up."""
    mixed = keys.astype(np.uint64) * _SIEVE
    return (mixed >> np.uint64(64 - _SIEVE_BITS)).astype(np.int64)
