"""Beliefs of a process that stays up: a judgement that is given meanwhile counts from the next
question on.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from hades.errors import StoreError
from hades.ports.store import GraphStore, Mode
from hades.retrieval.ranking.feedback import StoredBeliefs
from hades.retrieval.turn_result import judge, log_of, write_log
from hades.stores.sqlite.store import SqliteStore
from schemas.telemetry import JudgedRanks
from tests.homes import empty_store
from tests.unit.hades.retrieval.test_pipeline import ask

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


def test_a_judgement_counts_without_a_restart_and_an_unchanged_log_is_not_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path, answer = tmp_path / "graph.db", ask()
    store = empty_store(path)
    write_log(store, log_of(answer, NOON))
    beliefs = StoredBeliefs(lambda: SqliteStore.open(path, Mode.READ_ONLY))
    key = (answer.passages[0].id,)
    assert not beliefs().knows([key])
    judge(store, answer.query_id, good=JudgedRanks(passages=(1,)), at=NOON)
    learned = beliefs()
    assert learned.counts[key] == (1, 0)
    monkeypatch.setattr(SqliteStore, "scan", None)  # a second reading of the log would fail
    assert beliefs() is learned


def test_without_a_store_there_is_nothing_to_believe():
    def closed() -> GraphStore:
        raise StoreError("no store")

    assert StoredBeliefs(closed)().counts == {}
