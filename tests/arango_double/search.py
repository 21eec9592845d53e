"""Views: analyzers, the terms of attributes, the conditions of SEARCH, and the BM25 of what is
found.

The conditions that `aql/` uses: `terms ANY IN d.field` under ANALYZER(), joined by OR. Terms are
those of committed documents when a search starts, so a view never lags, as with waitForSync on a
server.
"""

import math
import re
import unicodedata
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import Stemmer

from tests.arango_double.errors import NotInDouble, ServerError, check_names

if TYPE_CHECKING:
    from tests.arango_double.database import Database, Document

# Common words among those that the two versions of Snowball stem differently.
_SNOWBALL_2 = {
    "evening": "even",
    "evenings": "even",
    "added": "ad",
    "adding": "ad",
    "university": "univers",
    "universities": "univers",
    "international": "intern",
    "internal": "intern",
    "organization": "organ",
    "organized": "organ",
    "organism": "organ",
    "emergency": "emerg",
    "interval": "interv",
    "lateral": "later",
    "biologist": "biologist",
    "psychologist": "psychologist",
}
# Unicode word boundaries, near enough: apostrophes, dots and colons join letters, dots and commas
# join digits.
_WORD = re.compile(r"[^\W\d_]+(?:['\u2019.:\u00b7]?[\w]+)*|\w+(?:[.,;']\d+)*", re.UNICODE)
_PROPERTIES = {"identity": set(), "text": {"locale", "case", "accent", "stemming", "stopwords"}}
_PROPERTIES["norm"] = {"locale", "case", "accent"}
_FEATURES = {"frequency", "norm", "position"}
_BUILT_IN = ("identity", "text_en")
_K, _B = 1.2, 0.75


@dataclass(frozen=True)
class Analyzer:
    """A named analyzer: how a text becomes the terms that SEARCH matches."""

    name: str
    type: str
    properties: dict[str, Any]
    features: list[str]

    def terms(self, text: str) -> list[str]:
        if self.type == "identity":
            return [text]
        if self.type == "norm":
            return [self._change(text, "none", True)]
        stems = self.properties.get("stemming", True)
        words = [self._change(word, "lower", False) for word in _WORD.findall(text)]
        return [
            stem(one) if stems else one
            for one in words
            if one not in self.properties.get("stopwords", ())
        ]

    def _change(self, text: str, case: str, accent: bool) -> str:
        if self.properties.get("case", case) == "lower":
            text = text.lower()
        if not self.properties.get("accent", accent) and not text.isascii():
            letters = unicodedata.normalize("NFD", text)
            text = unicodedata.normalize(
                "NFC", "".join(one for one in letters if not unicodedata.combining(one))
            )
        return text

    def body(self, database: str) -> dict[str, Any]:
        prefix = "" if self.name in _BUILT_IN else f"{database}::"
        described = {"type": self.type, "properties": self.properties, "features": self.features}
        return {"name": prefix + self.name, **described}


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """The stem by the English rules of Snowball 2, which the server has; PyStemmer has those of
    Snowball 3.
    """
    return _SNOWBALL_2.get(word) or str(Stemmer.Stemmer("english", 0).stemWord(word))


def built_in_analyzers() -> dict[str, Analyzer]:
    """`identity` and `text_en`, which every server has."""
    english = {"locale": "en", "case": "lower", "accent": False, "stemming": True, "stopwords": []}
    return {
        "identity": Analyzer("identity", "identity", {}, ["frequency", "norm"]),
        "text_en": Analyzer("text_en", "text", english, sorted(_FEATURES)),
    }


def make_analyzer(body: dict[str, Any]) -> Analyzer:
    """A checked analyzer; unknown types, properties and features are refused."""
    name, kind, properties, features = (
        body.get(one) for one in ("name", "type", "properties", "features")
    )
    properties, features = properties or {}, features or []
    if not isinstance(name, str) or not re.fullmatch(r"[a-zA-Z][a-zA-Z0-9_-]*", name):
        raise ServerError(1208, f"illegal name: invalid analyzer name '{name}'")
    if kind not in _PROPERTIES or (kind != "identity" and properties.get("locale") != "en"):
        raise NotInDouble(f"an analyzer {kind} for {properties.get('locale')}")
    check_names("property of an analyzer", properties, _PROPERTIES[kind])
    check_names("feature", set(features), _FEATURES)
    return Analyzer(name, kind, properties, features)


