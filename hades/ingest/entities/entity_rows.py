"""Senses that are used become entities: numbered in the order of their keys, with their spellings and counts."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import pyarrow as pa

from hades.ingest.entities.names import Origin
from hades.ingest.entities.senses import Sense
from hades.ingest.entities.tables import fill
from hades.ingest.entities.tokens import Ints, Longs
from schemas.ids import entity_key, node_id

_REASONS = ((Origin.TITLE, "title"), (Origin.GIVEN, "given"), (Origin.SYMBOL, "symbol"), (Origin.NAME, "name"), (Origin.TERM, "term"))


@dataclass(frozen=True)
class Numbered:
    """Entities in the order of their keys, and the entity each sense became (-1 for one that is not used)."""

    senses: tuple[Sense, ...]
    keys: tuple[str, ...]
    of_sense: Ints

    def ids(self) -> list[str]:
        """The `_id` of each entity."""
        return [node_id("entities", key) for key in self.keys]


class Spellings:
    """Per entity the ways it is written and, as bits, why its names are known."""

    def __init__(self, n_entities: int) -> None:
        self.texts: list[set[str]] = [set() for _ in range(n_entities)]
        self.origin: Ints = np.zeros(n_entities, dtype=np.int32)


def number_entities(senses: Sequence[Sense], used: Iterable[int]) -> Numbered:
    """Gives each used sense its key; two that would share one are told apart by their full names."""
    by_key: dict[str, list[int]] = defaultdict(list)
    for index in sorted(set(used)):
        sense = senses[index]
        by_key[entity_key(sense.stem, sense.type, sense.qualifier)].append(index)
    keyed: list[tuple[str, int]] = []
    for key, sharing in by_key.items():
        if len(sharing) > 1:
            sharing.sort(key=lambda index: (senses[index].name, senses[index].stem, senses[index].kind, index))
        keyed.append((key, sharing[0]))
        for index in sharing[1:]:
            sense = senses[index]
            other = entity_key(sense.stem, sense.type, f"{sense.qualifier}|{sense.name}|{sense.kind}")
            keyed.append((other, index))
    keyed.sort()
    of_sense = np.full(len(senses), -1, dtype=np.int32)
    of_sense[[index for _, index in keyed]] = np.arange(len(keyed), dtype=np.int32)
    return Numbered(tuple(senses[index] for _, index in keyed), tuple(key for key, _ in keyed), of_sense)


def entities_table(numbered: Numbered, spellings: Spellings, frequency: Longs) -> pa.Table:
    """The entities with their other spellings, how often they are mentioned and why their names are known."""
    senses = numbered.senses
    names = [sense.name for sense in senses]
    aliases = [
        sorted(texts - {name}) if len(texts) > 1 or name not in texts else []
        for name, texts in zip(names, spellings.texts, strict=True)
    ]
    return fill(
        "entities",
        len(senses),
        {
            "_key": pa.array(numbered.keys, pa.string()),
            "name": pa.array(names, pa.string()),
            "name_lower": pa.array([name.lower() for name in names], pa.string()),
            "type": pa.array([str(sense.type) for sense in senses], pa.string()),
            "canonical_name": pa.array(names, pa.string()),
            "aliases": pa.array(aliases, pa.list_(pa.string())),
            "frequency": pa.array(frequency),
            "entity_type": pa.array([str(sense.kind) for sense in senses], pa.string()),
            "metadata": pa.array([_reasons(bits) for bits in spellings.origin.tolist()], pa.string()),
        },
    )


@cache
def _reasons(origin: int) -> str:
    known = [word for flag, word in _REASONS if origin & flag]
    return json.dumps({"origin": known}, sort_keys=True)
