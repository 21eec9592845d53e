"""Meanings of changed names."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import pyarrow as pa

from hades.ingest.entities.aliases import Alias, AliasMerge, merge_names, propose_acronyms
from hades.ingest.entities.corpus import Corpus, entity_keys
from hades.ingest.entities.describe import EntityDomains
from hades.ingest.entities.find_names import Reading, show_names
from hades.ingest.entities.known_names import EntityRules, Origin
from hades.ingest.entities.resolve import Sense, SenseResolution, page_kinds, resolve_mentions, state_senses
from hades.ingest.entities.tables import fill
from hades.text.words import Flags, Hashes, Ints, Longs, distinct
from schemas.ids import entity_key
from schemas.nodes import EntityType
from schemas.record import canonical_json

# Senses that are used become entities: numbered in the order of their keys, with their spellings and counts.


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


# What some names mean: the names that are one, the senses that documents state of them, and the entities they
# become. The names are closed under the links of `name_links.py`, so that what the other names mean neither follows
# from them nor acts on them. Documents, chunks and sentences keep the numbers that they have in the corpus.


@dataclass(frozen=True)
class NameProposals:
    """Names that may be one, by their rows: by their words, and by a middle name left out."""

    aliases: Sequence[Alias]
    middle_names: Sequence[Alias]

    def all(self) -> list[Alias]:
        """Both kinds."""
        return [*self.aliases, *self.middle_names]

    def only(self, rows: Longs, n_names: int) -> NameProposals:
        """Those of some names, by their rows among these."""
        number = np.full(n_names, -1, dtype=np.int64)
        number[rows] = np.arange(len(rows))
        told = number.tolist()

        def take(proposals: Sequence[Alias]) -> list[Alias]:
            return [
                Alias(told[one.alias], told[one.canonical], one.rule, one.score)
                for one in proposals
                if told[one.alias] >= 0
            ]

        return NameProposals(take(self.aliases), take(self.middle_names))


@dataclass(frozen=True)
class StatedMeanings:
    """Names that documents state, in order of documents: which name, in which words, what it means, if as a title."""

    document: Longs
    name: Longs
    sense: Longs
    meant: Longs  # the sense of the name alone, -1 for none: the title or a symbol of the same text may be another
    is_title: Flags
    text: tuple[str, ...]


@dataclass(frozen=True)
class NameMeanings:
    """Some names of the corpus with their meanings, and the entities that these became, numbered from 0."""

    rows: Longs  # of the names of the corpus
    reading: Reading  # of these names
    shown: Sequence[str]
    written: Mapping[int, Mapping[str, int]]
    merged: AliasMerge
    resolved: SenseResolution
    stated: StatedMeanings
    numbered: EntityNumbers
    owner: Hashes  # of each sense, the identity of a name that it hangs on

    def entity(self, sense: Longs) -> Longs:
        """The entity that each sense became, -1 for one that is not used and for no sense."""
        return np.append(self.numbered.of_sense, -1)[sense].astype(np.int64)

    def doubtful_names(self) -> Hashes:
        """Names that may mean more than one thing, and those of entities whose keys had to be told apart."""
        identity = self.reading.names.identity
        unsure = identity[np.isin(self.resolved.canonical, self.resolved.stated.doubtful())]
        return distinct(np.concatenate([unsure, self.owner[self.numbered.told_apart]]))


def resolve_meanings(
    corpus: Corpus,
    reading: Reading,
    rows: Longs,
    proposals: NameProposals,
    why: Mapping[str, int],
    documents: Sequence[int],
    rules: EntityRules,
    beside: tuple[Longs, Longs],
) -> NameMeanings:
    """The meanings of these names (rows of the reading). `documents`, in order, are all that state one of them.

    `why` says of every stated text why it is a name; `beside` are documents and meanings of all other names.
    """
    chosen, proposed = reading.only(rows), proposals.only(rows, len(reading.names))
    names = chosen.names
    shown, written = show_names(chosen, why, corpus.texts)
    pairs = distinct(chosen.document.astype(np.int64) * max(1, len(names)) + chosen.name)
    merged = _merge(chosen, shown, proposed, rules)
    canonical = np.array(merged.canonical, dtype=np.int32)

    def canonical_of(name: str) -> int:
        row = chosen.row_of.get(name, -1)
        return merged.canonical[row] if row >= 0 else -1

    stated = state_senses(corpus, documents, canonical_of, page_kinds(corpus, documents))
    resolved = resolve_mentions(names, canonical, shown, stated, pairs, chosen.definitions, rules, beside)
    said = _read_stated_meanings(corpus, documents, chosen, resolved)
    numbered = number_entities(resolved.senses, np.concatenate([resolved.meaning, said.sense]))
    owner = np.zeros(len(resolved.senses), dtype=np.uint64)
    for row, which in stated.claims.items():
        owner[list(which)] = names.identity[row]
    owner[resolved.of_name] = names.identity[canonical]
    return NameMeanings(rows, chosen, shown, written, merged, resolved, said, numbered, owner)


def _merge(reading: Reading, shown: Sequence[str], proposals: NameProposals, rules: EntityRules) -> AliasMerge:
    """Folds names that are spellings of each other; acronyms second, once plurals agree on the long form."""
    proposed = list(proposals.aliases)
    if reading.definitions:
        first = merge_names(reading.names, shown, proposed, rules)
        proposed += propose_acronyms(reading.definitions, first.canonical, rules)
    return merge_names(reading.names, shown, [*proposed, *proposals.middle_names], rules)


def _read_stated_meanings(
    corpus: Corpus, documents: Sequence[int], reading: Reading, resolved: SenseResolution
) -> StatedMeanings:
    """Everything documents state: titles, names given with them, their symbols and the ends of their triples."""
    row_of, title_of = reading.row_of, resolved.stated.title_of
    where: list[int] = []
    texts: list[str] = []
    first: list[int] = []
    for index in documents:
        document = corpus.documents[index]
        if index in title_of:
            first.append(len(texts))
            texts.append(document.bare)
            where.append(index)
        if document.facts:
            named = [text for text in document.facts.all_names() if text in row_of]
            texts.extend(named)
            where.extend([index] * len(named))
    places = np.array(where, dtype=np.int64)
    names = np.fromiter((row_of.get(text, -1) for text in texts), dtype=np.int64, count=len(texts))
    is_title = np.zeros(len(texts), dtype=np.bool_)
    is_title[first] = True
    meant = resolved.means(places, names)
    sense = meant.copy()
    symbols = resolved.stated.symbols
    if symbols:
        exact = np.fromiter((symbols.get(text, -1) for text in texts), dtype=np.int64, count=len(texts))
        sense = np.where(exact >= 0, exact, sense)
    sense[is_title] = np.array([title_of[index] for index in places[is_title].tolist()], dtype=np.int64)
    known = np.flatnonzero(sense >= 0)
    kept = tuple(texts[row] for row in known.tolist())
    return StatedMeanings(places[known], names[known], sense[known], meant[known], is_title[known], kept)


def find_spellings(meanings: NameMeanings, why: Mapping[str, int]) -> Spellings:
    """Every way each entity is written in texts or stated by sources, and why its names are known."""
    names, resolved, stated = meanings.reading.names, meanings.resolved, meanings.stated
    size = max(1, len(names))
    spellings = Spellings(len(meanings.numbered.keys))
    meant = meanings.entity(resolved.meaning.astype(np.int64))
    for code in distinct(meant * size + resolved.pairs % size).tolist():
        spellings.texts[code // size].update(text for text, count in meanings.written[code % size].items() if count)
    said = meanings.entity(stated.sense)
    for entity, text in zip(said.tolist(), stated.text, strict=True):
        # The end of a triple is no spelling to go by: "state" must not find every State.
        if why[text] != Origin.PHRASE or not spellings.texts[entity]:
            spellings.texts[entity].add(text)
    np.bitwise_or.at(spellings.origin, said, names.origin[stated.name])
    np.bitwise_or.at(spellings.origin, meant, names.origin[resolved.pairs % size])
    return spellings
