"""Turns are remembered at once and written in batches; a service that only reads writes nothing."""

from contextlib import closing
from datetime import UTC, datetime

import pytest

from hades.api import Hades
from hades.errors import StoreBusy
from hades.ports.services import utc_now
from hades.providers.hashing import HashingEmbedder
from hades.providers.tokens import MiniLmTokenizer
from hades.retrieval.turn_result import TurnLog, UnknownQuery, judge, read_log
from hades.stores.sqlite.store import SqliteStore
from schemas.telemetry import QueryLog
from tests.homes import empty_store
from tests.warm_process import start_program

AT = datetime(2026, 1, 1, tzinfo=UTC)


def turn(number):
    return QueryLog(
        key=f"q_{number}", query=f"question {number}", recipe="vector", snapshot="g1", at=AT
    )


@pytest.fixture
def store(tmp_path):
    store = empty_store(tmp_path / "graph.db")
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


def test_the_end_of_the_process_writes_what_is_left(store, tmp_path, programs):
    program = f"""
from pathlib import Path
from tests.unit.hades.retrieval.test_turn_log import *
store = empty_store(Path({str(tmp_path / "graph.db")!r}))
log = TurnLog(store, store, may_drop=False)
for number in range(300):
    log.add(turn(number))
"""
    assert start_program(programs, program).wait() == 0
    assert store.count("query_logs") == 300


def test_the_store_of_an_open_graph_holds_every_turn(tmp_path):
    with Hades(
        empty_store(tmp_path / "graph.db"), HashingEmbedder(), MiniLmTokenizer(), tmp_path
    ) as hades:
        hades.publish()
        asked = [hades.retrieve(f"who came {number} times?").query_id for number in range(3)]
        assert hades.store.count("query_logs") == 3
        last = hades.retrieve("who went away?").query_id
        judge(hades.store, last, at=utc_now())
    with closing(SqliteStore.open(tmp_path / "graph.db")) as again:
        assert again.count("query_logs") == 4
        assert [read_log(again, one).query for one in asked] == [
            f"who came {number} times?" for number in range(3)
        ]


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
