"""A predicate as bind values: one narrowing condition an index can answer, the rest as a list the query walks.

AQL orders text by ICU collation, the port by bytes; so texts are compared through their hexadecimal form, whose order
is the same in both. Times are texts of fixed width and digits, for which both orders agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

import pyarrow as pa

from hades.errors import BadQuery
from hades.ports.store import Predicate, Term
from hades.stores import questions
from hades.stores.arango.encode import json_value
from schemas.catalogue import Collection
from schemas.columns import Column
from schemas.intervals import iso

Kind = Literal["all", "where", "among", "within"]

_ORDERINGS = ("<", "<=", ">", ">=")
# AQL orders null < bool < number < text < array, so these lie below and above every number and every text, not null.
_LOWEST: Any = False
_HIGHEST: Any = []


@dataclass(frozen=True)
class Condition:
    """Which of the query files to take and what to bind in it."""

    kind: Kind
    binds: dict[str, Any]


def condition(collection: Collection, where: Predicate) -> Condition:
    """The predicate, checked, with an equality or `in` on an indexed column first, else a range on one."""
    terms = questions.check_terms(collection, where)
    if not terms:
        return Condition("all", {})
    columns = {column.name: column for column in collection.columns}
    indexed = _index(collection)
    for place, term in enumerate(terms):
        if term.column in indexed and term.op in ("==", "in"):
            rest = [*terms[:place], *terms[place + 1 :]]
            return Condition("among", {**_among(columns[term.column], term), "terms": _bound(columns, rest)})
    for term in terms:
        if term.column in indexed and term.op in _ORDERINGS and not _is_text(columns[term.column]):
            return Condition("within", {**_within(columns[term.column], terms), "terms": _bound(columns, terms)})
    return Condition("where", {"terms": _bound(columns, terms)})


def whole_predicate(collection: Collection, where: Predicate) -> list[dict[str, Any]]:
    """The whole predicate as a list of terms, for queries that are narrowed by something else."""
    columns = {column.name: column for column in collection.columns}
    return _bound(columns, questions.check_terms(collection, where))


def bound_value(collection: Collection, term: Term) -> Any:
    """The value of a checked term as the server compares it."""
    return _value(next(column for column in collection.columns if column.name == term.column), term.value)


def _index(collection: Collection) -> set[str]:
    own = {"_key", "_from", "_to"} if collection.edge else {"_key"}
    return own | {index.fields[0] for index in collection.indexes}


def _among(column: Column, term: Term) -> dict[str, Any]:
    values = term.value if isinstance(term.value, list) else [term.value]
    return {"column": term.column, "values": [_value(column, value) for value in values]}


def _within(column: Column, terms: Sequence[Term]) -> dict[str, Any]:
    """The interval all range terms on the column leave, ends included; the terms themselves decide about the ends."""
    low, high = _LOWEST, _HIGHEST
    here = [term for term in terms if term.column == column.name and term.op in _ORDERINGS]
    for bound in (_value(column, term.value) for term in here if term.op.startswith(">")):
        low = bound if low is _LOWEST else max(low, bound)
    for bound in (_value(column, term.value) for term in here if term.op.startswith("<")):
        high = bound if high is _HIGHEST else min(high, bound)
    return {"column": column.name, "low": low, "high": high}


def _bound(columns: dict[str, Column], terms: Sequence[Term]) -> list[dict[str, Any]]:
    return [_bound_term(columns[term.column], term) for term in terms]


def _bound_term(column: Column, term: Term) -> dict[str, Any]:
    if term.op in ("is_null", "not_null"):
        return {"column": term.column, "op": term.op}
    if column.is_json and term.op not in ("==", "!=", "in"):
        raise BadQuery(f"{column.name} is an object and has no order; ask for ==, !=, in or null")
    if term.op == "in":
        assert isinstance(term.value, list)
        return {"column": term.column, "op": "in", "value": [_value(column, value) for value in term.value]}
    if term.op in _ORDERINGS and _is_text(column):
        return {"column": term.column, "op": f"text {term.op}", "value": str(term.value).encode().hex()}
    return {"column": term.column, "op": term.op, "value": _value(column, term.value)}


def _is_text(column: Column) -> bool:
    return bool(pa.types.is_string(column.type))


def _value(column: Column, value: object) -> Any:
    if isinstance(value, datetime):
        return iso(value)
    if column.is_json:
        try:
            return json_value(column, str(value))
        except ValueError as error:
            raise BadQuery(f"{column.name} can only be compared with the text of a JSON object") from error
    return value
