"""Rows become documents and come back the same, to the last bit of a float32 and the last
microsecond.
"""

from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hades.errors import BadRows, StoreDamaged
from hades.stores import row_checks as rows
from hades.stores.arango import encode
from schemas.catalogue import Collection, collection_named
from schemas.ids import iso
from schemas.record import Column, canonical_json
from tests.patience import examples

NAMES = ("entities", "relations", "clusters", "memory_states", "bridge_cache", "doc_chunks")


def named(name: str) -> Collection:
    found = collection_named(name)
    assert found is not None
    return found


def value_of(column: Column) -> st.SearchStrategy[Any]:
    """Values of a column's type within its bounds."""
    if column.choices:
        return st.sampled_from(column.choices)
    if column.is_vector:
        return st.lists(
            st.floats(allow_nan=False, allow_infinity=False, width=32), min_size=4, max_size=4
        )
    if column.is_json:
        leaf = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5)
        return st.dictionaries(
            st.text(max_size=4), leaf | st.lists(leaf, max_size=2), max_size=3
        ).map(canonical_json)
    return typed(column.type, column)


def typed(type_: pa.DataType, column: Column) -> st.SearchStrategy[Any]:
    if pa.types.is_timestamp(type_):
        return st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31), timezones=st.just(UTC))
    if pa.types.is_boolean(type_):
        return st.booleans()
    if pa.types.is_integer(type_):
        low = -(2**63) if column.minimum is None else int(column.minimum)
        high = 2**63 - 1 if column.maximum is None else int(column.maximum)
        return st.integers(low, high)
    if pa.types.is_floating(type_):
        return st.floats(column.minimum, column.maximum, allow_nan=False, allow_infinity=False)
    if pa.types.is_list(type_):
        return st.lists(typed(type_.value_type, column), max_size=3)
    if pa.types.is_struct(type_):
        return st.fixed_dictionaries({child.name: typed(child.type, column) for child in type_})
    return st.text(max_size=8)


@st.composite
def tables(draw: st.DrawFn) -> tuple[Collection, pa.Table]:
    collection = named(draw(st.sampled_from(NAMES)))
    size = draw(st.integers(1, 4))
    columns: dict[str, list[Any]] = {}
    for column in collection.columns:
        values = value_of(column)
        if column.nullable:
            values = st.none() | values
        columns[column.name] = draw(st.lists(values, min_size=size, max_size=size))
    columns["_key"] = [f"k{row}" for row in range(size)]
    return collection, pa.Table.from_pydict(columns, schema=collection.schema)


@settings(max_examples=examples(26), deadline=None)
@given(tables())
def test_rows_survive_json_both_ways(given_rows: tuple[Collection, pa.Table]) -> None:
    collection, table = given_rows
    wire = orjson.dumps(encode.to_documents(collection, table))
    back = encode.to_table(collection, orjson.loads(wire), collection.schema.names)
    back.validate(full=True)
    assert back.to_pylist() == table.to_pylist()
    assert back.schema.equals(collection.schema)


@settings(max_examples=examples(16), deadline=None)
@given(
    st.lists(
        st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31), timezones=st.just(UTC)), min_size=1
    )
)
def test_times_are_written_as_iso_text_of_fixed_width(moments: list[datetime]) -> None:
    collection = named("memory_audit")
    rows_ = [
        {
            "_key": f"a{row}",
            "subject": "s",
            "action": "a",
            "who": "w",
            "at": at,
            "why": "",
            "detail": "{}",
        }
        for row, at in enumerate(moments)
    ]
    documents = encode.to_documents(
        collection, pa.Table.from_pylist(rows_, schema=collection.schema)
    )
    assert [document["at"] for document in documents] == [iso(moment) for moment in moments]


def entity(**more: Any) -> pa.Table:
    return rows.prepare(
        named("entities"),
        pa.Table.from_pylist(
            [{"_key": "a", "name": "A", "name_lower": "a", "type": "concept", **more}]
        ),
    )


def test_nulls_are_left_out_of_a_document_and_kept_in_a_patch() -> None:
    document = encode.to_documents(named("entities"), entity())[0]
    assert "domain" not in document
    assert document["metadata"] == {}
    patch = rows.prepare(
        named("entities"), pa.table({"_key": ["a"], "domain": pa.nulls(1)}), partial=True
    )
    assert encode.to_documents(named("entities"), patch, keep_nulls=True) == [
        {"_key": "a", "domain": None}
    ]


def test_whole_numbers_that_the_server_writes_without_a_point_are_read_as_floats() -> None:
    documents = [{"_key": "a", "embedding": [1, 16777218, 0.5], "frequency": 3}]
    table = encode.to_table(named("entities"), documents, ["_key", "embedding", "frequency"])
    assert table.to_pylist() == [{"_key": "a", "embedding": [1.0, 16777218.0, 0.5], "frequency": 3}]
    (weighed,) = encode.to_table(
        named("relations"), [{"_key": "a", "weight": 1}], ["weight"]
    ).to_pylist()
    assert isinstance(weighed["weight"], float)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("frequency", "many"),
        ("embedding", ["x"]),
        ("embedding", 3),
        ("aliases", 1),
        ("name", {"a": 1}),
    ],
)
def test_a_document_of_another_shape_is_damage_that_names_the_column(
    column: str, value: object
) -> None:
    with pytest.raises(StoreDamaged, match=rf"entities\.{column} holds something"):
        encode.to_table(named("entities"), [{"_key": "a", column: value}], ["_key", column])


def test_times_of_other_tools_are_read_and_nonsense_is_damage() -> None:
    read = encode.to_table(
        named("merge_log"), [{"_key": "a", "at": "2024-05-06T07:08:09Z"}], ["_key", "at"]
    )
    assert read.column("at")[0].as_py() == datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)
    with pytest.raises(StoreDamaged, match=r"merge_log\.at"):
        encode.to_table(named("merge_log"), [{"_key": "a", "at": "yesterday"}], ["_key", "at"])


def test_years_that_have_no_fixed_width_text_are_refused() -> None:
    far = pa.array(
        [(datetime(9999, 12, 31) + timedelta(hours=23)).replace(tzinfo=UTC)],
        pa.timestamp("us", "UTC"),
    )
    late = pa.array([far.cast(pa.int64())[0].as_py() + 10**12], pa.int64()).cast(
        pa.timestamp("us", "UTC")
    )
    table = pa.table({"_key": ["a"], "at": late})
    with pytest.raises(BadRows, match="years 1 to 9999"):
        encode.to_documents(named("merge_log"), table)


@settings(max_examples=examples(13), deadline=None)
@given(st.lists(st.integers(0, 3000), min_size=1, max_size=30), st.integers(100, 5000))
def test_pieces_keep_order_and_stay_under_the_limit_unless_one_row_is_larger(
    sizes: list[int], limit: int
) -> None:
    table = pa.table(
        {
            "_key": [f"k{row:03}" for row in range(len(sizes))],
            "summary": ["x" * size for size in sizes],
        }
    )
    cut = list(encode.pieces(table, limit))
    assert pa.concat_tables(cut).equals(table)
    for piece in cut:
        documents = orjson.dumps(piece.to_pylist())
        assert piece.num_rows == 1 or len(documents) <= limit + 40 * piece.num_rows


def test_no_rows_make_no_piece() -> None:
    assert list(encode.pieces(entity().slice(0, 0), 10)) == []
