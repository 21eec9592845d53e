"""What names mean: which are one, what documents state of them, and the entities that they
become.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, combinations, count

import numpy as np
import pyarrow as pa
from rapidfuzz.distance import DamerauLevenshtein

from hades.ingest.entities.corpus import Corpus
from hades.ingest.entities.find_names import Definition, Reading, show_names
from hades.ingest.entities.kinds import kinds_in_context
from hades.ingest.entities.known_names import Names, Origin
from hades.ingest.entities.resolve import Sense, SenseResolution, resolve_mentions, state_senses
from hades.ingest.entities.tables import fill
from hades.text.word_lists import HONORIFICS, word_set
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


def resolve_meanings(corpus: Corpus, reading: Reading, origins: Mapping[str, int]) -> NameMeanings:
    """The meanings of all names; `why` says of every stated text why it is a name."""
    shown, written = show_names(reading, origins, corpus.texts)
    merged = _merge(corpus, reading)

    def canonical_of(name: str) -> int:
        row = reading.row_of.get(name, -1)
        return merged.canonical[row] if row >= 0 else -1

    context = kinds_in_context(reading, merged.canonical, corpus.texts)
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
    aliases = [sorted(spellings - {name}) for name, spellings in zip(names, texts, strict=True)]
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
    corpus: Corpus, reading: Reading, resolved: SenseResolution
) -> StatedMeanings:
    """Everything documents state: titles, names given with them, their symbols and the ends of
    their triples.
    """
    title_of, symbols = resolved.stated.title_of, resolved.stated.symbols
    statements: list[tuple[int, str, bool]] = []
    for index, document in enumerate(corpus.documents):
        if index in title_of:
            statements.append((index, document.bare, True))
        statements += [(index, text, False) for text in document.facts.all_names()]
    places = np.array([index for index, _, _ in statements], np.int64)
    names = np.array([reading.row_of.get(text, -1) for _, text, _ in statements], np.int64)
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
            key = entity_key(sense.stem, sense.type, f"{sense.qualifier}|{sense.name}|{sense.kind}")
        keys[key] = row
    return sorted(keys.items())


def _find_spellings(
    meanings: NameMeanings, origins: Mapping[str, int]
) -> tuple[list[set[str]], Longs]:
    """Every way each entity is written in texts or stated by sources, and as bits why its names are
    known.
    """
    names, resolved, stated = meanings.reading.names, meanings.resolved, meanings.stated
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
    np.bitwise_or.at(origin, stated_entities, names.origin[stated.name])
    np.bitwise_or.at(origin, mentioned, names.origin[resolved.pairs % size])
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


# Which known names are other ways to write another: proposals by rule, and their union with a log.
# Every rule looks only at the names themselves and proposes (alias, canonical, rule, score). A
# union is refused where both sides are titles of documents, since two pages are two things.
_SUFFIXES = word_set("inc ltd corp co company corporation fc plc llc gmbh ag")
_ARTICLES = frozenset(("the", "a", "an"))
PRIORITY = (
    "article",
    "honorific",
    "suffix",
    "plural",
    "spacing",
    "acronym",
    "middle_name",
    "fuzzy",
)
_ACRONYM_MIN_SHARE = 0.6  # of the documents that explain an acronym, those that agree
_FUZZY_MIN_LETTERS = 12
_FUZZY_MIN_SCORE = 0.93
_MIN_JOINED = 10
_MAX_BLOCK = 40
_MIN_TOKEN = 6
_SHORTEST_PLURAL = 4
_LONGEST_FUZZY = 6  # words
_LONGEST_PERSON = 4  # words
_SLIP_TEXTS = 2  # a misspelling is seldom made in more texts than this


@dataclass(frozen=True)
class Alias:
    """One name (by its row) folded into another, why, and how sure it is."""

    alias: int
    canonical: int
    rule: str
    score: float = 1.0


@dataclass(frozen=True)
class AliasMerge:
    """The name each name stands for, and the log of what was folded; no canonical name is itself an
    alias.
    """

    canonical: tuple[int, ...]
    log: tuple[Alias, ...]


def propose_aliases(names: Names, common: frozenset[str]) -> list[Alias]:
    """What the names' own words say about which are the same."""
    return [
        *_shorten(names),
        *_plurals(names, common),
        *_spacings(names),
        *_misspellings(names, common),
    ]


