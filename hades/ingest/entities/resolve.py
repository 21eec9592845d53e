"""What documents state; which entity a mention means."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from hades.ingest.entities.corpus import Corpus, Document
from hades.ingest.entities.kinds import entity_type_of, kind_of, kind_of_page, kind_of_qualifier
from hades.ingest.entities.known_names import Names, Origin
from hades.text.word_lists import CONNECTORS, GIVEN_NAMES, NEUTRAL_TITLES, WEAK_CONNECTORS
from hades.text.words import Flags, Ints, Longs, fold_letters
from schemas.nodes import EntityType, NameType
from schemas.sources import SourceKind

# The things that documents state: one sense for each title, given name and code symbol, homonyms kept apart. Two
# pages that share a name are two things when their qualifiers differ or when both say what they are and say
# different things; a page that does not say joins the others.


class Sense(NamedTuple):
    """One thing: its name as shown, the name without qualifier, what tells it from its homonyms, and who states it."""

    name: str
    stem: str
    qualifier: str
    type: EntityType
    kind: NameType
    documents: tuple[int, ...] = ()


@dataclass(frozen=True)
class StatedSenses:
    """All stated senses, the ones each name may mean, and the one that the title of a document is."""

    senses: tuple[Sense, ...]
    claims: dict[int, tuple[int, ...]]  # canonical name row -> senses
    title_of: dict[int, int]  # document -> sense
    symbols: dict[str, int]  # exact name of a code symbol or repository -> sense

    def doubtful(self) -> Longs:
        """Names (canonical rows) that may mean more than one thing."""
        return np.array(sorted(row for row, which in self.claims.items() if len(which) > 1), dtype=np.int64)


class _Evidence(NamedTuple):
    document: int
    stem: str
    qualifier: str
    kind: NameType | None
    shown: str
    type: EntityType | None = None
    is_title: bool = False


def state_senses(corpus: Corpus, canonical_of: Callable[[str], int], context: Mapping[int, NameType]) -> StatedSenses:
    """Groups what documents state into senses; `canonical_of` gives the canonical row of a name, -1 for none.

    `context` are the kinds that texts speak for, by canonical rows.
    """
    groups: dict[tuple[int, str], list[_Evidence]] = defaultdict(list)
    for index, (document, chunk) in enumerate(zip(corpus.documents, corpus.opening_chunks.tolist(), strict=True)):
        for one in _titles_and_symbols(index, document, corpus.texts[chunk] if chunk >= 0 else ""):
            if (row := canonical_of(one.stem)) >= 0:
                groups[row, one.qualifier].append(one)
    plain = _give_senses(corpus, canonical_of, groups)
    senses: list[Sense] = []
    owned: dict[int, list[int]] = defaultdict(list)
    title_of: dict[int, int] = {}
    for group in sorted(groups):
        evidence = groups[group]
        for sense in _tell_apart(evidence, context.get(group[0])):
            owned[group[0]].append(len(senses))
            stating = set(sense.documents)
            for one in evidence:
                if one.is_title and one.document in stating:
                    title_of[one.document] = len(senses)
            senses.append(sense)
    for index, which in title_of.items():  # a title written whole, with its qualifier, is that thing
        if corpus.documents[index].qualifier and (row := canonical_of(corpus.documents[index].title)) >= 0:
            owned[row].append(which)
    for row, sense in plain:
        owned[row].append(len(senses))
        senses.append(sense)
    symbols = {sense.name: index for index, sense in enumerate(senses) if sense.type is EntityType.CODE_SYMBOL}
    for name, index in symbols.items():
        if (row := canonical_of(name.rpartition(".")[2])) >= 0:
            owned[row].append(index)
    claims = {row: tuple(sorted(set(which))) if len(which) > 1 else (which[0],) for row, which in owned.items()}
    return StatedSenses(tuple(senses), claims, title_of, symbols)


def _give_senses(
    corpus: Corpus, canonical_of: Callable[[str], int], groups: dict[tuple[int, str], list[_Evidence]]
) -> list[tuple[int, Sense]]:
    """Senses of names given with one kind that are nobody's title; the others join `groups`, to be told apart."""
    given = sorted(
        (row, kind, name, index)
        for index, document in enumerate(corpus.documents)
        for name, kind in document.facts.names
        if kind is not None and (row := canonical_of(name)) >= 0
    )
    alone: list[tuple[int, Sense]] = []
    for row, group in groupby(given, key=itemgetter(0)):
        evidence = [_Evidence(index, name, "", kind, name) for _, kind, name, index in group]
        if (row, "") in groups or len({one.kind for one in evidence}) > 1:
            groups[row, ""].extend(evidence)
        else:
            stating = tuple(sorted({one.document for one in evidence}))
            alone.append((row, _sense(evidence[:1], evidence[0].kind)._replace(documents=stating)))
    return alone


