"""Which thing each mention means: by default what its name stands for, in doubt what the document is about.

One sense a document: all mentions of a name in a document mean the same thing. A name with several senses goes to the
one the document itself states, else to the one whose documents share most other names with this one, else to a neutral
thing of that name. Short forms (family names, initials, acronyms) go to the only full form the document holds.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from hades.ingest.entities.kinds import entity_type_of, kind_of_words
from hades.ingest.entities.names import Names, Origin
from hades.ingest.entities.rules import EntityRules
from hades.ingest.entities.senses import Sense, StatedSenses
from hades.ingest.entities.short_forms import find_short_forms
from hades.text.arrays import Flags, Ints, Longs
from schemas.graph_types import EntityType

_NEIGHBOUR_DOCUMENTS = 64


@dataclass(frozen=True)
class SenseResolution:
    """Every sense there is, which one each (document, name) pair means, and what was decided document by document."""

    senses: tuple[Sense, ...]
    pairs: Longs  # sorted document * n_names + name
    meaning: Ints  # beside `pairs`, a row of `senses`
    of_name: Ints  # the sense a name means where nothing else is said, -1 when it has none
    decisions: tuple[tuple[str, int, str], ...]  # (name as shown, sense, rule)
    stated: StatedSenses
    canonical: Ints

    def means(self, document: Longs, name: Longs) -> Longs:
        """The sense each document means by a name (-1 for none), whether or not its text holds it."""
        known = np.flatnonzero(name >= 0)
        sense = np.full(len(name), -1, dtype=np.int64)
        sense[known] = self.of_name[name[known]]
        code = document[known] * len(self.of_name) + name[known]
        if len(self.pairs):
            place = np.minimum(np.searchsorted(self.pairs, code), len(self.pairs) - 1)
            held = self.pairs[place] == code
            sense[known[held]] = self.meaning[place[held]]
            known = known[~held]
        row = self.canonical[name[known]]
        for index in known[np.isin(row, self.stated.doubtful())].tolist() if len(known) else ():
            claims = self.stated.claims[int(self.canonical[name[index]])]
            own = [one for one in claims if int(document[index]) in self.senses[one].documents]
            sense[index] = own[0] if len(own) == 1 else sense[index]
        return sense


class Senses:
    """A growing list of senses, looked up by the canonical name they stand for."""

    def __init__(self, names: Names, display: Sequence[str], stated: StatedSenses) -> None:
        self._names, self._display, self._stated = names, display, stated
        self.all: list[Sense] = list(stated.senses)
        self._made: dict[int, int] = {}
        self._symbols = names.has(Origin.SYMBOL).tolist()

    def name_all(self, rows: Longs) -> list[int]:
        """The default sense of each of these canonical names."""
        return [
            self.default(row, words) for row, words in zip(rows.tolist(), self._names.plain.take(rows), strict=True)
        ]

    def claims(self, row: int) -> tuple[int, ...]:
        """The stated senses a canonical name may mean."""
        return self._stated.claims.get(row, ())

    def shown(self, row: int) -> str:
        """How a name is shown."""
        return self._display[row]

    def default(self, row: int, words: tuple[str, ...]) -> int:
        """The sense of a canonical name where the document does not tell: its only one, the plain or a neutral one.

        `words` are those of the name.
        """
        claims = self.claims(row)
        if len(claims) == 1:
            return claims[0]
        plain = [index for index in claims if not self.all[index].qualifier]
        return plain[0] if len(plain) == 1 else self._neutral(row, words)

    def _neutral(self, row: int, words: tuple[str, ...]) -> int:
        if row not in self._made:
            name = self._display[row]
            kind = kind_of_words(words, name[:1].isupper())
            chosen = EntityType.CODE_SYMBOL if self._symbols[row] else entity_type_of(name, kind)
            self._made[row] = len(self.all)
            self.all.append(Sense(name, name, "", chosen, kind))
        return self._made[row]


def resolve_mentions(
    names: Names,
    canonical: Ints,
    display: Sequence[str],
    stated: StatedSenses,
    pairs: Longs,
    definitions: Iterable[tuple[int, int, int]],
    rules: EntityRules,
    beside: tuple[Longs, Longs] = (np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)),
) -> SenseResolution:
    """The meaning of every pair. `definitions` are (document, short name, long name) that texts explain.

    `beside` are the pairs of all other names: the document and a number for what each name means.
    """
    senses = Senses(names, display, stated)
    document, name = pairs // max(1, len(names)), pairs % max(1, len(names))
    row = canonical[name].astype(np.int64)
    doubtful = np.isin(row, stated.doubtful())
    of_row = np.full(len(names), -1, dtype=np.int32)
    single = [(value, which[0]) for value, which in stated.claims.items() if len(which) == 1]
    of_row[[value for value, _ in single]] = [sense for _, sense in single]
    unclaimed = np.flatnonzero((of_row < 0) & (canonical == np.arange(len(names))))
    of_row[unclaimed] = senses.name_all(unclaimed)
    of_name = of_row[canonical]
    meaning = of_name[name].copy()
    decisions: set[tuple[str, int, str]] = set()
    for index, sense in _tell_homonyms(senses, document, row, meaning, doubtful, beside):
        if meaning[index] != sense:
            meaning[index] = sense
            decisions.add((display[name[index]], sense, "homonym"))
    for form in find_short_forms(names, (document, name), meaning, senses.all, stated.title_of, definitions):
        shown = display[name[form.pair]]
        if meaning[form.pair] != form.sense and (shown, senses.all[form.sense].name) not in rules.kept_apart:
            meaning[form.pair] = form.sense
            decisions.add((shown, form.sense, form.rule))
    return SenseResolution(tuple(senses.all), pairs, meaning, of_name, tuple(sorted(decisions)), stated, canonical)


def _tell_homonyms(
    senses: Senses, document: Longs, row: Longs, meaning: Ints, doubtful: Flags, beside: tuple[Longs, Longs]
) -> list[tuple[int, int]]:
    """For each doubtful pair the sense its document speaks for, where one stands out."""
    if not doubtful.any():
        return []
    concerned = {int(here) for here in document[doubtful]}
    for value in {int(value) for value in row[doubtful]}:
        concerned.update(*(senses.all[sense].documents[:_NEIGHBOUR_DOCUMENTS] for sense in senses.claims(value)))
    around = _Neighbourhood(
        np.concatenate([document[~doubtful], beside[0]]),
        np.concatenate([meaning[~doubtful], beside[1] + len(senses.all)]),
        concerned,
    )
    told: list[tuple[int, int]] = []
    for index in np.flatnonzero(doubtful).tolist():
        claims = senses.claims(int(row[index]))
        here = int(document[index])
        own = [sense for sense in claims if here in senses.all[sense].documents]
        if len(own) > 1:  # code that differs in capitals only
            own = [sense for sense in own if senses.all[sense].name == senses.shown(int(row[index]))]
        if len(own) == 1:
            told.append((index, own[0]))
            continue
        scores = [(around.shared(here, senses.all[sense].documents), sense) for sense in claims]
        best = max(score for score, _ in scores)
        leaders = [sense for score, sense in scores if score == best]
        if best > 0 and len(leaders) == 1:
            told.append((index, leaders[0]))
    return told


class _Neighbourhood:
    """What documents speak of, so far as it is beyond doubt; rare things count more."""

    def __init__(self, document: Longs, meaning: Longs, concerned: set[int]) -> None:
        self._of: dict[int, set[int]] = defaultdict(set)
        chosen = np.isin(document, np.array(sorted(concerned), dtype=np.int64))
        for here, sense in zip(document[chosen].tolist(), meaning[chosen].tolist(), strict=True):
            self._of[here].add(sense)
        count = np.bincount(meaning, minlength=1)
        total = max(2, int(document.max(initial=0)) + 1)
        self._rarity = [math.log(total / value) if value else 0.0 for value in count.tolist()]

    def shared(self, here: int, documents: Sequence[int]) -> float:
        """How much a document shares with some others."""
        others: set[int] = set()
        for document in documents[:_NEIGHBOUR_DOCUMENTS]:
            others |= self._of.get(document, set())
        return math.fsum(self._rarity[sense] for sense in self._of.get(here, set()) & others)