def merge_names(names: Names, proposals: Iterable[Alias]) -> AliasMerge:
    """Folds names along the proposals, the surest rules first; the result does not depend on their
    order.
    """
    parent: dict[int, int] = {}
    titles = names.has(Origin.TITLE)
    ordered = sorted(
        proposals,
        key=lambda alias: (PRIORITY.index(alias.rule), -alias.score, alias.alias, alias.canonical),
    )
    alias_of: dict[int, Alias] = {}
    for alias in ordered:
        child, top = _root(parent, alias.alias), _root(parent, alias.canonical)
        if child == top or (titles[child] and titles[top]):
            continue
        if _rank(names, top) > _rank(names, child):
            child, top = top, child
        parent[child] = top
        alias_of[child] = alias
    canonical = list(range(len(names)))
    log = []
    for row, alias in sorted(alias_of.items()):
        canonical[row] = _root(parent, row)
        log.append(Alias(row, canonical[row], alias.rule, alias.score))
    return AliasMerge(tuple(canonical), tuple(log))


def _rank(names: Names, row: int) -> tuple[bool, bool, int, tuple[str, ...]]:
    """Which name is the better one to show: stated before found, the more frequent, a fixed
    order.
    """
    origin = int(names.origin[row])
    return (
        not origin & Origin.TITLE,
        not origin & Origin.GIVEN,
        -int(names.texts[row]),
        names.plain[row],
    )


def _root(parent: dict[int, int], row: int) -> int:
    while (above := parent.get(row, row)) != row:
        parent[row] = row = parent.get(above, above)
    return row


def _shorten(names: Names) -> Iterator[Alias]:
    """The Beatles and Beatles; King Lothair II and Lothair II; Tottenham Hotspur F.C. and Tottenham
    Hotspur.
    """
    is_name = names.has(Origin.STATED | Origin.NAME)
    for row in np.flatnonzero(is_name & (names.sizes > 1)).tolist():
        for words, rule in _shorter(names.plain[row]):
            if (shorter := names.find(words)) >= 0 and is_name[shorter]:
                yield Alias(row, shorter, rule, 1.0 if rule == "article" else 0.95)
                break


