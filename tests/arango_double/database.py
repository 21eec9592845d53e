"""Databases and collections in memory: committed documents, their indexes, and what names are
legal.

Committed documents of a collection are one dictionary that is never changed: a commit makes
another, so whoever holds the old one has a snapshot.
"""

import re
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.arango_double.errors import NotInDouble, ServerError, check_names
from tests.arango_double.parser import Language
from tests.arango_double.search import Analyzer, View, built_in_analyzers
from tests.arango_double.values import Value, hash_key

if TYPE_CHECKING:
    from tests.arango_double.transactions import Transaction

Document = dict[str, Any]
DOCUMENT_COLLECTION, EDGE_COLLECTION = 2, 3
_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,255}")
_DEFINED = {"type", "name", "fields", "inBackground", "unique", "sparse"}
_VECTOR_PARAMS = {"metric", "dimension", "nLists"}


@dataclass(frozen=True)
class Index:
    """One index of a collection as the HTTP interface shows it."""

    id: str
    type: str
    name: str
    fields: list[str]
    sparse: bool = False
    more: dict[str, Any] = field(default_factory=dict)

    def body(self, collection: str) -> dict[str, Any]:
        own = {
            "id": f"{collection}/{self.id}",
            "type": self.type,
            "name": self.name,
            "fields": self.fields,
        }
        return {**own, "unique": self.type == "primary", "sparse": self.sparse, **self.more}

    def check_document(self, document: Document) -> None:
        """A vector index wants vectors of one dimension, and one in every document unless it is
        sparse.
        """
        if self.type != "vector":
            return
        value, dimension = document.get(self.fields[0]), self.more["params"]["dimension"]
        if not (value is None and self.sparse) and (
            not isinstance(value, list) or len(value) != dimension
        ):
            raise ServerError(
                10, f"vector field '{self.fields[0]}' must be an array of {dimension} numbers"
            )


class Collection:
    """Committed documents by key, and their keys by the first fields of the indexes."""

    def __init__(self, name: str, kind: int) -> None:
        self.name, self.type = name, kind
        self.documents: dict[str, Document] = {}
        self.revision = 0
        self.indexes = {"0": Index("0", "primary", "primary", ["_key"])}
        self._keys: dict[str, dict[Any, dict[str, None]]] = {}
        if kind == EDGE_COLLECTION:
            self.indexes["1"] = Index("1", "edge", "edge", ["_from", "_to"])
            self._keys = {"_from": {}, "_to": {}}

    @property
    def is_system(self) -> bool:
        return self.name.startswith("_")

    def apply(self, changes: dict[str, Document | None]) -> None:
        """Make committed changes; a changed document moves to the end, as its new revision does on
        disk.
        """
        held = dict(self.documents)
        self.revision += 1
        for key, document in changes.items():
            old = held.pop(key, None)
            for name, keys in self._keys.items():
                if old is not None:
                    keys.get(hash_key(old.get(name)), {}).pop(key, None)
                if document is not None:
                    keys.setdefault(hash_key(document.get(name)), {})[key] = None
            if document is not None:
                held[key] = document
        self.documents = held

    def has_index(self, name: str) -> bool:
        return name in self._keys

    def lookup(self, name: str, value: Value) -> Iterable[str]:
        """Keys of the documents that have this value in an indexed field."""
        return self._keys[name].get(hash_key(value), ())

    def add_index(self, index: Index) -> None:
        self.indexes[index.id] = index
        if index.type == "persistent" and index.fields[0] not in self._keys:
            keys = self._keys[index.fields[0]] = {}
            for key, document in self.documents.items():
                keys.setdefault(hash_key(document.get(index.fields[0])), {})[key] = None

    def summary(self) -> dict[str, Any]:
        """The collection as listings show it."""
        named = {
            "id": self.name,
            "name": self.name,
            "globallyUniqueId": f"h/{self.name}",
            "statusString": "loaded",
        }
        return {**named, "status": 3, "type": self.type, "isSystem": self.is_system}


