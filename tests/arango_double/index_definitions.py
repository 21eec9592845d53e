"""Checks of index definitions: what the server accepts, and nothing silently dropped."""

from typing import Any

from tests.arango_double.errors import NotInDouble, ServerError
from tests.arango_double.indexes import Buckets, Document, Index, value_at
from tests.arango_double.language import Language

_COMMON = {"type", "name", "fields", "inBackground"}
_ALLOWED = {
    "persistent": {"unique", "sparse", "deduplicate", "estimates", "cacheEnabled", "storedValues"},
    "vector": {"params", "sparse", "storedValues", "parallelism", "unique"},
}
_VECTOR_PARAMS = {"metric", "dimension", "nLists", "defaultNProbe", "trainingIterations", "factory"}
_MAX_STORED = 32


def make_index(definition: dict[str, Any], index_id: str, language: Language, documents: list[Document]) -> Index:
    """A checked index from the body of POST /_api/index."""
    kind = definition.get("type")
    if kind in ("geo", "mdi", "mdi-prefixed", "zkd", "ttl", "inverted"):
        raise NotInDouble(f"index type {kind}")
    if kind not in _ALLOWED or (kind == "vector" and not _vectors_on(language)):
        raise _bad(f"invalid index type '{kind}'")
    unknown = set(definition) - _COMMON - _ALLOWED[kind]
    if unknown:
        raise _bad(f"unknown {kind} index attributes: {', '.join(sorted(unknown))}")
    name = definition.get("name") or f"idx_{index_id}"
    if not isinstance(name, str) or not name[0].isalpha() or len(name) > 256:
        raise ServerError(1208, "illegal name: index name invalid")
    maker = {"persistent": _persistent, "vector": _vector}[kind]
    return maker(definition, index_id, name, language, documents)


def same_index(index: Index, other: Index) -> bool:
    """Whether the server would return the existing index instead of building another."""
    same = (index.type, index.fields, index.unique, index.sparse) == (
        other.type,
        other.fields,
        other.unique,
        other.sparse,
    )
    return same and (index.type in ("persistent", "edge", "primary") or index.definition == other.definition)


def _persistent(
    definition: dict[str, Any], index_id: str, name: str, language: Language, documents: list[Document]
) -> Index:
    fields = _fields(definition)
    unique, sparse = _flag(definition, "unique"), _flag(definition, "sparse")
    stored = definition.get("storedValues", [])
    if stored and (not _is_text_list(stored) or len(stored) > _MAX_STORED or set(stored) & set(fields)):
        raise _bad("storedValues must be an array of at most 32 attribute paths that are not index fields")
    body = {
        "deduplicate": _flag(definition, "deduplicate", True),
        "estimates": _flag(definition, "estimates", True),
        "cacheEnabled": _flag(definition, "cacheEnabled"),
    }
    if stored:
        body["storedValues"] = stored
    return Index(index_id, "persistent", name, fields, unique, sparse, body, [Buckets(fields, sparse)])


def _vector(
    definition: dict[str, Any], index_id: str, name: str, language: Language, documents: list[Document]
) -> Index:
    fields = _fields(definition)
    params = definition.get("params")
    if len(fields) != 1 or not isinstance(params, dict):
        raise _bad("vector index needs exactly one field and params")
    unknown = set(params) - _VECTOR_PARAMS
    if unknown:
        raise _bad(f"unknown vector index params: {', '.join(sorted(unknown))}")
    if params.get("metric") != "cosine":
        raise NotInDouble("vector indexes of other metrics than cosine")
    if not _is_count(params.get("dimension")):
        raise _bad("vector index dimension must be a positive number")
    if "sparse" in definition and not language.at_least(3, 12, 6):
        raise _bad("sparse vector indexes need 3.12.6")
    if "storedValues" in definition and not language.at_least(3, 12, 7):
        raise _bad("storedValues of vector indexes need 3.12.7")
    if _flag(definition, "unique"):
        raise _bad("vector index cannot be unique")
    _check_lists(params, language, documents, fields[0])
    body: dict[str, Any] = {
        "params": {"defaultNProbe": 1, "trainingIterations": 25, **params},
        "parallelism": definition.get("parallelism", 2),
    }
    if "storedValues" in definition:
        body["storedValues"] = definition["storedValues"]
    if language.at_least(3, 12, 9):
        body["trainingState"] = "ready" if documents else "unusable"
    return Index(index_id, "vector", name, fields, False, _flag(definition, "sparse"), body)


def _check_lists(params: dict[str, Any], language: Language, documents: list[Document], name: str) -> None:
    lists = params.get("nLists")
    if lists is None and not language.at_least(3, 12, 10):
        raise _bad("vector index nLists is required")
    if lists is not None and not _is_count(lists):
        raise _bad("vector index nLists must be a positive number")
    if language.at_least(3, 12, 9) and not documents:
        return
    usable = sum(isinstance(value_at(document, name.split(".")), list) for document in documents)
    if usable == 0:
        raise _bad("vector index cannot be created on an empty collection: documents must exist before")
    if lists is not None and lists > usable:
        raise _bad(f"number of training points should be at least as large as nLists ({lists}), got {usable}")


def _vectors_on(language: Language) -> bool:
    return language.has_vector_functions


def _fields(definition: dict[str, Any]) -> list[str]:
    fields = definition.get("fields")
    if not fields or not _is_text_list(fields) or len(set(fields)) != len(fields):
        raise _bad("index fields must be a non-empty array of distinct attribute paths")
    if any(name == "_id" or not name.removesuffix("[*]") for name in fields):
        raise _bad("index fields must not contain _id or an empty name")
    return list(fields)


def _is_text_list(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(member, str) for member in value)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _flag(definition: dict[str, Any], name: str, default: bool = False) -> bool:
    value = definition.get(name, default)
    if not isinstance(value, bool):
        raise _bad(f"index attribute '{name}' must be a boolean")
    return value


def _bad(message: str) -> ServerError:
    return ServerError(10, message)
