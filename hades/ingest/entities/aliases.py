"""Which known names are other ways to write another: proposals by rule, and their union with a log.

Every rule looks only at the names themselves and proposes (alias, canonical, rule, score). A union is refused where
both sides are titles of documents, since two pages are two things."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from rapidfuzz.distance import DamerauLevenshtein

from hades.ingest.entities.known_names import Names, Origin
from hades.text.word_lists import HONORIFICS
from hades.text.words import Flags

_SUFFIXES = frozenset(["inc", "ltd", "corp", "co", "company", "corporation", "fc", "plc", "llc", "gmbh", "ag"])
_ARTICLES = frozenset(("the", "a", "an"))
PRIORITY = ("article", "honorific", "suffix", "plural", "spacing", "acronym", "middle_name", "fuzzy")
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
    """The name each name stands for, and the log of what was folded; no canonical name is itself an alias."""

    canonical: tuple[int, ...]
    log: tuple[Alias, ...]


def propose_aliases(names: Names, common: frozenset[str]) -> list[Alias]:
    """What the names' own words say about which are the same."""
    return [*_shorten(names), *_plurals(names, common), *_spacings(names), *_misspellings(names, common)]


def merge_names(names: Names, proposals: Iterable[Alias]) -> AliasMerge:
    """Folds names along the proposals, the surest rules first; the result does not depend on their order."""
    parent: dict[int, int] = {}
    titles = names.has(Origin.TITLE)
    ordered = sorted(proposals, key=lambda one: (PRIORITY.index(one.rule), -one.score, one.alias, one.canonical))
    kept: dict[int, Alias] = {}
    for one in ordered:
        here, there = _root(parent, one.alias), _root(parent, one.canonical)
        if here == there or (titles[here] and titles[there]):
            continue
        child, top = (here, there) if _stands_for(names, there, here) else (there, here)
        parent[child] = top
        kept[child] = Alias(child, top, one.rule, one.score)
    canonical = np.arange(len(names), dtype=np.int32)
    for row in kept:
        canonical[row] = _root(parent, row)
    told = canonical.tolist()
    log = tuple(Alias(one.alias, told[one.alias], one.rule, one.score) for _, one in sorted(kept.items()))
    return AliasMerge(tuple(told), log)


def _stands_for(names: Names, one: int, other: int) -> bool:
    """Whether the first name is the better one to show: stated before found, the more frequent, a fixed order."""
    return _rank(names, one) <= _rank(names, other)


def _rank(names: Names, row: int) -> tuple[bool, bool, int, tuple[str, ...]]:
    why = int(names.origin[row])
    return (not why & Origin.TITLE, not why & Origin.GIVEN, -int(names.texts[row]), names.plain[row])


def _root(parent: dict[int, int], row: int) -> int:
    while (above := parent.get(row, row)) != row:
        parent[row] = row = parent.get(above, above)
    return row


def _shorten(names: Names) -> Iterator[Alias]:
    """The Beatles and Beatles; King Lothair II and Lothair II; Tottenham Hotspur F.C. and Tottenham Hotspur."""
    named = names.has(Origin.STATED | Origin.NAME)
    for row in np.flatnonzero(named & (names.sizes > 1)).tolist():
        for words, rule in _shorter(names.plain[row]):
            if (other := names.find(words)) >= 0 and named[other]:
                yield Alias(row, other, rule, 1.0 if rule == "article" else 0.95)
                break


def _shorter(words: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    if words[0] in _ARTICLES:
        yield words[1:], "article"
    rest = words
    while len(rest) > 2 and rest[0] in HONORIFICS:
        rest = rest[1:]
        yield rest, "honorific"
    if words[-1] in _SUFFIXES and len(words) > 2:
        yield words[:-1], "suffix"
    elif words[-2:] == ("f", "c") and len(words) > 2:
        yield words[:-2], "suffix"


def _plurals(names: Names, common: frozenset[str]) -> Iterator[Alias]:
    """Support vector machines and support vector machine; SVMs and SVM. Family names in -s are left alone."""
    terms = names.has(Origin.TERM)
    for row in np.flatnonzero(_comparable(names)).tolist():
        words = names.plain[row]
        for singular in _singulars(words[-1]):
            other = names.find((*words[:-1], singular))
            ordinary = singular in common or words[-1] in common
            if other >= 0 and (terms[row] or terms[other] or (len(words) > 1 and ordinary)):
                yield Alias(row, other, "plural", 0.98)
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
    """Data set and dataset, back propagation and backpropagation: the same letters, parted elsewhere."""
    blocks: dict[str, list[int]] = defaultdict(list)
    for row in np.flatnonzero(_comparable(names)).tolist():
        blocks["".join(names.plain[row])].append(row)
    for letters, same in blocks.items():
        if len(letters) >= _MIN_JOINED and not letters.isdigit():
            yield from (Alias(row, same[0], "spacing", 0.97) for row in same[1:])


def _comparable(names: Names) -> Flags:
    """Names short enough to be misspelt; those only given and never met in a text are taken at their word."""
    only_given = (names.texts == 0) & ~names.has(Origin.TITLE | Origin.SYMBOL)
    comparable: Flags = ~only_given & (names.sizes <= _LONGEST_FUZZY)
    return comparable


def _misspellings(names: Names, common: frozenset[str]) -> Iterator[Alias]:
    """Long names that differ in one word by one letter. Blocked by the words they share, so never all pairs."""
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
    for (word, row), (other_word, other) in combinations(block, 2):
        near = DamerauLevenshtein.distance(word, other_word, score_cutoff=1) == 1
        rare = min(names.texts[row], names.texts[other]) <= _SLIP_TEXTS
        if not near or not rare or word[0] != other_word[0]:
            continue
        score = 1.0 - 1.0 / len(" ".join(names.plain[row]))
        if score >= _FUZZY_MIN_SCORE:
            yield Alias(row, other, "fuzzy", round(score, 6))


def propose_acronyms(definitions: Sequence[tuple[int, int, int]], canonical: Sequence[int]) -> list[Alias]:
    """Acronyms that stand for one thing wherever the corpus explains them, by the share of explaining documents."""
    documents: dict[int, set[tuple[int, int]]] = defaultdict(set)
    for document, short, long in definitions:
        documents[canonical[short]].add((canonical[long], document))
    found: list[Alias] = []
    for short, explained in sorted(documents.items()):
        counts = Counter(long for long, _ in explained)
        long = min(counts, key=lambda row: (-counts[row], row))
        share = counts[long] / len(explained)
        if long != short and share >= _ACRONYM_MIN_SHARE:
            found.append(Alias(short, long, "acronym", round(share, 6)))
    return found


def propose_middle_names(names: Names, documents_of: Callable[[int], set[int]]) -> list[Alias]:
    """Taylor Eric Kemp is Taylor Kemp where one document holds both; `documents_of` a name are those that hold it."""
    people = names.has(Origin.NAME | Origin.STATED) & ~names.has(Origin.TERM) & names.has(Origin.CAPITAL)
    found: list[Alias] = []
    for row in np.flatnonzero(people & (names.sizes > 2) & (names.sizes <= _LONGEST_PERSON)).tolist():
        words = names.plain[row]
        short = names.find((words[0], words[-1]))
        is_person = short >= 0 and people[short] and all(map(str.isalpha, words))
        if is_person and not documents_of(row).isdisjoint(documents_of(short)):
            found.append(Alias(row, short, "middle_name", 0.9))
    return found
