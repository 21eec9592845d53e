"""Word overlap, BM25 among candidates, gains."""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache, cached_property, lru_cache
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

import models
from hades.ports.graph import ALWAYS, Hits, Kind, Numbers
from hades.ports.store import Direction
from hades.retrieval.core.metered_view import MeteredView
from hades.retrieval.core.types import Question
from hades.text.languages import split_unspaced
from hades.text.words import words as plain_words
from models.bm25 import K1, B, rarity
from models.rankings import Ranking
from schemas.ids import Mask, microseconds
from schemas.nodes import CodeEdgeType, RelationType

# How far candidate texts speak a question's words, measured among the candidates themselves. A word
# that many candidates hold says little about which of them to prefer, however rare it is in the
# corpus: rarity is therefore counted in the pool. This needs no index, so it works the same over
# every view.
Floats = NDArray[np.float64]
_WORD = re.compile(r"\w+")
_MARKS = re.compile(r"[\u0300-\u036f]+")
_IN_BRACKETS = re.compile(r"\s*\([^)]*\)\s*$")
_SUFFIXES = ("ies", "es", "s", "ing", "ed")
_SHORTEST_STEM = 3
_SHORTEST_TITLE = 4  # characters; shorter ones stand inside anything
_REMEMBERED_BODIES = 2048  # passages; a turn looks at the words of each several times
_FUNCTION_WORDS = frozenset(
    """
        a an the of in on at to for from by with and or is are was were be been being do does did
        has have had which what who whom whose when where why how that this these those it its as
        than then there their his her he she they we you i not no s t also into about between both
        during after before same
    """.split()  # noqa: SIM905 - reads better
)


@dataclass(frozen=True)
class Wording:
    """Question words against candidates. `rarity` (words,); `holds` (words, candidates), 1 where it
    stands; `bm25`.
    """

    rarity: Floats
    holds: Floats
    bm25: Floats


@dataclass(frozen=True)
class Body:
    """A text as words, in order, and what is counted of them."""

    words: Sequence[str]

    @cached_property
    def counts(self) -> Counter[str]:
        """How often each word stands in it."""
        return Counter(self.words)

    @cached_property
    def spaced(self) -> str:
        """Its words with one blank around each."""
        return _space(self.words)

    @cached_property
    def stems(self) -> Counter[str]:
        """How often words with each stem stand in it."""
        return Counter(map(stem, self.words))

    @cached_property
    def content_stems(self) -> frozenset[str]:
        """The stems of its words that carry meaning."""
        return frozenset(stem(word) for word in self.counts if word not in _FUNCTION_WORDS)


@lru_cache(maxsize=_REMEMBERED_BODIES)
def passage_body(title: str, text: str) -> Body:
    """Title and text of a passage as words; passages of the last turns are remembered."""
    return Body(words(f"{title}\n{text}"))


def wording(question: str, bodies: Sequence[Body]) -> Wording:
    """BM25 of each text, and which content words of the question it holds."""
    stems = list(dict.fromkeys(map(stem, content_words(question))))
    times = np.zeros((len(stems), len(bodies)))

    for row, word in enumerate(stems):
        times[row] = [body.stems[word] for body in bodies]

    lengths = np.array([len(body.words) for body in bodies], np.float64)
    holds = times > 0
    rare = rarity(holds.sum(axis=1), len(bodies))
    mean_length = lengths.mean() if len(lengths) else 1.0
    penalty = K1 * (1 - B + B * lengths / max(1.0, mean_length))
    shares = rare[:, None] * times * (K1 + 1) / (times + penalty)
    return Wording(
        rare,
        holds.astype(np.float64),
        shares.sum(axis=0),
    )


def match_titles(question: str, titles: Sequence[str]) -> Floats:
    """1 where the question spells a title in full, 0.8 without the words in brackets behind it,
    else 0.
    """
    question_text = _space(words(question))
    matches = np.zeros(len(titles))

    for row, title in enumerate(titles):
        brief = _plain_title(short_title(title))
        if len(brief) < _SHORTEST_TITLE + 2:
            continue

        if _plain_title(title) in question_text:
            matches[row] = 1.0
        elif brief in question_text:
            matches[row] = 0.8

    return matches


def links(
    titles: Sequence[str],
    bodies: Sequence[Body],
    documents: Sequence[str],
) -> Floats:
    """(n, n): 1 at [i, j] where text i names title j of another document; a title that most texts
    hold links none.
    """
    matrix = np.zeros((len(titles), len(titles)))
    for column, title in enumerate(titles):
        name = _plain_title(short_title(title))
        if len(name) < _SHORTEST_TITLE + 2:
            continue
        matrix[:, column] = [
            document != documents[column] and name in body.spaced
            for body, document in zip(bodies, documents, strict=True)
        ]

    matrix[:, matrix.sum(axis=0) * 2 > len(titles)] = 0.0
    return matrix


def short_title(title: str) -> str:
    """A title without what stands in brackets to tell it from its namesakes."""
    if "(" in title:
        return _IN_BRACKETS.sub("", title) or title
    return title


def words(text: str) -> list[str]:
    """The words of a text in lower case without accents."""
    if text.isascii():
        return plain_words(text)

    unaccented = _MARKS.sub("", unicodedata.normalize("NFKD", text))
    return split_unspaced(_WORD.findall(unaccented.lower()))


def content_words(text: str) -> list[str]:
    """The distinct words that carry meaning, in order."""
    return [word for word in dict.fromkeys(words(text)) if word not in _FUNCTION_WORDS]


@lru_cache(maxsize=1 << 14)
def _plain_title(title: str) -> str:
    return _space(words(title))


