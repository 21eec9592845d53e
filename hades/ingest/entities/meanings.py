"""What names mean: which are one, what documents state of them, and the entities that they
become.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, count

import numpy as np
import pyarrow as pa

from hades.ingest.entities.corpus import Corpus
from hades.ingest.entities.find_names import Reading, show_names
from hades.ingest.entities.kinds import kinds_in_context
from hades.ingest.entities.known_names import Origin
from hades.ingest.entities.same_names import (
    AliasMerge,
    merge_names,
    propose_acronyms,
    propose_aliases,
    propose_middle_names,
)
from hades.ingest.entities.senses import Sense, SenseResolution, resolve_mentions, state_senses
from hades.ingest.entities.tables import fill
from models.arrays import Flags, Ints, Longs, rows_of
from schemas.ids import entity_key
from schemas.nodes import EntityType
from schemas.record import canonical_json

SYMBOLS_SHARING = 4  # a short name that more symbols share says too little
# EmailMessage, run_in_executor; not `get`, not `__init__`.
_IDENTIFIER = re.compile(r"[a-z0-9][A-Z]|[A-Za-z0-9]_[A-Za-z0-9]")
_REASONS = (
    (Origin.TITLE, "title"),
    (Origin.GIVEN, "given"),
    (Origin.SYMBOL, "symbol"),
    (Origin.NAME, "name"),
    (Origin.TERM, "term"),
)


@dataclass(frozen=True)
class StatedMeanings:
    """Names that documents state, in order of documents: which name, in which words, what it means,
    if as a title.
    """

    document: Longs
    name: Longs
    sense: Longs
    # the sense of the name alone, -1 for none: the title or a symbol of the same text may be
    # another
    meant: Longs
    is_title: Flags
    text: tuple[str, ...]


@dataclass(frozen=True)
class NameMeanings:
    """The names of a corpus with their meanings, and the entities that these became, in the order
    of their keys.
    """

    reading: Reading
    shown: Sequence[str]
    written: Mapping[int, Mapping[str, int]]
    merged: AliasMerge
    resolved: SenseResolution
    stated: StatedMeanings
    senses: tuple[Sense, ...]  # of each entity
    keys: tuple[str, ...]
    of_sense: Longs  # the entity each sense became, -1 for one that is not used

    def entity(self, sense: Longs | Ints) -> Longs:
        """The entity that each sense became, -1 for one that is not used and for no sense."""
        return np.append(self.of_sense, -1)[sense]


def resolve_meanings(
    corpus: Corpus,
    reading: Reading,
    origins: Mapping[str, int],
) -> NameMeanings:
    """The meanings of all names; `why` says of every stated text why it is a name."""
    shown, written = show_names(reading, origins, corpus.texts)
    merged = _merge(corpus, reading)

    def canonical_of(name: str) -> int:
        row = reading.row_of.get(name, -1)
        return merged.canonical[row] if row >= 0 else -1

    context = kinds_in_context(
        reading,
        merged.canonical,
        corpus.texts,
    )
    stated = state_senses(corpus, canonical_of, context)
    canonical = np.array(merged.canonical, np.int32)
    resolved = resolve_mentions(
        reading.names,
        canonical,
        shown,
        stated,
        pairs=reading.pairs,
        definitions=reading.definitions,
        context=context,
    )
    statements = _read_stated_meanings(corpus, reading, resolved)
    used = np.concatenate([resolved.meaning, statements.sense]).astype(np.int64)
    keyed = _give_keys(resolved.senses, np.unique(used))
    of_sense = np.full(len(resolved.senses), -1)
    of_sense[[row for _, row in keyed]] = np.arange(len(keyed))
    return NameMeanings(
        reading=reading,
        shown=shown,
        written=written,
        merged=merged,
        resolved=resolved,
        stated=statements,
        senses=tuple(resolved.senses[row] for _, row in keyed),
        keys=tuple(key for key, _ in keyed),
        of_sense=of_sense,
    )


def entities_table(
    meanings: NameMeanings,
    origins: Mapping[str, int],
    frequency: Longs,
    domains: Sequence[tuple[str | None, Sequence[str]]],
    summaries: Sequence[str],
) -> pa.Table:
    """The entities with their other spellings, their domains, summaries, how often and why their
    names are known.
    """
    names = [sense.name for sense in meanings.senses]
    texts, origin = _find_spellings(meanings, origins)

    for row, short in _short_symbols(meanings.senses).items():
        texts[row].add(short)

    aliases = []
    for name, spellings in zip(names, texts, strict=True):
        aliases.append(sorted(spellings - {name}))

    columns = {
        "_key": pa.array(meanings.keys, pa.string()),
        "name": pa.array(names, pa.string()),
        "name_lower": pa.array([name.lower() for name in names], pa.string()),
        "type": pa.array([str(sense.type) for sense in meanings.senses], pa.string()),
        "canonical_name": pa.array(names, pa.string()),
        "aliases": pa.array(aliases, pa.list_(pa.string())),
        "summary": pa.array(summaries, pa.string()),
        "frequency": pa.array(frequency),
        "domain": pa.array([main for main, _ in domains], pa.string()),
        "domains": pa.array([list(every) for _, every in domains], pa.list_(pa.string())),
        "entity_type": pa.array([str(sense.kind) for sense in meanings.senses], pa.string()),
        "metadata": pa.array([_reasons(bits) for bits in origin.tolist()], pa.string()),
    }
    return fill("entities", len(names), columns)


def _merge(corpus: Corpus, reading: Reading) -> AliasMerge:
    """Folds names that are spellings of each other; acronyms second, once plurals agree on the long
    form.
    """
    names = reading.names
    titles = [reading.row_of.get(document.bare, -1) for document in corpus.documents]
    holding: dict[int, set[int]] = defaultdict(set)

    for row, document in chain(rows_of(reading.name, reading.document), zip(titles, count())):
        holding[row].add(document)

    proposed = propose_aliases(names, reading.common)
    middle_names = propose_middle_names(names, holding)
    if reading.definitions:
        first = merge_names(names, proposed)
        proposed += propose_acronyms(reading.definitions, first.canonical)

    return merge_names(names, [*proposed, *middle_names])


def _read_stated_meanings(
    corpus: Corpus,
    reading: Reading,
    resolved: SenseResolution,
) -> StatedMeanings:
    """Everything documents state: titles, names given with them, their symbols and the ends of
    their triples.
    """
    title_of = resolved.stated.title_of
    symbols = resolved.stated.symbols

    statements: list[tuple[int, str, bool]] = []
    for index, document in enumerate(corpus.documents):
        if index in title_of:
            statements.append((index, document.bare, True))
        statements += [(index, text, False) for text in document.facts.all_names()]

    places = np.array([index for index, _, _ in statements], np.int64)
    names = np.array(
        [reading.row_of.get(text, -1) for _, text, _ in statements],
        np.int64,
    )
    is_title = np.array([is_title for _, _, is_title in statements], np.bool_)
    meant = resolved.means(places, names)
    exact = np.array([symbols.get(text, -1) for _, text, _ in statements], np.int64)
    sense = np.where(exact >= 0, exact, meant)
    sense[is_title] = [title_of[index] for index in places[is_title].tolist()]
    known = np.flatnonzero(sense >= 0)
    return StatedMeanings(
        document=places[known],
        name=names[known],
        sense=sense[known],
        meant=meant[known],
        is_title=is_title[known],
        text=tuple(statements[row][1] for row in known.tolist()),
    )


def _give_keys(senses: Sequence[Sense], used: Longs) -> list[tuple[str, int]]:
    """The key of each used sense, in order of keys; two that would share one are told apart by
    their full names.
    """
    keys: dict[str, int] = {}

    ordered = []
    for row in used.tolist():
        sense = senses[row]
        ordered.append((entity_key(sense.stem, sense.type, sense.qualifier), sense[:5], row))

    for key, _, row in sorted(ordered):
        if key in keys:  # the first by name keeps the short one
            sense = senses[row]
            key = entity_key(
                sense.stem,
                sense.type,
                f"{sense.qualifier}|{sense.name}|{sense.kind}",
            )

        keys[key] = row

    return sorted(keys.items())


def _find_spellings(
    meanings: NameMeanings,
    origins: Mapping[str, int],
) -> tuple[list[set[str]], Longs]:
    """Every way each entity is written in texts or stated by sources, and as bits why its names are
    known.
    """
    names = meanings.reading.names
    resolved = meanings.resolved
    stated = meanings.stated
    size = max(1, len(names))
    texts: list[set[str]] = [set() for _ in meanings.keys]
    mentioned = meanings.entity(resolved.meaning)

    for code in np.unique(mentioned * size + resolved.pairs % size).tolist():
        spellings = meanings.written[code % size]
        texts[code // size].update(text for text, count in spellings.items() if count)

    stated_entities = meanings.entity(stated.sense)
    for entity, text in zip(stated_entities.tolist(), stated.text, strict=True):
        # The end of a triple is no spelling to go by: "state" must not find every State.
        if origins[text] != Origin.PHRASE or not texts[entity]:
            texts[entity].add(text)

    origin = np.zeros(len(meanings.keys), np.int64)
    np.bitwise_or.at(
        origin,
        stated_entities,
        names.origin[stated.name],
    )
    np.bitwise_or.at(
        origin,
        mentioned,
        names.origin[resolved.pairs % size],
    )
    return texts, origin


def _short_symbols(senses: Sequence[Sense]) -> dict[int, str]:
    """The last part of a symbol's dotted name, where it reads as an identifier and few symbols
    share it.

    People ask for `EmailMessage`, not for `email.message.EmailMessage`; a plain word such as `get`
    would match prose.
    """
    rows: dict[str, list[int]] = defaultdict(list)
    for row, sense in enumerate(senses):
        if sense.type == EntityType.CODE_SYMBOL and "." in sense.name:
            rows[sense.name.rpartition(".")[2]].append(row)

    short: dict[int, str] = {}
    for name, sharing in rows.items():
        if _IDENTIFIER.search(name) and len(sharing) <= SYMBOLS_SHARING:
            short |= dict.fromkeys(sharing, name)

    return short


@cache
def _reasons(origin: int) -> str:
    return canonical_json({"origin": [word for flag, word in _REASONS if origin & flag]})
