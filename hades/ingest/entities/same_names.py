"""Names that are one thing: spellings, short forms, plurals and acronyms, and their merging."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from rapidfuzz.distance import DamerauLevenshtein

from hades.ingest.entities.find_names import Definition
from hades.ingest.entities.known_names import Names, Origin
from hades.text.word_lists import HONORIFICS, word_set
from models.arrays import Flags

# Which known names are other ways to write another: proposals by rule, and their union with a log.
# Every rule looks only at the names themselves and proposes (alias, canonical, rule, score). A
# union is refused where both sides are titles of documents, since two pages are two things.
_SUFFIXES = word_set("inc ltd corp co company corporation fc plc llc gmbh ag")
_ARTICLES = frozenset(("the", "a", "an"))
PRIORITY = (
    "article",
    "honorific",
    "suffix",
    "plural",
    "spacing",
    "acronym",
    "middle_name",
    "fuzzy",
)
_ACRONYM_MIN_SHARE = 0.6  # of the documents that explain an acronym, those that agree
_FUZZY_MIN_LETTERS = 12
_FUZZY_MIN_SCORE = 0.93
_MIN_JOINED = 10
_MAX_BLOCK = 40
_MIN_TOKEN = 6
_SHORTEST_PLURAL = 4
_LONGEST_FUZZY = 6  # words
_LONGEST_PERSON = 4  # words
_SLIP_TEXTS = 2  # a misspelling is seldom made in more texts than this


@dataclass(frozen=True)
class Alias:
    """One name (by its row) folded into another, why, and how sure it is."""

    alias: int
    canonical: int
    rule: str
    score: float = 1.0


@dataclass(frozen=True)
class AliasMerge:
    """The name each name stands for, and the log of what was folded; no canonical name is itself an
    alias.
    """

    canonical: tuple[int, ...]
    log: tuple[Alias, ...]


def propose_aliases(names: Names, common: frozenset[str]) -> list[Alias]:
    """What the names' own words say about which are the same."""
    return [
        *_shorten(names),
        *_plurals(names, common),
        *_spacings(names),
        *_misspellings(names, common),
    ]


def merge_names(names: Names, proposals: Iterable[Alias]) -> AliasMerge:
    """Folds names along the proposals, the surest rules first; the result does not depend on their
    order.
    """
    parent: dict[int, int] = {}
    titles = names.has(Origin.TITLE)
    ordered = sorted(
        proposals,
        key=lambda alias: (PRIORITY.index(alias.rule), -alias.score, alias.alias, alias.canonical),
    )

    alias_of: dict[int, Alias] = {}
    for alias in ordered:
        child = _root(parent, alias.alias)
        top = _root(parent, alias.canonical)
        if child == top or (titles[child] and titles[top]):
            continue
        if _rank(names, top) > _rank(names, child):
            child, top = top, child

        parent[child] = top
        alias_of[child] = alias

    canonical = list(range(len(names)))
    log = []
    for row, alias in sorted(alias_of.items()):
        canonical[row] = _root(parent, row)
        log.append(Alias(row, canonical[row], alias.rule, alias.score))

    return AliasMerge(tuple(canonical), tuple(log))


def _rank(names: Names, row: int) -> tuple[bool, bool, int, tuple[str, ...]]:
    """Which name is the better one to show: stated before found, the more frequent, a fixed
    order.
    """
    origin = int(names.origin[row])
    return (
        not origin & Origin.TITLE,
        not origin & Origin.GIVEN,
        -int(names.texts[row]),
        names.plain[row],
    )


def _root(parent: dict[int, int], row: int) -> int:
    while (above := parent.get(row, row)) != row:
        parent[row] = row = parent.get(above, above)

    return row


def _shorten(names: Names) -> Iterator[Alias]:
    """The Beatles and Beatles; King Lothair II and Lothair II; Tottenham Hotspur F.C. and Tottenham
    Hotspur.
    """
    is_name = names.has(Origin.STATED | Origin.NAME)
    for row in np.flatnonzero(is_name & (names.sizes > 1)).tolist():
        for words, rule in _shorter(names.plain[row]):
            if (shorter := names.find(words)) >= 0 and is_name[shorter]:
                yield Alias(
                    row,
                    shorter,
                    rule,
                    1.0 if rule == "article" else 0.95,
                )
                break


