"""Indexes as dictionaries from field values to document keys."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tests.arango_double.errors import ServerError
from tests.arango_double.values import Value, compare, equal, hash_key

Document = dict[str, Any]


class Condition(NamedTuple):
    """`field operator value`, with operator one of == IN < <= > >=."""

    field: str
    operator: str
    value: Value


@dataclass(slots=True)
class _Bucket:
    values: tuple[Value, ...]
    keys: dict[str, None] = field(default_factory=dict)


class Buckets:
    """Keys of documents by the values of some fields; `tags[*]` indexes every member of an array."""

    def __init__(self, fields: list[str], sparse: bool = False) -> None:
        self.fields = fields
        self.sparse = sparse
        self._paths = [name.removesuffix("[*]").split(".") for name in fields]
        self._buckets: dict[Any, _Bucket] = {}
        self._plain = all("[*]" not in name for name in fields)

    def entries(self, document: Document) -> list[tuple[Value, ...]]:
        """The value combinations under which a document is indexed."""
        values = [value_at(document, path) for path in self._paths]
        if self.sparse and any(value is None for value in values):
            return []
        if self._plain:
            return [tuple(values)]
        combinations: list[tuple[Value, ...]] = [()]
        for name, value in zip(self.fields, values, strict=True):
            choices = value if name.endswith("[*]") and isinstance(value, list) else [value]
            combinations = [(*done, choice) for done in combinations for choice in choices]
        return combinations

    def entry_keys(self, document: Document) -> list[Any]:
        return [tuple(hash_key(value) for value in entry) for entry in self.entries(document)]

    def add(self, document: Document) -> None:
        for entry in self.entries(document):
            key = tuple(hash_key(value) for value in entry)
            bucket = self._buckets.get(key)
            if bucket is None:
                bucket = self._buckets[key] = _Bucket(entry)
            bucket.keys[document["_key"]] = None

    def remove(self, document: Document) -> None:
        for key in self.entry_keys(document):
            bucket = self._buckets.get(key)
            if bucket is not None:
                bucket.keys.pop(document["_key"], None)
                if not bucket.keys:
                    del self._buckets[key]

    def holders(self, entry_key: Any) -> Iterable[str]:
        """Keys of the documents under exactly this combination."""
        bucket = self._buckets.get(entry_key)
        return list(bucket.keys) if bucket is not None else ()

    def find(self, conditions: list[Condition]) -> Iterator[str]:
        """Keys of documents that may fulfil the conditions (all on this index's leading fields)."""
        exact = {item.field: item.value for item in conditions if item.operator == "=="}
        if len(exact) == len(self.fields):
            yield from self.holders(tuple(hash_key(exact[name]) for name in self.fields))
            return
        if len(self.fields) == 1 and conditions and conditions[0].operator == "IN":
            for key in dict.fromkeys(hash_key(value) for value in conditions[0].value):
                yield from self.holders((key,))
            return
        tests = [(self.fields.index(item.field), item) for item in conditions]
        for bucket in list(self._buckets.values()):
            if all(holds(bucket.values[place], item.operator, item.value) for place, item in tests):
                yield from list(bucket.keys)


@dataclass(slots=True)
class Index:
    """One index of a collection: its definition and, for those that answer lookups, its buckets."""

    id: str
    type: str
    name: str
    fields: list[Any]
    unique: bool
    sparse: bool
    definition: dict[str, Any]
    buckets: list[Buckets] = field(default_factory=list)

    def body(self, collection: str) -> dict[str, Any]:
        """The index as the HTTP interface shows it."""
        return {
            "id": f"{collection}/{self.id}",
            "type": self.type,
            "name": self.name,
            "fields": self.fields,
            "unique": self.unique,
            "sparse": self.sparse,
            **self.definition,
        }

    def check_document(self, document: Document) -> None:
        """A vector index that is not sparse wants its vector in every document."""
        if self.type != "vector":
            return
        value = value_at(document, self.fields[0].split("."))
        if value is None and self.sparse:
            return
        dimension = self.definition["params"]["dimension"]
        if not isinstance(value, list) or len(value) != dimension:
            raise ServerError(10, f"vector field '{self.fields[0]}' must be an array of {dimension} numbers")


def value_at(document: Value, path: list[str]) -> Value:
    """The value at an attribute path, None when anything on the way is missing."""
    for step in path:
        document = document.get(step)
    return document


def holds(value: Value, operator: str, wanted: Value) -> bool:
    """Whether `value operator wanted` is true."""
    if operator == "==":
        return equal(value, wanted)
    if operator == "IN":
        return any(equal(value, member) for member in wanted)
    result = compare(value, wanted)
    return {"<": result < 0, "<=": result <= 0, ">": result > 0, ">=": result >= 0}[operator]
