"""Turns are remembered at once and written in batches; a service that only reads writes nothing."""

from datetime import UTC, datetime

import pytest

from hades.errors import StoreBusy
from hades.ports.store import Mode
from hades.retrieval.turn.query_log import UnknownQuery, read_log
from hades.stores.sqlite.store import SqliteStore
from hades.surfaces.access.turn_log import TurnLog
from schemas.telemetry import QueryLog

AT = datetime(2026, 1, 1, tzinfo=UTC)


def turn(number):
    return QueryLog(key=f"q_{number}", query=f"question {number}", recipe="vector", snapshot="g1", at=AT)


@pytest.fixture
def store(tmp_path):
    store = SqliteStore.open(tmp_path / "graph.db", Mode.ADMIN)
    store.provision()
    yield store
    store.close()


def test_turns_reach_the_store_in_few_transactions(store):
    writes = []

    class Counted:
        def upsert(self, collection, rows):
            writes.append(rows.num_rows)
            return store.upsert(collection, rows)

    log = TurnLog(store, Counted())
    for number in range(500):
        log.add(turn(number))
    log.flush()
    assert store.count("query_logs") == 500
    assert sum(writes) == 500
    assert len(writes) < 250
    log.close()


def test_a_turn_is_found_before_it_is_written_and_after(store):
    log = TurnLog(store, store)
    log.add(turn(1))
    assert log.find("q_1").query == "question 1"
    log.close()
    assert read_log(store, "q_1").query == "question 1"
    assert TurnLog(store).find("q_1").query == "question 1"
    with pytest.raises(UnknownQuery):
        log.find("q_2")


def test_without_a_store_to_write_turns_are_remembered_only(store):
    log = TurnLog(store)
    for number in range(2500):
        log.add(turn(number))
    log.flush()
    log.close()
    assert store.count("query_logs") == 0
    assert log.find("q_2499").query == "question 2499"
    with pytest.raises(UnknownQuery):
        log.find("q_0")  # the oldest are forgotten: memory stays flat


def test_a_store_that_cannot_be_written_costs_no_answer(store):
    class Held:
        def upsert(self, collection, rows):
            raise StoreBusy("held by a build")

    log = TurnLog(store, Held())
    log.add(turn(1))
    log.flush()
    assert log.dropped == 1
    assert log.find("q_1").query == "question 1"
    log.close()