def _shorter(words: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    if words[0] in _ARTICLES:
        yield words[1:], "article"
    shortened = words
    while len(shortened) > 2 and shortened[0] in HONORIFICS:
        shortened = shortened[1:]
        yield shortened, "honorific"
    if words[-1] in _SUFFIXES and len(words) > 2:
        yield words[:-1], "suffix"
    elif words[-2:] == ("f", "c") and len(words) > 2:
        yield words[:-2], "suffix"


def _plurals(names: Names, common: frozenset[str]) -> Iterator[Alias]:
    """Support vector machines and support vector machine; SVMs and SVM. Family names in -s are left
    alone.
    """
    terms = names.has(Origin.TERM)
    for row in np.flatnonzero(_comparable(names)).tolist():
        words = names.plain[row]
        for singular in _singulars(words[-1]):
            singular_row = names.find((*words[:-1], singular))
            if singular_row < 0:
                continue
            is_ordinary = len(words) > 1 and not common.isdisjoint((singular, words[-1]))
            if terms[row] or terms[singular_row] or is_ordinary:
                yield Alias(row, singular_row, "plural", 0.98)
                break


def _singulars(word: str) -> Iterator[str]:
    if word[-1] != "s" or len(word) < _SHORTEST_PLURAL or word.endswith("ss"):
        return
    yield word[:-1]
    if word.endswith("es"):
        yield word[:-2]
    if word.endswith("ies"):
        yield word[:-3] + "y"


def _spacings(names: Names) -> Iterator[Alias]:
    """Data set and dataset, back propagation and backpropagation: the same letters, parted
    elsewhere.
    """
    blocks: dict[str, list[int]] = defaultdict(list)
    for row in np.flatnonzero(_comparable(names)).tolist():
        blocks["".join(names.plain[row])].append(row)
    for letters, rows in blocks.items():
        if len(letters) >= _MIN_JOINED and not letters.isdigit():
            yield from (Alias(row, rows[0], "spacing", 0.97) for row in rows[1:])


def _comparable(names: Names) -> Flags:
    """Names short enough to be misspelt; those that no text holds are taken as
    they are given.
    """
    only_given = (names.texts == 0) & ~names.has(Origin.TITLE | Origin.SYMBOL)
    comparable: Flags = ~only_given & (names.sizes <= _LONGEST_FUZZY)
    return comparable


def _misspellings(names: Names, common: frozenset[str]) -> Iterator[Alias]:
    """Long names that differ in one word by one letter. Blocked by the words they share, so never
    all pairs.
    """
    blocks: dict[tuple[object, ...], list[tuple[str, int]]] = defaultdict(list)
    for row in np.flatnonzero(_comparable(names) & (names.sizes > 1)).tolist():
        words = names.plain[row]
        if sum(map(len, words)) < _FUZZY_MIN_LETTERS:
            continue
        for place, word in enumerate(words):
            if len(word) >= _MIN_TOKEN and word not in common and word.isalpha():
                blocks[(*words[:place], None, *words[place + 1 :])].append((word, row))
    for block in blocks.values():
        if 1 < len(block) <= _MAX_BLOCK:
            yield from _near_pairs(sorted(block), names)


def _near_pairs(block: list[tuple[str, int]], names: Names) -> Iterator[Alias]:
    for (word, row), (other_word, other_row) in combinations(block, 2):
        near = DamerauLevenshtein.distance(word, other_word, score_cutoff=1) == 1
        rare = min(names.texts[row], names.texts[other_row]) <= _SLIP_TEXTS
        if not near or not rare or word[0] != other_word[0]:
            continue
        score = 1.0 - 1.0 / len(" ".join(names.plain[row]))
        if score >= _FUZZY_MIN_SCORE:
            yield Alias(row, other_row, "fuzzy", round(score, 6))


def propose_acronyms(definitions: Sequence[Definition], canonical: Sequence[int]) -> list[Alias]:
    """Acronyms that stand for one thing wherever the corpus explains them, by the share of
    explaining documents.
    """
    documents: dict[int, set[tuple[int, int]]] = defaultdict(set)
    for document, short, long in definitions:
        documents[canonical[short]].add((canonical[long], document))
    aliases: list[Alias] = []
    for short, explained in sorted(documents.items()):
        counts = Counter(long for long, _ in explained)
        long = min(counts, key=lambda row: (-counts[row], row))
        share = counts[long] / len(explained)
        if long != short and share >= _ACRONYM_MIN_SHARE:
            aliases.append(Alias(short, long, "acronym", round(share, 6)))
    return aliases


def propose_middle_names(names: Names, holding: Mapping[int, set[int]]) -> list[Alias]:
    """Taylor Eric Kemp is Taylor Kemp where one document holds both; `holding` are the documents of
    each name.
    """
    people = names.may_be_people()
    aliases: list[Alias] = []
    is_long_enough = (names.sizes > 2) & (names.sizes <= _LONGEST_PERSON)
    for row in np.flatnonzero(people & is_long_enough).tolist():
        words = names.plain[row]
        short = names.find((words[0], words[-1]))
        is_person = short >= 0 and people[short] and all(map(str.isalpha, words))
        if is_person and not holding[row].isdisjoint(holding[short]):
            aliases.append(Alias(row, short, "middle_name", 0.9))
    return aliases
