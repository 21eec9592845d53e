"""Searches: rows by words, rows by vector, entities by the names that stand in a text."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from aql import load
from hades.errors import BadQuery
from hades.ports.store import Predicate
from hades.ports.store_tables import HIT_SCHEMA
from hades.snapshot.names import normalise, runs_of_words
from hades.stores import questions, rows
from hades.stores.arango.scope import Scope
from hades.stores.arango.terms import condition, whole_predicate
from hades.stores.arango.vectors import is_indexed
from hades.text.identifiers import with_identifiers
from schemas.catalogue import ANALYZER, NAME_ANALYZER, Collection

_PROBES = 20  # lists of the vector index looked into; the server's default of 1 misses too much
_UNBOUNDED = 2**31 - 1

_QUERIES = {1: "search/match_one_field", 2: "search/match_two_fields", 4: "search/match_four_fields"}


@dataclass(frozen=True)
class NamePlaces:
    """Which entities are named and where, as (start, end, `_id`) in the order of ids; `fetched` rows came for it."""

    places: list[tuple[int, int, str]]
    fetched: int


def search(scope: Scope, collection: Collection, text: str, limit: int, where: Predicate) -> pa.Table:
    """See `RowStore.search`. The view lags behind the rows by about a second, and does not see a transaction's own."""
    questions.check_limit("limit", limit)
    terms = whole_predicate(collection, where)
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
    declared = rows.declare_dimension(model)
    if declared not in (None, asked.size):
        raise BadQuery(f"the vector has dimension {asked.size}, {model} makes {declared}")
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


def find_named(scope: Scope, text: str, limit: int | None) -> NamePlaces:
    """Every entity with a name that stands in the text, in one query; case and accents do not count, aliases do.

    The server finds names by their letters, so one is found only with the signs it is stored with or with blanks for
    them; whether it is the same name, and where, is then judged here word by word, as a snapshot does.
    """
    names = names_in(text)
    binds = {
        "names": names,
        "analyzer": NAME_ANALYZER,
        "wait": scope.wait_for_view,
        "limit": _UNBOUNDED if limit is None else limit,
    }
    found = scope.query(load("view/list_named"), binds, "looking for names") if names else []
    return NamePlaces(place_names(text, found), len(found))


def names_in(text: str) -> list[str]:
    """Every name that the text may spell, as the server stores names."""
    runs = runs_of_words(text)
    return sorted({one for start, end, form in runs for one in (form, *_spellings(text, start, end))})


def place_names(text: str, found: Iterable[tuple[str, Sequence[str]]]) -> list[tuple[int, int, str]]:
    """Where the text spells the entities, given as id and names; in the order of ids."""
    spans: dict[str, list[tuple[int, int]]] = {}
    for start, end, form in runs_of_words(text):
        spans.setdefault(form, []).append((start, end))
    places = {
        (start, end, identifier)
        for identifier, spelled in found
        for form in map(normalise, spelled)
        for start, end in spans.get(form, ())
    }
    return sorted(places, key=lambda place: place[::-1])


def _hits(found: list[Any]) -> pa.Table:
    keys, scores = [hit[0] for hit in found], [float(hit[1]) for hit in found]
    return pa.table([pa.array(keys, pa.string()), pa.array(scores, pa.float64())], schema=HIT_SCHEMA)


def _spellings(text: str, start: int, end: int) -> Iterator[str]:
    """A run of words as a name would be stored: as written, and with the sign beside it on either side."""
    before = start - 1 if start and not text[start - 1].isspace() else start
    after = end + 1 if end < len(text) and not text[end].isspace() else end
    for first in {before, start}:
        for last in {end, after}:
            yield _analyse(text[first:last])


def _analyse(text: str) -> str:
    """What `NAME_ANALYZER` makes of a text: lower case, accents taken off, the rest composed as it was."""
    letters = unicodedata.normalize("NFD", text.lower())
    return unicodedata.normalize("NFC", "".join(one for one in letters if unicodedata.category(one) != "Mn"))
