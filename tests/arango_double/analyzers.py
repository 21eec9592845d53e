"""Text analyzers: how a string becomes the terms that SEARCH matches."""

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.arango_double.errors import NotInDouble, ServerError
from tests.arango_double.stemmer import stem

FEATURES = ("frequency", "norm", "position")
# Unicode word boundaries, near enough: apostrophes, dots and colons join letters, dots and commas join digits.
_WORD = re.compile(r"[^\W\d_]+(?:['\u2019.:\u00b7]?[\w]+)*|\w+(?:[.,;']\d+)*", re.UNICODE)
_PROPERTIES = {
    "identity": set(),
    "text": {"locale", "case", "accent", "stemming", "stopwords", "edgeNgram"},
    "norm": {"locale", "case", "accent"},
    "stem": {"locale"},
    "ngram": {"min", "max", "preserveOriginal", "streamType", "startMarker", "endMarker"},
    "delimiter": {"delimiter"},
    "stopwords": {"stopwords", "hex"},
    "pipeline": {"pipeline"},
}
_KNOWN_ELSEWHERE = {
    "multi_delimiter", "collation", "aql", "segmentation", "geojson", "geo_s2", "geopoint", "minhash", "wildcard",
    "classification", "nearest_neighbors",
}  # fmt: skip


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
    if kind in _KNOWN_ELSEWHERE:
        raise NotInDouble(f"analyzer type {kind}")
    if kind not in _PROPERTIES:
        raise ServerError(10, f"unknown analyzer type '{kind}'")
    unknown = set(properties) - _PROPERTIES[kind]
    if unknown or not set(features) <= {*FEATURES, "offset"}:
        raise ServerError(10, f"invalid properties or features of analyzer '{name}': {sorted(unknown)} {features}")
    if "position" in features and "frequency" not in features:
        raise ServerError(10, "missing feature 'frequency' required when 'position' feature is specified")
    return Analyzer(name, kind, properties, tuple(features), _terms(kind, properties))


def _terms(kind: str, properties: dict[str, Any]) -> Callable[[str], list[str]]:
    if kind == "text":
        return _text(properties)
    if kind == "norm":
        change = _normaliser(properties, case="none", accent=True)
        return lambda text: [change(text)]
    if kind == "stem":
        _require_english(properties)
        return lambda text: [stem(text)]
    if kind == "ngram":
        return _ngrams(properties)
    if kind == "delimiter":
        delimiter = properties.get("delimiter")
        if not isinstance(delimiter, str) or not delimiter:
            raise ServerError(10, "analyzer property 'delimiter' must be a non-empty string")
        return lambda text: text.split(delimiter)
    if kind == "stopwords":
        stopwords = set(properties.get("stopwords", []))
        return lambda text: [] if text in stopwords else [text]
    if kind == "pipeline":
        return _pipeline(properties)
    return lambda text: [text]


def _text(properties: dict[str, Any]) -> Callable[[str], list[str]]:
    if "edgeNgram" in properties:
        raise NotInDouble("edgeNgram of text analyzers")
    if "stopwords" not in properties and properties.get("locale") is None:
        raise ServerError(10, "text analyzer needs a locale")
    stems = properties.get("stemming", True)
    if stems:
        _require_english(properties)
    change = _normaliser(properties, case="lower", accent=False)
    stopwords = set(properties.get("stopwords", []))

    def terms(text: str) -> list[str]:
        words = [change(word) for word in _WORD.findall(text)]
        return [stem(word) if stems else word for word in words if word not in stopwords]

    return terms


def _require_english(properties: dict[str, Any]) -> None:
    locale = properties.get("locale")
    if not isinstance(locale, str):
        raise ServerError(10, "analyzer needs a locale")
    if not locale.startswith("en"):
        raise NotInDouble(f"stemming for locale {locale}")


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


def _ngrams(properties: dict[str, Any]) -> Callable[[str], list[str]]:
    low, high = properties.get("min"), properties.get("max")
    if not isinstance(low, int) or not isinstance(high, int) or not 0 < low <= high:
        raise ServerError(10, "ngram analyzer needs min and max")
    if not isinstance(properties.get("preserveOriginal"), bool):
        raise ServerError(10, "ngram analyzer needs preserveOriginal")
    if properties.get("streamType", "binary") not in ("binary", "utf8"):
        raise ServerError(10, "ngram analyzer streamType must be binary or utf8")
    start, end = properties.get("startMarker", ""), properties.get("endMarker", "")
    if start or end:
        raise NotInDouble("markers of ngram analyzers")
    keep = properties["preserveOriginal"]

    def terms(text: str) -> list[str]:
        grams = []
        for place in range(len(text)):
            grams += [text[place : place + size] for size in range(low, high + 1) if place + size <= len(text)]
        return [*grams, text] if keep and text not in grams else grams

    return terms


def _pipeline(properties: dict[str, Any]) -> Callable[[str], list[str]]:
    steps = [_terms(step["type"], step.get("properties", {})) for step in properties.get("pipeline", [])]
    if not steps:
        raise ServerError(10, "pipeline analyzer needs steps")

    def terms(text: str) -> list[str]:
        current = [text]
        for step in steps:
            current = [term for part in current for term in step(part)]
        return current

    return terms
