"""Short forms inside one document: Hackman for Gene Hackman, J. Smith for John Smith, SVM where the text explains it.

A short form means a full one only when the document holds exactly one that fits; what holds in one document says
nothing about the next.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from hades.ingest.entities.names import Names, Origin
from hades.ingest.entities.senses import Sense
from hades.text.arrays import Flags, Ints, Longs, running
from hades.text.letters import fold
from hades.text.word_lists import CONNECTORS, GIVEN_NAMES, WEAK_CONNECTORS
from schemas.nodes import NameType

LONGEST_PERSON = 4  # words
_JOINING = CONNECTORS | WEAK_CONNECTORS
_MAY_BE_PEOPLE = frozenset({NameType.PERSON, NameType.CONCEPT})


class ShortForm(NamedTuple):
    """A (document, name) pair that means a sense of that document, and by which rule."""

    pair: int
    sense: int
    rule: str


def find_short_forms(
    names: Names,
    pairs: tuple[Longs, Longs],
    meaning: Ints,
    senses: Sequence[Sense],
    title_of: Mapping[int, int],
    definitions: Iterable[tuple[int, int, int]],
) -> Iterator[ShortForm]:
    """Every pair of (document, name) that is a short form, explained acronyms first."""
    document, name = pairs
    yield from _explain(names, document * max(1, len(names)) + name, meaning, definitions)
    is_short, is_full = short_names(names), full_names(names)
    fits: dict[tuple[int, str], set[int]] = defaultdict(set)
    full = np.flatnonzero(is_full[name])
    told = (document[full].tolist(), names.plain.take(name[full]), meaning[full].tolist())
    for here, words, sense in zip(*told, strict=True):
        _hold(fits, here, words, sense, senses)
    for here, sense in sorted(title_of.items()):
        if senses[sense].kind not in _MAY_BE_PEOPLE:
            continue
        if _may_be_person(words := tuple(fold(senses[sense].stem).split())):
            _hold(fits, here, words, sense, senses)
    short = np.flatnonzero(is_short[name])
    for index, here, words in zip(short.tolist(), document[short].tolist(), names.plain.take(name[short]), strict=True):
        if len(words) > 1:
            handles = [(f"{words[0]} {words[-1]}", "initials")]
        else:
            handles = [(f"* {words[0]}", "family_name"), (f"{words[0]} *", "given_name")]
        for handle, rule in handles:
            found = fits.get((here, handle), ())
            if len(found) == 1:
                yield ShortForm(index, next(iter(found)), rule)
                break


def _explain(
    names: Names, codes: Longs, meaning: Ints, definitions: Iterable[tuple[int, int, int]]
) -> Iterator[ShortForm]:
    """Acronyms in documents that explain them mean what is explained."""
    rows = np.array(sorted(set(definitions)), dtype=np.int64).reshape(-1, 3)
    if not len(rows) or not len(codes):
        return
    wanted = rows[:, :1] * len(names) + rows[:, 1:]
    places = np.minimum(np.searchsorted(codes, wanted), len(codes) - 1)
    held = (codes[places] == wanted).all(axis=1)
    for short, long in places[held].tolist():
        yield ShortForm(short, int(meaning[long]), "acronym")


def _hold(
    fits: dict[tuple[int, str], set[int]], here: int, words: tuple[str, ...], sense: int, senses: Sequence[Sense]
) -> None:
    """Notes by which short forms a document may speak of a full name it holds."""
    if senses[sense].kind not in _MAY_BE_PEOPLE:
        return
    fits[here, f"* {words[-1]}"].add(sense)
    fits[here, f"{words[0][0]} {words[-1]}"].add(sense)
    if words[0] in GIVEN_NAMES:
        fits[here, f"{words[0]} *"].add(sense)


def short_names(names: Names) -> Flags:
    """Found names of one word, or of initials and a word; what is stated outright is nobody's short form."""
    sizes = np.diff(names.offsets)
    letter = names.words_where(lambda word: len(word) == 1)
    before = running(letter)
    initials = (before[names.offsets[1:]] - before[names.offsets[:-1]] == sizes - 1) & ~letter[names.offsets[1:] - 1]
    short: Flags = names.has(Origin.NAME) & ~names.has(Origin.STATED | Origin.TERM) & ((sizes == 1) | initials)
    return short


def full_names(names: Names) -> Flags:
    """Capitalised names of two to four words that could be a person's."""
    full = names.has(Origin.NAME | Origin.STATED) & names.has(Origin.CAPITAL) & ~names.has(Origin.TERM)
    sizes = np.diff(names.offsets)
    full &= (sizes > 1) & (sizes <= LONGEST_PERSON)
    rows = np.flatnonzero(full)
    full[rows] = list(map(_may_be_person, names.plain.take(rows)))
    return full


def _may_be_person(words: tuple[str, ...]) -> bool:
    if not 1 < len(words) <= LONGEST_PERSON or len(words[0]) < 2 or len(words[-1]) < 3:
        return False
    return words[-1].isalpha() and _JOINING.isdisjoint(words)
