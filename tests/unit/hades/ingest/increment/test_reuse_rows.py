"""Rows that say the same as former ones are the former ones."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from hades.ingest.write_changes import keep_equal, take_runs

SCHEMA = pa.schema([("_key", pa.string()), ("aliases", pa.list_(pa.string())), ("frequency", pa.int64())])


def rows(*values: tuple[str, list[str], int]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, one, strict=True)) for one in values], schema=SCHEMA)


def test_a_made_row_that_says_the_same_gives_way_to_the_former_one() -> None:
    former = rows(("a", ["A"], 1), ("b", [], 2), ("c", ["C", "c"], 3), ("d", [], 4))
    made = rows(("c", ["C", "c"], 3), ("b", ["B"], 2), ("e", [], 1))
    place = np.array([0, 5, 4, 6])  # a, b, c, e
    new, places = keep_equal(former, made, place)
    assert new.column("_key").to_pylist() == ["b", "e"]
    assert places.tolist() == [0, 4, 2, 5]
    assert take_runs(former, new, places).equals(take_runs(former, made, place))


def test_without_a_former_or_a_made_row_nothing_changes() -> None:
    some, none = rows(("a", [], 1)), SCHEMA.empty_table()
    for former, made, place in ((some, none, [0]), (none, some, [0]), (none, none, [])):
        new, places = keep_equal(former, made, np.array(place, dtype=np.int64))
        assert new.equals(made)
        assert places.tolist() == place
