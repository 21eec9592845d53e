"""Sentences of a passage and how they fit."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain

import numpy as np

from hades.ports.graph import Passage
from hades.retrieval.core.words import Floats, content_words, short_title, words
from hades.text.sentences import sentences

# Passages read closely: their sentences as words, and how well each sentence fits what a question
# asks.
_ENDINGS = (
    "ations",
    "ation",
    "ments",
    "ment",
    "ers",
    "ors",
    "ing",
    "ies",
    "ed",
    "er",
    "or",
    "es",
    "s",
)
_SHORTEST_ROOT = 4  # letters that stay when an ending goes
_NAME_OR_YEAR = re.compile(r"[^\W\d_a-z][\w'’-]+|\b\d{4}\b")
_NAME_RUN = re.compile(
    r"(?<!\w)[^\W\d_a-z][\w'’-]*(?:\s+(?:(?:of|the|de|la|von|van|for"
    r"|and)\s+){0,2}[^\W\d_a-z][\w'’-]*)*"
)
_NAME_LETTERS = 5
_SHORTEST_TITLE = 3  # letters; shorter ones stand inside anything
_LONGEST_NAME = 6  # words
_QUALIFIER = re.compile(r"(?:[^\W_a-z][\w.'’-]*(?:,? |$)){1,4}")  # few words, each with a capital
# what it counts that a sentence names a title, before the question's words are found beside it
LINK = 0.3


@dataclass(frozen=True)
class Reading:
    """A passage in sentences: as written, as words with blanks around each, as sets of roots.

    `names` are the stems of the words that it writes with a capital and of its years; `title_names`
    of its title.
    """

    title: str
    # the title without its brackets and a qualifier after a comma, as words with blanks around each
    name: str
    written: tuple[str, ...]
    spoken: tuple[str, ...]
    roots: tuple[frozenset[str], ...]
    title_roots: frozenset[str]
    all_roots: frozenset[str]
    names: frozenset[str] = frozenset()
    title_names: frozenset[str] = frozenset()
    has_facts: bool = False  # whether stated facts follow its own sentences, each as one more
    # of each sentence the names in full, as words with blanks around each
    phrases: tuple[frozenset[str], ...] = ()
    spoken_title: str = ""  # the whole title as words with blanks around each

    @cached_property
    def own_name(self) -> str:
        """What its title names, as written; empty where the title is a sentence or a term: without
        a capital, in the title or in its text.
        """
        name = _drop_qualifier(self.title)
        is_term = name.islower() or (name != name.lower() and name.lower() in self.text)
        is_fit = len(self.name) > _SHORTEST_TITLE + 1 and name.count(" ") < _LONGEST_NAME
        return name if is_fit and not is_term else ""

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
        """The names in full that its title does not spell, each with the places of the sentences
        that do.
        """
        places: dict[str, tuple[int, ...]] = {}
        for place, names in enumerate(self.phrases):
            for name in names:
                if name not in self.spoken_title:
                    places[name] = (*places.get(name, ()), place)

        return places


def read_closely(passage: Passage) -> Reading:
    """Cut a passage into sentences and words; what was read lately is remembered by its text."""
    return _read(passage.title, passage.text, passage.facts)


@lru_cache(maxsize=4096)
def _read(
    title: str,
    text: str,
    facts: tuple[str, ...],
) -> Reading:
    spans = sentences(text) or [(0, 0)]
    written = (*[text[start:end] for start, end in spans], *facts)
    sentence_words = list(map(words, written))
    roots = tuple([frozenset(map(root, sentence)) for sentence in sentence_words])
    title_words = words(title)
    title_roots = frozenset(map(root, title_words))
    names_and_years = _NAME_OR_YEAR.findall("\n".join((title, text, *facts)))
    return Reading(
        title=title,
        name=_space(words(_drop_qualifier(title))),
        written=written,
        spoken=tuple(map(_space, sentence_words)),
        roots=roots,
        title_roots=title_roots,
        all_roots=title_roots.union(*roots),
        names=_stem_names(" ".join(names_and_years)),
        title_names=_stem_names(title),
        has_facts=bool(facts),
        phrases=tuple(map(_full_names, written)),
        spoken_title=_space(title_words),
    )


def _space(spelled: Sequence[str]) -> str:
    """Words with blanks around each."""
    return f" {' '.join(spelled)} "


def _full_names(sentence: str) -> frozenset[str]:
    """The names in full that a sentence spells, as words with blanks around each."""
    return frozenset(filter(None, map(_spell_name, _NAME_RUN.findall(sentence))))


def name_stem(word: str) -> str:
    """The first letters of a name, so that a country is found where its people are named."""
    return word[:_NAME_LETTERS]


def _stem_names(text: str) -> frozenset[str]:
    """Stems of the words of a text that carry meaning, without the shortest."""
    return frozenset([name_stem(word) for word in content_words(text) if len(word) > 2])


@lru_cache(maxsize=1 << 14)
def _spell_name(run: str) -> str:
    """A name as words with blanks around each, without the function words before it; empty where it
    is too short.
    """
    name_words = words(run)
    while name_words and not content_words(name_words[0]):
        name_words = name_words[1:]

    name = _space(name_words)
    return name if len(name) >= _SHORTEST_TITLE + 2 else ""


@dataclass(frozen=True)
class QuestionWords:
    """The question's words with their rarity among the readings; `relation` are those that are no
    part of a name.
    """

    text: str
    rarity: dict[str, float]
    # in the question's order: a sum over a set would differ in its last bit from run to run
    relation: tuple[str, ...]

    def share(self, roots: AbstractSet[str]) -> float:
        """How much of the question these roots hold, in [0, 1]."""
        return _share(self.rarity, self.rarity, roots)

    def fit(self, roots: AbstractSet[str]) -> float:
        """How much of what is asked about the names these roots hold, in [0, 1]."""
        return _share(self.rarity, self.relation, roots)

    def fit_each(self, reading: Reading) -> list[float]:
        """What `fit` gives for each sentence of a reading."""
        return [self.fit(roots) for roots in reading.roots]


def _share(
    rarity: Mapping[str, float],
    among: Iterable[str],
    roots: AbstractSet[str],
) -> float:
    """The rarity of the words that a set holds over that of all, added in the order in which they
    are given.
    """
    total = weight = 0.0
    for word in among:
        total += rarity[word]
        weight += rarity[word] if word in roots else 0.0

    return weight / total if total > 0.0 else 0.0


def weigh_question_words(
    question: str,
    names: Sequence[str],
    readings: Sequence[Reading],
) -> QuestionWords:
    """What a question asks for, seen from the passages at hand; `names` are the names that it
    spells.
    """
    roots = list(dict.fromkeys(map(root, content_words(question))))

    name_roots: set[str] = set()
    for name in names:
        name_roots.update(map(root, words(name)))

    relation = tuple([word for word in roots if word not in name_roots])
    counts = dict.fromkeys(roots, 0)
    for reading in readings:
        for word in reading.all_roots.intersection(roots):
            counts[word] += 1

    passage_counts = np.array(list(counts.values()), np.float64)
    rarity = np.log((len(readings) + 1) / (passage_counts + 0.5))
    rarity_by_root = dict(zip(roots, rarity.tolist(), strict=True))
    return QuestionWords(
        _space(words(question)),
        rarity_by_root,
        relation,
    )


def links(readings: Sequence[Reading], fits: Sequence[Sequence[float]]) -> Floats:
    """(n, n): at [k, i] how well the best sentence of k that names i's title fits the question; 0
    where none does.
    """
    link_scores = np.zeros((len(readings), len(readings)))
    texts = [reading.titled_text for reading in readings]

    for i, target in enumerate(readings):
        if len(target.name) < _SHORTEST_TITLE + 2:
            continue

        for k, source in enumerate(readings):
            if k != i and source.name != target.name and target.name in texts[k]:
                pairs = zip(source.spoken, fits[k], strict=True)
                naming_fits = [LINK + fit for spoken, fit in pairs if target.name in spoken]
                link_scores[k, i] = max(naming_fits, default=0.0)

    return link_scores


def share_linked(readings: Sequence[Reading]) -> float:
    """The share of passages that name another by its title, or are named so."""
    linked: set[int] = set()
    for target_row, target in enumerate(readings):
        if not target.own_name:
            continue

        source_rows = []
        for row, source in enumerate(readings):
            if _names_title(source, target):
                source_rows.append(row)

        if source_rows:
            linked.update(source_rows, [target_row])

    return len(linked) / max(1, len(readings))


def _names_title(source: Reading, target: Reading) -> bool:
    """Whether a passage spells the title of another, in words and as it is written."""
    return (
        source.name != target.name
        and target.name in source.titled_text
        and target.own_name in source.text
    )


@lru_cache(1 << 16)
def root(word: str) -> str:
    """A word without its endings, those of doers too, so that a director is found where something
    is directed.
    """
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_ROOT:
            return word[: -len(ending)]

    if word.endswith("s") and len(word) == _SHORTEST_ROOT:
        return word[:-1]

    return word


def _drop_qualifier(title: str) -> str:
    """What a title names, without a qualifier: Paris of "Paris, Texas", but the whole of "Paints,
    oils and resins".
    """
    short = short_title(title)
    first, _, qualifier = short.partition(", ")

    if len(first) > _SHORTEST_TITLE and _QUALIFIER.fullmatch(qualifier):
        return first

    return short


# Bridges between passages: what one says that leads to another, and what of the question the other
# adds. The last step of a question is rarely about a title that the first passage spells. "When was
# the country that produced Fist Power taken by the British?": the passage of the film says Hong
# Kong, the answer stands under "British Hong Kong". So names count word by word, by their first
# letters ("Sri Lanka" leads to "Sri Lankan"), where the question does not say them; and more where
# the second passage holds words of the question that the first lacks.
_MANY_NAMES = 3.0  # rarity of the names that two texts share beyond which more do not count


@dataclass(frozen=True)
class Bridges:
    """(n, n) arrays; at [k, i] what leads from passage k to passage i, in [0, 1]; 0 between
    passages of one title.

    `titles`: rarity of the new words of i's title that k spells. `covers`: their share of the new
    words of the title. `names`: rarity of the new names that both texts hold. `adds`: share of the
    question's words that i has and k lacks.
    """

    titles: Floats
    covers: Floats
    names: Floats
    adds: Floats


def find_bridges(
    readings: Sequence[Reading],
    want: QuestionWords,
    holds: Floats,
) -> Bridges:
    """Compare every passage with every other; nothing is read. `holds` are the `hold_shares`."""
    question_stems = set(map(name_stem, want.text.split()))
    names = set().union(*(reading.names for reading in readings))

    columns = {}
    for column, name in enumerate(sorted(names - question_stems)):
        columns[name] = column

    text_marks = _marks([reading.names for reading in readings], columns)
    title_marks = _marks([reading.title_names for reading in readings], columns)
    n = len(readings)
    rarity = np.log((n + 1) / (text_marks.sum(axis=0) + 0.5)) / np.log(n + 1)
    rare_marks = text_marks * rarity
    codes: dict[str, int] = {}
    titles = np.array([codes.setdefault(reading.name, len(codes)) for reading in readings])
    has_other_title = (titles[:, None] != titles[None, :]).astype(np.float64)
    new_words = np.maximum(title_marks.sum(axis=1), 1.0)
    return Bridges(
        titles=has_other_title * np.minimum(1.0, rare_marks @ title_marks.T),
        covers=has_other_title * (text_marks @ title_marks.T) / new_words,
        names=has_other_title * np.minimum(1.0, rare_marks @ text_marks.T / _MANY_NAMES),
        adds=(holds == 0.0).astype(np.float64) @ holds.T,
    )


def hold_shares(readings: Sequence[Reading], want: QuestionWords) -> Floats:
    """(n, words): what of the question each passage holds, by rarity; a passage with every word
    sums to 1.
    """
    columns = {}
    for column, word in enumerate(want.rarity):
        columns[word] = column

    rarity = np.array(list(want.rarity.values()), np.float64)
    marks = _marks([reading.all_roots for reading in readings], columns)
    return marks * rarity / max(sum(want.rarity.values()), 1e-9)


def _marks(word_sets: Sequence[frozenset[str]], columns: Mapping[str, int]) -> Floats:
    """(n, words) 1 where a set holds the word of a column."""
    marks = np.zeros((len(word_sets), len(columns)))
    known = frozenset(columns)

    for row, word_set in enumerate(word_sets):
        marks[row, [columns[word] for word in known & word_set]] = 1.0

    return marks


# Names that lead from a sentence that fits the question to other passages. "What is the record
# label of the songwriter of Up on Cripple Creek?": the passage of the song says in a sentence with
# the question's words that Robbie Robertson wrote it. The answer stands under an album of his whose
# title is new, so no title leads there, but the whole name does. A name counts by its rarity and by
# how well its sentence fits.
_ONE_WORD = 0.6  # what a name of one word counts of a longer one
_COMMON = 24  # a name that more passages hold leads nowhere


@dataclass(frozen=True)
class SentenceBridges:
    """(n, n) arrays; at [k, i] the best name that a sentence of k spells and i holds; 0 between
    passages of one title.

    `fitting`: its rarity, times how well the sentence of k fits what is asked about the names.
    `holding`: its rarity, times how much of the whole question the sentence holds. `rare`: its
    rarity alone. `titled`: as `fitting`, of names in the title of i.
    """

    fitting: Floats
    holding: Floats
    rare: Floats
    titled: Floats


def find_sentence_bridges(
    readings: Sequence[Reading],
    want: QuestionWords,
) -> SentenceBridges:
    """Compare every passage with every other; nothing is read."""
    n = len(readings)
    steps: list[tuple[int, int]] = []
    values: list[tuple[float, float, float, float]] = []
    titles = [reading.title for reading in readings]

    for name, rows in _find_holders(readings, want).items():
        title_count = len({titles[row] for row in rows})
        if title_count == 1:
            continue

        rarity = math.log((n + 1) / (title_count + 0.5)) / math.log(n + 1)
        rarity *= 1.0 if name.count(" ") > 2 else _ONE_WORD
        in_title = [name in readings[row].spoken_title for row in rows]

        for source in rows:
            if name not in readings[source].name_places:
                continue

            fit, share = _fit_name(readings[source], name, want)
            fitting = rarity * (LINK + fit)
            holding = rarity * (LINK + share)

            for target, is_titled in zip(rows, in_title, strict=True):
                if titles[target] != titles[source]:
                    steps.append((source, target))
                    values.append((fitting, holding, rarity, fitting if is_titled else 0.0))

    matrices = np.zeros((4, n, n))
    if steps:
        sources, targets = np.array(steps).T
        for matrix, column in zip(matrices, np.array(values).T, strict=True):
            np.maximum.at(matrix, (sources, targets), column)

    return SentenceBridges(*matrices)


@dataclass(frozen=True)
class LeadingMatrices:
    """(n, n) by the name of the feature: those whose columns say what leads to a passage, and whose
    rows, what from it.

    All at once, since each is used twice.
    """

    arriving: dict[str, Floats]
    leaving: dict[str, Floats]

    def columns(self, voice: Floats) -> dict[str, Floats]:
        """The most that leads to each passage from the good ones, and from it to them; `voice` (n,)
        says how good.
        """
        arriving = (np.array(list(self.arriving.values())) * voice[:, None]).max(axis=1)
        leaving = (np.array(list(self.leaving.values())) * voice).max(axis=2)
        return dict(zip((*self.arriving, *self.leaving), (*arriving, *leaving), strict=True))


def combine_bridges(
    bridges: Bridges,
    names: SentenceBridges,
    remaining: Floats,
) -> LeadingMatrices:
    """What leads from passage to passage; `remaining` (n, n) at [k, i]: cosine of i with what k
    leaves.
    """
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
    leaving = {
        "leads_to_title": bridges.titles,
        "leads_to_names": bridges.names,
        "leads_by_name": names.fitting,
    }
    return LeadingMatrices(arriving, leaving)


def _find_holders(
    readings: Sequence[Reading],
    want: QuestionWords,
) -> dict[str, list[int]]:
    """The passages that hold each name as whole words, where they are at least two and not too
    many.

    Names are those that a passage spells and neither its title nor the question does.
    """
    texts = [reading.titled_text for reading in readings]
    names = chain.from_iterable(reading.name_places for reading in readings)

    holders = {}
    for name in dict.fromkeys(names):
        if name in want.text:
            continue

        rows = [row for row, text in enumerate(texts) if name in text]
        if 1 < len(rows) <= _COMMON:
            holders[name] = rows

    return holders


def _fit_name(
    reading: Reading,
    name: str,
    want: QuestionWords,
) -> tuple[float, float]:
    """How well the best of the sentences that spell a name fits what is asked, and how much of the
    question one holds.

    Most names stand in one passage only, so few sentences are looked at.
    """
    sentences = []
    for place in reading.name_places[name]:
        sentences.append(reading.roots[place])

    return max(map(want.fit, sentences)), max(map(want.share, sentences))
