"""Mentions chunk by chunk: a text that the last derivation knew keeps its mentions unless a name in it is sought anew.

Which mentions a text holds follows from its words and from how each name that stands in it is sought (`Gazetteer`).
A name that is no longer sought, or otherwise, matters where it was mentioned; one that is sought anew wherever its
words stand. All other texts hold the mentions that they held.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hades.ingest.entities.mentions import MentionMatches
from hades.ingest.entities.names import Names
from hades.ingest.readings.text_readings import TextReadings, find_ranges
from hades.text.arrays import Bits, Flags, Hashes, Ints, Longs

_MOST = 2_000  # names sought anew; for more all texts are read


@dataclass(frozen=True)
class KnownMentions:
    """How names are sought, and of each text the mentions: names, first words counted in the text, and words."""

    sought: Hashes  # sorted
    how: Bits
    text: Hashes  # a number for each text
    count: Ints
    name: Hashes
    first: Ints
    size: Bits


Find = Callable[[Longs], MentionMatches]  # the mentions of some texts, by rows of all words


def find_again(
    read: TextReadings, names: Names, how: Bits, texts: Hashes, former: KnownMentions | None, find: Find
) -> tuple[MentionMatches, KnownMentions]:
    """The mentions of all texts, and what the next derivation needs of them. `texts` numbers the texts by content."""
    begins = np.cumsum(read.n_words) - read.n_words
    dirty = _find_dirty(read, names, how, texts, former) if former else None
    if dirty is None or former is None:
        found = find(np.arange(len(read)))
    else:
        found = _join(find(np.flatnonzero(dirty)), _take_former(names, texts, former, begins, np.flatnonzero(~dirty)))
    text = np.searchsorted(begins, found.first, side="right") - 1
    seen = np.flatnonzero(how)
    kept = KnownMentions(
        names.identity[seen],
        how[seen],
        texts,
        np.bincount(text, minlength=len(read)).astype(np.int32),
        names.identity[found.name],
        (found.first - begins[text]).astype(np.int32),
        (found.last - found.first).astype(np.uint8),
    )
    return found, kept


def _find_dirty(read: TextReadings, names: Names, how: Bits, texts: Hashes, former: KnownMentions) -> Flags | None:
    """Texts whose mentions must be found again; None when these are nearly all."""
    before = np.zeros(len(names), dtype=np.uint8)
    place = names.numbers(former.sought)
    before[place[place >= 0]] = former.how[place >= 0]
    changed = np.flatnonzero(before != how)
    anew = changed[how[changed] != 0]
    if len(anew) > _MOST:
        return None
    flipped = np.concatenate([names.identity[changed], former.sought[place < 0]])
    owner = np.repeat(np.arange(len(former.text)), former.count)
    touched = np.zeros(len(former.text), dtype=np.bool_)
    touched[owner[np.isin(former.name, flipped)]] = True
    dirty: Flags = ~np.isin(texts, former.text[~touched])
    dirty[_texts_with(read, names, anew)] = True
    return dirty


def _texts_with(read: TextReadings, names: Names, rows: Longs) -> Longs:
    """Texts in which the words of one of these names stand one after the other."""
    ends = np.cumsum(read.n_words)
    found: list[Longs] = []
    words = [names.words[names.offsets[row] : names.offsets[row + 1]] for row in rows.tolist()]
    numbers = [number for one in words if (number := _known_words(read.vocabulary, one)) is not None]
    if not numbers:
        return np.zeros(0, dtype=np.int64)
    is_first = np.zeros(len(read.vocabulary), dtype=np.bool_)
    is_first[[int(number[0]) for number in numbers]] = True
    starts = np.flatnonzero(is_first[read.word])
    opening = read.word[starts]
    for number in numbers:
        here = starts[opening == number[0]]
        for step, word in enumerate(number[1:].tolist(), 1):
            here = here[here + step < len(read.word)]
            here = here[read.word[here + step] == word]
        found.append(np.searchsorted(ends, here, side="right"))
    return np.concatenate(found)


def _known_words(vocabulary: Hashes, words: Hashes) -> Longs | None:
    """The words as rows of the vocabulary; None when one of them is not there."""
    place = np.searchsorted(vocabulary, words)
    held = place < len(vocabulary)
    return place if held.all() and (vocabulary[place] == words).all() else None


def _take_former(names: Names, texts: Hashes, former: KnownMentions, begins: Longs, clean: Longs) -> MentionMatches:
    """The mentions of texts that are as they were."""
    order = np.argsort(former.text, kind="stable")
    place = order[np.searchsorted(former.text[order], texts[clean])] if len(clean) else clean
    count = former.count[place]
    offset = np.cumsum(former.count, dtype=np.int64) - former.count
    rows = find_ranges(offset[place], count)
    first = former.first[rows].astype(np.int64) + np.repeat(begins[clean], count)
    name = names.numbers(former.name[rows]).astype(np.int32)
    return MentionMatches(name, first, first + former.size[rows])


def _join(one: MentionMatches, other: MentionMatches) -> MentionMatches:
    """The mentions of both, in order of place."""
    first = np.concatenate([one.first, other.first])
    order = np.argsort(first, kind="stable")
    name, last = np.concatenate([one.name, other.name]), np.concatenate([one.last, other.last])
    return MentionMatches(name[order], first[order], last[order])
