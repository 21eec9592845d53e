"""Entities by name: every run of words in a question is looked up among the names, aliases included."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hades.ports.graph import NameMatches, Numbers
from hades.snapshot.heaps import ArrayReader
from hades.snapshot.lookup import find, hash_texts
from hades.text.analyzer import fold, spans, words

LONGEST_RUN = 16  # words; longer titles are entities, but nobody spells them out inside a question
_CACHED_TEXTS = 4096  # a turn matches its question several times, and titles and names recur between turns


def normalise(name: str) -> str:
    """A name as it is compared: its words in lower case without accents, one blank between them."""
    return " ".join(words(name))


def runs_of_words(text: str, longest: int = LONGEST_RUN) -> list[tuple[int, int, str]]:
    """Every run of at most `longest` words of a text: where it stands, and its normalised form."""
    places = spans(text)
    folded = [fold(text[start:end]) for start, end in places]
    return [
        (places[first][0], places[last - 1][1], " ".join(folded[first:last]))
        for first in range(len(places))
        for last in range(first + 1, min(first + longest, len(places)) + 1)
    ]


def outermost(starts: Sequence[int], ends: Sequence[int], numbers: Sequence[int]) -> NameMatches:
    """The matches whose span lies inside no longer one, by start, then number.

    A question has a dozen of them, for which a loop is faster than arrays.
    """
    kept: list[tuple[int, int, int]] = []
    begun, reach = -1, -1  # where the last span that was kept begins, and where it ends
    for start, less, number in sorted(zip(starts, (-end for end in ends), numbers, strict=True)):
        if -less > reach or (start == begun and -less == reach):
            kept.append((number, start, -less))
            begun, reach = start, -less
    columns = np.array(kept, np.int64).reshape(-1, 3)
    return NameMatches(columns[:, 0].copy(), columns[:, 1].copy(), columns[:, 2].copy())


class NameIndex:
    """Finds names in texts."""

    def __init__(self, arrays: ArrayReader, longest: int) -> None:
        self._hashes: NDArray[Any] = arrays["name.hash"]
        self._numbers: NDArray[np.int32] = arrays["name.number"]
        self._longest = min(longest, LONGEST_RUN)
        self._cached: dict[str, NameMatches] = {}

    def match_each(self, texts: Sequence[str]) -> list[NameMatches]:
        """See `BatchView.match_each`; the arrays are read-only, because they are cached."""
        found = {text: self._cached.get(text) for text in texts}
        missing = [text for text, matches in found.items() if matches is None]
        if missing:
            read = dict(zip(missing, self._match(missing), strict=True))
            if len(self._cached) + len(read) > _CACHED_TEXTS:
                self._cached.clear()
            self._cached.update(read)
            return [matches if (matches := found[text]) is not None else read[text] for text in texts]
        return [matches for text in texts if (matches := found[text]) is not None]

    def match_whole(self, texts: Sequence[str]) -> list[Numbers]:
        """See `BatchView.match_whole`."""
        forms = [normalise(text) for text in texts]
        asked = [place for place, form in enumerate(forms) if form and form.count(" ") < self._longest]
        rows, entries = find(self._hashes, hash_texts(forms[place] for place in asked)).spread()
        found: list[list[int]] = [[] for _ in texts]
        for row, number in zip(rows.tolist(), self._numbers[entries].tolist(), strict=True):
            found[asked[row]].append(number)
        return [np.array(numbers, np.int64) for numbers in found]

    def _match(self, texts: Sequence[str]) -> list[NameMatches]:
        """The names in each text; one look-up serves all of them, and a run that comes twice is looked up once."""
        runs = [runs_of_words(text, self._longest) for text in texts]
        forms = list(dict.fromkeys(form for own in runs for _, _, form in own))
        rows, entries = find(self._hashes, hash_texts(forms)).spread()
        known: dict[str, list[int]] = {}
        for row, number in zip(rows.tolist(), self._numbers[entries].tolist(), strict=True):
            known.setdefault(forms[row], []).append(number)
        return [self._outermost(own, known) for own in runs]

    def _outermost(self, runs: Sequence[tuple[int, int, str]], known: Mapping[str, Sequence[int]]) -> NameMatches:
        spelled = [(start, end, number) for start, end, form in runs if form in known for number in known[form]]
        if not spelled:
            return _NO_MATCHES
        starts, ends, numbers = zip(*spelled, strict=True)
        return _read_only(outermost(starts, ends, numbers))


def _read_only(found: NameMatches) -> NameMatches:
    for array in (found.numbers, found.starts, found.ends):
        array.setflags(write=False)
    return found


_NO_MATCHES = _read_only(NameMatches(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int64)))
