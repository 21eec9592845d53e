"""Columnar pages behave as a sorted dictionary, whatever is written and removed, and never break their own rules."""

from __future__ import annotations

import sqlite3
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hades.stores.sqlite import connection as migrations
from hades.stores.sqlite import pages
from hades.stores.sqlite import patches as patched_rows
from hades.stores.sqlite.trees import ArrowPages, HeldPages, Tree
from tests.patience import examples

SCHEMA = pa.schema([("_key", pa.string()), ("number", pa.int64()), ("note", pa.string())])
KEYS = st.text("abcXYZ0_", min_size=1, max_size=4)
ROWS = st.dictionaries(KEYS, st.tuples(st.integers(0, 9), st.none() | st.text(max_size=3)), max_size=40)
STEPS = st.lists(st.tuples(ROWS, st.sets(KEYS, max_size=10)), min_size=1, max_size=6)


def new_tree(page_bytes: int) -> tuple[sqlite3.Connection, Tree]:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    migrations.migrate(connection)
    connection.execute("INSERT INTO tree (id, name) VALUES (1, 't')")
    return connection, Tree(1, "t", ("_key",), 1, {1: SCHEMA}, {}, page_bytes, ArrowPages())


def as_table(rows: dict[str, tuple[int, str | None]]) -> pa.Table:
    ordered = sorted(rows)
    columns = [ordered, [rows[key][0] for key in ordered], [rows[key][1] for key in ordered]]
    return pa.table(
        [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)], schema=SCHEMA
    )


def contents(connection: sqlite3.Connection, tree: Tree) -> list[tuple[str, int, str | None]]:
    return [tuple(row.values()) for batch in pages.scan(connection, tree, batch_pages=3) for row in batch.to_pylist()]


@given(steps=STEPS, page_bytes=st.sampled_from([1, 200, 5_000]))
def test_pages_hold_what_a_dictionary_would(steps: list, page_bytes: int) -> None:
    connection, tree = new_tree(page_bytes)
    model: dict[str, tuple[int, str | None]] = {}
    for put, drop in steps:
        gone = sorted(drop - put.keys())
        expected_old = {key: model[key] for key in [*put, *gone] if key in model}
        old, grown = pages.write(connection, tree, as_table(put), gone)
        before = len(model)
        model.update(put)
        for key in gone:
            model.pop(key, None)
        assert grown == len(model) - before
        assert {row["_key"]: (row["number"], row["note"]) for row in old.to_pylist()} == expected_old
        assert contents(connection, tree) == [(key, *model[key]) for key in sorted(model)]
        assert list(pages.damaged(connection, tree)) == []


@settings(max_examples=examples(25))
@given(steps=STEPS, page_bytes=st.sampled_from([1, 200]), budget=st.sampled_from([0, 600, 1 << 20]))
def test_held_pages_show_what_was_written_since_by_whomever(steps: list, page_bytes: int, budget: int) -> None:
    connection, writer = new_tree(page_bytes)
    own, other = (replace(writer, held=HeldPages(budget)) for _ in range(2))
    model: dict[str, tuple[int, str | None]] = {}
    for number, (put, drop) in enumerate(steps):
        gone = sorted(drop - put.keys())
        pages.write(connection, (own, other)[number % 2], as_table(put), gone)
        model = {key: value for key, value in (model | put).items() if key not in gone}
        for tree in (own, other):
            for names in (("number", "_key"), ("note",), ("_key", "number", "note")):
                scanned = [
                    row for batch in pages.scan(connection, tree, names, batch_pages=3) for row in batch.to_pylist()
                ]
                rows = [{"_key": key, "number": model[key][0], "note": model[key][1]} for key in sorted(model)]
                assert scanned == [{name: row[name] for name in names} for row in rows]


def test_a_transaction_that_was_taken_back_leaves_no_page_behind() -> None:
    connection, tree = new_tree(1_000)
    pages.write(connection, tree, as_table({"a": (1, "x")}))
    connection.execute("BEGIN")
    pages.write(connection, tree, as_table({"a": (2, "y")}))
    assert [batch.to_pylist() for batch in pages.scan(connection, tree, ("note",))] == [[{"note": "y"}]]
    connection.execute("ROLLBACK")
    assert [batch.to_pylist() for batch in pages.scan(connection, tree, ("note",))] == [[{"note": "x"}]]


def test_no_more_pages_are_held_than_the_budget_allows() -> None:
    connection, writer = new_tree(1)
    pages.write(connection, writer, as_table({f"k{number}": (number, "note") for number in range(20)}))
    size = connection.execute("SELECT max(length(data)) FROM page").fetchone()[0]
    tree = replace(writer, held=HeldPages(3 * size))
    list(pages.scan(connection, tree, ("_key",)))
    connection.execute("UPDATE page SET data = x''")
    with pytest.raises(EOFError):
        list(pages.scan(connection, tree, ("_key",)))
    assert not tree.held.has_room(size)


