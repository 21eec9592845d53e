"""Rows by words and rows by vector."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from aql import load
from hades.errors import BadQuery
from hades.ports.store import HIT_SCHEMA, Predicate
from hades.stores import questions, rows
from hades.stores.arango.scope import Scope
from hades.stores.arango.terms import condition, unnarrowed
from hades.stores.arango.vectors import is_indexed
from hades.text.identifiers import with_identifiers
from schemas.catalogue import ANALYZER, Collection

_PROBES = 20  # lists of the vector index looked into; the server's default of 1 misses too much

_QUERIES = {1: "search/match_one_field", 2: "search/match_two_fields", 4: "search/match_four_fields"}


def search(scope: Scope, collection: Collection, text: str, limit: int, where: Predicate) -> pa.Table:
    """See `RowStore.search`. The view lags behind the rows by about a second, and does not see a transaction's own."""
    questions.check_limit("limit", limit)
    terms = unnarrowed(collection, where)
    if collection.view is None:
        raise BadQuery(f"{collection.name} has no text fields to search; declare them in schemas/catalogue.py")
    if not text.strip():
        raise BadQuery("the text to search for is empty")
    fields = collection.text_fields
    binds: dict[str, Any] = {
        "@view": collection.view,
        "text": with_identifiers(text),
        "analyzer": ANALYZER,
        **dict(zip(("first", "second", "third", "fourth"), fields, strict=False)),
        "wait": scope.wait_for_view and scope.unit is None,
        "terms": terms,
        "limit": limit,
    }
    if len(fields) not in _QUERIES:
        raise BadQuery(f"{collection.name} declares {len(fields)} text fields; there are queries for one, two and four")
    query = load(_QUERIES[len(fields)])
    return _hits(scope.query(query, binds, f"searching {collection.name} by text"))


def nearest(
    scope: Scope, collection: Collection, vector: Sequence[float], model: str, limit: int, where: Predicate
) -> pa.Table:
    """See `RowStore.nearest`. Through the vector index, so not exact, only where the store was opened for that."""
    asked = questions.check_vector(collection, vector)
    questions.check_limit("limit", limit)
    narrowed = condition(collection, where)
    _check_dimension(scope, collection, model, asked.size)
    binds: dict[str, Any] = {
        "@collection": collection.name,
        "field": collection.vector_field,
        "model": model,
        "vector": asked.astype(float).tolist(),
        "limit": limit,
    }
    action = f"searching {collection.name} by vector"
    if scope.approximate and narrowed.kind == "all" and is_indexed(scope.session, collection):
        found = scope.query(load("search/nearest_approximate"), {**binds, "probes": _PROBES}, action)
        return _hits(sorted(found, key=lambda hit: (-hit[1], hit[0])))
    binds["dimension"] = asked.size
    if narrowed.kind == "among":
        return _hits(scope.query(load("search/nearest_among"), {**binds, **narrowed.binds}, action))
    binds["terms"] = narrowed.binds.get("terms", [])
    return _hits(scope.query(load("search/nearest_exact"), binds, action))


def _check_dimension(scope: Scope, collection: Collection, model: str, asked: int) -> None:
    declared = rows.declare_dimension(model)
    if declared is None:
        binds = {"@collection": collection.name, "field": collection.vector_field, "model": model}
        stored = scope.query(load("search/find_dimension"), binds, f"looking at a vector of {collection.name}")
        if stored and stored[0] != asked:
            raise BadQuery(f"vectors of {model} in {collection.name} have dimension {stored[0]}, not {asked}")
    elif declared != asked:
        raise BadQuery(f"the vector has dimension {asked}, {model} makes {declared}")


def _hits(found: list[Any]) -> pa.Table:
    keys, scores = [hit[0] for hit in found], [float(hit[1]) for hit in found]
    return pa.table([pa.array(keys, pa.string()), pa.array(scores, pa.float64())], schema=HIT_SCHEMA)
