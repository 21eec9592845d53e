"""Text analyzers: how a string becomes the terms that SEARCH matches."""

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import Stemmer

from tests.arango_double.errors import NotInDouble, ServerError

# Common words among those that the two versions stem differently.
_SNOWBALL_2 = {
    "evening": "even", "evenings": "even", "added": "ad", "adding": "ad", "university": "univers",
    "universities": "univers", "international": "intern", "internal": "intern", "organization": "organ",
    "organized": "organ", "organism": "organ", "emergency": "emerg", "interval": "interv", "lateral": "later",
    "biologist": "biologist", "psychologist": "psychologist",
}  # fmt: skip
FEATURES = ("frequency", "norm", "position")
# Unicode word boundaries, near enough: apostrophes, dots and colons join letters, dots and commas join digits.
_WORD = re.compile(r"[^\W\d_]+(?:['\u2019.:\u00b7]?[\w]+)*|\w+(?:[.,;']\d+)*", re.UNICODE)
_PROPERTIES = {
    "identity": set(),
    "text": {"locale", "case", "accent", "stemming", "stopwords"},
    "norm": {"locale", "case", "accent"},
}


@dataclass(frozen=True)
class Analyzer:
    """A named analyzer; `terms` gives the terms of a text in order."""

    name: str
    type: str
    properties: dict[str, Any]
    features: tuple[str, ...]
    terms: Callable[[str], list[str]]

    def body(self, database: str) -> dict[str, Any]:
        prefix = "" if self.name in ("identity", "text_en") else f"{database}::"
        return {
            "name": prefix + self.name,
            "type": self.type,
            "properties": self.properties,
            "features": list(self.features),
        }


def built_in_analyzers() -> dict[str, Analyzer]:
    """`identity` and `text_en`, which every server has."""
    english = {"locale": "en", "case": "lower", "accent": False, "stemming": True, "stopwords": []}
    return {
        "identity": make_analyzer("identity", "identity", {}, ["frequency", "norm"]),
        "text_en": make_analyzer("text_en", "text", english, ["frequency", "norm", "position"]),
    }


def make_analyzer(name: Any, kind: Any, properties: dict[str, Any], features: list[str]) -> Analyzer:
    """A checked analyzer; unknown types, properties and features are refused."""
    if not isinstance(name, str) or not re.fullmatch(r"[a-zA-Z][a-zA-Z0-9_-]*", name):
        raise ServerError(1208, f"illegal name: invalid analyzer name '{name}'")
    if kind not in _PROPERTIES:
        raise NotInDouble(f"analyzer type {kind}")
    unknown = set(properties) - _PROPERTIES[kind]
    if unknown or not set(features) <= {*FEATURES, "offset"}:
        raise ServerError(10, f"invalid properties or features of analyzer '{name}': {sorted(unknown)} {features}")
    if "position" in features and "frequency" not in features:
        raise ServerError(10, "missing feature 'frequency' required when 'position' feature is specified")
    return Analyzer(name, kind, properties, tuple(features), _terms(kind, properties))


def _terms(kind: str, properties: dict[str, Any]) -> Callable[[str], list[str]]:
    if kind == "identity":
        return lambda text: [text]
    if not str(properties.get("locale")).startswith("en"):
        raise NotInDouble(f"locale {properties.get('locale')}")
    change = _normaliser(properties, case="lower" if kind == "text" else "none", accent=kind == "norm")
    if kind == "norm":
        return lambda text: [change(text)]
    stopwords, stems = set(properties.get("stopwords", [])), properties.get("stemming", True)

    def terms(text: str) -> list[str]:
        words = [change(word) for word in _WORD.findall(text)]
        return [stem(word) if stems else word for word in words if word not in stopwords]

    return terms


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """The stem by the English rules of Snowball 2, which the server has; PyStemmer has those of Snowball 3."""
    return _SNOWBALL_2.get(word) or str(Stemmer.Stemmer("english", 0).stemWord(word))


def _normaliser(properties: dict[str, Any], case: str, accent: bool) -> Callable[[str], str]:
    case, accent = properties.get("case", case), properties.get("accent", accent)

    def change(text: str) -> str:
        if case == "lower":
            text = text.lower()
        elif case == "upper":
            text = text.upper()
        if not accent and not text.isascii():
            decomposed = unicodedata.normalize("NFD", text)
            bare = "".join(character for character in decomposed if not unicodedata.combining(character))
            text = unicodedata.normalize("NFC", bare)
        return text

    return change
