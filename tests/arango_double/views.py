"""Views: which attributes they index, and the inverted indexes behind SEARCH.

Terms are taken from committed documents when a search starts. With a commit interval above zero a search may miss
documents written since the last refresh, as on a server, unless it asks for waitForSync.
"""

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.arango_double.errors import ServerError
from tests.arango_double.indexes import Document, value_at

if TYPE_CHECKING:
    from tests.arango_double.analyzers import Analyzer
    from tests.arango_double.documents import Database

_LINK = {
    "analyzers", "fields", "includeAllFields", "storeValues", "trackListPositions", "inBackground", "cache", "nested",
    "analyzerDefinitions", "primarySort", "storedValues", "primarySortCompression",
}  # fmt: skip
_VIEW = {
    "links", "cleanupIntervalStep", "commitIntervalMsec", "consolidationIntervalMsec", "consolidationPolicy",
    "primarySort", "primarySortCompression", "primarySortCache", "primaryKeyCache", "storedValues", "optimizeTopK",
    "writebufferActive", "writebufferIdle", "writebufferSizeMax", "indexes",
}  # fmt: skip


class TermIndex:
    """Terms of one attribute under one analyzer, over every linked collection; documents are known by `_id`."""

    def __init__(self, path: str, analyzer: "Analyzer") -> None:
        self.path = path.split(".")
        self.analyzer = analyzer
        self.postings: dict[str, dict[str, list[int]]] = {}
        self.lengths: dict[str, int] = {}
        self.scalars: dict[str, list[Any]] = {}
        self.total = 0

    def add(self, handle: str, document: Document) -> None:
        value = value_at(document, self.path)
        if value is None and self.path[-1] not in _holder(document, self.path):
            return
        members = value if isinstance(value, list) else [value]
        terms: list[str] = []
        for member in members:
            if isinstance(member, str):
                terms.extend(self.analyzer.terms(member))
        for position, term in enumerate(terms):
            self.postings.setdefault(term, {}).setdefault(handle, []).append(position)
        self.lengths[handle] = len(terms)
        self.total += len(terms)

    def remove(self, handle: str) -> None:
        if handle not in self.lengths:
            return
        self.total -= self.lengths.pop(handle)
        self.scalars.pop(handle, None)
        for term in [term for term, holders in self.postings.items() if handle in holders]:
            del self.postings[term][handle]
            if not self.postings[term]:
                del self.postings[term]

    def has(self, feature: str) -> bool:
        return feature in self.analyzer.features


def _holder(document: Document, path: list[str]) -> Document:
    found = value_at(document, path[:-1])
    return found if isinstance(found, dict) else {}


