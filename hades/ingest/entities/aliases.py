"""Which known names are other ways to write another: proposals by rule, and their union with a log that can be undone.

Every rule looks only at the names themselves and proposes (alias, canonical, rule, score). A union is refused where
both sides are titles of documents, since two pages are two things, or where a person has kept the pair apart."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from rapidfuzz.distance import DamerauLevenshtein

from hades.ingest.entities.known_names import EntityRules, Names, Origin
from hades.text.word_lists import HONORIFICS
from hades.text.words import WORD_BASE, Flags, Hashes, Longs

_SUFFIXES = frozenset(["inc", "ltd", "corp", "co", "company", "corporation", "fc", "plc", "llc", "gmbh", "ag"])
_ENDS = _SUFFIXES | {"c"}  # words that a name may do without
_ARTICLES = frozenset(("the", "a", "an"))
PRIORITY = ("article", "honorific", "suffix", "plural", "spacing", "acronym", "middle_name", "fuzzy")
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


def propose_aliases(names: Names, common: frozenset[str], rules: EntityRules) -> list[Alias]:
    """What the names' own words say about which are the same."""
    return [
        *_shorten(names),
        *_plurals(names, common),
        *_spacings(names),
        *_misspellings(names, common, rules),
    ]


def merge_names(names: Names, display: Sequence[str], proposals: Iterable[Alias], rules: EntityRules) -> AliasMerge:
    """Folds names along the proposals, the surest rules first; the result does not depend on their order."""
    parent: dict[int, int] = {}
    titles = names.has(Origin.TITLE)
    ordered = sorted(proposals, key=lambda one: (PRIORITY.index(one.rule), -one.score, one.alias, one.canonical))
    kept: dict[int, Alias] = {}
    for one in ordered:
        here, there = _root(parent, one.alias), _root(parent, one.canonical)
        apart = (display[one.alias], display[one.canonical]) in rules.kept_apart
        if here == there or apart or (titles[here] and titles[there]):
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
    may = names.with_word(0, (_ARTICLES | HONORIFICS).__contains__) | names.with_word(-1, _ENDS.__contains__)
    rows = np.flatnonzero(named & may & (np.diff(names.offsets) > 1)).tolist()
    for row, other, rule in _first_known(names, rows, _shorter, named):
        yield Alias(row, other, rule, 1.0 if rule == "article" else 0.95)


def _first_known(
    names: Names,
    rows: Sequence[int],
    propose: Callable[[tuple[str, ...]], Iterable[tuple[tuple[str, ...], str]]],
    accepted: Flags,
) -> Iterator[tuple[int, int, str]]:
    """Of each of these names the first proposal (words and rule) that is an accepted name: both rows and the rule."""
    plain = names.plain.take(np.array(rows, dtype=np.int64))
    asked = [(row, words, rule) for row, whole in zip(rows, plain, strict=True) for words, rule in propose(whole)]
    found = names.find_words([words for _, words, _ in asked])
    done = -1
    for (row, _, rule), other in zip(asked, found, strict=True):
        if row != done and other >= 0 and accepted[other]:
            done = row
            yield row, other, rule


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
    terms = names.has(Origin.TERM).tolist()
    rows = np.flatnonzero(_comparable(names) & names.with_word(-1, _may_be_plural))
    plain = zip(rows.tolist(), names.plain.take(rows), strict=True)
    asked = [(row, words, one) for row, words in plain for one in _singulars(words[-1])]
    found = names.find_words([(*words[:-1], singular) for _, words, singular in asked])
    done = -1
    for (row, words, singular), other in zip(asked, found, strict=True):
        if row == done or other < 0:
            continue
        ordinary = singular in common or words[-1] in common
        if terms[row] or terms[other] or (len(words) > 1 and ordinary):
            done = row
            yield Alias(row, other, "plural", 0.98)


def _may_be_plural(word: str) -> bool:
    return word[-1] == "s" and len(word) >= _SHORTEST_PLURAL and not word.endswith("ss")


def _singulars(plural: str) -> Iterator[str]:
    yield plural[:-1]
    if plural.endswith("es"):
        yield plural[:-2]
    if plural.endswith("ies"):
        yield plural[:-3] + "y"


def _spacings(names: Names) -> Iterator[Alias]:
    """Data set and dataset, back propagation and backpropagation: the same letters, parted elsewhere."""
    blocks: dict[str, list[int]] = defaultdict(list)
    rows = np.flatnonzero(_comparable(names) & (names.n_letters() >= _MIN_JOINED))
    for row in rows[_is_shared(names.letter_hashes()[rows])].tolist():
        blocks["".join(names.plain[row])].append(row)
    for letters, same in blocks.items():
        if not letters.isdigit():
            yield from (Alias(row, same[0], "spacing", 0.97) for row in same[1:])