def _shorter(words: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    if words[0] in _ARTICLES:
        yield words[1:], "article"

    shortened = words
    while len(shortened) > 2 and shortened[0] in HONORIFICS:
        shortened = shortened[1:]
        yield shortened, "honorific"

    if words[-1] in _SUFFIXES and len(words) > 2:
        yield words[:-1], "suffix"
    elif words[-2:] == ("f", "c") and len(words) > 2:
        yield words[:-2], "suffix"


def _plurals(names: Names, common: frozenset[str]) -> Iterator[Alias]:
    """Support vector machines and support vector machine; SVMs and SVM. Family names in -s are left
    alone.
    """
    terms = names.has(Origin.TERM)
    for row in np.flatnonzero(_comparable(names)).tolist():
        words = names.plain[row]
        for singular in _singulars(words[-1]):
            singular_row = names.find((*words[:-1], singular))
            if singular_row < 0:
                continue

            is_ordinary = len(words) > 1 and not common.isdisjoint((singular, words[-1]))
            if terms[row] or terms[singular_row] or is_ordinary:
                yield Alias(row, singular_row, "plural", 0.98)
                break


def _singulars(word: str) -> Iterator[str]:
    if word[-1] != "s" or len(word) < _SHORTEST_PLURAL or word.endswith("ss"):
        return

    yield word[:-1]
    if word.endswith("es"):
        yield word[:-2]
    if word.endswith("ies"):
        yield word[:-3] + "y"


def _spacings(names: Names) -> Iterator[Alias]:
    """Data set and dataset, back propagation and backpropagation: the same letters, parted
    elsewhere.
    """
    blocks: dict[str, list[int]] = defaultdict(list)
    for row in np.flatnonzero(_comparable(names)).tolist():
        blocks["".join(names.plain[row])].append(row)

    for letters, rows in blocks.items():
        if len(letters) >= _MIN_JOINED and not letters.isdigit():
            yield from (Alias(row, rows[0], "spacing", 0.97) for row in rows[1:])


def _comparable(names: Names) -> Flags:
    """Names short enough to be misspelt; those that no text holds are taken as
    they are given.
    """
    only_given = (names.texts == 0) & ~names.has(Origin.TITLE | Origin.SYMBOL)
    comparable: Flags = ~only_given & (names.sizes <= _LONGEST_FUZZY)
    return comparable


def _misspellings(names: Names, common: frozenset[str]) -> Iterator[Alias]:
    """Long names that differ in one word by one letter. Blocked by the words they share, so never
    all pairs.
    """
    blocks: dict[tuple[object, ...], list[tuple[str, int]]] = defaultdict(list)
    for row in np.flatnonzero(_comparable(names) & (names.sizes > 1)).tolist():
        words = names.plain[row]
        if sum(map(len, words)) < _FUZZY_MIN_LETTERS:
            continue

        for place, word in enumerate(words):
            if len(word) >= _MIN_TOKEN and word not in common and word.isalpha():
                blocks[(*words[:place], None, *words[place + 1 :])].append((word, row))

    for block in blocks.values():
        if 1 < len(block) <= _MAX_BLOCK:
            yield from _near_pairs(sorted(block), names)


def _near_pairs(block: list[tuple[str, int]], names: Names) -> Iterator[Alias]:
    for (word, row), (other_word, other_row) in combinations(block, 2):
        near = (
            DamerauLevenshtein.distance(
                word,
                other_word,
                score_cutoff=1,
            )
            == 1
        )
        rare = min(names.texts[row], names.texts[other_row]) <= _SLIP_TEXTS
        if not near or not rare or word[0] != other_word[0]:
            continue

        score = 1.0 - 1.0 / len(" ".join(names.plain[row]))
        if score >= _FUZZY_MIN_SCORE:
            yield Alias(row, other_row, "fuzzy", round(score, 6))


def propose_acronyms(
    definitions: Sequence[Definition],
    canonical: Sequence[int],
) -> list[Alias]:
    """Acronyms that stand for one thing wherever the corpus explains them, by the share of
    explaining documents.
    """
    documents: dict[int, set[tuple[int, int]]] = defaultdict(set)
    for document, short, long in definitions:
        documents[canonical[short]].add((canonical[long], document))

    aliases: list[Alias] = []
    for short, explained in sorted(documents.items()):
        counts = Counter(long for long, _ in explained)
        long = min(counts, key=lambda row: (-counts[row], row))
        share = counts[long] / len(explained)

        if long != short and share >= _ACRONYM_MIN_SHARE:
            aliases.append(Alias(short, long, "acronym", round(share, 6)))

    return aliases


def propose_middle_names(names: Names, holding: Mapping[int, set[int]]) -> list[Alias]:
    """Taylor Eric Kemp is Taylor Kemp where one document holds both; `holding` are the documents of
    each name.
    """
    people = names.may_be_people()
    aliases: list[Alias] = []
    is_long_enough = (names.sizes > 2) & (names.sizes <= _LONGEST_PERSON)

    for row in np.flatnonzero(people & is_long_enough).tolist():
        words = names.plain[row]
        short = names.find((words[0], words[-1]))
        is_person = short >= 0 and people[short] and all(map(str.isalpha, words))

        if is_person and not holding[row].isdisjoint(holding[short]):
            aliases.append(Alias(row, short, "middle_name", 0.9))

    return aliases
