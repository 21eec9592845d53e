"""Domains of entities: those of the documents that mention them or state them beside their text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hades.ingest.entities.linking import DocumentNames, LinkedCorpus
from hades.text.arrays import Hashes, Longs, distinct

_MOST = 32  # domains of one entity; of more, those of the most documents


@dataclass(frozen=True)
class EntityDomains:
    """The first domain of most of its documents, and the domains of all of them, sorted."""

    main: str | None
    every: tuple[str, ...]


def entity_domains(linked: LinkedCorpus, given: DocumentNames) -> list[EntityDomains]:
    """For each entity the domains of its documents; a document counts once, however often it names the entity."""
    documents = linked.corpus.documents
    n_documents = max(1, len(documents))
    titled = np.flatnonzero(linked.title >= 0)
    entity = np.concatenate([linked.entity, linked.title[titled], given.entity]).astype(np.int64)
    document = np.concatenate([linked.reading.document.astype(np.int64), titled, given.document])
    pairs = np.unique(entity * n_documents + document)
    used = distinct(document)
    held = documents.domains(used)
    labels = sorted(set(held))
    code = {one: place for place, one in enumerate(labels)}
    label_of = np.zeros(n_documents, dtype=np.int64)
    label_of[used] = [code[one] for one in held]
    grouped, counts = (
        np.unique(pairs // n_documents * len(labels) + label_of[pairs % n_documents], return_counts=True)
        if len(pairs)
        else (pairs, pairs)
    )
    owner, label = np.divmod(grouped, max(1, len(labels)))
    return join_domains(labels, owner, label, counts, linked.n_entities)


def join_domains(
    labels: Sequence[tuple[str, ...]], owner: Longs, label: Longs, counts: Longs, n_owners: int
) -> list[EntityDomains]:
    """For each owner the answer of `choose_domains`: `counts` of its documents have the domains of a label.

    Rows are in order of owners. Sets of domains are bits of few numbers, so
    that each set is made once, however many owners have it.
    """
    found = [EntityDomains(None, ())] * n_owners
    present, owner = np.unique(owner, return_inverse=True)
    if not len(present):
        return found
    names = sorted({name for one in labels for name in one})
    place = {name: number for number, name in enumerate(names)}
    begins = np.searchsorted(owner, np.arange(len(present)))
    union = np.bitwise_or.reduceat(_as_bits(labels, place)[label], begins, axis=0)
    first = np.array([place[one[0]] if one else len(names) for one in labels], dtype=np.int64)
    main = _choose_main(owner, first[label], counts, len(names))
    example, of_owner = _number_rows([main.astype(np.uint64), *union.T])
    small = (np.bitwise_count(union[example]).sum(axis=1) <= _MOST).tolist()
    known = [
        EntityDomains(names[one] if one < len(names) else None, _names_of(bits, names)) if is_small else None
        for one, bits, is_small in zip(main[example].tolist(), union[example].tolist(), small, strict=True)
    ]
    ends = np.append(begins[1:], len(owner))
    for number, (entity, row) in enumerate(zip(present.tolist(), of_owner.tolist(), strict=True)):
        held = range(begins[number], ends[number]) if known[row] is None else ()
        found[entity] = known[row] or choose_domains([(labels[label[one]], int(counts[one])) for one in held])
    return found


def _as_bits(labels: Sequence[tuple[str, ...]], place: dict[str, int]) -> Hashes:
    """One row a label: the bits of its domains in numbers of 64 bits."""
    bits = np.zeros((len(labels), max(1, -(-len(place) // 64))), dtype=np.uint64)
    for row, one in enumerate(labels):
        for name in one:
            word, bit = divmod(place[name], 64)
            bits[row, word] |= np.uint64(1 << bit)
    return bits


def _choose_main(owner: Longs, first: Longs, counts: Longs, nothing: int) -> Longs:
    """The first domain of most documents of each owner, of several the first by name; `nothing` where none has any."""
    codes, which = np.unique(owner * (nothing + 1) + first, return_inverse=True)
    total = np.zeros(len(codes), dtype=np.int64)
    np.add.at(total, which, counts)
    who, domain = np.divmod(codes, nothing + 1)
    order = np.lexsort((domain, -total, domain == nothing, who))
    chosen: Longs = domain[order[np.flatnonzero(np.diff(who[order], prepend=-1))]]
    return chosen


def _number_rows(columns: Sequence[Hashes]) -> tuple[Longs, Longs]:
    """Where each different row is met first, and the number of each row among them."""
    which = np.zeros(len(columns[0]), dtype=np.int64)
    example = which
    for column in columns:
        known, value = np.unique(column, return_inverse=True)
        _, example, which = np.unique(which * len(known) + value, return_index=True, return_inverse=True)
    return example, which


def _names_of(bits: Sequence[int], names: Sequence[str]) -> tuple[str, ...]:
    found: list[str] = []
    for word, value in enumerate(bits):
        while value:
            lowest = value & -value
            found.append(names[64 * word + lowest.bit_length() - 1])
            value ^= lowest
    return tuple(found)


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
