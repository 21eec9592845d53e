"""The senses that documents state, and which sense each mention means."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import PurePosixPath
from typing import NamedTuple

import numpy as np

from hades.ingest.entities.corpus import Corpus, Document
from hades.ingest.entities.find_names import Definition
from hades.ingest.entities.kinds import entity_type_of, kind_of, kind_of_page, kind_of_qualifier
from hades.ingest.entities.known_names import Names, Origin
from hades.text.word_lists import CONNECTORS, GIVEN_NAMES, NEUTRAL_TITLES, WEAK_CONNECTORS
from hades.text.words import fold_letters
from models.arrays import Flags, Ints, Longs, rows_of
from schemas.nodes import EntityType, NameType
from schemas.sources import SourceKind

# The things that documents state: one sense for each title, given name and code symbol, homonyms
# kept apart. Two pages that share a name are two things when their qualifiers differ or when both
# say what they are and say different things; a page that does not say joins the others.


class Sense(NamedTuple):
    """One thing: its name as shown, the name without qualifier, what distinguishes it from its
    homonyms, and the documents that state it.
    """

    name: str
    stem: str
    qualifier: str
    type: EntityType
    kind: NameType
    documents: tuple[int, ...] = ()


@dataclass(frozen=True)
class StatedSenses:
    """All stated senses, the ones each name may mean, and the one that the title of a document
    is.
    """

    senses: tuple[Sense, ...]
    claims: dict[int, tuple[int, ...]]  # canonical name row -> senses
    title_of: dict[int, int]  # document -> sense
    symbols: dict[str, int]  # exact name of a code symbol or repository -> sense

    def doubtful(self) -> Longs:
        """Names (canonical rows) that may mean more than one thing."""
        rows = []
        for row, claimed in self.claims.items():
            if len(claimed) > 1:
                rows.append(row)

        return np.array(sorted(rows), np.int64)


class _Evidence(NamedTuple):
    document: int
    stem: str
    qualifier: str
    kind: NameType | None
    shown: str
    type: EntityType | None = None
    is_title: bool = False


def state_senses(
    corpus: Corpus,
    canonical_of: Callable[[str], int],
    context: Mapping[int, NameType],
) -> StatedSenses:
    """Groups what documents state into senses; `canonical_of` gives the canonical row of a name, -1
    for none.

    `context` are the kinds that texts speak for, by canonical rows.
    """
    groups: dict[tuple[int, str], list[_Evidence]] = defaultdict(list)
    for index, chunk in enumerate(corpus.opening_chunks.tolist()):
        opening = corpus.texts[chunk] if chunk >= 0 else ""
        for statement in _titles_and_symbols(
            index,
            corpus.documents[index],
            opening,
        ):
            row = canonical_of(statement.stem)
            if row >= 0:
                groups[row, statement.qualifier].append(statement)

    plain = _give_senses(corpus, canonical_of, groups)
    senses: list[Sense] = []
    claims_of: dict[int, list[int]] = defaultdict(list)

    title_of: dict[int, int] = {}
    for (row, _), evidence in sorted(groups.items(), key=itemgetter(0)):
        for sense in _split_by_kind(evidence, context.get(row)):
            claims_of[row].append(len(senses))
            stating = set(sense.documents)
            for statement in evidence:
                if statement.is_title and statement.document in stating:
                    title_of[statement.document] = len(senses)

            senses.append(sense)

    # A title written whole, with its qualifier, is that thing.
    for index, title_sense in title_of.items():
        titled = corpus.documents[index]
        row = canonical_of(titled.title) if titled.qualifier else -1
        if row >= 0:
            claims_of[row].append(title_sense)

    for row, sense in plain:
        claims_of[row].append(len(senses))
        senses.append(sense)

    symbols = {
        sense.name: index
        for index, sense in enumerate(senses)
        if sense.type is EntityType.CODE_SYMBOL
    }
    for name, index in symbols.items():
        row = canonical_of(name.rpartition(".")[2])
        if row >= 0:
            claims_of[row].append(index)

    claims = {row: tuple(sorted(set(claimed))) for row, claimed in claims_of.items()}
    return StatedSenses(
        tuple(senses),
        claims,
        title_of,
        symbols,
    )


def _give_senses(
    corpus: Corpus,
    canonical_of: Callable[[str], int],
    groups: dict[tuple[int, str], list[_Evidence]],
) -> list[tuple[int, Sense]]:
    """Senses of names given with one kind that are no title; the others join `groups`, where they
    are split by kind.
    """
    typed_names: list[tuple[int, NameType, str, int]] = []
    for index, document in enumerate(corpus.documents):
        for name, kind in document.facts.names:
            row = canonical_of(name)
            if kind is not None and row >= 0:
                typed_names.append((row, kind, name, index))

    alone: list[tuple[int, Sense]] = []
    for row, group in groupby(sorted(typed_names), key=itemgetter(0)):
        evidence = [_Evidence(index, name, "", kind, name) for _, kind, name, index in group]
        if (row, "") in groups or len({statement.kind for statement in evidence}) > 1:
            groups[row, ""].extend(evidence)
        else:
            stating = tuple(sorted({statement.document for statement in evidence}))
            sense = _sense(evidence[:1], evidence[0].kind)
            alone.append((row, sense._replace(documents=stating)))

    return alone


def _titles_and_symbols(
    index: int,
    document: Document,
    opening: str,
) -> Iterator[_Evidence]:
    """What a document states: its title, of the kind that its qualifier, else its opening says, and
    its symbols.
    """
    title = document.title
    qualifier = document.qualifier

    if document.source == SourceKind.ARXIV and title:
        yield _Evidence(
            document=index,
            stem=title,
            qualifier=document.origin,
            kind=NameType.PRODUCT,
            shown=title,
            type=EntityType.PAPER,
            is_title=True,
        )
    elif title:
        kind = kind_of_qualifier(qualifier) if qualifier else None
        kind = kind or kind_of_page(document.bare, opening)
        if kind is None and _is_file_name(document, opening):
            kind = NameType.CONCEPT
        if fold_letters(document.bare) in NEUTRAL_TITLES:
            qualifier = document.origin

        yield _Evidence(
            index,
            document.bare,
            qualifier,
            kind,
            title,
            is_title=True,
        )

    # Code distinguishes capitals, so a symbol is qualified by its own exact name.
    symbols = [qualified for _, qualified in document.facts.symbols]
    for name in (*symbols, *document.facts.repositories):
        yield _Evidence(
            index,
            name,
            name,
            NameType.PRODUCT,
            name,
            type=EntityType.CODE_SYMBOL,
        )


def _is_file_name(document: Document, opening: str) -> bool:
    """Whether a title is the name of its file and nothing that its text says: `ml_intro` of
    ml_intro.txt, which is no code.
    """
    is_stem = document.title == PurePosixPath(document.origin).stem
    return is_stem and document.title not in opening


def _split_by_kind(evidence: list[_Evidence], context: NameType | None) -> list[Sense]:
    """The senses of one name with one qualifier: one for each kind that is stated; where none is,
    by its context.
    """
    by_kind: dict[NameType | None, list[_Evidence]] = defaultdict(list)
    for statement in evidence:
        by_kind[statement.kind].append(statement)

    unsaid = by_kind.pop(None, [])
    if not by_kind:
        return [_sense(unsaid, None, context)]

    main = min(by_kind, key=lambda kind: (-len(by_kind[kind]), str(kind)))
    by_kind[main] = [*by_kind[main], *unsaid]
    ordered = sorted(by_kind, key=str)
    senses = [_sense(by_kind[kind], kind) for kind in ordered]

    if len(senses) == 1:
        return senses

    return [
        sense._replace(qualifier=f"{sense.qualifier} {str(sense.kind).lower()}".strip())
        for sense in senses
    ]


def _sense(
    evidence: list[_Evidence],
    kind: NameType | None,
    context: NameType | None = None,
) -> Sense:
    first = min(evidence, key=_rank)
    known = kind or kind_of(first.stem)
    if known is NameType.CONCEPT and context:
        known = context

    return Sense(
        name=first.shown,
        stem=first.stem,
        qualifier=first.qualifier,
        type=first.type or entity_type_of(first.stem, known),
        kind=known,
        documents=tuple(sorted({statement.document for statement in evidence})),
    )


def _rank(statement: _Evidence) -> tuple[bool, bool, str, int]:
    """Titles first, then statements that name a type."""
    return not statement.is_title, statement.type is None, statement.shown, statement.document


# Short forms inside one document: Hackman for Gene Hackman, J. Smith for John Smith, SVM where the
# text explains it. A short form means a full one only when the document holds exactly one that
# fits; what holds in one document says nothing about the next.
LONGEST_PERSON = 4  # words
_JOINING = CONNECTORS | WEAK_CONNECTORS
_OF_PEOPLE = frozenset(("family_name", "given_name"))
_MAY_BE_PEOPLE = frozenset({NameType.PERSON, NameType.CONCEPT})
# A pair of document and name, the sense that it means there, by which rule.
ShortForm = tuple[int, int, str]


def find_short_forms(
    names: Names,
    pairs: tuple[Longs, Longs],
    meaning: Ints,
    senses: Sequence[Sense],
    title_of: Mapping[int, int],
    definitions: Iterable[Definition],
) -> Iterator[ShortForm]:
    """Every pair of (document, name) that is a short form, explained acronyms first."""
    document, name = pairs
    yield from _explained_acronyms(
        names,
        document * max(1, len(names)) + name,
        meaning,
        definitions,
    )
    # Names found in texts, of one word or of initials and a word: a stated name is no short form.
    is_found = names.has(Origin.NAME) & ~names.has(Origin.STATED | Origin.TERM)
    is_short = is_found & names.where(_is_short)
    is_full = names.may_be_people() & names.where(_may_be_person)
    fits: dict[tuple[int, str], set[int]] = defaultdict(set)
    full = np.flatnonzero(is_full[name])

    for document_row, row, sense in rows_of(document[full], name[full], meaning[full]):
        _add_short_forms(
            fits,
            document_row,
            names.plain[row],
            sense,
            senses,
        )

    for document_row, sense in sorted(title_of.items()):
        words = tuple(fold_letters(senses[sense].stem).split())
        if _may_be_person(words):
            _add_short_forms(
                fits,
                document_row,
                words,
                sense,
                senses,
            )

    short = np.flatnonzero(is_short[name])
    for index, document_row, row in rows_of(short, document[short], name[short]):
        words = names.plain[row]
        if len(words) > 1:
            handles = [(f"{words[0]} {words[-1]}", "initials")]
        else:
            handles = [(f"* {words[0]}", "family_name"), (f"{words[0]} *", "given_name")]

        for handle, rule in handles:
            full_forms = [*fits.get((document_row, handle), ())]
            if len(full_forms) == 1:
                yield index, full_forms[0], rule
                break


def _explained_acronyms(
    names: Names,
    codes: Longs,
    meaning: Ints,
    definitions: Iterable[Definition],
) -> Iterator[ShortForm]:
    """Acronyms in documents that explain them mean what is explained."""
    rows = np.array(sorted(set(definitions)), np.int64).reshape(-1, 3)
    if not len(rows) or not len(codes):
        return

    explained = rows[:, :1] * len(names) + rows[:, 1:]
    places = np.minimum(np.searchsorted(codes, explained), len(codes) - 1)
    is_mentioned = (codes[places] == explained).all(axis=1)

    for short, long in places[is_mentioned].tolist():
        yield short, int(meaning[long]), "acronym"


def _add_short_forms(
    fits: dict[tuple[int, str], set[int]],
    document: int,
    words: tuple[str, ...],
    sense: int,
    senses: Sequence[Sense],
) -> None:
    """Add the short forms that a document may use for a full name it holds."""
    if senses[sense].kind not in _MAY_BE_PEOPLE:
        return

    fits[document, f"* {words[-1]}"].add(sense)
    fits[document, f"{words[0][0]} {words[-1]}"].add(sense)
    if words[0] in GIVEN_NAMES:
        fits[document, f"{words[0]} *"].add(sense)


def _is_short(words: tuple[str, ...]) -> bool:
    *initials, last = words
    return not initials or (len(last) > 1 and all(len(word) == 1 for word in initials))


def _may_be_person(words: tuple[str, ...]) -> bool:
    """Whether two to four words could be a person's name."""
    if not 1 < len(words) <= LONGEST_PERSON or len(words[0]) < 2 or len(words[-1]) < 3:
        return False
    return words[-1].isalpha() and _JOINING.isdisjoint(words)


