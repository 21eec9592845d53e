"""Writes on the loopback double when things go wrong: conflicts, dropped connections, expiry. All
of it or nothing.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

from hades.errors import BadQuery, QueryTimeout, StoreBusy, StoreUnavailable
from hades.ports.store import Mode, RowStore, Term
from hades.stores.arango import read as cursors
from hades.stores.arango import transaction
from hades.stores.arango import write as writing
from hades.stores.arango.store import ArangoStore
from tests.arango_double.server import ArangoDouble
from tests.patience import wait_until
from tests.unit.hades.stores.arango_stores import SECRET, opened

COMMIT = "PUT /_api/transaction/"
INSERT = "POST /_api/document/entities"


@pytest.fixture(scope="module")
def double() -> Iterator[ArangoDouble]:
    with ArangoDouble(root_password=SECRET, write_lock_seconds=0.05) as server:
        opened(server, Mode.ADMIN).provision()
        yield server


@pytest.fixture
def store(double: ArangoDouble) -> Iterator[ArangoStore]:
    handle = opened(double)
    handle.delete("entities", where=[Term("name", "not_null")])
    handle.delete("relations", where=[Term("type", "not_null")])
    double.requests.clear()
    yield handle
    double.faults.clear()
    handle.close()


def entities(*keys: str, **more: Any) -> pa.Table:
    rows = [
        {"_key": key, "name": key, "name_lower": key, "type": "concept", **more} for key in keys
    ]
    return pa.Table.from_pylist(rows)


def sent(double: ArangoDouble, what: str) -> int:
    return sum(what in f"{request.method} {request.path}" for request in double.requests)


def test_a_conflict_is_met_by_doing_the_whole_unit_again(
    double: ArangoDouble, store: ArangoStore
) -> None:
    double.faults.conflict(times=2)
    store.upsert("entities", entities("a", "b"))
    assert store.count("entities") == 2
    assert sent(double, "POST /_api/transaction/begin") == 3


def test_a_conflict_that_stays_is_a_busy_store_and_nothing_written(
    double: ArangoDouble, store: ArangoStore
) -> None:
    double.faults.conflict(times=100)
    with pytest.raises(StoreBusy, match="writing entities"):
        store.upsert("entities", entities("a"))
    double.faults.clear()
    assert store.count("entities") == 0
    assert sent(double, INSERT) == 4


@pytest.mark.parametrize(
    ("fault", "where", "commits", "inserts"),
    [("drop_after", INSERT, 1, 2), ("drop_after", COMMIT, 1, 1), ("drop_before", COMMIT, 2, 1)],
)
def test_what_was_not_answered_is_done_once(
    double: ArangoDouble, store: ArangoStore, fault: str, where: str, commits: int, inserts: int
) -> None:
    """An insert is undone and done again; a commit is asked about, and sent again where it did not
    arrive.
    """
    getattr(double.faults, fault)(matching=where)
    store.upsert("entities", entities("a"))
    assert store.count("entities") == 1
    assert (sent(double, COMMIT), sent(double, INSERT)) == (commits, inserts)


def test_a_server_that_restarts_after_a_commit_is_asked_again_what_became_of_it(
    double: ArangoDouble, store: ArangoStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transaction, "_SETTLED_S", 0.0)
    double.faults.drop_after(matching=COMMIT)
    double.faults.drop_before(times=2, matching="GET /_api/transaction/")
    double.faults.http_error(503, 30, times=2, matching="GET /_api/transaction/")
    store.upsert("entities", entities("a"))
    assert store.count("entities") == 1
    assert (sent(double, COMMIT), sent(double, INSERT)) == (1, 1)


def test_a_commit_nobody_can_vouch_for_is_repeated_where_that_is_safe_and_else_says_so(
    double: ArangoDouble, store: ArangoStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transaction, "_SETTLED_S", 0.0)
    double.faults.drop_after(matching=COMMIT)
    double.faults.error(1655, matching="GET /_api/transaction/")
    store.upsert("entities", entities("a"))
    assert (store.count("entities"), sent(double, INSERT)) == (1, 2)
    double.faults.drop_after(matching=COMMIT)
    double.faults.error(1655, matching="GET /_api/transaction/")
    with (
        pytest.raises(StoreUnavailable, match="not known whether the change was kept"),
        store.transaction(["entities"]) as mine,
    ):
        mine.upsert("entities", entities("a"))


def test_a_row_that_another_changed_since_a_transaction_began_is_not_written_in_it(
    double: ArangoDouble, store: ArangoStore
) -> None:
    store.upsert("entities", entities("a"))
    with store.transaction(["entities"]) as mine:
        assert mine.count("entities") == 1
        opened(double).upsert("entities", entities("a", summary="theirs"))
        with pytest.raises(StoreBusy):
            mine.upsert("entities", entities("a", summary="mine"))
    assert store.get("entities", ["a"]).column("summary").to_pylist() == ["theirs"]


def test_a_large_batch_goes_in_pieces_and_is_still_all_or_nothing(
    double: ArangoDouble, store: ArangoStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "REQUEST_BYTES", 2_000)
    rows = entities(*(f"k{number:02}" for number in range(40)))
    double.faults.error(
        1221, matching=lambda request: request.path == "/_api/document/entities" and _third(double)
    )
    with pytest.raises(Exception, match="1221"):
        store.upsert("entities", rows)
    assert store.count("entities") == 0
    double.faults.clear()
    double.requests.clear()
    store.upsert("entities", rows)
    assert store.count("entities") == 40
    assert sent(double, INSERT) > 3
    assert sent(double, COMMIT) == 1


def _third(double: ArangoDouble) -> bool:
    return sent(double, INSERT) >= 3


def test_an_expired_transaction_is_a_busy_store_in_clear_words(
    double: ArangoDouble, store: ArangoStore
) -> None:
    def write_expire_and(then: Callable[[RowStore], object]) -> None:
        with store.transaction(["entities"]) as inside:
            inside.upsert("entities", entities("a"))
            double.expire_transactions()
            then(inside)

    for then in (lambda inside: inside.upsert("entities", entities("b")), lambda inside: None):
        with pytest.raises(StoreBusy, match="given up the transaction"):
            write_expire_and(then)
    assert store.count("entities") == 0


def test_a_transaction_writes_only_what_it_was_opened_for(store: ArangoStore) -> None:
    with (
        store.transaction(["entities"]) as inside,
        pytest.raises(BadQuery, match="for entities, not for clusters"),
    ):
        inside.delete("clusters", keys=["x"])


def test_reads_inside_a_transaction_see_its_own_writes(store: ArangoStore) -> None:
    with store.transaction(["entities", "relations"]) as inside:
        inside.upsert("entities", entities("a", "b"))
        edge = {"_key": "e", "_from": "entities/a", "_to": "entities/b", "type": "refers_to"}
        inside.upsert("relations", pa.Table.from_pylist([edge]))
        assert inside.get("entities", ["a"]).num_rows == 1
        assert [batch.num_rows for batch in inside.scan("entities", batch_rows=1)] == [1, 1]
        assert inside.count("relations", where=[Term("_from", "==", "entities/a")]) == 1
        inside.patch("entities", pa.table({"_key": ["a"], "summary": ["new"]}))
        assert inside.delete("relations", keys=["e"]) == 1
    assert store.get("entities", ["a"]).column("summary").to_pylist() == ["new"]
    assert store.count("relations") == 0


def test_patching_replaces_a_struct_whole_and_keeps_nulls_inside_objects(
    store: ArangoStore,
) -> None:
    store.upsert("entities", entities("a", "b", metadata='{"x": 1, "y": {"z": 2}}'))
    store.patch(
        "entities", pa.table({"_key": ["a"], "metadata": ['{"y": {"w": null}}'], "domain": ["d"]})
    )
    store.patch("entities", pa.table({"_key": ["a"], "domain": pa.nulls(1, pa.string())}))
    row = store.get("entities", ["a"]).to_pylist()[0]
    assert (row["metadata"], row["domain"]) == ('{"y":{"w":null}}', None)


def test_a_long_scan_keeps_its_transaction_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(cursors, "KEEP_ALIVE_S", 0.0)
    with ArangoDouble(root_password=SECRET, clock=lambda: now[0]) as server:
        opened(server, Mode.ADMIN).provision()
        handle = opened(server, batch_rows=2)
        handle.upsert("entities", entities(*"abcdefgh"))
        with handle.transaction(["entities"]) as inside:
            for batch in inside.scan("entities", columns=["_key"], batch_rows=2):
                now[0] += 50.0
                inside_keys = batch.column("_key").to_pylist()
            inside.patch(
                "entities", pa.table({"_key": inside_keys, "summary": ["seen"] * len(inside_keys)})
            )
        assert now[0] > 60.0
        assert handle.get("entities", ["h"]).column("summary").to_pylist() == ["seen"]


def test_a_lost_batch_of_a_scan_is_fetched_again(double: ArangoDouble, store: ArangoStore) -> None:
    store.upsert("entities", entities(*(f"k{number:03}" for number in range(30))))
    handle = opened(double, batch_rows=5)
    double.faults.drop_after(times=2, matching="POST /_api/cursor/")
    rows = [
        row
        for batch in handle.scan("entities", columns=[])
        for row in batch.column("_key").to_pylist()
    ]
    assert rows == [f"k{number:03}" for number in range(30)]


@pytest.mark.parametrize(
    "where", [(), (Term("type", "==", "concept"),), (Term("name", "not_null"),)]
)
def test_a_scan_that_a_restart_cut_off_goes_on_after_its_last_row(
    double: ArangoDouble, store: ArangoStore, where: tuple[Term, ...]
) -> None:
    keys = [
        f"{case}{number:03}" for case in "Kk" for number in range(15)
    ]  # by bytes, not by collation
    store.upsert("entities", entities(*keys))
    handle = opened(double, batch_rows=5)
    found: list[str] = []
    for batch in handle.scan("entities", columns=["_key", "name"], batch_rows=5, where=where):
        found += batch.column("name").to_pylist()
        double.restart()
    assert found == keys


def test_a_scan_inside_a_transaction_ends_when_a_restart_drops_its_answer(
    double: ArangoDouble, store: ArangoStore
) -> None:
    store.upsert("entities", entities(*(f"k{number:03}" for number in range(30))))
    handle = opened(double, batch_rows=5)

    def read_all() -> None:
        with handle.transaction(["files"]) as inside:
            for _ in inside.scan("entities", batch_rows=5):
                double.restart()

    with pytest.raises(StoreUnavailable, match="the server has dropped the open answer"):
        read_all()


def test_an_answer_of_several_batches_that_a_restart_cut_off_is_asked_for_again(
    double: ArangoDouble, store: ArangoStore
) -> None:
    keys = [f"k{number:03}" for number in range(30)]
    store.upsert("entities", entities(*keys))
    double.faults.error(1600, times=2, matching="POST /_api/cursor/")
    assert opened(double, batch_rows=5).get("entities", keys).column("_key").to_pylist() == keys
    assert double.faults.pending() == 0


def test_a_scan_waits_longer_for_its_rows_than_a_question_may(
    double: ArangoDouble, store: ArangoStore
) -> None:
    store.upsert("entities", entities("a", "b"))
    reader = opened(double, Mode.READ_ONLY, request_timeout_s=1.0)
    double.faults.delay(1.5, matching="POST /_api/cursor")
    assert [batch.num_rows for batch in reader.scan("entities")] == [2]
    assert double.faults.pending() == 0


def test_a_scan_left_early_closes_its_cursor(double: ArangoDouble, store: ArangoStore) -> None:
    store.upsert("entities", entities(*(f"k{number:03}" for number in range(30))))
    scan = opened(double, batch_rows=5).scan("entities", batch_rows=5)
    next(scan)
    scan.close()  # type: ignore[attr-defined]
    assert sent(double, "DELETE /_api/cursor/") == 1


def test_a_query_that_runs_too_long_is_stopped(double: ArangoDouble, store: ArangoStore) -> None:
    double.faults.error(1500, matching="POST /_api/cursor")
    with pytest.raises(QueryTimeout, match="counting entities"):
        store.count("entities")


def test_a_server_that_is_late_is_unavailable_after_one_wait(
    double: ArangoDouble, store: ArangoStore
) -> None:
    hasty = opened(double, request_timeout_s=1.0)
    double.faults.delay(2.5, times=9, matching="POST /_api/cursor")
    with pytest.raises(StoreUnavailable, match="within 1 s"):
        hasty.count("entities")
    wait_until(lambda: sent(double, "POST /_api/cursor") > 0)
    assert sent(double, "POST /_api/cursor") == 1
