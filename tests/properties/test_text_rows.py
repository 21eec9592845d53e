"""A row of any collection survives JSON Lines and Markdown."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from io import StringIO
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hades.night.release.export import Form, read_rows, to_batch, write_row
from schemas.catalogue import COLLECTIONS, Collection
from tests.patience import examples

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20) | st.sampled_from(
    ["```", "```json", "## a\n> b"]
)


def values_of(kind: pa.DataType) -> st.SearchStrategy[Any]:
    """Values of an Arrow type as the store gives them."""
    if pa.types.is_list(kind):
        return st.lists(values_of(kind.value_type), max_size=3)
    if pa.types.is_struct(kind):
        return st.fixed_dictionaries({field.name: values_of(field.type) for field in kind})
    if pa.types.is_timestamp(kind):
        return st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC))
    if pa.types.is_integer(kind):
        return st.integers(-(2**63), 2**63 - 1)
    if pa.types.is_floating(kind):
        return st.floats(
            allow_nan=False, allow_infinity=False, width=32 if pa.types.is_float32(kind) else 64
        )
    return st.booleans() if pa.types.is_boolean(kind) else TEXT


@cache
def rows_of(collection: Collection) -> st.SearchStrategy[list[dict[str, Any]]]:
    """One to three rows of a collection."""
    columns = {
        field.name: values_of(field.type) | st.none() if field.nullable else values_of(field.type)
        for field in collection.schema
    }
    return st.lists(st.fixed_dictionaries(columns), min_size=1, max_size=3)


@pytest.mark.parametrize("form", ["jsonl", "markdown"])
@settings(max_examples=examples(25))
@given(data=st.data())
def test_rows_of_any_collection_come_back_as_they_were(form: Form, data: st.DataObject) -> None:
    collection = data.draw(st.sampled_from(COLLECTIONS))
    table = pa.Table.from_pylist(data.draw(rows_of(collection)), schema=collection.schema)
    text = "".join(write_row(row, collection, form) for row in table.to_pylist())
    again = to_batch(
        list(read_rows(StringIO(text, newline="\n"), collection, form, "file")), collection
    )
    assert again.equals(table.combine_chunks().to_batches()[0])