def _titles_and_symbols(index: int, document: Document, opening: str) -> Iterator[_Evidence]:
    """What a document states: its title, of the kind that its qualifier, else its opening says, and its symbols."""
    title, qualifier = document.title, document.qualifier
    if document.source == SourceKind.ARXIV and title:
        yield _Evidence(index, title, document.origin, NameType.PRODUCT, title, EntityType.PAPER, is_title=True)
    elif title:
        kind = kind_of_qualifier(qualifier) if qualifier else None
        kind = kind or kind_of_page(document.bare, opening)
        if fold_letters(document.bare) in NEUTRAL_TITLES:
            qualifier = document.origin
        yield _Evidence(index, document.bare, qualifier, kind, title, is_title=True)
    # Code tells capitals apart, so a symbol is qualified by its own exact name.
    for one in (*(qualified for _, qualified in document.facts.symbols), *document.facts.repositories):
        yield _Evidence(index, one, one, NameType.PRODUCT, one, EntityType.CODE_SYMBOL)


def _tell_apart(evidence: list[_Evidence], context: NameType | None) -> list[Sense]:
    """The senses of one name with one qualifier: one for each kind that is stated; where none is, by its context."""
    by_kind: dict[NameType | None, list[_Evidence]] = defaultdict(list)
    for one in evidence:
        by_kind[one.kind].append(one)
    unsaid = by_kind.pop(None, [])
    if not by_kind:
        return [_sense(unsaid, None, context)]
    main = min(by_kind, key=lambda kind: (-len(by_kind[kind]), str(kind)))
    by_kind[main] = [*by_kind[main], *unsaid]
    ordered = sorted(by_kind, key=str)
    senses = [_sense(by_kind[kind], kind) for kind in ordered]
    if len(senses) == 1:
        return senses
    return [one._replace(qualifier=f"{one.qualifier} {str(one.kind).lower()}".strip()) for one in senses]


def _sense(evidence: list[_Evidence], kind: NameType | None, context: NameType | None = None) -> Sense:
    first = min(evidence, key=lambda one: (not one.is_title, one.type is None, one.shown, one.document))
    documents = tuple(sorted({one.document for one in evidence}))
    known = kind or kind_of(first.stem)
    known = context or known if known is NameType.CONCEPT else known
    chosen = first.type or entity_type_of(first.stem, known)
    return Sense(first.shown, first.stem, first.qualifier, chosen, known, documents)


# Short forms inside one document: Hackman for Gene Hackman, J. Smith for John Smith, SVM where the text explains
# it. A short form means a full one only when the document holds exactly one that fits; what holds in one document
# says nothing about the next.
LONGEST_PERSON = 4  # words
_JOINING = CONNECTORS | WEAK_CONNECTORS
_OF_PEOPLE = frozenset(("family_name", "given_name"))
_MAY_BE_PEOPLE = frozenset({NameType.PERSON, NameType.CONCEPT})
ShortForm = tuple[int, int, str]  # a pair of document and name, the sense that it means there, by which rule


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
    # Found names of one word, or of initials and a word: what is stated outright is nobody's short form.
    is_short = names.has(Origin.NAME) & ~names.has(Origin.STATED | Origin.TERM) & names.where(_is_short)
    is_full = names.has(Origin.NAME | Origin.STATED) & names.has(Origin.CAPITAL) & ~names.has(Origin.TERM)
    is_full &= names.where(_may_be_person)
    fits: dict[tuple[int, str], set[int]] = defaultdict(set)
    full = np.flatnonzero(is_full[name])
    for here, row, sense in zip(document[full].tolist(), name[full].tolist(), meaning[full].tolist(), strict=True):
        _hold(fits, here, names.plain[row], sense, senses)
    for here, sense in sorted(title_of.items()):
        if _may_be_person(words := tuple(fold_letters(senses[sense].stem).split())):
            _hold(fits, here, words, sense, senses)
    short = np.flatnonzero(is_short[name])
    for index, here, row in zip(short.tolist(), document[short].tolist(), name[short].tolist(), strict=True):
        words = names.plain[row]
        if len(words) > 1:
            handles = [(f"{words[0]} {words[-1]}", "initials")]
        else:
            handles = [(f"* {words[0]}", "family_name"), (f"{words[0]} *", "given_name")]
        for handle, rule in handles:
            found = fits.get((here, handle), ())
            if len(found) == 1:
                yield index, next(iter(found)), rule
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
        yield short, int(meaning[long]), "acronym"


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


def _is_short(words: tuple[str, ...]) -> bool:
    *initials, last = words
    return not initials or (len(last) > 1 and all(len(word) == 1 for word in initials))


def _may_be_person(words: tuple[str, ...]) -> bool:
    """Whether two to four words could be a person's name."""
    if not 1 < len(words) <= LONGEST_PERSON or len(words[0]) < 2 or len(words[-1]) < 3:
        return False
    return words[-1].isalpha() and _JOINING.isdisjoint(words)