@dataclass
class Database:
    """One database: everything behind one lock, which each request holds."""

    name: str
    language: Language
    next_number: Callable[[], int]
    write_lock_seconds: float
    options: dict[str, Any] = field(default_factory=dict)
    collections: dict[str, Collection] = field(default_factory=dict)
    views: dict[str, View] = field(default_factory=dict)
    graphs: dict[str, dict[str, Any]] = field(default_factory=dict)
    analyzers: dict[str, Analyzer] = field(default_factory=built_in_analyzers)
    condition: threading.Condition = field(
        default_factory=lambda: threading.Condition(threading.RLock())
    )
    locks: "dict[tuple[str, str], Transaction]" = field(default_factory=dict)

    def __post_init__(self) -> None:
        for system in ("_analyzers", "_graphs"):
            self.collections[system] = Collection(system, DOCUMENT_COLLECTION)

    def collection(self, name: str) -> Collection:
        """A collection by name; missing ones are error 1203."""
        if name not in self.collections:
            raise ServerError(1203, f"collection or view not found: {name}")
        return self.collections[name]

    def create_collection(self, name: Any, kind: int) -> Collection:
        if not isinstance(name, str) or not _NAME.fullmatch(name) or name.startswith("_"):
            raise ServerError(1208, f"illegal name: collection name '{name}' is invalid")
        if name in self.collections or name in self.views:
            raise ServerError(1207, f"duplicate name: duplicate collection name '{name}'")
        self.collections[name] = Collection(name, kind)
        return self.collections[name]

    def add_index(self, name: str, definition: dict[str, Any]) -> tuple[Index, bool]:
        """Create an index, or return the equal one that exists, and whether it is new."""
        collection = self.collection(name)
        made = self._make_index(definition, list(collection.documents.values()))
        for held in collection.indexes.values():
            if (held.type, held.fields, held.sparse) == (made.type, made.fields, made.sparse):
                return held, False
        for document in collection.documents.values():
            made.check_document(document)
        collection.add_index(made)
        return made, True

    def _make_index(self, definition: dict[str, Any], documents: list[Document]) -> Index:
        number, kind, fields = (
            str(self.next_number()),
            definition.get("type"),
            definition.get("fields"),
        )
        if not isinstance(fields, list) or not fields or definition.get("unique"):
            raise ServerError(
                10, "index fields must be a non-empty array, and no index of ours is unique"
            )
        made = Index(
            number,
            str(kind),
            definition.get("name") or f"idx_{number}",
            fields,
            bool(definition.get("sparse")),
        )
        if kind == "persistent":
            check_names("index attribute", definition, _DEFINED)
            return made
        if kind != "vector" or not self.language.has_vectors:
            raise ServerError(10, f"invalid index type '{kind}'")
        check_names("index attribute", definition, _DEFINED | {"params"})
        params = definition["params"]
        check_names("vector index param", params, _VECTOR_PARAMS)
        if params["metric"] != "cosine" or len(fields) != 1:
            raise NotInDouble("vector indexes of another metric than cosine or of several fields")
        if made.sparse and not self.language.at_least(3, 12, 6):
            raise ServerError(10, "sparse vector indexes need 3.12.6")
        usable = sum(isinstance(document.get(fields[0]), list) for document in documents)
        if not 0 < params["nLists"] <= usable:
            raise ServerError(
                10, f"number of training points should be at least as large as nLists, got {usable}"
            )
        return Index(number, "vector", made.name, fields, made.sparse, {"params": params})

    def drop_index(self, name: str, index_id: str) -> None:
        if self.collection(name).indexes.pop(index_id, None) is None:
            raise ServerError(1212)

    def create_graph(self, body: dict[str, Any]) -> dict[str, Any]:
        """Create a named graph and the collections it lacks."""
        name = body.get("name")
        if not isinstance(name, str) or not name:
            raise ServerError(1922, "missing graph name")
        if name in self.graphs:
            raise ServerError(1925, f"graph '{name}' already exists")
        for definition in body.get("edgeDefinitions") or []:
            check_names("attribute of an edge definition", definition, {"collection", "from", "to"})
            if definition["collection"] not in self.collections:
                self.create_collection(definition["collection"], EDGE_COLLECTION)
            for end in {*definition["from"], *definition["to"]} - set(self.collections):
                self.create_collection(end, DOCUMENT_COLLECTION)
        self.graphs[name] = {
            "_key": name,
            "_id": f"_graphs/{name}",
            "_rev": self.new_revision(),
            "name": name,
            "edgeDefinitions": body.get("edgeDefinitions") or [],
            "orphanCollections": [],
        }
        return self.graphs[name]

    def new_revision(self) -> str:
        """A revision; later ones sort after earlier ones."""
        return f"_{self.next_number():010d}"

    def analyzer(self, name: str) -> Analyzer:
        """An analyzer by name, with or without the `db::` prefix."""
        found = self.analyzers.get(name.removeprefix(f"{self.name}::"))
        if found is None:
            raise ServerError(10, f"AQL: failed to find analyzer '{name}' (while executing)")
        return found
