"""Domains of entities: those of the documents that mention them or state them beside their text."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from hades.ingest.entities.linking import Given, LinkedCorpus

_MOST = 32  # domains of one entity; of more, those of the most documents


@dataclass(frozen=True)
class EntityDomains:
    """The first domain of most of its documents, and the domains of all of them, sorted."""

    main: str | None
    every: tuple[str, ...]


def entity_domains(linked: LinkedCorpus, given: Given) -> list[EntityDomains]:
    """For each entity the domains of its documents; a document counts once, however often it names the entity."""
    documents = linked.corpus.documents
    labels = sorted({one.domains for one in documents})
    code = {one: place for place, one in enumerate(labels)}
    label_of = np.array([code[one.domains] for one in documents], np.int64)
    size, n_documents = max(1, linked.n_entities), max(1, len(documents))
    titled = np.flatnonzero(linked.title >= 0)
    entity = np.concatenate([linked.entity, linked.title[titled], given.entity]).astype(np.int64)
    document = np.concatenate([linked.reading.document.astype(np.int64), titled, given.document])
    pairs = np.unique(entity * n_documents + document)
    grouped, counts = (
        np.unique(pairs // n_documents * len(labels) + label_of[pairs % n_documents], return_counts=True)
        if len(pairs)
        else (pairs, pairs)
    )
    first: list[Counter[str]] = [Counter() for _ in range(linked.n_entities)]
    every: list[Counter[str]] = [Counter() for _ in range(linked.n_entities)]
    for group, count in zip(grouped.tolist(), counts.tolist(), strict=True):
        names = labels[group % len(labels)]
        if names and group // len(labels) < size:
            first[group // len(labels)][names[0]] += count
            for name in names:
                every[group // len(labels)][name] += count
    return [_choose(main, all_names) for main, all_names in zip(first, every, strict=True)]


def _choose(main: Counter[str], every: Counter[str]) -> EntityDomains:
    if not main:
        return EntityDomains(None, ())
    kept = sorted(every, key=lambda name: (-every[name], name))[:_MOST]
    return EntityDomains(min(main, key=lambda name: (-main[name], name)), tuple(sorted(kept)))
