"""The things that documents state: one sense for each title, given name and code symbol, homonyms kept apart.

Two pages that share a name are two things when their qualifiers differ or when both say what they are and say different
things; a page that does not say joins the others.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from hades.ingest.entities.corpus import Corpus
from hades.ingest.entities.documents import Document
from hades.ingest.entities.kinds import entity_type_of, kind_of
from hades.text.arrays import Longs, place_in_run
from hades.text.letters import fold
from hades.text.word_lists import NEUTRAL_TITLES
from schemas.graph_types import EntityType
from schemas.nodes import NameType
from schemas.source_kinds import SourceKind


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


def state_senses(
    corpus: Corpus,
    documents: Sequence[int],
    canonical_of: Callable[[str], int],
    kinds: Mapping[int, NameType | None],
) -> StatedSenses:
    """Groups what these documents (in order) state into senses. `canonical_of` gives the canonical row of a name.

    It gives -1 for names that are not asked for. `kinds` are those that the documents give the things of their titles.
    """
    groups: dict[tuple[int, str], list[_Evidence]] = defaultdict(list)
    for index in documents:
        for one in _titles_and_symbols(index, corpus.documents[index], kinds.get(index)):
            if (row := canonical_of(one.stem)) >= 0:
                groups[row, one.qualifier].append(one)
    plain = _give_senses(corpus, documents, canonical_of, groups)
    senses: list[Sense] = []
    owned: dict[int, list[int]] = defaultdict(list)
    title_of: dict[int, int] = {}
    for group in sorted(groups):
        evidence = groups[group]
        for sense in _tell_apart(evidence):
            owned[group[0]].append(len(senses))
            stating = set(sense.documents)
            for one in evidence:
                if one.is_title and one.document in stating:
                    title_of[one.document] = len(senses)
            senses.append(sense)
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
    corpus: Corpus,
    documents: Sequence[int],
    canonical_of: Callable[[str], int],
    groups: dict[tuple[int, str], list[_Evidence]],
) -> list[tuple[int, Sense]]:
    """Senses of names given with one kind that are nobody's title; the others join `groups`, to be told apart."""
    given = [
        (row, kind, name, index)
        for index in documents
        for name, kind in corpus.documents[index].facts.names
        if kind is not None and (row := canonical_of(name)) >= 0
    ]
    given.sort()
    rows = np.array([one[0] for one in given], dtype=np.int64)
    begins = np.flatnonzero(place_in_run(rows) == 0).tolist()
    alone: list[tuple[int, Sense]] = []
    for begin, end in pairwise([*begins, len(given)]):
        row, kind, name, index = given[begin]
        if (row, "") in groups or given[end - 1][1] != kind:
            groups[row, ""].extend(_Evidence(one[3], one[2], "", one[1], one[2]) for one in given[begin:end])
            continue
        stating = (index,) if end == begin + 1 else tuple(sorted({one[3] for one in given[begin:end]}))
        alone.append((row, Sense(name, name, "", entity_type_of(name, kind), kind, stating)))
    return alone


def _titles_and_symbols(index: int, document: Document, kind: NameType | None) -> list[_Evidence]:
    found = [_title_evidence(index, document, kind)] if document.title else []
    if document.facts:
        # Code tells capitals apart, so a symbol is qualified by its own exact name.
        symbols = (*(qualified for _, qualified in document.facts.symbols), *document.facts.repositories)
        found.extend(_Evidence(index, one, one, NameType.PRODUCT, one, EntityType.CODE_SYMBOL) for one in symbols)
    return found


def _title_evidence(index: int, document: Document, kind: NameType | None) -> _Evidence:
    if document.source == SourceKind.ARXIV:
        return _Evidence(
            index, document.title, document.origin, NameType.PRODUCT, document.title, EntityType.PAPER, is_title=True
        )
    qualifier = document.qualifier
    if fold(document.bare) in NEUTRAL_TITLES:
        qualifier = document.origin
    return _Evidence(index, document.bare, qualifier, kind, document.title, is_title=True)


def _tell_apart(evidence: list[_Evidence]) -> list[Sense]:
    """The senses of one name with one qualifier: one for each kind that is stated."""
    if len(evidence) == 1:
        return [_sense(evidence, evidence[0].kind)]
    by_kind: dict[NameType | None, list[_Evidence]] = defaultdict(list)
    for one in evidence:
        by_kind[one.kind].append(one)
    unsaid = by_kind.pop(None, [])
    if not by_kind:
        return [_sense(unsaid, None)]
    main = min(by_kind, key=lambda kind: (-len(by_kind[kind]), str(kind)))
    by_kind[main] = [*by_kind[main], *unsaid]
    ordered = sorted(by_kind, key=str)
    senses = [_sense(by_kind[kind], kind) for kind in ordered]
    if len(senses) == 1:
        return senses
    return [
        sense._replace(qualifier=" ".join(filter(None, (sense.qualifier, str(sense.kind).lower())))) for sense in senses
    ]


def _sense(evidence: list[_Evidence], kind: NameType | None) -> Sense:
    first = evidence[0]
    documents: tuple[int, ...] = (first.document,)
    if len(evidence) > 1:
        first = min(evidence, key=lambda one: (not one.is_title, one.type is None, one.shown, one.document))
        documents = tuple(sorted({one.document for one in evidence}))
    known = kind or kind_of(first.stem)
    chosen = first.type or entity_type_of(first.stem, known)
    return Sense(first.shown, first.stem, first.qualifier, chosen, known, documents)