# Which thing each mention means: by default what its name stands for, in doubt what the document is
# about. One sense a document: all mentions of a name in a document mean the same thing. A name with
# several senses goes to the one the document itself states, else to the one whose documents share
# most other names with this one, else to a neutral thing of that name. Short forms (family names,
# initials, acronyms) go to the only full form the document holds.
_NEIGHBOUR_DOCUMENTS = 64


@dataclass(frozen=True)
class SenseResolution:
    """Every sense there is, which one each (document, name) pair means, and what was decided
    document by document.
    """

    senses: tuple[Sense, ...]
    pairs: Longs  # sorted document * n_names + name
    meaning: Ints  # beside `pairs`, a row of `senses`
    of_name: Ints  # the sense a name means where nothing else is said, -1 when it has none
    decisions: tuple[tuple[str, int, str], ...]  # (name as shown, sense, rule)
    stated: StatedSenses
    canonical: Ints

    def means(self, document: Longs, name: Longs) -> Longs:
        """The sense each document means by a name (-1 for none), whether or not its text holds
        it.
        """
        known = np.flatnonzero(name >= 0)
        sense = np.full(len(name), -1)
        sense[known] = self.of_name[name[known]]
        code = document[known] * len(self.of_name) + name[known]

        if len(self.pairs):
            place = np.minimum(np.searchsorted(self.pairs, code), len(self.pairs) - 1)
            is_paired = self.pairs[place] == code
            sense[known[is_paired]] = self.meaning[place[is_paired]]
            known = known[~is_paired]

        is_doubtful = np.isin(self.canonical[name[known]], self.stated.doubtful())
        for index in known[is_doubtful].tolist():
            claims = self.stated.claims[int(self.canonical[name[index]])]
            stating = int(document[index])

            own_claims = []
            for row in claims:
                if stating in self.senses[row].documents:
                    own_claims.append(row)

            if len(own_claims) == 1:
                sense[index] = own_claims[0]

        return sense


