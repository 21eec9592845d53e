"""Word lists the extraction rules lean on, from `word_lists.toml`, which says what each is for."""

from __future__ import annotations

import tomllib
from importlib.resources import files

from schemas.nodes import NameType

_LISTS = tomllib.loads(files(__package__).joinpath("word_lists.toml").read_text("utf-8"))


def word_set(text: str) -> frozenset[str]:
    """The words of a text that lists them, with blanks between."""
    return frozenset(text.split())


def _words(name: str) -> frozenset[str]:
    return word_set(_LISTS[name])


def _cues(name: str) -> dict[NameType, frozenset[str]]:
    cues = {}
    for kind, words in _LISTS[name].items():
        cues[NameType[kind]] = word_set(words)

    return cues


FUNCTION_WORDS = _words("function_words")
CONNECTORS = _words("connectors")
WEAK_CONNECTORS = _words("weak_connectors")
ABBREVIATIONS = _words("abbreviations")
CALENDAR = _words("calendar")
HONORIFICS = _words("honorifics")
TERM_BREAKERS = _words("term_breakers")
RELATIONAL_WORDS = _words("relational_words")
METHOD_CUES = _words("method_cues")
GIVEN_NAMES = _words("given_names")
PERSON_PARTICLES = _words("person_particles")
PLACES = frozenset(_LISTS["places"].replace("\n", " ").strip().split(", "))
PLACE_HEADS = _words("place_heads")
OPENERS = _words("openers")
NEUTRAL_TITLES = _words("neutral_titles")
NAME_CUES, IS_A_CUES = _cues("name_cues"), _cues("is_a_cues")
COMMON_WORDS: dict[str, frozenset[str]] = {
    language: word_set(words) for language, words in _LISTS["common"].items()
}
