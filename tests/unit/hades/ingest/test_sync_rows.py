"""Two tables of rows are told apart by key and by what their columns hold, however their rows are ordered."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hades.ingest import write_changes as equal_rows
from hades.ingest import write_changes as sync_rows
from tests.patience import examples

SCHEMA = pa.schema(
    [
        pa.field("_key", pa.string()),
        pa.field("count", pa.int64()),
        pa.field("names", pa.list_(pa.string())),
        pa.field("place", pa.struct([pa.field("doc", pa.string()), pa.field("span", pa.list_(pa.int64()))])),
    ]
)
rows = st.fixed_dictionaries(
    {
        "_key": st.sampled_from("abcdefghij"),
        "count": st.none() | st.integers(0, 2),
        "names": st.none() | st.lists(st.sampled_from(["x", "y"]), max_size=2),
        "place": st.none()
        | st.fixed_dictionaries({"doc": st.just("d"), "span": st.lists(st.integers(0, 1), max_size=2)}),
    }
)
tables = st.lists(rows, max_size=10, unique_by=lambda row: row["_key"])


@pytest.mark.parametrize("shortest_run", [0, 1, 64])
@settings(max_examples=examples(40))
@given(held=tables, wanted=tables, cut=st.integers(0, 10))
def test_the_difference_is_that_of_the_rows(
    shortest_run: int, held: list[dict[str, Any]], wanted: list[dict[str, Any]], cut: int
) -> None:
    before, after = ({row["_key"]: row for row in some} for some in (held, wanted))
    parts = [pa.Table.from_pylist(some, schema=SCHEMA) for some in (wanted[:cut], wanted[cut:])]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(equal_rows, "_SHORTEST_RUN", shortest_run)
        found = sync_rows._compare(pa.Table.from_pylist(held, schema=SCHEMA), pa.concat_tables(parts), SCHEMA.names)
    assert found.added.to_pylist() == [row for row in wanted if row["_key"] not in before]
    assert found.changed.to_pylist() == [row for row in wanted if before.get(row["_key"], row) != row]
    assert found.stale == [row["_key"] for row in held if row["_key"] not in after]