def resolve_mentions(
    names: Names,
    canonical: Ints,
    display: Sequence[str],
    stated: StatedSenses,
    pairs: Longs,
    definitions: Iterable[Definition],
    context: Mapping[int, NameType],
) -> SenseResolution:
    """The meaning of every pair. `definitions` are (document, short name, long name) that texts
    explain.
    """
    senses = list(stated.senses)
    is_symbol = names.has(Origin.SYMBOL)

    def default(row: int) -> int:
        """The sense of a canonical name where the document does not tell: its only one, the plain
        or a neutral one.
        """
        claims = stated.claims.get(row, ())

        plain = []
        for index in claims:
            if len(claims) == 1 or not senses[index].qualifier:
                plain.append(index)

        if len(plain) == 1:
            return plain[0]

        kind = kind_of(display[row])
        if kind is NameType.CONCEPT:
            kind = context.get(row, kind)

        if is_symbol[row]:
            chosen = EntityType.CODE_SYMBOL
        else:
            chosen = entity_type_of(display[row], kind)

        senses.append(Sense(display[row], display[row], "", chosen, kind))
        return len(senses) - 1

    document = pairs // max(1, len(names))
    name = pairs % max(1, len(names))
    row = canonical[name].astype(np.int64)
    doubtful = np.isin(row, stated.doubtful())
    of_row = np.full(len(names), -1, dtype=np.int32)
    heads = np.flatnonzero(canonical == np.arange(len(names)))
    of_row[heads] = [default(head) for head in heads.tolist()]
    of_name = of_row[canonical]
    meaning = of_name[name].copy()
    decisions: set[tuple[str, int, str]] = set()
    homonyms = _resolve_homonyms(
        stated,
        display,
        document,
        row,
        meaning,
        doubtful=doubtful,
    )

    for index, sense in homonyms:
        if meaning[index] != sense:
            meaning[index] = sense
            decisions.add((display[name[index]], sense, "homonym"))

    short_forms = find_short_forms(
        names,
        (document, name),
        meaning,
        senses,
        title_of=stated.title_of,
        definitions=definitions,
    )
    for index, sense, rule in short_forms:
        shown = display[name[index]]
        is_acronym = rule in _OF_PEOPLE and shown.isupper()  # no family name is in capitals
        if meaning[index] != sense and not is_acronym:
            meaning[index] = sense
            decisions.add((shown, sense, rule))

    return SenseResolution(
        senses=tuple(senses),
        pairs=pairs,
        meaning=meaning,
        of_name=of_name,
        decisions=tuple(sorted(decisions)),
        stated=stated,
        canonical=canonical,
    )


