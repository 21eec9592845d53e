"""Relations that a source states as triples, each with the sentence that fits it best."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from hades.ingest.entities.tokens import Ints, Longs


@dataclass(frozen=True)
class StatedRelation:
    """One stated relation between two things: in whose words, how often, and the document and place that state it first."""

    source: int
    target: int
    label: str
    count: int
    document: int
    sentence: int  # -1: no sentence names either end, so the whole document stands for it


class Sentences:
    """Which things each document's sentences name; only documents that state triples are read."""

    def __init__(self, document: Ints, sentence: Longs, thing: Ints, wanted: Iterable[int]) -> None:
        chosen = np.isin(document, np.array(sorted(wanted), dtype=np.int64))
        rows = zip(document[chosen].tolist(), sentence[chosen].tolist(), thing[chosen].tolist(), strict=True)
        self._of: dict[int, dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
        for here, where, what in rows:
            self._of[here][where].add(what)

    def best(self, document: int, source: int, target: int) -> int:
        """The first sentence that names both ends, else one that names the target, else the source; -1 for none."""
        worth = {
            where: 2 * (target in named) + (source in named)
            for where, named in self._of.get(document, {}).items()
        }
        top = max(worth.values(), default=0)
        return min(where for where, value in worth.items() if value == top) if top else -1


def stated_relations(
    triples: Iterable[tuple[int, tuple[str, str, str]]],
    meaning: Callable[[int, str], int],
    sentences: Sentences,
) -> list[StatedRelation]:
    """Triples of documents as relations between things; the same one stated twice counts twice. In a fixed order.

    `meaning` gives the thing a document means by a name, -1 for none; a relation of a thing to itself says nothing.
    """
    places: dict[tuple[int, int, str], list[int]] = defaultdict(list)
    for document, (subject, relation, target) in triples:
        ends = meaning(document, subject), meaning(document, target)
        if min(ends) >= 0 and ends[0] != ends[1] and relation:
            places[(*ends, relation)].append(document)
    return [
        StatedRelation(
            source, target, label, len(documents), min(documents), sentences.best(min(documents), source, target)
        )
        for (source, target, label), documents in sorted(places.items())
    ]