@dataclass
class View:
    """A view and its term indexes, by attribute path and analyzer."""

    database: "Database"
    name: str
    type: str
    id: str
    properties: dict[str, Any]
    commit_seconds: float = 0.0
    _indexes: dict[tuple[str, str], TermIndex] = field(default_factory=dict)
    _revisions: dict[str, str] = field(default_factory=dict)
    _refreshed: float = 0.0

    def collections(self) -> list[str]:
        return list(self.properties["links"])

    def analyzers_of(self, collection: str, path: str) -> list[str]:
        """Analyzers under which a collection's attribute is indexed; none when it is not."""
        link = self.properties["links"].get(collection)
        analyzers = ["identity"]
        for step in path.split("."):
            analyzers = link.get("analyzers") or analyzers
            if step in link.get("fields", {}):
                link = link["fields"][step]
        return (link.get("analyzers") if link is not None else None) or analyzers

    def refresh(self, wait: bool) -> None:
        """Bring the term indexes up to the committed documents, when it is time or when asked to."""
        now = time.monotonic()
        self._refreshed = now
        current = {
            document["_id"]: document
            for name in self.collections()
            if name in self.database.collections
            for document in self.database.collection(name).documents.values()
        }
        for handle in [handle for handle in self._revisions if handle not in current]:
            del self._revisions[handle]
            for index in self._indexes.values():
                index.remove(handle)
        for handle, document in current.items():
            known = self._revisions.get(handle)
            if known != document["_rev"]:
                self._revisions[handle] = document["_rev"]
                for key, index in self._indexes.items():
                    if known is not None:
                        index.remove(handle)
                    self._add(key, index, handle, document)

    def index(self, path: str, analyzer: str) -> TermIndex:
        """The term index for an attribute and an analyzer; built on first use."""
        key = (path, analyzer)
        if key not in self._indexes:
            index = TermIndex(path, self.database.analyzer(analyzer))
            for handle in self._revisions:
                collection, _, document_key = handle.partition("/")
                document = self.database.collection(collection).documents.get(document_key)
                if document is not None:
                    self._add(key, index, handle, document)
            self._indexes[key] = index
        return self._indexes[key]

    def _add(self, key: tuple[str, str], index: TermIndex, handle: str, document: Document) -> None:
        if key[1] in self.analyzers_of(handle.partition("/")[0], key[0]):
            index.add(handle, document)

    def forget(self, collection: str) -> None:
        """A dropped collection loses its link."""
        self.properties.get("links", {}).pop(collection, None)

    def change(self, properties: dict[str, Any], partial: bool) -> None:
        """New properties; term indexes are rebuilt."""
        check_properties(self.database, self.type, properties)
        merged = {**self.properties, **properties} if partial else {**_defaults(self.type), **properties}
        if partial and "links" in properties:
            links = {**self.properties["links"], **properties["links"]}
            merged["links"] = {name: link for name, link in links.items() if link is not None}
        self.properties = merged
        self._indexes.clear()
        self._revisions.clear()
        self._refreshed = 0.0

    def body(self) -> dict[str, Any]:
        return {"id": self.id, "name": self.name, "type": self.type, "globallyUniqueId": f"h{self.id}/{self.name}"}


def make_view(database: "Database", body: dict[str, Any], commit_seconds: float) -> View:
    """A checked view from the body of POST /_api/view."""
    name, kind = body.get("name"), body.get("type")
    if not isinstance(name, str) or not name or not name[0].isalpha():
        raise ServerError(1208, f"illegal name: view name '{name}' is invalid")
    if kind not in ("arangosearch", "search-alias"):
        raise ServerError(10, f"invalid view type '{kind}'")
    if name in database.views or name in database.collections:
        raise ServerError(1207, f"duplicate name: {name}")
    properties = {key: value for key, value in body.items() if key not in ("name", "type")}
    check_properties(database, kind, properties)
    view = View(database, name, kind, str(database.next_number()), {**_defaults(kind), **properties}, commit_seconds)
    database.views[name] = view
    return view


def check_properties(database: "Database", kind: str, properties: dict[str, Any]) -> None:
    """Refuse unknown attributes, collections and analyzers."""
    unknown = set(properties) - _VIEW
    if unknown:
        raise ServerError(10, f"unknown view attributes: {', '.join(sorted(unknown))}")
    if ("links" in properties) == (kind == "search-alias") and "links" in properties:
        raise ServerError(10, "a search-alias view has indexes, not links")
    for name, link in properties.get("links", {}).items():
        database.collection(name)
        if link is not None:
            _check_link(database, link)
    for item in properties.get("indexes", []):
        indexes = database.collection(item["collection"]).indexes.values()
        if not any(item["index"] in (index.name, index.id) and index.type == "inverted" for index in indexes):
            raise ServerError(1212)


def _check_link(database: "Database", link: Any) -> None:
    if not isinstance(link, dict) or set(link) - _LINK:
        raise ServerError(10, f"invalid link definition: {link!r}")
    for analyzer in link.get("analyzers", []):
        try:
            database.analyzer(analyzer)
        except ServerError as error:
            raise ServerError(10, f"error in link definition: unknown analyzer '{analyzer}'") from error
    for entry in link.get("fields", {}).values():
        _check_link(database, entry)


def _defaults(kind: str) -> dict[str, Any]:
    return {
        "links": {},
        "cleanupIntervalStep": 2,
        "commitIntervalMsec": 1000,
        "consolidationIntervalMsec": 1000,
        "primarySort": [],
        "storedValues": [],
    }