def _resolve_homonyms(
    stated: StatedSenses,
    display: Sequence[str],
    document: Longs,
    row: Longs,
    meaning: Ints,
    doubtful: Flags,
) -> list[tuple[int, int]]:
    """For each doubtful pair the sense its document speaks for, where one stands out."""
    if not doubtful.any():
        return []

    senses = stated.senses
    concerned = set(document[doubtful].tolist())
    for name_row in set(row[doubtful].tolist()):
        for sense in stated.claims[name_row]:
            concerned.update(senses[sense].documents[:_NEIGHBOUR_DOCUMENTS])

    shared = _compare_documents(
        document[~doubtful],
        meaning[~doubtful],
        concerned,
    )
    chosen: list[tuple[int, int]] = []
    for index in np.flatnonzero(doubtful).tolist():
        claims = stated.claims[int(row[index])]
        document_row = int(document[index])
        own_claims = [sense for sense in claims if document_row in senses[sense].documents]

        if len(own_claims) > 1:  # code that differs in capitals only
            shown = display[row[index]]
            own_claims = [sense for sense in own_claims if senses[sense].name == shown]

        if len(own_claims) == 1:
            chosen.append((index, own_claims[0]))
            continue

        scores = [(shared(document_row, senses[sense].documents), sense) for sense in claims]
        best = max(score for score, _ in scores)
        leaders = [sense for score, sense in scores if score == best]

        if best > 0 and len(leaders) == 1:
            chosen.append((index, leaders[0]))

    return chosen


def _compare_documents(
    document: Longs,
    meaning: Ints,
    concerned: set[int],
) -> Callable[[int, Sequence[int]], float]:
    """A function: how much of its undoubted senses a document shares with some others; rare senses
    count more.
    """
    speaks_of: dict[int, set[int]] = defaultdict(set)
    chosen = np.isin(document, list(concerned))

    for document_row, sense in rows_of(document[chosen], meaning[chosen]):
        speaks_of[document_row].add(sense)

    total = max(2, int(document.max(initial=0)) + 1)
    counts = np.bincount(meaning, minlength=1).tolist()
    rarity = [math.log(total / max(1, count)) for count in counts]

    def shared(document_row: int, documents: Sequence[int]) -> float:
        neighbours = documents[:_NEIGHBOUR_DOCUMENTS]
        meant_elsewhere = set[int]().union(*(speaks_of[neighbour] for neighbour in neighbours))
        return math.fsum(rarity[sense] for sense in speaks_of[document_row] & meant_elsewhere)

    return shared