class TermIndex:
    """The terms of one attribute under one analyzer; documents are known by `_id`."""

    def __init__(self, attribute: str, analyzer: Analyzer) -> None:
        self.attribute, self.analyzer = attribute, analyzer
        self.postings: dict[str, dict[str, int]] = {}
        self.terms: dict[str, list[str]] = {}
        self.total = 0

    def add(self, document: "Document") -> None:
        value = document.get(self.attribute)
        if self.attribute not in document:
            return
        members = value if isinstance(value, list) else [value]
        terms = [
            term for one in members if isinstance(one, str) for term in self.analyzer.terms(one)
        ]
        for term in terms:
            holders = self.postings.setdefault(term, {})
            holders[document["_id"]] = holders.get(document["_id"], 0) + 1
        self.terms[document["_id"]] = terms
        self.total += len(terms)

    def remove(self, document: "Document") -> None:
        terms = self.terms.pop(document["_id"], [])
        self.total -= len(terms)
        for term in set(terms):
            del self.postings[term][document["_id"]]

    def bm25(self, handle: str, term: str) -> float:
        """What a term adds to the score of a document that has it."""
        frequency, documents = self.postings[term][handle], len(self.terms)
        rarity = math.log(
            1 + (documents - len(self.postings[term]) + 0.5) / (len(self.postings[term]) + 0.5)
        )
        average = self.total / documents
        scale = _K * (1 - _B + _B * len(self.terms[handle]) / average) if average else _K
        return rarity * (_K + 1) * frequency / (frequency + scale)


@dataclass
class View:
    """A view on one collection and its term indexes, by attribute and analyzer."""

    database: "Database"
    name: str
    properties: dict[str, Any]
    _indexes: dict[tuple[str, str], TermIndex] = field(default_factory=dict)
    _seen: "dict[str, dict[str, Document]]" = field(default_factory=dict)

    @property
    def links(self) -> dict[str, Any]:
        return self.properties["links"]  # type: ignore[no-any-return]

    def search(
        self, analyzer: str, attribute: str, terms: list[str]
    ) -> "dict[str, list[tuple[TermIndex, str]]]":
        """The documents that have one of the terms, with what BM25 is computed from."""
        self._refresh()
        index = self._index(attribute, analyzer)
        found: dict[str, list[tuple[TermIndex, str]]] = {}
        for term in terms:
            for handle in index.postings.get(term, ()):
                found.setdefault(handle, []).append((index, term))
        return found

    def change(self, properties: dict[str, Any], beside: bool) -> None:
        """New links, beside the old ones or instead of them; terms are read anew."""
        check_links(self.database, properties)
        self.properties = {"links": {**(self.links if beside else {}), **properties["links"]}}
        self._indexes.clear()
        self._seen.clear()

    def body(self) -> dict[str, Any]:
        shown = {
            "id": self.name,
            "name": self.name,
            "type": "arangosearch",
            "globallyUniqueId": f"h/{self.name}",
        }
        return {**shown, **self.properties}

    def _refresh(self) -> None:
        """Bring the terms up to the committed documents, which are a new dictionary after each
        change.
        """
        for name in self.links:
            held = (
                self.database.collections[name].documents
                if name in self.database.collections
                else {}
            )
            seen = self._seen.get(name, {})
            if held is seen:
                continue
            for key in seen.keys() | held.keys():
                old, new = seen.get(key), held.get(key)
                if old is not new:
                    for (attribute, analyzer), index in self._indexes.items():
                        if old is not None:
                            index.remove(old)
                        if new is not None and self._is_linked(name, attribute, analyzer):
                            index.add(new)
            self._seen[name] = held

    def _index(self, attribute: str, analyzer: str) -> TermIndex:
        if (attribute, analyzer) not in self._indexes:
            index = TermIndex(attribute, self.database.analyzer(analyzer))
            for name, documents in self._seen.items():
                for document in (
                    documents.values() if self._is_linked(name, attribute, analyzer) else ()
                ):
                    index.add(document)
            self._indexes[attribute, analyzer] = index
        return self._indexes[attribute, analyzer]

    def _is_linked(self, collection: str, attribute: str, analyzer: str) -> bool:
        return analyzer in self.links[collection].get("fields", {}).get(attribute, {}).get(
            "analyzers", ()
        )


def make_view(database: "Database", body: dict[str, Any]) -> View:
    """A checked view from the body of POST /_api/view."""
    name = body.get("name")
    if body.get("type") != "arangosearch":
        raise NotInDouble(f"views of type {body.get('type')}")
    if not isinstance(name, str) or name in database.views or name in database.collections:
        raise ServerError(1207, f"duplicate name: {name}")
    properties = {key: value for key, value in body.items() if key not in ("name", "type")}
    check_links(database, properties)
    database.views[name] = View(database, name, {"links": {}, **properties})
    return database.views[name]


def check_links(database: "Database", properties: dict[str, Any]) -> None:
    """Refuse unknown attributes, collections and analyzers."""
    check_names("attribute of a view", properties, {"links"})
    for name, link in properties.get("links", {}).items():
        database.collection(name)
        check_names("attribute of a link", link, {"fields", "includeAllFields"})
        for entry in link.get("fields", {}).values():
            check_names("attribute of a field", entry, {"analyzers"})
            for analyzer in entry.get("analyzers", ()):
                database.analyzer(analyzer)
