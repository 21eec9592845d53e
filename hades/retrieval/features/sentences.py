"""Sentences of a passage and how they fit."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from hades.ports.graph import Passage
from hades.retrieval.core.words import Floats, content_words, short_title, words
from hades.text.sentences import sentences

# Passages read closely: their sentences as words, and how well each sentence fits what a question asks.
_ENDINGS = ("ations", "ation", "ments", "ment", "ers", "ors", "ing", "ies", "ed", "er", "or", "es", "s")
_SHORTEST_ROOT = 4  # letters that stay when an ending goes
_NAME_OR_YEAR = re.compile(r"[^\W\d_a-z][\w'’-]+|\b\d{4}\b")
_NAME_RUN = re.compile(
    r"(?<!\w)[^\W\d_a-z][\w'’-]*(?:\s+(?:(?:of|the|de|la|von|van|for|and)\s+){0,2}[^\W\d_a-z][\w'’-]*)*"
)
_NAME_LETTERS = 5
_SHORTEST_TITLE = 3  # letters; shorter ones stand inside anything
_LONGEST_NAME = 6  # words
_QUALIFIER = re.compile(r"(?:[^\W_a-z][\w.'’-]*(?:,? |$)){1,4}")  # few words, each with a capital
LINK = 0.3  # what it counts that a sentence names a title, before the question's words are found beside it


@dataclass(frozen=True)
class Reading:
    """A passage in sentences: as written, as words with blanks around each, as sets of roots.

    `names` are the stems of the words that it writes with a capital and of its years; `title_names` of its title.
    """

    title: str
    name: str  # the title without its brackets and a qualifier after a comma, as words with blanks around each
    written: tuple[str, ...]
    spoken: tuple[str, ...]
    roots: tuple[frozenset[str], ...]
    title_roots: frozenset[str]
    all_roots: frozenset[str]
    names: frozenset[str] = frozenset()
    title_names: frozenset[str] = frozenset()
    has_facts: bool = False  # whether stated facts follow its own sentences, each as one more
    phrases: tuple[frozenset[str], ...] = ()  # of each sentence the names in full, as words with blanks around each
    spoken_title: str = ""  # the whole title as words with blanks around each

    @cached_property
    def own_name(self) -> str:
        """What its title names, as written; empty where the title is a sentence or a term: without a capital, in the
        title or in its text.
        """
        named = _named(self.title)
        is_term = named.islower() or (named != named.lower() and named.lower() in self.text)
        is_fit = len(self.name) > _SHORTEST_TITLE + 1 and named.count(" ") < _LONGEST_NAME
        return named if is_fit and not is_term else ""

    @cached_property
    def text(self) -> str:
        """All sentences as written."""
        return "\n".join(self.written)

    @cached_property
    def titled_text(self) -> str:
        """The title and all sentences as words with blanks around each."""
        return self.spoken_title + "".join(self.spoken)

    @cached_property
    def name_places(self) -> dict[str, tuple[int, ...]]:
        """The names in full that its title does not spell, each with the places of the sentences that do."""
        places: dict[str, tuple[int, ...]] = {}
        for place, names in enumerate(self.phrases):
            for name in names:
                places[name] = (*places.get(name, ()), place)
        return {name: own for name, own in places.items() if name not in self.spoken_title}


def read_closely(passage: Passage) -> Reading:
    """Cut a passage into sentences and words; what was read lately is remembered by its text."""
    return _read(passage.title, passage.text, passage.facts)


@lru_cache(maxsize=4096)
def _read(title: str, text: str, facts: tuple[str, ...]) -> Reading:
    spans = sentences(text) or [(0, 0)]
    written = (*[text[start:end] for start, end in spans], *facts)
    split = list(map(words, written))
    roots = tuple([frozenset(map(root, sentence)) for sentence in split])
    spoken_title = words(title)
    title_roots = frozenset(map(root, spoken_title))
    return Reading(
        title,
        f" {' '.join(words(_named(title)))} ",
        written,
        tuple([f" {' '.join(sentence)} " for sentence in split]),
        roots,
        title_roots,
        title_roots.union(*roots),
        _stem_names(" ".join(_NAME_OR_YEAR.findall("\n".join((title, text, *facts))))),
        _stem_names(title),
        bool(facts),
        tuple(frozenset(filter(None, map(_spell_name, _NAME_RUN.findall(sentence)))) for sentence in written),
        f" {' '.join(spoken_title)} ",
    )


def name_stem(word: str) -> str:
    """The first letters of a name, so that a country is found where its people are named."""
    return word[:_NAME_LETTERS]


def _stem_names(text: str) -> frozenset[str]:
    """Stems of the words of a text that carry meaning, without the shortest."""
    return frozenset([name_stem(word) for word in content_words(text) if len(word) > 2])


@lru_cache(maxsize=1 << 14)
def _spell_name(run: str) -> str:
    """A name as words with blanks around each, without the function words before it; empty where it is too short."""
    spoken = words(run)
    while spoken and not content_words(spoken[0]):
        spoken = spoken[1:]
    name = " ".join(spoken)
    return f" {name} " if len(name) >= _SHORTEST_TITLE else ""


@dataclass(frozen=True)
class QuestionWords:
    """The question's words with their rarity among the readings; `relation` are those that are no part of a name."""

    text: str
    rarity: dict[str, float]
    relation: tuple[str, ...]  # in the question's order: a sum over a set would differ in its last bit from run to run

    def share(self, held: AbstractSet[str]) -> float:
        """How much of the question these roots hold, in [0, 1]."""
        return _share(self.rarity, self.rarity, held)

    def fit(self, held: AbstractSet[str]) -> float:
        """How much of what is asked about the names these roots hold, in [0, 1]."""
        return _share(self.rarity, self.relation, held)

    def fit_each(self, reading: Reading) -> list[float]:
        """What `fit` gives for each sentence of a reading."""
        return [self.fit(roots) for roots in reading.roots]


