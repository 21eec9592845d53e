"""A collection and the rows that it should hold are told apart by key and by what their columns
say.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from hades.ingest.edges import find_difference
from schemas.catalogue import collection_named
from tests.patience import examples

NAMES = ["_key", "label", "evidence_count", "provenance"]
SCHEMA = pa.schema([collection_named("relations").schema.field(name) for name in NAMES])
rows = st.fixed_dictionaries(
    {
        "_key": st.sampled_from("abcdefghij"),
        "label": st.none() | st.sampled_from(["x", "y"]),
        "evidence_count": st.integers(0, 2),
        "provenance": st.none()
        | st.fixed_dictionaries(
            {"doc": st.just("d"), "span": st.none() | st.lists(st.integers(0, 1), max_size=2)}
        ),
    }
)
tables = st.lists(rows, max_size=10, unique_by=lambda row: row["_key"])


class Rows:
    """A store with one collection, read three rows at a time."""

    def __init__(self, held: list[dict[str, Any]]) -> None:
        self._held = pa.Table.from_pylist(held, schema=SCHEMA)

    def scan(self, _collection: str, *, columns: list[str]) -> Iterator[pa.RecordBatch]:
        yield from self._held.select(columns).to_batches(max_chunksize=3)


@settings(max_examples=examples(40))
@given(held=tables, wanted=tables, cut=st.integers(0, 10))
def test_the_difference_is_that_of_the_rows(
    held: list[dict[str, Any]], wanted: list[dict[str, Any]], cut: int
) -> None:
    before, after = ({row["_key"]: row for row in some} for some in (held, wanted))
    parts = [pa.Table.from_pylist(some, schema=SCHEMA) for some in (wanted[:cut], wanted[cut:])]
    found = find_difference(Rows(held), "relations", NAMES, pa.concat_tables(parts))
    assert found.added.to_pylist() == [row for row in wanted if row["_key"] not in before]
    assert {row["_key"]: row for row in found.changed.to_pylist()} == {
        key: row for key, row in after.items() if before.get(key, row) != row
    }
    assert found.stale == [row["_key"] for row in held if row["_key"] not in after]