# Which thing each mention means: by default what its name stands for, in doubt what the document is about. One sense a
# document: all mentions of a name in a document mean the same thing. A name with several senses goes to the one the
# document itself states, else to the one whose documents share most other names with this one, else to a neutral thing
# of that name. Short forms (family names, initials, acronyms) go to the only full form the document holds.
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


def resolve_mentions(
    names: Names,
    canonical: Ints,
    display: Sequence[str],
    stated: StatedSenses,
    pairs: Longs,
    definitions: Iterable[tuple[int, int, int]],
    context: Mapping[int, NameType],
) -> SenseResolution:
    """The meaning of every pair. `definitions` are (document, short name, long name) that texts explain."""
    senses, is_symbol = list(stated.senses), names.has(Origin.SYMBOL)

    def default(row: int) -> int:
        """The sense of a canonical name where the document does not tell: its only one, the plain or a neutral one."""
        claims = stated.claims.get(row, ())
        plain = [index for index in claims if len(claims) == 1 or not senses[index].qualifier]
        if len(plain) == 1:
            return plain[0]
        kind = kind_of(display[row])
        kind = context.get(row, kind) if kind is NameType.CONCEPT else kind
        chosen = EntityType.CODE_SYMBOL if is_symbol[row] else entity_type_of(display[row], kind)
        senses.append(Sense(display[row], display[row], "", chosen, kind))
        return len(senses) - 1

    document, name = pairs // max(1, len(names)), pairs % max(1, len(names))
    row = canonical[name].astype(np.int64)
    doubtful = np.isin(row, stated.doubtful())
    of_row = np.full(len(names), -1, dtype=np.int32)
    heads = np.flatnonzero(canonical == np.arange(len(names)))
    of_row[heads] = [default(one) for one in heads.tolist()]
    of_name = of_row[canonical]
    meaning = of_name[name].copy()
    decisions: set[tuple[str, int, str]] = set()
    for index, sense in _tell_homonyms(stated, display, document, row, meaning, doubtful):
        if meaning[index] != sense:
            meaning[index] = sense
            decisions.add((display[name[index]], sense, "homonym"))
    for index, sense, rule in find_short_forms(names, (document, name), meaning, senses, stated.title_of, definitions):
        shown = display[name[index]]
        is_acronym = rule in _OF_PEOPLE and shown.isupper()  # which is nobody's family name
        if meaning[index] != sense and not is_acronym:
            meaning[index] = sense
            decisions.add((shown, sense, rule))
    return SenseResolution(tuple(senses), pairs, meaning, of_name, tuple(sorted(decisions)), stated, canonical)


def _tell_homonyms(
    stated: StatedSenses, display: Sequence[str], document: Longs, row: Longs, meaning: Ints, doubtful: Flags
) -> list[tuple[int, int]]:
    """For each doubtful pair the sense its document speaks for, where one stands out."""
    if not doubtful.any():
        return []
    senses, concerned = stated.senses, {int(here) for here in document[doubtful]}
    for value in {int(value) for value in row[doubtful]}:
        concerned.update(*(senses[sense].documents[:_NEIGHBOUR_DOCUMENTS] for sense in stated.claims[value]))
    shared = _compare_documents(document[~doubtful], meaning[~doubtful], concerned)
    told: list[tuple[int, int]] = []
    for index in np.flatnonzero(doubtful).tolist():
        claims = stated.claims[int(row[index])]
        here = int(document[index])
        own = [sense for sense in claims if here in senses[sense].documents]
        if len(own) > 1:  # code that differs in capitals only
            own = [sense for sense in own if senses[sense].name == display[row[index]]]
        if len(own) == 1:
            told.append((index, own[0]))
            continue
        scores = [(shared(here, senses[sense].documents), sense) for sense in claims]
        best = max(score for score, _ in scores)
        leaders = [sense for score, sense in scores if score == best]
        if best > 0 and len(leaders) == 1:
            told.append((index, leaders[0]))
    return told


def _compare_documents(document: Longs, meaning: Ints, concerned: set[int]) -> Callable[[int, Sequence[int]], float]:
    """How much of what documents speak of beyond doubt one shares with some others; rare things count more."""
    speaks_of: dict[int, set[int]] = defaultdict(set)
    chosen = np.isin(document, np.array(sorted(concerned), dtype=np.int64))
    for here, sense in zip(document[chosen].tolist(), meaning[chosen].tolist(), strict=True):
        speaks_of[here].add(sense)
    total = max(2, int(document.max(initial=0)) + 1)
    rarity = [math.log(total / count) if count else 0.0 for count in np.bincount(meaning, minlength=1).tolist()]

    def shared(here: int, documents: Sequence[int]) -> float:
        others = set[int]().union(*(speaks_of[one] for one in documents[:_NEIGHBOUR_DOCUMENTS]))
        return math.fsum(rarity[sense] for sense in speaks_of[here] & others)

    return shared
