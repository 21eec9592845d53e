"""Faults on demand, and what the driver makes of them."""

import time

import pytest
import requests
from arango import ArangoClient
from arango.database import StandardDatabase
from arango.exceptions import AQLQueryExecuteError, DocumentInsertError
from arango.http import DefaultHTTPClient

from tests.arango_double.server import ArangoDouble
from tests.patience import HANG_SECONDS


@pytest.fixture
def ready(db: StandardDatabase, double: ArangoDouble) -> StandardDatabase:
    db.create_collection("c")
    double.requests.clear()
    return db


def test_conflicts_hit_writes_only_and_do_nothing(ready: StandardDatabase, double: ArangoDouble) -> None:
    double.faults.conflict(times=2)
    assert list(ready.aql.execute("RETURN 1")) == [1]
    for _ in range(2):
        with pytest.raises(AQLQueryExecuteError) as caught:
            ready.aql.execute("INSERT {_key: 'a'} INTO c")
        assert (caught.value.error_code, caught.value.http_code) == (1200, 409)
    ready.aql.execute("INSERT {_key: 'a'} INTO c")
    assert double.faults.pending() == 0
    assert [sent.status for sent in double.requests] == [201, 409, 409, 201]


def test_a_fault_can_be_aimed(ready: StandardDatabase, double: ArangoDouble) -> None:
    double.faults.conflict(matching="UPSERT")
    double.faults.http_error(503, 1478, matching=lambda sent: sent.path.endswith("/count"))
    ready.collection("c").insert({"_key": "a"})
    with pytest.raises(AQLQueryExecuteError):
        ready.aql.execute("UPSERT {_key: 'a'} INSERT {} UPDATE {} IN c")
    assert double.faults.pending() == 1
    double.faults.clear()
    assert ready.collection("c").count() == 1


def test_an_error_number_brings_its_status(ready: StandardDatabase, double: ArangoDouble) -> None:
    for number, status in ((28, 500), (1465, 503), (21003, 503), (1210, 409)):
        double.faults.error(number)
        with pytest.raises(DocumentInsertError) as caught:
            ready.collection("c").insert({})
        assert (caught.value.error_code, caught.value.http_code) == (number, status)


def test_a_connection_dropped_before_execution_writes_nothing(ready: StandardDatabase, double: ArangoDouble) -> None:
    double.faults.drop_before()
    with pytest.raises(ConnectionAbortedError):
        ready.collection("c").insert({"_key": "a"})
    assert double.databases["db"].collection("c").documents == {}
    assert [sent.status for sent in double.requests] == [0]


def test_a_connection_dropped_after_execution_has_written(ready: StandardDatabase, double: ArangoDouble) -> None:
    double.faults.drop_after()
    with pytest.raises(ConnectionAbortedError):
        ready.collection("c").insert({"_key": "a"})
    assert list(double.databases["db"].collection("c").documents) == ["a"]


def test_the_default_driver_sends_a_dropped_write_three_times(double: ArangoDouble, ready: StandardDatabase) -> None:
    db = ArangoClient(double.url).db("db", username="root", password="secret")
    double.faults.drop_after(times=9, matching="POST /_api/document")
    with pytest.raises(ConnectionAbortedError):
        db.collection("c").insert({"n": 1})
    assert len(double.requests) == 3
    assert len(double.databases["db"].collection("c").documents) == 3


def test_the_default_driver_gets_through_when_the_second_try_works(
    double: ArangoDouble, ready: StandardDatabase
) -> None:
    db = ArangoClient(double.url).db("db", username="root", password="secret")
    double.faults.drop_after(matching="POST /_api/document")
    db.collection("c").insert({"n": 1})
    assert len(double.databases["db"].collection("c").documents) == 2


def test_a_delay_runs_into_the_clients_timeout(double: ArangoDouble, ready: StandardDatabase) -> None:
    client = ArangoClient(
        double.url, http_client=DefaultHTTPClient(request_timeout=0.1, retry_attempts=0), resolver_max_tries=1
    )
    db = client.db("db", username="root", password="secret")
    double.faults.delay(1.5, matching="POST")
    with pytest.raises(requests.exceptions.ReadTimeout):
        db.collection("c").insert({"_key": "late"})
    deadline = time.monotonic() + HANG_SECONDS
    while not double.databases["db"].collection("c").documents and time.monotonic() < deadline:
        time.sleep(0.02)
    assert list(double.databases["db"].collection("c").documents) == ["late"]


def test_http_503_is_retried_by_the_driver_as_a_broken_connection(
    double: ArangoDouble, ready: StandardDatabase
) -> None:
    db = ArangoClient(double.url, http_client=DefaultHTTPClient(retry_attempts=0)).db(
        "db", username="root", password="secret"
    )
    double.faults.http_error(503, 503, times=9, matching="POST /_api/document")
    with pytest.raises(ConnectionAbortedError):
        db.collection("c").insert({})
    assert len(double.requests) == 3


def test_requests_tell_what_was_sent(ready: StandardDatabase, double: ArangoDouble) -> None:
    ready.collection("c").insert({"_key": "a"})
    list(ready.aql.execute("FOR d IN c RETURN d"))
    assert [(sent.method, sent.path, sent.database, sent.user) for sent in double.requests] == [
        ("POST", "/_api/document/c", "db", "root"),
        ("POST", "/_api/cursor", "db", "root"),
    ]
    assert double.requests[1].query == "FOR d IN c RETURN d"


def test_a_closed_double_refuses_connections() -> None:
    double = ArangoDouble()
    url = double.url
    assert requests.get(url + "/_api/version", auth=("root", ""), timeout=HANG_SECONDS).json()["server"] == "arango"
    double.close()
    with pytest.raises(requests.ConnectionError):
        requests.get(url + "/_api/version", timeout=HANG_SECONDS)