def _share(rarity: Mapping[str, float], among: Iterable[str], held: AbstractSet[str]) -> float:
    """The rarity of the words that a set holds over that of all, added in the order in which they are given."""
    total = weight = 0.0
    for word in among:
        total += rarity[word]
        weight += rarity[word] if word in held else 0.0
    return weight / total if total > 0.0 else 0.0


def wanted(question: str, names: Sequence[str], readings: Sequence[Reading]) -> QuestionWords:
    """What a question asks for, seen from the passages at hand; `names` are the names that it spells."""
    asked = list(dict.fromkeys(root(word) for word in content_words(question)))
    counts, distinct = dict.fromkeys(asked, 0), frozenset(asked)
    for reading in readings:
        for word in distinct & reading.all_roots:
            counts[word] += 1
    held = np.array(list(counts.values()), np.float64)
    rarity = dict(zip(asked, np.log((len(readings) + 1) / (held + 0.5)).tolist(), strict=True))
    named = {root(word) for name in names for word in words(name)}
    return QuestionWords(f" {' '.join(words(question))} ", rarity, tuple(word for word in asked if word not in named))


def links(readings: Sequence[Reading], fits: Sequence[Sequence[float]]) -> Floats:
    """(n, n): at [k, i] how well the best sentence of k that names i's title fits the question; 0 where none does."""
    found = np.zeros((len(readings), len(readings)))
    whole = [reading.titled_text for reading in readings]
    for i, named in enumerate(readings):
        if len(named.name) < _SHORTEST_TITLE + 2:
            continue
        for k, naming in enumerate(readings):
            if k != i and naming.name != named.name and named.name in whole[k]:
                pairs = zip(naming.spoken, fits[k], strict=True)
                found[k, i] = max((LINK + fit for spoken, fit in pairs if named.name in spoken), default=0.0)
    return found


def share_linked(readings: Sequence[Reading]) -> float:
    """The share of passages that name another by its title, or are named so."""
    linked: set[int] = set()
    for place, named in enumerate(readings):
        naming = [
            other
            for other, one in enumerate(readings if named.own_name else ())
            if one.name != named.name and named.name in one.titled_text and named.own_name in one.text
        ]
        linked.update(naming, [place] if naming else [])
    return len(linked) / max(1, len(readings))


