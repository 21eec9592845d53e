"""Which names may change each other: spellings of one name, acronyms, short forms in one document, parts of symbols.

What a name stands for follows from itself and from the names that it is linked with, over any number of links. Names
that could never act on each other may be linked; that costs time only.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hades.ingest.entities.aliases import PRIORITY, Alias
from hades.ingest.entities.corpus import Corpus
from hades.ingest.entities.names import Names, Origin
from hades.ingest.entities.reading import Reading
from hades.ingest.entities.short_forms import LONGEST_PERSON, short_names
from hades.ingest.increment.former_derivation import NameLinks
from hades.ingest.increment.kept_statements import PARTED, Statements
from hades.ingest.readings.signatures import sign_numbers, sign_texts
from hades.text.arrays import Hashes, Longs

_SPREAD = np.uint64(0x9E3779B97F4A7C15)


def find_links(
    corpus: Corpus,
    statements: Statements,
    reading: Reading,
    proposals: Sequence[Alias],
    pairs: Longs,
    titles: Longs,
) -> NameLinks:
    """All links. `pairs` are sorted document * n_names + name, `titles` the name of each document's title, or -1."""
    identity = reading.names.identity
    rows = np.array([(one.alias, one.canonical) for one in proposals], dtype=np.int64).reshape(-1, 2)
    rules = np.array([PRIORITY.index(one.rule) for one in proposals], dtype=np.int64)
    scores = np.array([one.score for one in proposals], dtype=np.float64).view(np.uint64)
    told = np.array([row[1:] for row in reading.definitions], dtype=np.int64).reshape(-1, 2)
    short = _short_links(reading.names, pairs, titles)
    rows = np.concatenate([rows, told, short])
    mark = np.zeros(len(rows), dtype=np.uint64)
    mark[: len(rules)] = sign_numbers(rules + 1).mix(scores).high
    symbols = _symbol_links(corpus, statements, reading)
    links = NameLinks(
        np.concatenate([identity[rows[:, 0]], symbols[0]]),
        np.concatenate([identity[rows[:, 1]], symbols[1]]),
        np.concatenate([mark, np.zeros(len(symbols[0]), dtype=np.uint64)]),
    )
    _, first = np.unique(links.codes(), return_index=True)
    return NameLinks(links.one[first], links.other[first], links.mark[first])


def _short_links(names: Names, pairs: Longs, titles: Longs) -> Longs:
    """(short, full) rows of names that one document holds, where the short one has the first or last word of the full.

    That is more than `short_forms.py` lets pass: it also asks what kind of thing the full name is.
    """
    size = max(1, len(names))
    document, name = pairs // size, pairs % size
    words = np.diff(names.offsets)
    full = names.has(Origin.NAME | Origin.STATED) & names.has(Origin.CAPITAL) & ~names.has(Origin.TERM)
    full &= (words > 1) & (words <= LONGEST_PERSON)
    held, titled = np.flatnonzero(full[name]) if len(name) else name, np.flatnonzero(titles >= 0)
    full_document, full_name = np.concatenate([document[held], titled]), np.concatenate([name[held], titles[titled]])
    short = np.flatnonzero(short_names(names)[name]) if len(name) else name
    short_document, short_name = document[short], name[short]
    last, first = names.offsets[1:] - 1, names.offsets[:-1]
    found = [
        _join(_code(full_document, names.words[ends[full_name]]), _code(short_document, names.words[last[short_name]]))
        for ends in (last, first)
    ]
    return np.concatenate([np.stack([short_name[right], full_name[left]], axis=1) for left, right in found])


def _code(document: Longs, word: Hashes) -> Hashes:
    codes: Hashes = document.astype(np.uint64) * _SPREAD ^ word
    return codes


def _join(left: Hashes, right: Hashes) -> tuple[Longs, Longs]:
    """All pairs of places with equal values."""
    order = np.argsort(left, kind="stable")
    ordered = left[order]
    begin, end = (np.searchsorted(ordered, right, side=side) for side in ("left", "right"))
    count = end - begin
    place = np.repeat(np.arange(len(right)), count)
    inside = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
    return order[np.repeat(begin, count) + inside], place


def _symbol_links(corpus: Corpus, statements: Statements, reading: Reading) -> tuple[Hashes, Hashes]:
    """Code symbols with the name of their last part, and with all others that share it."""
    identity, row_of = reading.names.identity, reading.row_of
    ends: dict[str, list[int]] = {}
    for row in statements.documents_with(PARTED):
        facts = corpus.documents[row].facts
        for name in (*(qualified for _, qualified in facts.symbols), *facts.repositories):
            last = name.rpartition(".")[2]
            held = ends.setdefault(last, [row_of.get(last, -1)])
            held.append(row_of.get(name, -1))
    hubs = sign_texts(f"symbol {last}" for last in ends).high
    hub = np.repeat(hubs, [len(held) for held in ends.values()])
    rows = np.array([row for held in ends.values() for row in held], dtype=np.int64)
    known = rows >= 0
    return hub[known], identity[rows[known]]
