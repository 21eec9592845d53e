"""Passages read closely: their sentences as words, and how well each sentence fits what a question asks."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from hades.ports.graph import Passage
from hades.retrieval.ranking.word_overlap import content_words, short_title, words, words_at
from hades.text.sentences import sentences
from hades.text.word_memory import remember_words

Floats = NDArray[np.float64]

_ENDINGS = ("ations", "ation", "ments", "ment", "ers", "ors", "ing", "ies", "ed", "er", "or", "es", "s")
_SHORTEST_ROOT = 4  # letters that stay when an ending goes
# One pattern each: a search for either at once cannot skip to the next capital or digit and takes twice as long.
_CAPITALISED = re.compile(r"[^\W\d_a-z][\w'’-]+")
_CAPITALISED_ASCII = re.compile(r"[A-Z][\w'-]+", re.ASCII)
_YEAR = re.compile(r"[0-9](?<!\w.)[0-9]{3}\b", re.ASCII)
_YEAR_ANYWHERE = re.compile(r"\b\d{4}\b")
_NAME_RUN = re.compile(
    r"(?<!\w)[^\W\d_a-z][\w'’-]*(?:\s+(?:(?:of|the|de|la|von|van|for|and)\s+){0,2}[^\W\d_a-z][\w'’-]*)*"
)
# The same for ASCII. It begins with a capital, which the search skips to; what stands before it is looked at then.
_NAME_RUN_ASCII = re.compile(
    r"[A-Z](?<!\w.)[\w'-]*(?:[\s\x1c-\x1f]+(?:(?:of|the|de|la|von|van|for|and)[\s\x1c-\x1f]+){0,2}[A-Z][\w'-]*)*",
    re.ASCII,
)
_NAME_LETTERS = 5
_SHORTEST_TITLE = 3  # letters; shorter ones stand inside anything
LINK = 0.3  # what it counts that a sentence names a title, before the question's words are found beside it


@dataclass(frozen=True)
class Reading:
    """A passage in sentences: as written, as words with blanks around each, as sets of roots.

    `names` are the stems of the words that it writes with a capital and of its years; `title_names` of its title.
    """

    title: str
    name: str  # the title without its brackets and what follows a comma, as words with blanks around each
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
    split = [*words_at(text, spans), *map(words, facts)]
    roots = tuple([frozenset(map(root, sentence)) for sentence in split])
    spoken_title = words(title)
    title_roots = frozenset(map(root, spoken_title))
    return Reading(
        title,
        _name(title),
        written,
        tuple([f" {' '.join(sentence)} " for sentence in split]),
        roots,
        title_roots,
        title_roots.union(*roots),
        _find_capitalised("\n".join((title, text, *facts))),
        _stem_names(title),
        bool(facts),
        tuple(map(_find_phrases, written)),
        f" {' '.join(spoken_title)} ",
    )


def name_stem(word: str) -> str:
    """The first letters of a name, so that a country is found where its people are named."""
    return word[:_NAME_LETTERS]


def _find_capitalised(text: str) -> frozenset[str]:
    """Stems of the words with a capital and of the years; none of them reaches from one sentence into the next."""
    names, years = (_CAPITALISED_ASCII, _YEAR) if text.isascii() else (_CAPITALISED, _YEAR_ANYWHERE)
    return _stem_names(" ".join(names.findall(text) + years.findall(text)))


def _stem_names(text: str) -> frozenset[str]:
    """Stems of the words of a text that carry meaning, without the shortest."""
    return frozenset([name_stem(word) for word in content_words(text) if len(word) > 2])


def _find_phrases(sentence: str) -> frozenset[str]:
    """The names of a sentence in full, without the function words before them."""
    runs = (_NAME_RUN_ASCII if sentence.isascii() else _NAME_RUN).findall(sentence)
    return frozenset(filter(None, map(_spell_name, runs)))


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
        return self._question_weights.share(held)

    def fit(self, held: AbstractSet[str]) -> float:
        """How much of what is asked about the names these roots hold, in [0, 1]."""
        return self._relation_weights.share(held)

    def fit_each(self, reading: Reading) -> list[float]:
        """What `fit` gives for each sentence of a reading."""
        return self._relation_weights.share_each(reading.all_roots, reading.roots)

    @cached_property
    def _question_weights(self) -> _Weights:
        return _Weights(self.rarity, tuple(self.rarity))

    @cached_property
    def _relation_weights(self) -> _Weights:
        return _Weights(self.rarity, self.relation)


class _Weights:
    """Words with their weights, for many sets that are asked how much of them they hold."""

    def __init__(self, weights: Mapping[str, float], among: Sequence[str]) -> None:
        self._words = frozenset(among)
        self._pairs = tuple((word, weights[word]) for word in among)
        self._total = sum(weights[word] for word in among)

    def share(self, held: AbstractSet[str]) -> float:
        """The weight of the words that a set holds over that of all, added in the order in which they were given."""
        common = self._words & held
        if not common or self._total <= 0.0:
            return 0.0
        weight = 0.0
        for word, own in self._pairs:
            if word in common:
                weight += own
        return weight / self._total

    def share_each(self, everything: AbstractSet[str], parts: Sequence[AbstractSet[str]]) -> list[float]:
        """The share of each of the sets that make up `everything`; words that it lacks are looked for in none."""
        common = self._words & everything
        if not common or self._total <= 0.0:
            return [0.0] * len(parts)
        pairs = [pair for pair in self._pairs if pair[0] in common]
        found = []
        for held in parts:
            weight = 0.0
            for word, own in pairs:
                if word in held:
                    weight += own
            found.append(weight / self._total)
        return found


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
        longest = root(max(named.name.split(), key=len))  # looking it up is much faster than searching a text
        for k, naming in enumerate(readings):
            if longest in naming.all_roots and k != i and naming.name != named.name and named.name in whole[k]:
                pairs = zip(naming.spoken, fits[k], strict=True)
                found[k, i] = max((LINK + fit for spoken, fit in pairs if named.name in spoken), default=0.0)
    return found


@remember_words(1 << 16)
def root(word: str) -> str:
    """A word without its endings, those of doers too, so that a director is found where something is directed."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_ROOT:
            return word[: -len(ending)]
    return word[:-1] if word.endswith("s") and len(word) == _SHORTEST_ROOT else word


def _name(title: str) -> str:
    short = short_title(title)
    first = short.partition(",")[0]
    return f" {' '.join(words(first if len(first) > _SHORTEST_TITLE else short))} "
