"""What kind of thing a name is, guessed from cue words: in the name, in its qualifier, in "X is a ..."."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hades.text.letters import fold
from hades.text.word_lists import GIVEN_NAMES, HONORIFICS, IS_A_CUES, METHOD_CUES, NAME_CUES
from schemas.graph_types import EntityType
from schemas.nodes import NameType

_WORD = re.compile(r"[^\W_]+")
_SAYS_WHAT = re.compile(r"\b(?:is|was|are|were)\s+(?:an?|the|one of)\s", re.IGNORECASE)
_CLAUSE_END = re.compile(r"[.;(]|\b(?:who|which|that|by|from|starring|directed|written|located)\b")
_BORN = re.compile(r"\b(?:born|né|née)\b")
_LOOK_AHEAD = 160
_FIRST_WORDS = 8
# Where a word is a cue to several kinds the first of these wins: a "Cup" is an event before it is an organisation.
_BY_CUE = {
    word: kind for kind in (NameType.PRODUCT, NameType.GPE, NameType.ORG, NameType.EVENT) for word in NAME_CUES[kind]
}
_IS_A = {word: kind for kind, words in reversed(IS_A_CUES.items()) for word in words}


def kind_of(name: str) -> NameType:
    """The kind of a name by its own words; CONCEPT when nothing tells."""
    return kind_of_words(tuple(_WORD.findall(fold(name))), name[:1].isupper())


def kind_of_words(words: Sequence[str], is_capital: bool) -> NameType:
    """The kind of a name given as folded words, and whether it is written with a capital."""
    if not words:
        return NameType.CONCEPT
    cue = _BY_CUE.get(words[-1]) or ("of" in words and _BY_CUE.get(words[0]))
    if cue:
        return cue
    if is_capital and len(words) > 1 and (words[0] in GIVEN_NAMES or words[0] in HONORIFICS):
        return NameType.PERSON
    return NameType.CONCEPT


def kind_of_qualifier(qualifier: str) -> NameType | None:
    """The kind a qualifier such as "1987 film" or "footballer, born 1912" states, if it does."""
    words = _WORD.findall(fold(qualifier))
    if "born" in words:
        return NameType.PERSON
    return _first_cue(words[::-1])


def kind_of_page(title: str, opening: str) -> NameType | None:
    """The kind the first sentence of a page gives its subject ("X is a film ..."), if it says so."""
    head = opening[: _LOOK_AHEAD * 2]
    is_a = _SAYS_WHAT.search(head)
    if is_a is None or is_a.start() > _LOOK_AHEAD or not _opens_with(title, head):
        return None
    if _BORN.search(head[: is_a.start()]):
        return NameType.PERSON
    rest = head[is_a.end() : is_a.end() + _LOOK_AHEAD]
    end = _CLAUSE_END.search(rest)
    words = _WORD.findall(fold(rest[: end.start()] if end else rest))
    return _first_cue(_until_preposition(words)[::-1])


def entity_type_of(name: str, kind: NameType) -> EntityType:
    """The traversal's type for a name: a person, a method by its head word, else a concept."""
    if kind is NameType.PERSON:
        return EntityType.PERSON
    if kind is NameType.CONCEPT and " " in name and name.rsplit(None, 1)[-1].lower() in METHOD_CUES:
        return EntityType.METHOD
    return EntityType.CONCEPT


def _first_cue(words: list[str]) -> NameType | None:
    found = (_IS_A.get(word) or _IS_A.get(word.removesuffix("s")) for word in words)
    return next(filter(None, found), None)


def _until_preposition(words: list[str]) -> list[str]:
    for index, word in enumerate(words):
        if index and word in ("of", "in", "for", "at", "on", "to", "with"):
            return words[:index]
    return words


def _opens_with(title: str, head: str) -> bool:
    """Whether the page begins with its subject, so that "is a" speaks of it and not of something else."""
    opening = _WORD.findall(fold(head[:_LOOK_AHEAD]))[:_FIRST_WORDS]
    return not set(opening).isdisjoint(_WORD.findall(fold(title)))
