"""Stream transactions: snapshots, conflicts, locks, expiry."""

import threading
import time

import pytest
from arango.database import StandardDatabase
from arango.exceptions import (
    AQLQueryExecuteError,
    DocumentInsertError,
    DocumentUpdateError,
    TransactionAbortError,
    TransactionCommitError,
    TransactionInitError,
    TransactionStatusError,
)

from tests.arango_double.server import ArangoDouble
from tests.patience import HANG_SECONDS
from tests.unit.arango_double.conftest import connect


@pytest.fixture
def shop(db: StandardDatabase) -> StandardDatabase:
    db.create_collection("c").insert({"_key": "a", "n": 1})
    db.create_collection("other")
    return db


def value(db: StandardDatabase) -> int:
    return int(db.collection("c").get("a")["n"])


def test_writes_show_outside_only_after_the_commit(shop: StandardDatabase) -> None:
    trx = shop.begin_transaction(write="c")
    trx.collection("c").update({"_key": "a", "n": 2})
    trx.collection("c").insert({"_key": "b"})
    assert trx.collection("c").get("a")["n"] == 2
    assert list(trx.aql.execute("FOR d IN c SORT d._key RETURN d._key")) == ["a", "b"]
    assert (value(shop), shop.collection("c").count()) == (1, 1)
    assert trx.transaction_status() == "running"
    assert trx.commit_transaction()
    assert (value(shop), trx.transaction_status()) == (2, "committed")


def test_an_abort_forgets_everything(shop: StandardDatabase) -> None:
    trx = shop.begin_transaction(write="c")
    trx.aql.execute("FOR d IN c REMOVE d IN c")
    assert trx.collection("c").count() == 0
    trx.abort_transaction()
    assert value(shop) == 1
    with pytest.raises(AQLQueryExecuteError) as caught:
        trx.aql.execute("FOR d IN c RETURN d")
    assert (caught.value.error_code, caught.value.http_code) == (1654, 410)


def test_a_transaction_reads_its_snapshot(shop: StandardDatabase) -> None:
    trx = shop.begin_transaction(read="c")
    shop.collection("c").update({"_key": "a", "n": 5})
    shop.collection("c").insert({"_key": "new"})
    assert trx.collection("c").get("a")["n"] == 1
    assert list(trx.aql.execute("FOR d IN c RETURN d._key")) == ["a"]
    assert list(trx.aql.execute("FOR d IN c FILTER d._key == 'new' RETURN d")) == []
    trx.abort_transaction()


def test_changing_what_changed_since_the_snapshot_is_a_conflict(shop: StandardDatabase) -> None:
    trx = shop.begin_transaction(write="c")
    assert trx.collection("c").get("a")["n"] == 1
    shop.collection("c").update({"_key": "a", "n": 5})
    with pytest.raises(DocumentUpdateError) as caught:
        trx.collection("c").update({"_key": "a", "n": 2})
    assert (caught.value.error_code, caught.value.http_code) == (1200, 409)
    trx.collection("c").insert({"_key": "b"})
    assert trx.commit_transaction()
    assert value(shop) == 5
    assert shop.collection("c").has("b")


def test_a_key_held_by_another_transaction_conflicts_after_a_wait(shop: StandardDatabase) -> None:
    first, second = shop.begin_transaction(write="c"), shop.begin_transaction(write="c")
    first.collection("c").update({"_key": "a", "n": 2})
    with pytest.raises(DocumentUpdateError) as caught:
        second.collection("c").update({"_key": "a", "n": 3})
    assert caught.value.error_code == 1200
    with pytest.raises(DocumentUpdateError):
        shop.collection("c").update({"_key": "a", "n": 4})
    first.commit_transaction()
    second.abort_transaction()
    assert value(shop) == 2


def test_two_transactions_cannot_take_one_unique_value(shop: StandardDatabase) -> None:
    shop.collection("c").add_index({"type": "persistent", "fields": ["u"], "unique": True, "sparse": True})
    first, second = shop.begin_transaction(write="c"), shop.begin_transaction(write="c")
    first.collection("c").insert({"u": 1})
    with pytest.raises(DocumentInsertError) as caught:
        second.collection("c").insert({"u": 1})
    assert caught.value.error_code == 1200
    first.commit_transaction()
    with pytest.raises(DocumentInsertError) as caught:
        shop.collection("c").insert({"u": 1})
    assert caught.value.error_code == 1210
    second.abort_transaction()


def test_only_declared_collections_can_be_written(shop: StandardDatabase) -> None:
    trx = shop.begin_transaction(write="c")
    with pytest.raises(DocumentInsertError) as caught:
        trx.collection("other").insert({})
    assert (caught.value.error_code, caught.value.http_code) == (1652, 400)
    assert trx.collection("other").count() == 0
    trx.abort_transaction()
    strict = shop.begin_transaction(write="c", allow_implicit=False)
    with pytest.raises(AQLQueryExecuteError) as refused:
        strict.aql.execute("FOR d IN other RETURN d")
    assert refused.value.error_code == 1652
    strict.abort_transaction()


