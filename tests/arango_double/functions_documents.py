"""Functions that read the database or know about document identifiers."""

from tests.arango_double.context import QueryContext
from tests.arango_double.functions_misc import KEY_PATTERN
from tests.arango_double.registry import function, invalid_argument
from tests.arango_double.values import Value, to_text


@function("DOCUMENT", 1, 2)
def document(context: QueryContext, first: Value, *rest: Value) -> Value:
    if rest:
        collection, wanted = to_text(first), rest[0]
        if isinstance(wanted, list):
            return [found for key in wanted if (found := _fetch(context, collection, key)) is not None]
        return _fetch(context, collection, wanted)
    if isinstance(first, list):
        return [found for handle in first if (found := _fetch(context, None, handle)) is not None]
    return _fetch(context, None, first)


def _fetch(context: QueryContext, collection: str | None, handle: Value) -> Value:
    if isinstance(handle, dict):
        handle = handle.get("_id")
    if not isinstance(handle, str):
        return None
    name, slash, key = handle.partition("/")
    if not slash:
        name, key = collection or "", handle
    if not name or (collection is not None and name != collection):
        return None
    return context.document(name, key)


@function("PARSE_IDENTIFIER", 1)
def parse_identifier(context: QueryContext, value: Value) -> Value:
    parts = _split(context, "PARSE_IDENTIFIER", value)
    return None if parts is None else {"collection": parts[0], "key": parts[1]}


@function("PARSE_COLLECTION", 1)
def parse_collection(context: QueryContext, value: Value) -> Value:
    parts = _split(context, "PARSE_COLLECTION", value)
    return None if parts is None else parts[0]


@function("PARSE_KEY", 1)
def parse_key(context: QueryContext, value: Value) -> Value:
    parts = _split(context, "PARSE_KEY", value)
    return None if parts is None else parts[1]


def _split(context: QueryContext, name: str, value: Value) -> tuple[str, str] | None:
    handle = value.get("_id") if isinstance(value, dict) else value
    if isinstance(handle, str) and handle.count("/") == 1 and all(handle.split("/")):
        collection, key = handle.split("/")
        return collection, key
    invalid_argument(context, name)
    return None


@function("IS_SAME_COLLECTION", 2)
def is_same_collection(context: QueryContext, first: Value, second: Value) -> Value:
    names = [_collection_of(first), _collection_of(second)]
    if None in names:
        invalid_argument(context, "IS_SAME_COLLECTION")
        return None
    return names[0] == names[1]


def _collection_of(value: Value) -> str | None:
    handle = value.get("_id") if isinstance(value, dict) else value
    if not isinstance(handle, str):
        return None
    name, slash, key = handle.partition("/")
    return name if not slash or KEY_PATTERN.fullmatch(key) else None


@function("COLLECTION_COUNT", 1)
def collection_count(context: QueryContext, name: Value) -> Value:
    return context.count(to_text(name))


@function("COLLECTIONS", 0)
def collections(context: QueryContext) -> Value:
    return [{"_id": found.id, "name": found.name} for found in context.database.sorted_collections()]


@function("CURRENT_USER", 0)
def current_user(context: QueryContext) -> str | None:
    return context.user


@function("CURRENT_DATABASE", 0)
def current_database(context: QueryContext) -> str:
    return context.database.name


@function("VERSION", 0)
def version(context: QueryContext) -> str:
    return context.language.version
