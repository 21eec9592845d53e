"""Relations that a source states as triples, each with the sentence that fits it best."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from hades.text.arrays import Ints, Longs


@dataclass(frozen=True)
class StatedRelation:
    """One stated relation between two things: in which words, how often, and the document that states it first."""

    source: int
    target: int
    label: str
    count: int
    document: int
    mention: int  # in the sentence that fits best; -1: no sentence names either end


class Sentences:
    """Which things each document's sentences name; only documents that state triples are read."""

    def __init__(self, document: Ints, sentence: Longs, thing: Longs, wanted: Iterable[int]) -> None:
        chosen = np.isin(document, np.array(sorted(wanted), dtype=np.int64))
        rows = zip(document[chosen].tolist(), sentence[chosen].tolist(), thing[chosen].tolist(), strict=True)
        self._of: dict[int, dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
        self._mention: dict[int, int] = {}
        for mention, (here, where, what) in zip(np.flatnonzero(chosen).tolist(), rows, strict=True):
            self._of[here][where].add(what)
            self._mention.setdefault(where, mention)

    def best(self, document: int, source: int, target: int) -> int:
        """A mention in the first sentence that names both ends, else the target, else the source; -1 for none."""
        worth = {
            where: 2 * (target in named) + (source in named) for where, named in self._of.get(document, {}).items()
        }
        top = max(worth.values(), default=0)
        return self._mention[min(where for where, value in worth.items() if value == top)] if top else -1


def read_stated_relations(triples: Iterable[tuple[int, int, str, int]], sentences: Sentences) -> list[StatedRelation]:
    """Triples (document, subject, relation, object) as relations, in a fixed order; one stated twice counts twice.

    Things are numbers, -1 for none; a relation of a thing to itself says nothing.
    """
    places: dict[tuple[int, int, str], list[int]] = defaultdict(list)
    for document, subject, relation, target in triples:
        if min(subject, target) >= 0 and subject != target and relation:
            places[subject, target, relation].append(document)
    return [
        StatedRelation(
            source, target, label, len(documents), min(documents), sentences.best(min(documents), source, target)
        )
        for (source, target, label), documents in sorted(places.items())
    ]
