"""Arrays made from buffers equal those that Arrow makes, and neither making nor reading them loads pandas."""

import subprocess
import sys
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from schemas.record import FEW_VALUES, make_array, make_scalar, make_table, read_rows

MOMENT = datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
SAMPLES = [
    (["a", None, "", "Größe 東京"], pa.string()),
    ([], pa.string()),
    ([True, False, None] * 5, pa.bool_()),
    ([1, None, -(2**62)], pa.int64()),
    ([1, 255], pa.uint8()),
    ([0.5, None, -1.0], pa.float64()),
    ([0.5, -1.0], pa.float32()),
    ([MOMENT, None, datetime(2026, 1, 31, tzinfo=UTC)], pa.timestamp("us", tz="UTC")),
    ([["a", None], None, [], ["b"]], pa.list_(pa.string())),
    ([[[1], []], [[2, 3]]], pa.list_(pa.list_(pa.int32()))),
    (["a"] * (FEW_VALUES + 1), pa.string()),
]


@pytest.mark.parametrize(("values", "kind"), SAMPLES, ids=str)
def test_an_array_equals_the_one_that_arrow_makes(values, kind):
    made = make_array(values, kind)
    made.validate(full=True)
    assert made.equals(pa.array(values, kind))
    assert read_rows(pa.table({"x": made})) == [{"x": value} for value in values]


def test_a_table_has_null_where_a_row_lacks_a_column():
    schema = pa.schema([("a", pa.int64()), ("b", pa.string())])
    assert make_table([{"a": 1}, {"b": "x"}], schema).to_pylist() == [{"a": 1, "b": None}, {"a": None, "b": "x"}]
    assert make_table([], schema).num_rows == 0
    assert make_scalar("x", pa.string()).as_py() == "x"


def test_a_time_with_another_zone_is_the_same_moment():
    from datetime import timedelta, timezone

    local = datetime(2026, 1, 31, 12, tzinfo=timezone(timedelta(hours=2)))
    assert make_array([local], pa.timestamp("us", tz="UTC")).equals(pa.array([local], pa.timestamp("us", tz="UTC")))


def test_making_and_reading_rows_does_not_load_pandas():
    program = """
import sys
from datetime import UTC, datetime
import pyarrow as pa
from schemas.record import make_table, read_rows
schema = pa.schema([("at", pa.timestamp("us", tz="UTC")), ("tags", pa.list_(pa.string())), ("n", pa.float64())])
rows = [{"at": datetime(2026, 1, 31, tzinfo=UTC), "tags": ["a"], "n": 1.5}]
assert read_rows(make_table(rows, schema)) == rows
assert "pandas" not in sys.modules
"""
    assert run_alone(program) == (0, "")


def test_arrow_converts_values_without_pandas_and_still_finds_it_for_a_frame():
    program = """
import sys
import pyarrow as pa
from schemas.record import hide_pandas_from_arrow
hide_pandas_from_arrow()
table = pa.table({"a": pa.array([1, None]), "b": ["x", "y"]})
assert "pandas" not in sys.modules
assert not any(type(finder).__module__ == "schemas.record" for finder in sys.meta_path)
frame = table.to_pandas()
assert "pandas" in sys.modules and pa.Table.from_pandas(frame).column("a").null_count == 1
assert pa.array(frame["a"]).null_count == 1
"""
    assert run_alone(program) == (0, "")


def run_alone(program: str) -> tuple[int, str]:
    """The exit status and errors of a program in a process of its own."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    return done.returncode, done.stderr
