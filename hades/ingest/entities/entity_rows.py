"""Senses that are used become entities: numbered in the order of their keys, with their spellings and counts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import pyarrow as pa

from hades.ingest.entities.entity_domains import EntityDomains
from hades.ingest.entities.keys import entity_keys
from hades.ingest.entities.names import Origin
from hades.ingest.entities.senses import Sense
from hades.ingest.entities.tables import fill
from hades.text.arrays import Ints, Longs, distinct
from schemas.graph_types import EntityType
from schemas.ids import entity_key
from schemas.record import canonical_json

SYMBOLS_SHARING = 4  # a short name that more symbols share says too little
_IDENTIFIER = re.compile(
    r"[a-z0-9][A-Z]|[A-Za-z0-9]_[A-Za-z0-9]"
)  # EmailMessage, run_in_executor; not `get`, not `__init__`
_REASONS = (
    (Origin.TITLE, "title"),
    (Origin.GIVEN, "given"),
    (Origin.SYMBOL, "symbol"),
    (Origin.NAME, "name"),
    (Origin.TERM, "term"),
)


@dataclass(frozen=True)
class EntityNumbers:
    """Entities in the order of their keys, and the entity each sense became (-1 for one that is not used)."""

    senses: tuple[Sense, ...]
    keys: tuple[str, ...]
    of_sense: Ints
    told_apart: Longs  # senses that would share their keys with others


class Spellings:
    """Per entity the ways it is written and, as bits, why its names are known."""

    def __init__(self, n_entities: int) -> None:
        self.texts: list[set[str]] = [set() for _ in range(n_entities)]
        self.origin: Ints = np.zeros(n_entities, dtype=np.int32)


def number_entities(senses: Sequence[Sense], used: Longs) -> EntityNumbers:
    """Gives each used sense its key; two that would share one are told apart by their full names."""
    rows = distinct(used.astype(np.int64)).tolist()
    keys = entity_keys((one.stem, one.type, one.qualifier) for one in map(senses.__getitem__, rows))
    shared: list[int] = []
    if len(set(keys)) < len(keys):
        count = Counter(keys)
        shared = [row for key, row in zip(keys, rows, strict=True) if count[key] > 1]
        keys = _tell_apart(senses, rows, keys)
    keyed = sorted(zip(keys, rows, strict=True))
    of_sense = np.full(len(senses), -1, dtype=np.int32)
    of_sense[[index for _, index in keyed]] = np.arange(len(keyed), dtype=np.int32)
    told_apart = np.array(shared, dtype=np.int64)
    listed = tuple(senses[index] for _, index in keyed)
    return EntityNumbers(listed, tuple(key for key, _ in keyed), of_sense, told_apart)


def _tell_apart(senses: Sequence[Sense], rows: Sequence[int], keys: Sequence[str]) -> list[str]:
    """Keys of which no two are the same: the first by name keeps the short one."""
    first: set[str] = set()
    told: dict[int, str] = {}
    for key, _, row in sorted((key, senses[row][:5], row) for key, row in zip(keys, rows, strict=True)):
        one = senses[row]
        told[row] = entity_key(one.stem, one.type, f"{one.qualifier}|{one.name}|{one.kind}") if key in first else key
        first.add(key)
    return [told[row] for row in rows]


def entities_table(
    numbered: EntityNumbers,
    spellings: Spellings,
    frequency: Longs,
    domains: Sequence[EntityDomains],
    summaries: Sequence[str],
) -> pa.Table:
    """The entities with their other spellings, their domains, summaries, how often and why their names are known."""
    senses = numbered.senses
    names = [sense.name for sense in senses]
    for row, short in _short_symbols(senses).items():
        spellings.texts[row].add(short)
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
            "summary": pa.array(summaries, pa.string()),
            "frequency": pa.array(frequency),
            "domain": pa.array([one.main for one in domains], pa.string()),
            "domains": pa.array([list(one.every) for one in domains], pa.list_(pa.string())),
            "entity_type": pa.array([str(sense.kind) for sense in senses], pa.string()),
            "metadata": pa.array([_reasons(bits) for bits in spellings.origin.tolist()], pa.string()),
        },
    )


def _short_symbols(senses: Sequence[Sense]) -> dict[int, str]:
    """The last part of a symbol's dotted name, where it reads as an identifier and few symbols share it.

    People ask for `EmailMessage`, not for `email.message.EmailMessage`; a plain word such as `get` would match prose.
    """
    short = {
        row: sense.name.rpartition(".")[2]
        for row, sense in enumerate(senses)
        if sense.type == EntityType.CODE_SYMBOL and "." in sense.name
    }
    shared = Counter(short.values())
    return {row: name for row, name in short.items() if _IDENTIFIER.search(name) and shared[name] <= SYMBOLS_SHARING}


@cache
def _reasons(origin: int) -> str:
    known = [word for flag, word in _REASONS if origin & flag]
    return canonical_json({"origin": known})
