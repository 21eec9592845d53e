"""A contract that held is checked again exactly when a row that it reads has changed."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from hades.ports.store import GraphStore
from hades.stages.contracts.check_contract import check_contract
from hades.stages.contracts.frames import frames_of
from hades.stages.contracts.last_result import READS, check_before, inputs_digest, note_result
from hades.stores.sqlite.store import SqliteStore


class Recording:
    """A store that remembers which collections were read."""

    def __init__(self, store: GraphStore) -> None:
        self._store, self.read = store, set[str]()

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)

        def call(*arguments: Any, **options: Any) -> Any:
            if name in ("scan", "get", "count"):
                self.read.add(arguments[0])
            return method(*arguments, **options)

        return call


@pytest.mark.parametrize("name", list(READS))
def test_every_collection_that_a_contract_reads_counts_for_its_digest(store: SqliteStore, name: str) -> None:
    recording = Recording(store)
    frames_of(recording, name, snapshot=None, generation=None)  # type: ignore[arg-type]
    assert recording.read - {"build_stages"} <= set(READS[name])


def test_one_changed_row_is_enough_to_check_again(store: SqliteStore) -> None:
    held = check_contract(store, "edges")
    note_result(store, "edges", inputs_digest(store, "edges"), held)
    again = check_before(store, "edges", inputs_digest(store, "edges"))
    assert again is not None
    assert (again.rules, again.rows) == (held.rules, held.rows)
    key = next(iter(store.scan("relations", columns=["_key"]))).column("_key")[0].as_py()
    store.patch("relations", pa.table({"_key": [key], "evidence_count": pa.array([0], pa.int64())}))
    assert check_before(store, "edges", inputs_digest(store, "edges")) is None


def test_a_broken_contract_is_never_taken_as_checked(store: SqliteStore) -> None:
    key = next(iter(store.scan("relations", columns=["_key"]))).column("_key")[0].as_py()
    store.patch("relations", pa.table({"_key": [key], "evidence_count": pa.array([0], pa.int64())}))
    note_result(store, "edges", inputs_digest(store, "edges"), check_contract(store, "edges"))
    assert check_before(store, "edges", inputs_digest(store, "edges")) is None
