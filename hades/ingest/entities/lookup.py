"""Finds the entities a question names, by the names and spellings that the entities themselves carry."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hades.ingest.entities.corpus import split_title
from hades.ingest.entities.mentions import ANY_CASE, CAPITALISED, INSIDE_SENTENCE, Trie, build_trie, find_mentions
from hades.ingest.entities.names import spell, whole
from hades.text.arrays import running
from hades.text.boundaries import fragments, sentence_starts
from hades.text.tokens import CAPITAL, tokenize
from hades.text.word_lists import FUNCTION_WORDS

_CASE_FREE_LETTERS = 10
_MOST_MEANINGS = 8


@dataclass(frozen=True)
class NameMatch:
    """A place in the question and the entities (rows of the table) it may name, the surest kind only.

    A question names what it asks about with a capital; what it says in lower case is a term and a much weaker seed.
    """

    start: int
    end: int
    entities: tuple[int, ...]
    is_name: bool


class NameIndex:
    """All spellings of all entities in one trie. A spelling that is some entity's own name means that one first."""

    def __init__(self, entities: pa.Table) -> None:
        own: dict[str, list[int]] = defaultdict(list)
        other: dict[str, list[int]] = defaultdict(list)
        columns = (entities.column(name).to_pylist() for name in ("name", "aliases", "frequency"))
        for row, (name, aliases, frequency) in enumerate(zip(*columns, strict=True)):
            if not frequency:  # a phrase of a triple that no text holds; its words must not hide the names within
                continue
            stem = split_title(name)[0]
            for text in {name, stem}:
                own[text].append(row)
            for text in aliases or ():
                other[text].append(row)
        self._meanings, self._trie = _index(own, other)

    def find(self, texts: Sequence[str], any_case: bool = False) -> list[list[NameMatch]]:
        """The named entities of each text, in order; `any_case` lets short single words be written in lower case."""
        tokens = tokenize(list(texts))
        starts = sentence_starts(tokens)
        trie = self._trie if not any_case else Trie(self._trie.words, self._trie.levels, np.zeros_like(self._trie.case))
        found = find_mentions(tokens, trie, starts, fragments(tokens, starts))
        named: list[list[NameMatch]] = [[] for _ in texts]
        capitals = running((tokens.shape & CAPITAL) != 0)
        for name, first, last in zip(found.name.tolist(), found.first.tolist(), found.last.tolist(), strict=True):
            span = int(tokens.start[first]), int(tokens.end[last - 1])
            place = NameMatch(*span, self._meanings[name], bool(capitals[last] > capitals[first]))
            named[int(tokens.text[first])].append(place)
        return named


def _index(own: dict[str, list[int]], other: dict[str, list[int]]) -> tuple[list[tuple[int, ...]], Trie]:
    strings = sorted({*own, *other})
    place, which = whole(strings)
    identity, row = np.unique(place.identity, return_inverse=True)
    mine: list[set[int]] = [set() for _ in range(len(identity))]
    also: list[set[int]] = [set() for _ in range(len(identity))]
    capital = np.ones(len(identity), dtype=np.bool_)
    for position, index in zip(which.tolist(), row.tolist(), strict=True):
        mine[index].update(own.get(strings[position], ()))
        also[index].update(other.get(strings[position], ()))
        capital[index] &= any(char.isupper() for char in strings[position])
    offsets, words, _, _, plain = spell(identity, [place])
    long = np.array([len(one) == 1 and len(one[0]) >= _CASE_FREE_LETTERS for one in plain], dtype=np.bool_)
    small = np.array([FUNCTION_WORDS.issuperset(one) for one in plain], dtype=np.bool_)
    case = np.where(capital & ~long, np.where(small, INSIDE_SENTENCE, CAPITALISED), ANY_CASE).astype(np.uint8)
    also = [rest if len(rest) <= _MOST_MEANINGS else set() for rest in also]
    meanings = [tuple(sorted(first or rest)) for first, rest in zip(mine, also, strict=True)]
    sought = [
        bool(meaning) and not (len(one) == 1 and (one[0] in FUNCTION_WORDS or len(one[0]) == 1 or one[0].isdigit()))
        for meaning, one in zip(meanings, plain, strict=True)
    ]
    return meanings, build_trie(words, offsets, case, np.array(sought, dtype=np.bool_))