def test_an_exclusive_lock_keeps_other_writers_out(shop: StandardDatabase) -> None:
    trx = shop.begin_transaction(exclusive="c")
    with pytest.raises(DocumentUpdateError) as caught:
        shop.collection("c").update({"_key": "a", "n": 2})
    assert (caught.value.error_code, caught.value.http_code) == (18, 500)
    with pytest.raises(TransactionInitError) as refused:
        shop.begin_transaction(write="c", lock_timeout=0.05)  # type: ignore[arg-type]
    assert refused.value.error_code == 18
    assert value(shop) == 1
    trx.commit_transaction()
    shop.collection("c").update({"_key": "a", "n": 2})


def test_a_query_that_waited_for_the_lock_sees_what_the_holder_wrote(
    shop: StandardDatabase, double: ArangoDouble
) -> None:
    double.databases["db"].lock_seconds = HANG_SECONDS
    trx = shop.begin_transaction(exclusive="c")
    trx.collection("c").update({"_key": "a", "n": 10})
    worker = threading.Thread(target=lambda: shop.aql.execute("FOR d IN c UPDATE d WITH {n: d.n + 1} IN c"))
    worker.start()
    trx.commit_transaction()
    worker.join(timeout=HANG_SECONDS)
    assert value(shop) == 11


def test_a_failed_operation_does_not_end_the_transaction(shop: StandardDatabase) -> None:
    trx = shop.begin_transaction(write="c")
    with pytest.raises(DocumentInsertError):
        trx.collection("c").insert({"_key": "a"})
    trx.collection("c").insert({"_key": "b"})
    trx.commit_transaction()
    assert shop.collection("c").has("b")


def test_idle_transactions_expire(shop: StandardDatabase, double: ArangoDouble) -> None:
    trx = shop.begin_transaction(write="c")
    trx.collection("c").update({"_key": "a", "n": 2})
    double.expire_transactions()
    with pytest.raises(DocumentUpdateError) as caught:
        trx.collection("c").update({"_key": "a", "n": 3})
    assert caught.value.error_code == 1654
    with pytest.raises(TransactionCommitError):
        trx.commit_transaction()
    shop.collection("c").update({"_key": "a", "n": 4})


def test_a_transaction_serves_one_request_at_a_time(shop: StandardDatabase) -> None:
    trx = shop.begin_transaction(write="c")
    stopped: list[AQLQueryExecuteError] = []

    def keep_busy() -> None:
        try:
            trx.aql.execute("RETURN SLEEP(600)")
        except AQLQueryExecuteError as error:
            stopped.append(error)

    worker = threading.Thread(target=keep_busy)
    worker.start()
    deadline = time.monotonic() + HANG_SECONDS
    while not (running := shop.aql.queries()) and time.monotonic() < deadline:
        time.sleep(0.01)
    with pytest.raises(AQLQueryExecuteError) as caught:
        trx.aql.execute("RETURN 1")
    assert (caught.value.error_code, caught.value.http_code) == (28, 500)
    assert shop.aql.kill(running[0]["id"])
    worker.join(timeout=HANG_SECONDS)
    assert [error.error_code for error in stopped] == [1500]
    trx.abort_transaction()


def test_unknown_and_finished_transactions(shop: StandardDatabase) -> None:
    with pytest.raises(TransactionInitError) as caught:
        shop.begin_transaction(write="missing")
    assert caught.value.error_code == 1203
    trx = shop.begin_transaction(write="c")
    trx._executor._id = "999999"  # type: ignore[union-attr]
    with pytest.raises(TransactionStatusError) as unknown:
        trx.transaction_status()
    assert (unknown.value.error_code, unknown.value.http_code) == (1655, 404)
    done = shop.begin_transaction(write="c")
    done.commit_transaction()
    with pytest.raises(TransactionAbortError):
        done.abort_transaction()


def test_structure_cannot_change_inside_a_transaction(shop: StandardDatabase) -> None:
    from arango.exceptions import IndexCreateError

    trx = shop.begin_transaction(write="c")
    with pytest.raises(IndexCreateError) as caught:
        trx.collection("c").add_index({"type": "persistent", "fields": ["n"]})
    assert caught.value.error_code == 1653
    trx.abort_transaction()


def test_concurrent_increments_lose_nothing_when_conflicts_are_retried(double: ArangoDouble) -> None:
    setup = connect(double)
    setup.create_collection("c").insert({"_key": "a", "n": 0})
    conflicts: list[int] = []

    def work() -> None:
        db = connect(double)
        for _ in range(15):
            while True:
                try:
                    db.aql.execute("FOR d IN c FILTER d._key == 'a' UPDATE d WITH {n: d.n + 1} IN c")
                    break
                except AQLQueryExecuteError as error:
                    conflicts.append(error.error_code)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(timeout=30)
    assert value(setup) == 60
    assert set(conflicts) <= {1200}
    assert double.databases["db"].locks == {}
    assert double.databases["db"].active == set()
