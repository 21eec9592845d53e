"""Bridges between passages: what one tells that leads to another, and what of the question the other adds.

The last step of a question is rarely about a title that the first passage spells. "When was the country that produced
Fist Power taken by the British?": the passage of the film says Hong Kong, the answer stands under "British Hong Kong".
So names count word by word, by their first letters ("Sri Lanka" leads to "Sri Lankan"), where the question does not say
them; and more where the second passage holds words of the question that the first lacks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hades.retrieval.ranking.sentence_match import Floats, QuestionWords, Reading, name_stem

_MANY_NAMES = 3.0  # rarity of the names that two texts share beyond which more do not count


@dataclass(frozen=True)
class Bridges:
    """(n, n) arrays; at [k, i] what leads from passage k to passage i, in [0, 1]; 0 between passages of one title.

    `titles`: rarity of the new words of i's title that k tells. `covers`: their share of the new words of the title.
    `names`: rarity of the new names that both texts hold. `adds`: share of the question's words that i has and k lacks.
    """

    titles: Floats
    covers: Floats
    names: Floats
    adds: Floats

    @cached_property
    def arriving(self) -> dict[str, Floats]:
        """Matrices whose columns say what leads to a passage, by the name of the feature."""
        return {
            "bridge_title": self.titles,
            "bridge_cover": self.covers,
            "bridge_names": self.names,
            "bridge_title_adds": self.titles * self.adds,
            "bridge_cover_adds": self.covers * self.adds,
            "bridge_names_adds": self.names * self.adds,
            "adds": self.adds,
        }

    @cached_property
    def leaving(self) -> dict[str, Floats]:
        """Matrices whose rows say what a passage leads to, by the name of the feature."""
        return {"leads_to_title": self.titles, "leads_to_names": self.names}


def find_bridges(readings: Sequence[Reading], want: QuestionWords, holds: Floats | None = None) -> Bridges:
    """Compare every passage with every other; nothing is read. `holds` are the `hold_shares`, where they are known."""
    asked = {name_stem(word) for word in want.text.split()}
    words = sorted(set().union(*(reading.names for reading in readings)) - asked)
    place = {word: column for column, word in enumerate(words)}
    told = _marks([reading.names for reading in readings], place)
    title = _marks([reading.title_names for reading in readings], place)
    rarity = np.log((len(readings) + 1) / (told.sum(axis=0) + 0.5)) / np.log(len(readings) + 1)
    rare, other = told * rarity, _other_titles(readings)
    new_words = np.maximum(title.sum(axis=1), 1.0)
    holds = hold_shares(readings, want) if holds is None else holds
    return Bridges(
        titles=other * np.minimum(1.0, rare @ title.T),
        covers=other * (told @ title.T) / new_words,
        names=other * np.minimum(1.0, rare @ told.T / _MANY_NAMES),
        adds=(holds == 0.0).astype(np.float64) @ holds.T,
    )


def bridge_columns(bridges: Bridges, voice: Floats) -> dict[str, Floats]:
    """What leads to each passage from the good ones, and from each to them; `voice` (n,) says how good each is."""
    return lead_to(bridges.arriving, voice) | lead_from(bridges.leaving, voice)


def lead_to(named: dict[str, Floats], voice: Floats) -> dict[str, Floats]:
    """For each passage the most that a matrix has in its column, each row by its voice; all matrices at once."""
    found = (np.array(list(named.values())) * voice[:, None]).max(axis=1)
    return dict(zip(named, found, strict=True))


def lead_from(named: dict[str, Floats], voice: Floats) -> dict[str, Floats]:
    """For each passage the most that a matrix has in its row, each column by its voice; all matrices at once."""
    found = (np.array(list(named.values())) * voice).max(axis=2)
    return dict(zip(named, found, strict=True))


def hold_shares(readings: Sequence[Reading], want: QuestionWords) -> Floats:
    """(n, words): what of the question each passage holds, by rarity; a passage with every word sums to 1."""
    place = {word: column for column, word in enumerate(want.rarity)}
    rarity = np.array(list(want.rarity.values()), np.float64)
    marks = _marks([reading.all_roots for reading in readings], place)
    return marks * rarity / max(sum(want.rarity.values()), 1e-9)


def _marks(sets: Sequence[frozenset[str]], place: dict[str, int]) -> Floats:
    """(n, words) 1 where a set holds a word."""
    marks, known = np.zeros((len(sets), len(place))), frozenset(place)
    common = [known & held for held in sets]
    columns = [place[word] for own in common for word in own]
    marks[np.repeat(np.arange(len(sets)), [len(own) for own in common]), columns] = 1.0
    return marks


def _other_titles(readings: Sequence[Reading]) -> Floats:
    """(n, n) 0 between passages of one title, else 1."""
    codes: dict[str, int] = {}
    names = np.array([codes.setdefault(reading.name, len(codes)) for reading in readings])
    other: Floats = (names[:, None] != names[None, :]).astype(np.float64)
    return other
