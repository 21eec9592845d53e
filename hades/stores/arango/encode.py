"""Arrow rows as JSON and back; predicates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from hades.errors import BadRows, StoreDamaged
from hades.ports.store import Predicate, Term
from hades.stores import row_checks
from schemas.catalogue import Collection, columns_schema
from schemas.ids import iso
from schemas.record import Column, canonical_json

# Arrow rows as JSON documents and back, column by column, losing nothing. Times are texts of fixed
# width, JSON columns are objects, vectors are numbers that are exactly their float32. A null is not
# written; a column that is absent or null reads as null.
Document = dict[str, Any]
_FLOAT_CHARACTERS = 24  # a float32 as a decimal double, with its comma
_FIRST_YEAR = np.datetime64("0001-01-01", "us").astype(np.int64)
_LAST_YEAR = np.datetime64("9999-12-31T23:59:59.999999", "us").astype(np.int64)


def to_documents(
    collection: Collection,
    table: pa.Table,
    *,
    keep_nulls: bool = False,
) -> list[Document]:
    """Checked rows as documents. `keep_nulls` is a patch: a null there takes the old value away."""
    columns = {column.name: column for column in collection.columns}
    names = table.column_names

    values = []
    for name in names:
        values.append(_to_json(collection, columns[name], table))

    if keep_nulls:
        return [dict(zip(names, row, strict=True)) for row in zip(*values, strict=True)]

    return [_without_nulls(names, row) for row in zip(*values, strict=True)]


def _without_nulls(names: Sequence[str], row: Sequence[Any]) -> Document:
    return {name: value for name, value in zip(names, row, strict=True) if value is not None}


def to_table(
    collection: Collection,
    documents: Sequence[Document],
    names: Sequence[str],
) -> pa.Table:
    """Documents as rows with these columns in this order."""
    free_form = set()
    for column in collection.columns:
        if column.is_json:
            free_form.add(column.name)

    schema = columns_schema(collection.name, names)
    arrays = []
    for field in schema:
        values = [document.get(field.name) for document in documents]
        try:
            arrays.append(
                _to_arrow(
                    values,
                    field.type,
                    field.name in free_form,
                )
            )
        except (pa.ArrowException, TypeError, ValueError, AttributeError) as error:
            raise StoreDamaged(
                f"{collection.name}.{field.name} holds something that is not {field.type} "
                f"in one of the rows {documents[0].get('_key')} to {documents[-1].get('_key')}"
            ) from error

    return pa.Table.from_arrays(arrays, schema=schema)


def pieces(table: pa.Table, limit_bytes: int) -> Iterator[pa.Table]:
    """The rows in runs whose documents are about `limit_bytes` of JSON or less; a larger row comes
    alone.
    """
    if not table.num_rows:
        return

    ends = np.cumsum(json_bytes(table))
    start = 0
    spent = 0

    while start < table.num_rows:
        stop = max(
            int(
                np.searchsorted(
                    ends,
                    spent + limit_bytes,
                    side="right",
                )
            ),
            start + 1,
        )
        yield table.slice(start, stop - start)
        start = stop
        spent = int(ends[stop - 1])


def _to_json(
    collection: Collection,
    column: Column,
    table: pa.Table,
) -> list[Any]:
    values = table.column(column.name).combine_chunks()
    if pa.types.is_timestamp(column.type):
        return _times_to_texts(collection, column, values)
    if column.is_vector:
        return _vectors_to_lists(values)
    if column.is_json:
        return [None if text is None else orjson.loads(text) for text in values.to_pylist()]

    result: list[Any] = values.to_pylist()
    return result


def _times_to_texts(
    collection: Collection,
    column: Column,
    values: pa.Array,
) -> list[str | None]:
    """As `schemas.ids.iso` writes them, all at once."""
    moments = values.cast(pa.int64())
    outside = pc.or_(
        pc.less(moments, pa.scalar(_FIRST_YEAR)),
        pc.greater(moments, pa.scalar(_LAST_YEAR)),
    )
    row = pc.index(pc.fill_null(outside, False), True).as_py()

    if row >= 0:
        raise BadRows(
            collection.name,
            row,
            f"{column.name} lies outside the years 1 to 9999",
        )

    return list(
        pc.replace_substring(
            values.cast(pa.string()),
            " ",
            "T",
        ).to_pylist()
    )


def _vectors_to_lists(values: pa.Array) -> list[list[float] | None]:
    flat = values.flatten().to_numpy(zero_copy_only=False).astype(np.float64).tolist()
    ends = np.cumsum(
        pc.fill_null(pc.list_value_length(values), 0).to_numpy(zero_copy_only=False)
    ).tolist()
    starts = [0, *ends[:-1]]

    lists = []
    for start, end in zip(starts, ends, strict=True):
        lists.append(flat[start:end])

    if not values.null_count:
        return list(lists)

    return [
        vector if is_valid else None
        for vector, is_valid in zip(lists, values.is_valid().to_pylist(), strict=True)
    ]


def _to_arrow(
    values: list[Any],
    type_: pa.DataType,
    is_json: bool = False,
) -> pa.Array:
    if is_json:
        return pa.array(
            [None if value is None else canonical_json(value) for value in values],
            type_,
        )

    if pa.types.is_timestamp(type_):
        texts = pa.array(
            [None if value is None else value.removesuffix("Z") for value in values],
            pa.string(),
        )
        return pc.assume_timezone(texts.cast(pa.timestamp("us")), "UTC").cast(type_)

    if pa.types.is_list(type_) and pa.types.is_floating(type_.value_type):
        return pa.array(values, pa.list_(pa.float64())).cast(type_)

    return pa.array(values, type_)


def json_bytes(table: pa.Table) -> np.ndarray[Any, np.dtype[np.int64]]:
    """About how long each row is as JSON."""
    sizes = np.full(table.num_rows, 2, dtype=np.int64)
    for name in table.column_names:
        values = table.column(name).combine_chunks()
        sizes += len(name) + 4
        if pa.types.is_string(values.type):
            sizes += (
                pc.fill_null(pc.binary_length(values), 0).to_numpy(zero_copy_only=False) * 9 // 8
            )
        elif pa.types.is_list(values.type):
            flat = values.flatten()
            number_bytes = max(flat.nbytes // max(len(flat), 1), _FLOAT_CHARACTERS)
            sizes += (
                pc.fill_null(pc.list_value_length(values), 0).to_numpy(zero_copy_only=False)
                * number_bytes
            )
        else:
            sizes += 4 * _FLOAT_CHARACTERS

    return sizes


# A predicate as bind values: one condition that an index can answer, the rest as a list the query
# walks. AQL orders text by ICU collation, the port by bytes; so texts are compared through their
# hexadecimal form, whose order is the same in both. Times are texts of fixed width and digits, for
# which both orders agree.
Kind = Literal["all", "where", "among"]


@dataclass(frozen=True)
class Condition:
    """Which of the query files to take and what to bind in it."""

    kind: Kind
    binds: dict[str, Any]


def condition(collection: Collection, where: Predicate) -> Condition:
    """The predicate, checked, with an equality or `in` on an indexed column first."""
    terms = row_checks.check_terms(collection, where)
    if not terms:
        return Condition("all", {})

    if collection.edge:
        key_columns = {"_key", "_from", "_to"}
    else:
        key_columns = {"_key"}

    indexed = key_columns | {index.fields[0] for index in collection.indexes}
    for place, term in enumerate(terms):
        if term.column in indexed and term.op in ("==", "in"):
            values = bound_value(term.value if isinstance(term.value, list) else [term.value])
            other_terms = []
            for other_term in (*terms[:place], *terms[place + 1 :]):
                other_terms.append(_bind_term(other_term))

            return Condition(
                "among",
                {
                    "column": term.column,
                    "values": values,
                    "terms": other_terms,
                },
            )

    return Condition("where", {"terms": [_bind_term(term) for term in terms]})


def bound_value(value: object) -> Any:
    """The value of a checked term as the server compares it."""
    if isinstance(value, list):
        return [bound_value(entry) for entry in value]
    return iso(value) if isinstance(value, datetime) else value


def _bind_term(term: Term) -> dict[str, Any]:
    if term.op in ("is_null", "not_null"):
        return {"column": term.column, "op": term.op}
    if term.op in ("<", "<=", ">", ">=") and isinstance(term.value, str):
        return {
            "column": term.column,
            "op": f"text {term.op}",
            "value": term.value.encode().hex(),
        }
    return {
        "column": term.column,
        "op": term.op,
        "value": bound_value(term.value),
    }
