"""Names that lead from a sentence that fits the question to other passages.

"What is the record label of the songwriter of Up on Cripple Creek?": the passage of the song says in a sentence with
the question's words that Robbie Robertson wrote it. The answer stands under an album of his whose title is new, so no
title leads there, but the whole name does. A name counts by its rarity and by how well its sentence fits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from hades.retrieval.ranking.bridge_features import lead_from, lead_to
from hades.retrieval.ranking.sentence_match import LINK, Floats, QuestionWords, Reading, root

_ONE_WORD = 0.6  # what a name of one word counts of a longer one
_COMMON = 24  # a name that more passages hold leads nowhere


@dataclass(frozen=True)
class SentenceBridges:
    """(n, n) arrays; at [k, i] the best name that a sentence of k spells and i holds; 0 between passages of one title.

    `fitting`: its rarity, times how well the sentence of k fits what is asked about the names. `holding`: its rarity,
    times how much of the whole question the sentence holds. `rare`: its rarity alone. `titled`: as `fitting`, of names
    in the title of i.
    """

    fitting: Floats
    holding: Floats
    rare: Floats
    titled: Floats


def find_sentence_bridges(readings: Sequence[Reading], want: QuestionWords) -> SentenceBridges:
    """Compare every passage with every other; nothing is read."""
    n = len(readings)
    steps: list[tuple[int, int]] = []
    values: list[tuple[float, float, float, float]] = []
    titles, spoken_titles = [one.title for one in readings], [one.spoken_title for one in readings]
    for name, rows in _find_holders(readings, want).items():
        n_titles = len({titles[row] for row in rows})
        if n_titles == 1:
            continue
        rarity = math.log((n + 1) / (n_titles + 0.5)) / math.log(n + 1)
        rarity *= 1.0 if name.count(" ") > 2 else _ONE_WORD
        in_title = [name in spoken_titles[row] for row in rows]
        for k in rows:
            if name in readings[k].name_places:
                fit, share = _fit_name(readings[k], name, want)
                fitting, holding = rarity * (LINK + fit), rarity * (LINK + share)
                for i, is_titled in zip(rows, in_title, strict=True):
                    if titles[i] != titles[k]:
                        steps.append((k, i))
                        values.append((fitting, holding, rarity, fitting if is_titled else 0.0))
    found = np.zeros((4, n, n))
    if steps:
        sources, targets = np.array(steps).T
        for matrix, column in zip(found, np.array(values).T, strict=True):
            np.maximum.at(matrix, (sources, targets), column)
    return SentenceBridges(*found)


def sentence_bridge_columns(
    bridges: SentenceBridges, adds: Floats, remaining: Floats, voice: Floats
) -> dict[str, Floats]:
    """What leads to each passage from the good ones; `voice` (n,) says how good each is.

    `adds` (n, n): what of the question i has and k lacks. `remaining` (n, n): cosine of i with what k leaves.
    """
    arriving = {
        "name_fits": bridges.fitting,
        "name_holds": bridges.holding,
        "name_rare": bridges.rare,
        "name_titled": bridges.titled,
        "name_fits_adds": bridges.fitting * adds,
        "name_rare_adds": bridges.rare * adds,
        "name_fits_remaining": bridges.fitting * remaining,
    }
    return lead_to(arriving, voice) | lead_from({"leads_by_name": bridges.fitting}, voice)


def _find_holders(readings: Sequence[Reading], want: QuestionWords) -> dict[str, list[int]]:
    """The passages that hold each name as whole words, where they are at least two and not too many.

    Names are those that a passage spells and neither its title nor the question does.
    """
    longest = {name: _longest_root(name) for one in readings for name in one.name_places if name not in want.text}
    holders: dict[str, list[int]] = {word: [] for word in longest.values()}
    for row, reading in enumerate(readings):
        for word in holders.keys() & reading.all_roots:
            holders[word].append(row)
    texts = [reading.titled_text for reading in readings]
    found = {}
    for name, word in longest.items():
        if len(holders[word]) > 1:
            rows = [row for row in holders[word] if name in texts[row]]
            if 1 < len(rows) <= _COMMON:
                found[name] = rows
    return found


def _fit_name(reading: Reading, name: str, want: QuestionWords) -> tuple[float, float]:
    """How well the best of the sentences that spell a name fits what is asked, and how much of the question one holds.

    Most names stand in one passage only, so few sentences are looked at.
    """
    sentences = [reading.roots[place] for place in reading.name_places[name]]
    return max(map(want.fit, sentences)), max(map(want.share, sentences))


@lru_cache(maxsize=1 << 14)
def _longest_root(name: str) -> str:
    """The root of the longest word of a name: looking it up is much faster than searching a text."""
    return root(max(name.split(), key=len))