@given(rows=ROWS, asked=st.sets(KEYS, max_size=20))
def test_keys_are_found_in_the_one_page_they_can_stand_in(rows: dict, asked: set[str]) -> None:
    connection, tree = new_tree(150)
    pages.write(connection, tree, as_table(rows))
    wanted = sorted(asked)
    held = {key for batch in pages.pages_of_keys(connection, tree, wanted) for key in batch.column("_key").to_pylist()}
    assert held & asked == rows.keys() & asked
    there = pages.are_there(connection, tree, pa.array(wanted, pa.string()))
    assert there.to_pylist() == [key in rows for key in wanted]


@given(
    rows=ROWS,
    patches=st.lists(st.tuples(st.sets(KEYS, max_size=30), st.none() | st.text("ab", max_size=400)), max_size=4),
    page_bytes=st.sampled_from([1, 200, 5_000]),
    room=st.sampled_from([0, 500, 1 << 20]),
)
def test_patched_pages_hold_what_rows_written_whole_would(
    rows: dict, patches: list, page_bytes: int, room: int
) -> None:
    """`room` is for pages that are read once; a note can make a page larger than a page may be."""
    connection, tree = new_tree(page_bytes)
    pages.write(connection, tree, as_table(rows))
    model = dict(rows)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(patched_rows, "_HELD_BYTES", room)
        for keys, note in patches:
            list(pages.scan(connection, tree, ("_key", "number", "note")))  # which holds them
            touched = patched_rows.find_rows(connection, tree, sorted(keys))
            assert (touched is None) == bool(keys - model.keys())
            wanted = sorted(keys & model.keys())
            touched = patched_rows.find_rows(connection, tree, wanted) or []
            notes = pa.table({"_key": wanted, "note": pa.array([note] * len(wanted), pa.string())})
            old, new = patched_rows.patch_pages(connection, tree, touched, notes, ("_key", "note"))
            assert old.to_pylist() == [{"_key": key, "note": model[key][1]} for key in wanted]
            assert new.to_pylist() == [{"_key": key, "note": note} for key in wanted]
            model |= {key: (model[key][0], note) for key in wanted}
            assert contents(connection, tree) == [(key, *model[key]) for key in sorted(model)]
            scanned = [row for batch in pages.scan(connection, tree, ("note",)) for row in batch.to_pylist()]
            assert scanned == [{"note": model[key][1]} for key in sorted(model)]
            assert list(pages.damaged(connection, tree)) == []


def test_a_patched_page_that_grew_is_cut() -> None:
    connection, tree = new_tree(2_000)
    keys = [f"k{number:02}" for number in range(40)]
    pages.write(connection, tree, as_table(dict.fromkeys(keys, (1, None))))
    assert connection.execute("SELECT count(*) FROM page").fetchone() == (1,)
    touched = patched_rows.find_rows(connection, tree, keys)
    assert touched is not None
    patched_rows.patch_pages(connection, tree, touched, pa.table({"_key": keys, "note": ["x" * 500] * 40}), ())
    assert connection.execute("SELECT count(*) FROM page").fetchone()[0] > 5
    assert contents(connection, tree) == [(key, 1, "x" * 500) for key in keys]


def test_a_page_of_an_older_layout_is_read_with_defaults() -> None:
    connection, tree = new_tree(1_000)
    pages.write(connection, tree, as_table({"a": (1, "x")}))
    wider = pa.schema([*SCHEMA, ("added", pa.string()), ("unset", pa.float64())])
    newer = replace(tree, layout=2, schemas={1: SCHEMA, 2: wider}, defaults={"added": "new"}, partial={})
    rows = [row for batch in pages.scan(connection, newer) for row in batch.to_pylist()]
    assert rows == [{"_key": "a", "number": 1, "note": "x", "added": "new", "unset": None}]


def test_a_damaged_page_is_reported() -> None:
    connection, tree = new_tree(1_000)
    pages.write(connection, tree, as_table({"a": (1, "x"), "b": (2, None)}))
    data = bytearray(connection.execute("SELECT data FROM page").fetchone()[0])
    data[-1] ^= 1
    connection.execute("UPDATE page SET data = ?", (bytes(data),))
    assert "checksum" in next(pages.damaged(connection, tree))


def test_a_patch_of_a_page_of_an_older_layout_writes_it_in_the_new_one() -> None:
    connection, tree = new_tree(1_000)
    pages.write(connection, tree, as_table({"a": (1, "x"), "b": (2, None)}))
    wider = pa.schema([*SCHEMA, ("added", pa.string())])
    newer = replace(tree, layout=2, schemas={1: SCHEMA, 2: wider}, defaults={"added": "new"}, partial={})
    touched = patched_rows.find_rows(connection, newer, ["b"])
    assert touched is not None
    patched_rows.patch_pages(connection, newer, touched, pa.table({"_key": ["b"], "note": ["y"]}), ())
    rows = [row for batch in pages.scan(connection, newer) for row in batch.to_pylist()]
    assert [tuple(row.values()) for row in rows] == [("a", 1, "x", "new"), ("b", 2, "y", "new")]
