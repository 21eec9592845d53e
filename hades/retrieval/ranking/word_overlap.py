"""How far candidate texts speak a question's words, measured among the candidates themselves.

A word that many candidates hold says little about which of them to prefer, however rare it is in the corpus: rarity is
therefore counted in the pool. This needs no index, so it works the same over every view.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from hades.text.word_memory import remember_words

Array = NDArray[np.float64]

K1, B = 1.2, 0.75
_WORD = re.compile(r"\w+")
# What the pattern does, for ASCII, several times faster: letters in lower case, blanks for what is in no word.
_ASCII = bytes(ord(c.lower()) if c.isalnum() or c == "_" else 32 for c in map(chr, range(128))).ljust(256)
_MARKS = re.compile(r"[\u0300-\u036f]+")
_IN_BRACKETS = re.compile(r"\s*\([^)]*\)\s*$")
_SUFFIXES = ("ies", "es", "s", "ing", "ed")
_SHORTEST_STEM = 3
_SHORTEST_TITLE = 4  # characters; shorter ones stand inside anything
_REMEMBERED_BODIES = 2048  # passages; a turn looks at the words of each several times
_FUNCTION_WORDS = frozenset(
    """a an the of in on at to for from by with and or is are was were be been being do does did has have had which what
    who whom whose when where why how that this these those it its as than then there their his her he she they we you i
    not no s t also into about between both during after before same""".split()  # noqa: SIM905 - reads better
)


@dataclass(frozen=True)
class Wording:
    """Question words against candidates. `rarity` (words,); `holds` (words, candidates), 1 where it stands; `bm25`."""

    rarity: Array
    holds: Array
    bm25: Array


@dataclass(frozen=True)
class Body:
    """A text as words, in order, and what is asked of them."""

    words: Sequence[str]

    @cached_property
    def counts(self) -> Counter[str]:
        """How often each word stands in it."""
        return Counter(self.words)

    @cached_property
    def spaced(self) -> str:
        """Its words with one blank around each."""
        return _space(self.words)

    def find_stems(self, forms: Mapping[str, str]) -> set[str]:
        """Those of some stems that its words have; `forms_of` gives the words to look for."""
        return {forms[word] for word in self.counts.keys() & forms.keys()}


@lru_cache(maxsize=_REMEMBERED_BODIES)
def passage_body(title: str, text: str) -> Body:
    """Title and text of a passage as words; passages of the last turns are remembered."""
    return Body(words(f"{title}\n{text}"))


def wording(question: str, bodies: Sequence[Body]) -> Wording:
    """BM25 of each text, and which content words of the question it holds."""
    asked = list(dict.fromkeys(map(stem, content_words(question))))
    row_of = {form: row for row, word in enumerate(asked) for form in _forms(word)}
    found = [[0] * len(bodies) for _ in asked]
    for column, body in enumerate(bodies):
        counts = body.counts
        for form in counts.keys() & row_of.keys():
            found[row_of[form]][column] += counts[form]
    times = np.array(found, np.float64).reshape(len(asked), len(bodies))
    lengths = np.array([len(body.words) for body in bodies], np.float64)
    rows_with = (times > 0).sum(axis=1)
    rarity = np.log1p((len(bodies) - rows_with + 0.5) / (rows_with + 0.5))
    penalty = K1 * (1 - B + B * lengths / max(1.0, lengths.mean() if len(lengths) else 1.0))
    shares = rarity[:, None] * times * (K1 + 1) / (times + penalty)
    return Wording(rarity, (times > 0).astype(np.float64), shares.sum(axis=0))


def match_titles(question: str, titles: Sequence[str]) -> Array:
    """1 where the question spells a title in full, 0.8 without the words in brackets behind it, else 0."""
    asked = _space(words(question))
    full = [_plain_title(title) for title in titles]
    short = [_plain_title(short_title(title)) for title in titles]
    return np.array(
        [
            0.0 if len(brief) < _SHORTEST_TITLE + 2 else 1.0 if whole in asked else 0.8 if brief in asked else 0.0
            for whole, brief in zip(full, short, strict=True)
        ]
    )


def links(titles: Sequence[str], bodies: Sequence[Body], documents: Sequence[str]) -> Array:
    """(n, n): 1 at [i, j] where text i names title j of another document; a title that most texts hold links none."""
    found = np.zeros((len(titles), len(titles)))
    for place, title in enumerate(titles):
        name = _plain_title(short_title(title))
        if len(name) >= _SHORTEST_TITLE + 2:
            longest = max(name.split(), key=len)  # looking it up is much faster than searching a text
            found[:, place] = [
                longest in body.counts and other != documents[place] and name in body.spaced
                for body, other in zip(bodies, documents, strict=True)
            ]
    found[:, found.sum(axis=0) * 2 > len(titles)] = 0.0
    return found


def short_title(title: str) -> str:
    """A title without what stands in brackets to tell it from its namesakes."""
    return (_IN_BRACKETS.sub("", title) or title) if "(" in title else title


def words(text: str) -> list[str]:
    """The words of a text in lower case without accents."""
    if text.isascii():
        return text.encode().translate(_ASCII).decode().split()
    return _WORD.findall(_MARKS.sub("", unicodedata.normalize("NFKD", text)).lower())


def words_at(text: str, spans: Sequence[tuple[int, int]]) -> list[list[str]]:
    """The words of each span [start, end) of a text."""
    if text.isascii():
        plain = text.encode().translate(_ASCII).decode()
        return [plain[start:end].split() for start, end in spans]
    return [words(text[start:end]) for start, end in spans]


def content_words(text: str) -> list[str]:
    """The distinct words that carry meaning, in order."""
    return [word for word in dict.fromkeys(words(text)) if word not in _FUNCTION_WORDS]


@lru_cache(maxsize=1 << 14)
def _plain_title(title: str) -> str:
    return _space(words(title))


def _space(spoken: Sequence[str]) -> str:
    """Words with one blank around each, so that a match is a match of whole words."""
    return f" {' '.join(spoken)} "


def forms_of(stems: Iterable[str], *, among_content: bool = False) -> dict[str, str]:
    """The words that have one of these stems, each with its stem; with `among_content` those that carry meaning."""
    forms = {form: stemmed for stemmed in stems for form in _forms(stemmed)}
    return {form: own for form, own in forms.items() if form not in _FUNCTION_WORDS} if among_content else forms


@lru_cache(maxsize=1 << 14)
def _forms(stemmed: str) -> tuple[str, ...]:
    """Every word that has this stem: a few forms of few words are looked for, not the stem of every word of a text."""
    return tuple(form for form in (stemmed, *(stemmed + suffix for suffix in _SUFFIXES)) if stem(form) == stemmed)


@remember_words(1 << 16)
def stem(word: str) -> str:
    """A word without its commonest endings; both sides of a comparison are cut the same way."""
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= _SHORTEST_STEM:
            return word[: -len(suffix)]
    return word