def _comparable(names: Names) -> Flags:
    """Names short enough to be misspelt; those only given and never met in a text are taken at their word."""
    only_given = (names.texts == 0) & ~names.has(Origin.TITLE | Origin.SYMBOL)
    comparable: Flags = ~only_given & (np.diff(names.offsets) <= _LONGEST_FUZZY)
    return comparable


def _misspellings(names: Names, common: frozenset[str], rules: EntityRules) -> Iterator[Alias]:
    """Long names that differ in one word by one letter. Blocked by the words they share, so never all pairs."""
    blocks: dict[tuple[object, ...], list[tuple[str, int]]] = defaultdict(list)
    long = (np.diff(names.offsets) > 1) & (names.n_letters() >= rules.fuzzy_min_letters)
    owner, place, rest = names.without_each_word()
    chosen = (_comparable(names) & long)[owner] & names.words_where(
        lambda word: len(word) >= _MIN_TOKEN and word not in common and word.isalpha()
    )
    owner, place, rest = owner[chosen], place[chosen], rest[chosen]
    shared = _is_shared(rest)
    for row, index in zip(owner[shared].tolist(), place[shared].tolist(), strict=True):
        words = names.plain[row]
        blocks[(*words[:index], None, *words[index + 1 :])].append((words[index], row))
    for block in blocks.values():
        if 1 < len(block) <= _MAX_BLOCK:
            yield from _near_pairs(sorted(block), names, rules)


def _is_shared(hashes: Hashes) -> Flags:
    """Which values are there more than once: what cannot meet another is not looked at."""
    _, which, count = np.unique(hashes, return_inverse=True, return_counts=True)
    shared: Flags = count[which] > 1
    return shared


def _near_pairs(block: list[tuple[str, int]], names: Names, rules: EntityRules) -> Iterator[Alias]:
    for index, (word, row) in enumerate(block):
        for other_word, other in block[index + 1 :]:
            near = DamerauLevenshtein.distance(word, other_word, score_cutoff=1) == 1
            rare = min(names.texts[row], names.texts[other]) <= _SLIP_TEXTS
            if not near or not rare or word[0] != other_word[0]:
                continue
            letters = sum(map(len, names.plain[row])) + len(names.plain[row]) - 1
            score = 1.0 - 1.0 / letters
            if score >= rules.fuzzy_min_score:
                yield Alias(row, other, "fuzzy", round(score, 6))


def propose_acronyms(
    definitions: Sequence[tuple[int, int, int]], canonical: Sequence[int], rules: EntityRules
) -> list[Alias]:
    """Acronyms that stand for one thing wherever the corpus explains them, by the share of explaining documents."""
    documents: dict[int, set[tuple[int, int]]] = defaultdict(set)
    for document, short, long in definitions:
        documents[canonical[short]].add((canonical[long], document))
    found: list[Alias] = []
    for short, explained in sorted(documents.items()):
        counts = Counter(long for long, _ in explained)
        long = min(counts, key=lambda row: (-counts[row], row))
        share = counts[long] / len(explained)
        if long != short and share >= rules.acronym_min_share:
            found.append(Alias(short, long, "acronym", round(share, 6)))
    return found


def propose_middle_names(names: Names, holds: Callable[[Longs, Longs], Flags]) -> list[Alias]:
    """Taylor Eric Kemp is Taylor Kemp where one document `holds` both (given the rows of both, pair by pair)."""
    people = names.has(Origin.NAME | Origin.STATED) & ~names.has(Origin.TERM) & names.has(Origin.CAPITAL)
    sizes = np.diff(names.offsets)
    long = np.flatnonzero(people & (sizes > 2) & (sizes <= _LONGEST_PERSON))
    first, last = names.words[names.offsets[long]], names.words[names.offsets[long + 1] - 1]
    joined = first + last * np.uint64(WORD_BASE)
    other = names.numbers(joined ^ (joined >> np.uint64(31)))
    fits = np.flatnonzero((other >= 0) & people[other] & (sizes[other] == 2))
    fits = fits[holds(long[fits], other[fits])]
    pairs = zip(long[fits].tolist(), other[fits].tolist(), strict=True)
    return [Alias(row, short, "middle_name", 0.9) for row, short in pairs if all(map(str.isalpha, names.plain[row]))]