@lru_cache(1 << 16)
def root(word: str) -> str:
    """A word without its endings, those of doers too, so that a director is found where something is directed."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_ROOT:
            return word[: -len(ending)]
    return word[:-1] if word.endswith("s") and len(word) == _SHORTEST_ROOT else word


def _named(title: str) -> str:
    """What a title names, without a qualifier: Paris of "Paris, Texas", but the whole of "Paints, oils and resins"."""
    short = short_title(title)
    first, _, rest = short.partition(", ")
    return first if len(first) > _SHORTEST_TITLE and _QUALIFIER.fullmatch(rest) else short


# Bridges between passages: what one tells that leads to another, and what of the question the other adds. The last
# step of a question is rarely about a title that the first passage spells. "When was the country that produced Fist
# Power taken by the British?": the passage of the film says Hong Kong, the answer stands under "British Hong Kong".
# So names count word by word, by their first letters ("Sri Lanka" leads to "Sri Lankan"), where the question does
# not say them; and more where the second passage holds words of the question that the first lacks.
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


def find_bridges(readings: Sequence[Reading], want: QuestionWords, holds: Floats) -> Bridges:
    """Compare every passage with every other; nothing is read. `holds` are the `hold_shares`."""
    asked = {name_stem(word) for word in want.text.split()}
    words = sorted(set().union(*(reading.names for reading in readings)) - asked)
    place = {word: column for column, word in enumerate(words)}
    told = _marks([reading.names for reading in readings], place)
    title = _marks([reading.title_names for reading in readings], place)
    rarity = np.log((len(readings) + 1) / (told.sum(axis=0) + 0.5)) / np.log(len(readings) + 1)
    codes: dict[str, int] = {}
    titled = np.array([codes.setdefault(reading.name, len(codes)) for reading in readings])
    rare, other = told * rarity, (titled[:, None] != titled[None, :]).astype(np.float64)
    new_words = np.maximum(title.sum(axis=1), 1.0)
    return Bridges(
        titles=other * np.minimum(1.0, rare @ title.T),
        covers=other * (told @ title.T) / new_words,
        names=other * np.minimum(1.0, rare @ told.T / _MANY_NAMES),
        adds=(holds == 0.0).astype(np.float64) @ holds.T,
    )


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


# Names that lead from a sentence that fits the question to other passages. "What is the record label of the
# songwriter of Up on Cripple Creek?": the passage of the song says in a sentence with the question's words that
# Robbie Robertson wrote it. The answer stands under an album of his whose title is new, so no title leads there,
# but the whole name does. A name counts by its rarity and by how well its sentence fits.
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


@dataclass(frozen=True)
class LeadingMatrices:
    """(n, n) by the name of the feature: those whose columns say what leads to a passage, and whose rows, what from it.

    All at once, since each is asked about twice.
    """

    arriving: dict[str, Floats]
    leaving: dict[str, Floats]

    def columns(self, voice: Floats) -> dict[str, Floats]:
        """The most that leads to each passage from the good ones, and from it to them; `voice` (n,) says how good."""
        arriving = (np.array(list(self.arriving.values())) * voice[:, None]).max(axis=1)
        leaving = (np.array(list(self.leaving.values())) * voice).max(axis=2)
        return dict(zip((*self.arriving, *self.leaving), (*arriving, *leaving), strict=True))


def combine_bridges(bridges: Bridges, names: SentenceBridges, remaining: Floats) -> LeadingMatrices:
    """What leads from passage to passage; `remaining` (n, n) at [k, i]: cosine of i with what k leaves."""
    adds = bridges.adds
    arriving = {
        "bridge_title": bridges.titles,
        "bridge_cover": bridges.covers,
        "bridge_names": bridges.names,
        "bridge_title_adds": bridges.titles * adds,
        "bridge_cover_adds": bridges.covers * adds,
        "bridge_names_adds": bridges.names * adds,
        "adds": adds,
        "name_fits": names.fitting,
        "name_holds": names.holding,
        "name_rare": names.rare,
        "name_titled": names.titled,
        "name_fits_adds": names.fitting * adds,
        "name_rare_adds": names.rare * adds,
        "name_fits_remaining": names.fitting * remaining,
    }
    leaving = {"leads_to_title": bridges.titles, "leads_to_names": bridges.names, "leads_by_name": names.fitting}
    return LeadingMatrices(arriving, leaving)


def _find_holders(readings: Sequence[Reading], want: QuestionWords) -> dict[str, list[int]]:
    """The passages that hold each name as whole words, where they are at least two and not too many.

    Names are those that a passage spells and neither its title nor the question does.
    """
    texts = [reading.titled_text for reading in readings]
    found = {}
    for name in dict.fromkeys(name for one in readings for name in one.name_places if name not in want.text):
        rows = [row for row, text in enumerate(texts) if name in text]
        if 1 < len(rows) <= _COMMON:
            found[name] = rows
    return found


def _fit_name(reading: Reading, name: str, want: QuestionWords) -> tuple[float, float]:
    """How well the best of the sentences that spell a name fits what is asked, and how much of the question one holds.

    Most names stand in one passage only, so few sentences are looked at.
    """
    sentences = [reading.roots[place] for place in reading.name_places[name]]
    return max(map(want.fit, sentences)), max(map(want.share, sentences))
