"""A contract that held is checked again exactly when a row that it reads has changed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pytest

from hades.build.contracts.check import (
    READS,
    check_before,
    check_contract,
    frames_of,
    keep_results,
    note_result,
    read_inputs,
)
from hades.ports.store import RowStore
from hades.stores.sqlite.store import SqliteStore

BUILDS = ["relations", "build_stages"]


class Recording:
    """A store that remembers which columns of which collections were read."""

    def __init__(self, store: RowStore, read: defaultdict[str, set[str]] | None = None) -> None:
        self._store, self.read = store, defaultdict[str, set[str]](set) if read is None else read

    @contextmanager
    def reading(self) -> Iterator[Recording]:
        assert isinstance(self._store, SqliteStore)
        with self._store.reading() as rows:
            yield Recording(rows, self.read)

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)

        def call(*arguments: Any, **options: Any) -> Any:
            if name in ("scan", "scan_marked", "get", "count") and arguments[0] != "build_stages":
                terms = options.get("where", ())
                self.read[arguments[0]] |= {*options["columns"], *(term.column for term in terms)}
            return method(*arguments, **options)

        return call


@pytest.mark.parametrize("name", list(READS))
def test_what_a_contract_is_said_to_read_is_what_it_reads(store: SqliteStore, name: str) -> None:
    recording = Recording(store)
    frames_of(recording, name, snapshot=None, generation=None)  # type: ignore[arg-type]
    said = {collection: {"_key", *columns} for collection, columns in READS[name].items()}
    assert recording.read
    assert set(recording.read) <= set(said)
    assert {collection: columns | recording.read[collection] for collection, columns in said.items()} == said


def test_one_changed_row_is_enough_to_check_again(store: SqliteStore) -> None:
    held = check_contract(store, "edges")
    note_result(store, "edges", read_inputs(store, "edges"), held)
    again = check_before(store, "edges", read_inputs(store, "edges"))
    assert again is not None
    assert (again.rules, again.rows, again.carried) == (held.rules, 0, held.rows)
    damage(store)
    assert check_before(store, "edges", read_inputs(store, "edges")) is None


def test_a_broken_contract_is_never_taken_as_checked(store: SqliteStore) -> None:
    damage(store)
    note_result(store, "edges", read_inputs(store, "edges"), check_contract(store, "edges"))
    assert check_before(store, "edges", read_inputs(store, "edges")) is None


def test_columns_that_a_contract_does_not_read_leave_its_result(store: SqliteStore) -> None:
    note_result(store, "edges", read_inputs(store, "edges"), check_contract(store, "edges"))
    before = read_inputs(store, "edges")
    with store.bulk(BUILDS) as inside, keep_results(inside, {"relations": ("layer_bridge",)}):
        inside.patch("relations", pa.table({"_key": [first(store)], "layer_bridge": [True]}))
    after = read_inputs(store, "edges")
    assert before != after
    assert check_before(store, "edges", after) is not None


@pytest.mark.parametrize("written", [("layer_bridge", "evidence_count"), None])
def test_a_column_that_it_reads_or_a_whole_row_makes_it_due(store: SqliteStore, written: tuple[str] | None) -> None:
    note_result(store, "edges", read_inputs(store, "edges"), check_contract(store, "edges"))
    with store.bulk(BUILDS) as inside, keep_results(inside, {"relations": written}):
        inside.patch("relations", pa.table({"_key": [first(store)], "evidence_count": pa.array([0], pa.int64())}))
    assert check_before(store, "edges", read_inputs(store, "edges")) is None


def test_a_row_that_was_damaged_before_a_stage_is_still_checked_after_it(store: SqliteStore) -> None:
    note_result(store, "edges", read_inputs(store, "edges"), check_contract(store, "edges"))
    damage(store)
    with store.bulk(BUILDS) as inside, keep_results(inside, {"relations": ("layer_bridge",)}):
        inside.patch("relations", pa.table({"_key": [first(store)], "layer_bridge": [True]}))
    assert check_before(store, "edges", read_inputs(store, "edges")) is None
    assert check_contract(store, "edges").findings


def first(store: SqliteStore) -> str:
    """The key of the first relation."""
    key: str = next(iter(store.scan("relations", columns=["_key"]))).column("_key")[0].as_py()
    return key


def damage(store: SqliteStore) -> None:
    """A relation without evidence."""
    store.patch("relations", pa.table({"_key": [first(store)], "evidence_count": pa.array([0], pa.int64())}))
