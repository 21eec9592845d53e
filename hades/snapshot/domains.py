"""Which nodes belong to a domain: entities by the documents that mention them, texts by their document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hades.ports.graph import KINDS, Codes, Flags, Kind, Numbers
from hades.snapshot.heaps import Heap

LABEL_SEPARATOR = "\x1f"
_CODED = ("entity.domain", "entity.domains", "document.domain")


class DomainIndex:
    """Answers from codes of label sets. A snapshot from before domains were kept has none of them."""

    def __init__(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._arrays = arrays
        self._labels: dict[str, list[frozenset[str]]] = {}

    def names(self) -> tuple[str, ...]:
        """Every domain of the snapshot, sorted."""
        return tuple(sorted({name for column in _CODED for name in self._written(column)}))

    def contains(self, domain: str, numbers: Numbers, kinds: Codes) -> Flags:
        """Whether each node belongs to a domain, ignoring case; topics and texts without one belong to all."""
        entity, cluster = KINDS.index(Kind.ENTITY), KINDS.index(Kind.CLUSTER)
        inside: Flags = kinds == cluster
        entities = numbers[kinds == entity]  # the first kind, so a number is a row
        inside[kinds == entity] = self._is_in("entity.domain", domain, entities) | self._is_in(
            "entity.domains", domain, entities
        )
        texts = (kinds != entity) & (kinds != cluster)
        documents = np.asarray(self._arrays["node.document"])[numbers[texts]].astype(np.int64)
        inside[texts] = self._is_in("document.domain", domain, documents) | self._has_none(documents)
        return inside

    def _has_none(self, documents: Numbers) -> Flags:
        """Which documents were stored before domains were kept: nothing excludes them."""
        if "document.domain" not in self._arrays:
            return np.ones(len(documents), np.bool_)
        none: Flags = (documents < 0) | (np.asarray(self._arrays["document.domain"])[np.maximum(documents, 0)] < 0)
        return none

    def _is_in(self, column: str, domain: str, rows: Numbers) -> Flags:
        wanted = domain.casefold()
        if column not in self._labels:
            self._labels[column] = [
                frozenset(name.casefold() for name in text.split(LABEL_SEPARATOR)) for text in self._texts(column)
            ]
        known = np.array([wanted in names for names in self._labels[column]] + [False], np.bool_)  # -1 is the last
        if column not in self._arrays or not len(rows):
            return np.zeros(len(rows), np.bool_)
        codes = np.where(rows >= 0, np.asarray(self._arrays[column])[np.maximum(rows, 0)], -1)
        found: Flags = known[codes]
        return found

    def _written(self, column: str) -> set[str]:
        return {name for text in self._texts(column) for name in text.split(LABEL_SEPARATOR)}

    def _texts(self, column: str) -> list[str]:
        if f"{column}_name.ends" not in self._arrays:
            return []
        heap = Heap(self._arrays, f"{column}_name")
        return [heap[place] for place in range(len(self._arrays[f"{column}_name.ends"]) - 1)]
