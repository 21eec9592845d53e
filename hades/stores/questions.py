"""What may be asked of a collection: columns, predicates, vectors and limits, checked the same for both stores."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hades.errors import BadQuery
from hades.ports.store import OPERATORS, Predicate, Term
from schemas.catalogue import Collection
from schemas.columns import Column

_SMALL_NORM = 1e-15  # below it the squares of a row underflow in float32


def check_columns(collection: Collection, columns: Sequence[str] | None) -> list[str]:
    """The columns asked for (all by default), `_key` always among them."""
    names = collection.schema.names
    if columns is None:
        return list(names)
    for name in columns:
        if name not in names:
            raise BadQuery(f"{collection.name} has no column {name!r}; it has {', '.join(names)}")
    return list(dict.fromkeys(["_key", *columns]))


def check_terms(collection: Collection, where: Predicate) -> tuple[Term, ...]:
    """The predicate with values of the columns' types, or `BadQuery` naming the term."""
    return tuple(_check_term(collection, term) for term in where)


def check_vector(collection: Collection, vector: Sequence[float]) -> NDArray[np.float32]:
    """A finite, non-zero query vector of unit length for a collection that has vectors."""
    if collection.vector_field is None:
        raise BadQuery(f"{collection.name} has no vectors; search it by text or declare a vector field")
    array = np.asarray(vector, dtype=np.float32)
    if array.ndim != 1 or array.size == 0 or not np.isfinite(array).all():
        raise BadQuery(f"the vector for {collection.name} must be one row of finite numbers")
    norm = float(np.linalg.norm(array))
    if norm == 0.0:
        raise BadQuery(f"the vector for {collection.name} is all zeros and points nowhere")
    return array / np.float32(norm)


def cosines(matrix: NDArray[np.float32], asked: NDArray[np.float32]) -> NDArray[np.float32]:
    """(n,) cosine of each row with a vector of unit length; 0 for a row of zeros."""
    norms = np.linalg.norm(matrix, axis=1)
    result = np.asarray((matrix @ asked) / np.where(norms == 0, 1, norms), np.float32)
    small = norms < _SMALL_NORM
    if small.any():
        exact = matrix[small].astype(np.float64)
        lengths = np.linalg.norm(exact, axis=1)
        result[small] = (exact @ asked.astype(np.float64)) / np.where(lengths == 0, 1, lengths)
    return result


def check_limit(name: str, value: int) -> int:
    """A positive limit; every loop has a budget."""
    if value < 1:
        raise BadQuery(f"{name} must be at least 1, not {value}")
    return value


def check_last(collection: Collection, same: Term, by: str, at_most: object) -> tuple[Term, Term]:
    """An equality and a bound that an index of the collection answers together, with values of the columns' types."""
    if same.op != "==" or not any(index.fields == (same.column, by) for index in collection.indexes):
        raise BadQuery(
            f"{collection.name} has no index on ({same.column}, {by}) to find last rows by an equality; "
            "declare it in schemas/catalogue.py"
        )
    equality, bound = check_terms(collection, (same, Term(by, "<=", at_most)))
    return equality, bound


def matches(rows: pa.RecordBatch | pa.Table, where: Sequence[Term]) -> pa.Array | None:
    """Which rows satisfy every term; None when there is no term."""
    keep: pa.Array | None = None
    for term in where:
        one = _satisfies(rows.column(term.column), term)
        keep = one if keep is None else pc.and_(keep, one)
    return keep


def _satisfies(values: pa.Array, term: Term) -> pa.Array:
    if term.op == "is_null":
        return pc.is_null(values)
    if term.op == "not_null":
        return pc.is_valid(values)
    if term.op == "in":
        assert isinstance(term.value, list)
        return pc.is_in(values, value_set=pa.array(term.value, values.type), skip_nulls=True)
    if term.op == "starts_with":
        return pc.fill_null(pc.starts_with(values, str(term.value)), False)
    compare = {
        "==": pc.equal,
        "!=": pc.not_equal,
        "<": pc.less,
        "<=": pc.less_equal,
        ">": pc.greater,
        ">=": pc.greater_equal,
    }[term.op]
    return pc.fill_null(compare(values, pa.scalar(term.value, values.type)), False)


def _check_term(collection: Collection, term: Term) -> Term:
    column = next((column for column in collection.columns if column.name == term.column), None)
    if column is None:
        names = ", ".join(collection.schema.names)
        raise BadQuery(f"{collection.name} has no column {term.column!r}; it has {names}")
    if term.op not in OPERATORS:
        raise BadQuery(f"{term.op!r} is not an operator; use one of {', '.join(OPERATORS)}")
    if term.op in ("is_null", "not_null"):
        return Term(term.column, term.op)
    if pa.types.is_nested(column.type):
        raise BadQuery(f"{collection.name}.{column.name} is nested and can only be asked for null")
    if term.op == "in":
        if not isinstance(term.value, (list, tuple, set, frozenset)):
            raise BadQuery(f"'in' on {collection.name}.{column.name} wants a list, not {type(term.value).__name__}")
        return Term(term.column, "in", [_value(collection, column, value) for value in term.value])
    if term.op == "starts_with" and column.type != pa.string():
        raise BadQuery(f"'starts_with' wants a text column; {collection.name}.{column.name} is {column.type}")
    return Term(term.column, term.op, _value(collection, column, term.value))


def _value(collection: Collection, column: Column, value: object) -> object:
    if value is None or (isinstance(value, bool) and not pa.types.is_boolean(column.type)):
        raise BadQuery(f"{value!r} cannot be compared with {collection.name}.{column.name} ({column.type})")
    if isinstance(value, float) and not np.isfinite(value):
        raise BadQuery(f"{value!r} cannot be compared with {collection.name}.{column.name}; give a finite number")
    if isinstance(value, datetime) and value.tzinfo is None:
        raise BadQuery(f"the time for {collection.name}.{column.name} has no zone; give an aware datetime")
    try:
        scalar = pa.scalar(value, column.type)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise BadQuery(f"{value!r} cannot be compared with {collection.name}.{column.name} ({column.type})") from error
    result: object = scalar.as_py()
    return result.astimezone(UTC) if isinstance(result, datetime) else result
