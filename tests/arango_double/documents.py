"""Databases and collections in memory: committed documents, their indexes, and what names are legal."""

import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.arango_double.analyzers import Analyzer, built_in_analyzers
from tests.arango_double.errors import ServerError
from tests.arango_double.index_definitions import make_index, same_index
from tests.arango_double.indexes import Buckets, Document, Index
from tests.arango_double.language import Language

if TYPE_CHECKING:
    from tests.arango_double.transactions import Transaction
    from tests.arango_double.views import View

DOCUMENT_COLLECTION, EDGE_COLLECTION = 2, 3
_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,255}")
_REVISION_ALPHABET = "-ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"


class Collection:
    """Committed documents by key. `history` keeps what older snapshots still see."""

    def __init__(self, name: str, kind: int, number: int, properties: dict[str, Any]) -> None:
        self.name = name
        self.type = kind
        self.id = str(number)
        self.properties = properties
        self.documents: dict[str, Document] = {}
        self.history: dict[str, list[tuple[int, Document | None]]] = {}
        self.changed: dict[str, int] = {}
        self.last_key = 0
        self.indexes: dict[str, Index] = {"0": Index("0", "primary", "primary", ["_key"], True, False, {})}
        if kind == EDGE_COLLECTION:
            ends = [Buckets(["_from"]), Buckets(["_to"])]
            self.indexes["1"] = Index("1", "edge", "edge", ["_from", "_to"], False, False, {}, ends)

    @property
    def is_system(self) -> bool:
        return self.name.startswith("_")

    def apply(self, key: str, document: Document | None) -> None:
        """Make a committed change; a changed document moves to the end, as its new revision does on disk."""
        old = self.documents.pop(key, None)
        for index in self.indexes.values():
            for buckets in index.buckets:
                if old is not None:
                    buckets.remove(old)
                if document is not None:
                    buckets.add(document)
        if document is not None:
            self.documents[key] = document

    def summary(self) -> dict[str, Any]:
        """The collection as listings show it."""
        return {
            "id": self.id,
            "name": self.name,
            "status": 3,
            "type": self.type,
            "isSystem": self.is_system,
            "globallyUniqueId": f"h{self.id}/{self.name}",
        }


@dataclass
class Database:
    """One database: everything behind one mutex, with a sequence number per commit."""

    name: str
    id: str
    language: Language
    next_number: Callable[[], int]
    write_lock_seconds: float = 1.0
    lock_seconds: float = 2.0
    options: dict[str, Any] = field(default_factory=dict)
    sequence: int = 0
    collections: dict[str, Collection] = field(default_factory=dict)
    views: dict[str, "View"] = field(default_factory=dict)
    analyzers: dict[str, Analyzer] = field(default_factory=built_in_analyzers)
    condition: threading.Condition = field(default_factory=lambda: threading.Condition(threading.RLock()))
    active: "set[Transaction]" = field(default_factory=set)
    locks: "dict[Any, Transaction]" = field(default_factory=dict)
    exclusive: "dict[str, Transaction]" = field(default_factory=dict)
    writers: "dict[str, set[Transaction]]" = field(default_factory=dict)

    def __post_init__(self) -> None:
        for system in ("_analyzers", "_graphs"):
            self.create_collection(system, DOCUMENT_COLLECTION, {}, system=True)

    def collection(self, name: str) -> Collection:
        """A collection by name; missing ones are error 1203."""
        found = self.collections.get(name)
        if found is None:
            raise ServerError(1203, f"collection or view not found: {name}")
        return found

    def find_collection(self, name: str) -> Collection | None:
        return self.collections.get(name)

    def sorted_collections(self) -> list[Collection]:
        return sorted(self.collections.values(), key=lambda found: found.name)

    def create_collection(self, name: Any, kind: int, properties: dict[str, Any], system: bool = False) -> Collection:
        with self.condition:
            if not isinstance(name, str) or not _NAME.fullmatch(name) or (name.startswith("_") and not system):
                raise ServerError(1208, f"illegal name: collection name '{name}' is invalid")
            if name in self.collections or name in self.views:
                raise ServerError(1207, f"duplicate name: duplicate collection name '{name}'")
            created = Collection(name, kind, self.next_number(), properties)
            self.collections[name] = created
            return created

    def drop_collection(self, name: str) -> Collection:
        with self.condition:
            dropped = self.collection(name)
            del self.collections[name]
            for view in self.views.values():
                view.forget(name)
            return dropped

    def add_index(self, name: str, definition: dict[str, Any]) -> tuple[Index, bool]:
        """Create an index, or return the equal one that exists, and whether it is new."""
        with self.condition:
            collection = self.collection(name)
            documents = list(collection.documents.values())
            made = make_index(definition, str(self.next_number()), self.language, documents)
            for existing in collection.indexes.values():
                if same_index(existing, made):
                    return existing, False
            if any(existing.name == made.name for existing in collection.indexes.values()):
                raise ServerError(1005, f"duplicate value for `name`: '{made.name}'", 409)
            if made.type == "ttl" and any(existing.type == "ttl" for existing in collection.indexes.values()):
                raise ServerError(10, "there can only be one ttl index per collection")
            _fill(made, documents)
            collection.indexes[made.id] = made
            return made, True

    def drop_index(self, name: str, index_id: str) -> None:
        with self.condition:
            collection = self.collection(name)
            found = next((item for item in collection.indexes.values() if index_id in (item.id, item.name)), None)
            if found is None:
                raise ServerError(1212)
            if found.type in ("primary", "edge"):
                raise ServerError(11, "forbidden")
            del collection.indexes[found.id]

    def new_revision(self) -> str:
        """A revision; later ones sort after earlier ones."""
        number = self.next_number()
        digits = ""
        for _ in range(7):
            number, digit = divmod(number, len(_REVISION_ALPHABET))
            digits = _REVISION_ALPHABET[digit] + digits
        return f"_{digits}---"

    def analyzer(self, name: str) -> Analyzer:
        """An analyzer by name, with or without the `db::` prefix."""
        found = self.analyzers.get(name.removeprefix(f"{self.name}::").removeprefix("::"))
        if found is None:
            raise ServerError(10, f"AQL: failed to find analyzer '{name}' (while executing)")
        return found


def _fill(index: Index, documents: list[Document]) -> None:
    """Put existing documents into a new index; duplicates break a unique one."""
    for document in documents:
        index.check_document(document)
        for buckets in index.buckets:
            buckets.add(document)