def _space(words_in_order: Sequence[str]) -> str:
    """Words with one blank around each, so that a match is a match of whole words."""
    return f" {' '.join(words_in_order)} "


@lru_cache(1 << 16)
def stem(word: str) -> str:
    """A word without its commonest endings; both sides of a comparison are cut the same way."""
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= _SHORTEST_STEM:
            return word[: -len(suffix)]

    return word


# What makes a node or an edge matter to a question, from memory alone: nothing here reads a
# document.

OUT, IN, ANY = Direction.OUT, Direction.IN, Direction.ANY
PATH_TYPES: tuple[str, ...] = (
    *map(str, RelationType),
    *map(str, CodeEdgeType),
)
MENTIONS = "mentions"
# From a passage of code to the function or class that it holds.
DESCRIBES = str(CodeEdgeType.DESCRIBES)
# Names that share a word with the question; further ones match too little to matter.
LEXICAL_HITS = 256


def gains(
    type_names: Iterable[str],
    boosts: Mapping[str, float] | None = None,
) -> Floats:
    """The factor on the weight of each edge type, by code; 0 for a type that paths do not use.

    Without boosts every type of `PATH_TYPES` counts fully; a type that the boosts do not name
    counts as the least of them, so that a type nobody thought about never outranks one that
    somebody did.
    """
    factors = dict.fromkeys(PATH_TYPES, 1.0 if not boosts else min(boosts.values()))
    factors |= {str(name): boost for name, boost in (boosts or {}).items()}
    return np.array([factors.get(name, 0.0) for name in type_names], np.float64)


def moments(mask: Mask) -> tuple[int, int]:
    """Where a reader stands, in microseconds since 1970 as the adjacency counts them; `ALWAYS` for
    an open axis.
    """
    return _moment(mask.as_of), _moment(mask.known_at)


def _moment(moment: datetime | None) -> int:
    if moment is None:
        return int(ALWAYS)
    return microseconds(moment)


class Relevance:
    """How well nodes match one question, in [0, 1]: the better of shared words (BM25) and cosine.

    Both come from the read index, so that candidates can be compared without being read.
    """

    def __init__(self, view: MeteredView, question: Question) -> None:
        self._view, self._question = view, question

    def of(self, numbers: Numbers) -> Floats:
        """The match of each node."""
        return np.maximum(self._share_words(numbers), self.cosine(numbers))

    def cosine(self, numbers: Numbers) -> Floats:
        """Cosine with the question; 0 where it is negative or a vector is missing."""
        if self._question.vector is None or not len(numbers):
            return np.zeros(len(numbers), np.float64)

        cosines = self._view.cosines(
            self._question.vector,
            numbers,
            model=self._question.model,
        )
        return np.clip(cosines, 0.0, 1.0).astype(np.float64)

    def _share_words(self, numbers: Numbers) -> Floats:
        known, scores = self._words
        if not len(known):
            return np.zeros(len(numbers), np.float64)

        places = np.minimum(np.searchsorted(known, numbers), len(known) - 1)
        return np.where(
            known[places] == numbers,
            scores[places],
            0.0,
        )

    @cached_property
    def _words(self) -> tuple[Numbers, Floats]:
        """Entities and functions that share a word with the question, by number, scored against the
        best of them.
        """
        rankings: list[Hits] = [
            self._view.lexical(
                self._question.text,
                kind=kind,
                limit=LEXICAL_HITS,
            )
            for kind in (Kind.ENTITY, Kind.FUNC)
            if self._view.info.nodes.get(kind, 0)
        ]
        numbers = np.concatenate([np.empty(0, np.int64), *(hits.numbers for hits in rankings)])

        scaled = []
        for hits in rankings:
            if len(hits):
                scaled.append(hits.scores / max(float(hits.scores.max()), 1e-9))

        scores = np.concatenate([np.empty(0), *scaled])
        order = np.argsort(numbers, kind="stable")
        return numbers[order], scores[order].astype(np.float64)


@cache
def fitted_file(name: str) -> Mapping[str, Any]:
    """The numbers of a file under `models/fitted`, with what is known about their fit.

    `ranking` is the one ranking of the default recipe, `memory` (the recipe) and `placed` are two
    rankings each, of a candidate alone and beside the others, `abstain` is the rule of abstention,
    `code_files` are the trees of code.
    """
    path = files(models).joinpath("fitted", f"{name}.json")
    body: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return body


@cache
def shipped_ranking() -> Ranking:
    """The fitted ranking of the default recipe."""
    return Ranking(tuple(fitted_file("ranking")["looks"]))


# The parts of a question that could be asked alone. A language model may do better; the words
# themselves need none.

# Where a question turns to another thing: its own marks, and words that join what could be asked
# alone.
_TURNS = re.compile(
    r"[;?!]\s+|,?\s+(?:and|or|but|while|whereas|versus|vs\.?|compared (?:to|with))\s+|,\s+",
    re.I,
)
_LEAST_WORDS = 2  # content words; a shorter clause finds anything


def subqueries(text: str, q: int) -> tuple[str, ...]:
    """The question and its clauses, `q` of them at most; the whole question is always the first."""
    return (text, *clauses(text))[: max(1, q)]


def clauses(text: str) -> list[str]:
    """What a question asks, part by part, in its own words; empty when it asks one thing only."""
    parts = [part.strip(" ,;?!.") for part in _TURNS.split(text)]

    distinct = []
    for part in dict.fromkeys(parts):
        if len(content_words(part)) >= _LEAST_WORDS:
            distinct.append(part)

    return distinct if len(distinct) > 1 else []
