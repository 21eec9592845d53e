"""OPTIONS of AQL statements: which names and values exist.

A server only warns (1539) about unknown names and silently ignores misspelt values. A strict double refuses both, so
that a typing error in a query does not survive its tests.
"""

from collections.abc import Mapping

from tests.arango_double import syntax
from tests.arango_double.context import QueryContext
from tests.arango_double.errors import aql_error
from tests.arango_double.operators import constant
from tests.arango_double.values import Value, is_number

BOOL, NUMBER, TEXT, TEXTS, ANYTHING = "a boolean", "a number", "a string", "a string or an array of strings", "anything"
Kind = str | tuple[str, ...]

FOR_OPTIONS: dict[str, Kind] = {
    "indexHint": ANYTHING, "forceIndexHint": BOOL, "disableIndex": BOOL, "maxProjections": NUMBER, "useCache": BOOL,
    "lookahead": NUMBER,
}  # fmt: skip
VIEW_OPTIONS: dict[str, Kind] = {
    "collections": ANYTHING, "conditionOptimization": ("auto", "none"), "countApproximate": ("exact", "cost"),
    "parallelism": NUMBER, "noMaterialization": BOOL, "waitForSync": BOOL,
}  # fmt: skip
COLLECT_OPTIONS: dict[str, Kind] = {
    "method": ("hash", "sorted"), "disableIndex": BOOL, "aggregateIntoExpressionOnDBServers": BOOL,
}  # fmt: skip
TRAVERSAL_OPTIONS: dict[str, Kind] = {
    "order": ("dfs", "bfs", "weighted"), "bfs": BOOL, "uniqueVertices": ("none", "path", "global"),
    "uniqueEdges": ("path", "none", "global"), "edgeCollections": TEXTS, "vertexCollections": TEXTS,
    "parallelism": NUMBER, "maxProjections": NUMBER, "weightAttribute": TEXT, "defaultWeight": NUMBER,
    "indexHint": ANYTHING, "useCache": BOOL,
}  # fmt: skip
PATH_OPTIONS: dict[str, Kind] = {"weightAttribute": TEXT, "defaultWeight": NUMBER, "useCache": BOOL}
_WRITE: dict[str, Kind] = {
    "ignoreErrors": BOOL, "waitForSync": BOOL, "exclusive": BOOL, "refillIndexCaches": BOOL, "versionAttribute": TEXT,
}  # fmt: skip
_INDEX: dict[str, Kind] = {"indexHint": ANYTHING, "forceIndexHint": BOOL, "disableIndex": BOOL, "useCache": BOOL}
_MERGE: dict[str, Kind] = {"keepNull": BOOL, "mergeObjects": BOOL}
WRITE_OPTIONS: dict[str, dict[str, Kind]] = {
    "INSERT": {**_WRITE, **_MERGE, "overwrite": BOOL, "overwriteMode": ("ignore", "replace", "update", "conflict")},
    "UPDATE": {**_WRITE, **_MERGE, **_INDEX, "ignoreRevs": BOOL},
    "REPLACE": {**_WRITE, **_INDEX, "ignoreRevs": BOOL},
    "REMOVE": {**_WRITE, **_INDEX, "ignoreRevs": BOOL},
    "UPSERT": {**_WRITE, **_MERGE, **_INDEX, "ignoreRevs": BOOL, "readOwnWrites": BOOL},
}


def read_options(
    context: QueryContext, statement: str, node: syntax.Object | None, known: Mapping[str, Kind]
) -> dict[str, Value]:
    """The options of one statement, checked against what that statement knows."""
    if node is None:
        return {}
    _, values = constant(node, context.binds)
    accepted: dict[str, Value] = {}
    for name, value in values.items():
        problem = _problem(name, value, known)
        if problem is None:
            accepted[name] = value
        elif context.language.strict:
            aql_error(1539, f"invalid option in {statement}: {problem}", "planning")
        elif name not in known:
            context.warn(1539, f"invalid option attribute: {problem} in {statement}")
    return accepted


def _problem(name: str, value: Value, known: Mapping[str, Kind]) -> str | None:
    kind = known.get(name)
    if kind is None:
        return f"unknown option '{name}'"
    if isinstance(kind, tuple):
        return None if value in kind else f"'{name}' must be one of {', '.join(kind)}, not {value!r}"
    fits = {
        BOOL: isinstance(value, bool),
        NUMBER: is_number(value),
        TEXT: isinstance(value, str),
        TEXTS: isinstance(value, str) or (isinstance(value, list) and all(isinstance(item, str) for item in value)),
        ANYTHING: True,
    }
    return None if fits[kind] else f"'{name}' must be {kind}, not {value!r}"
