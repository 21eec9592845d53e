"""Domains of entities: those of the documents that mention them or state them beside their text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from operator import or_

import numpy as np

from hades.ingest.entities.linking import DocumentNames, LinkedCorpus

_MOST = 32  # domains of one entity; of more, those of the most documents


@dataclass(frozen=True)
class EntityDomains:
    """The first domain of most of its documents, and the domains of all of them, sorted."""

    main: str | None
    every: tuple[str, ...]


def entity_domains(linked: LinkedCorpus, given: DocumentNames) -> list[EntityDomains]:
    """For each entity the domains of its documents; a document counts once, however often it names the entity."""
    documents = linked.corpus.documents
    labels = sorted({one.domains for one in documents})
    code = {one: place for place, one in enumerate(labels)}
    label_of = np.array([code[one.domains] for one in documents], np.int64)
    n_documents = max(1, len(documents))
    titled = np.flatnonzero(linked.title >= 0)
    entity = np.concatenate([linked.entity, linked.title[titled], given.entity]).astype(np.int64)
    document = np.concatenate([linked.reading.document.astype(np.int64), titled, given.document])
    pairs = np.unique(entity * n_documents + document)
    grouped, counts = (
        np.unique(pairs // n_documents * len(labels) + label_of[pairs % n_documents], return_counts=True)
        if len(pairs)
        else (pairs, pairs)
    )
    owner, label = np.divmod(grouped, max(1, len(labels)))
    begins = np.searchsorted(owner, np.arange(linked.n_entities + 1)).tolist()
    alone = [choose_domains([(names, 1)]) for names in labels]  # of most entities all documents have the same domains
    joined, which, how_often = DomainSets(labels), label.tolist(), counts.tolist()
    return [
        alone[which[begin]] if end - begin == 1 else joined.choose(which[begin:end], how_often[begin:end])
        for begin, end in pairwise(begins)
    ]


class DomainSets:
    """Sets of domains that documents have, as bits: the domains of an entity are their union, found once a union."""

    def __init__(self, labels: Sequence[tuple[str, ...]]) -> None:
        self._labels = labels
        self._names = sorted({name for names in labels for name in names})
        place = {name: 1 << number for number, name in enumerate(self._names)}
        self._bits = [reduce(or_, map(place.__getitem__, names), 0) for names in labels]
        self._unions: dict[int, tuple[str, ...]] = {}

    def choose(self, labels: Sequence[int], counts: Sequence[int]) -> EntityDomains:
        """The domains of an entity whose documents have these sets, each so often: the answer of `choose_domains`."""
        union = reduce(or_, map(self._bits.__getitem__, labels), 0)
        if union.bit_count() > _MOST:
            return choose_domains([(self._labels[one], count) for one, count in zip(labels, counts, strict=True)])
        if union not in self._unions:
            self._unions[union] = tuple(name for number, name in enumerate(self._names) if union >> number & 1)
        main: dict[str, int] = {}
        for one, count in zip(labels, counts, strict=True):
            if names := self._labels[one]:
                main[names[0]] = main.get(names[0], 0) + count
        first = min(main, key=lambda name: (-main[name], name)) if len(main) > 1 else next(iter(main), None)
        return EntityDomains(first, self._unions[union])


def choose_domains(groups: Sequence[tuple[tuple[str, ...], int]]) -> EntityDomains:
    """The domains of an entity from those that its documents have together, and how many documents have them."""
    main: dict[str, int] = {}
    every: dict[str, int] = {}
    for names, count in groups:
        if names:
            main[names[0]] = main.get(names[0], 0) + count
        for name in dict.fromkeys(names):
            every[name] = every.get(name, 0) + count
    if not main:
        return EntityDomains(None, ())
    kept = every if len(every) <= _MOST else sorted(every, key=lambda name: (-every[name], name))[:_MOST]
    return EntityDomains(min(main, key=lambda name: (-main[name], name)), tuple(sorted(kept)))
