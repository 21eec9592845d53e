"""Queries over HTTP: cursors, options, explain, parse, kill."""

import threading
import time
from typing import Any

import pytest
from arango.database import StandardDatabase
from arango.exceptions import (
    AQLQueryExecuteError,
    AQLQueryExplainError,
    AQLQueryValidateError,
    CursorCloseError,
    CursorNextError,
)
from arango.request import Request

from tests.arango_double.server import ArangoDouble
from tests.patience import HANG_SECONDS


def failure(db: StandardDatabase, query: str, **options: Any) -> tuple[int, int]:
    with pytest.raises(AQLQueryExecuteError) as caught:
        db.aql.execute(query, **options)
    return caught.value.error_code, caught.value.http_code


def test_results_come_in_batches(db: StandardDatabase, double: ArangoDouble) -> None:
    cursor = db.aql.execute("FOR x IN 1..7 RETURN x", batch_size=3, count=True)
    assert (cursor.count(), len(cursor.batch()), cursor.has_more()) == (7, 3, True)
    assert list(cursor) == [1, 2, 3, 4, 5, 6, 7]
    assert [sent.path.startswith("/_api/cursor") for sent in double.requests] == [True, True, True]
    assert double.state.cursors == {}


def test_a_closed_or_outlived_cursor_is_1600(db: StandardDatabase) -> None:
    cursor = db.aql.execute("FOR x IN 1..7 RETURN x", batch_size=3)
    assert cursor.close() is True
    with pytest.raises(CursorCloseError) as closed:
        cursor.close()
    assert closed.value.error_code == 1600
    cursor = db.aql.execute("FOR x IN 1..7 RETURN x", batch_size=3, ttl=0.01)  # type: ignore[arg-type]
    time.sleep(0.05)
    with pytest.raises(CursorNextError) as caught:
        cursor.fetch()
    assert (caught.value.error_code, caught.value.http_code) == (1600, 404)


def test_a_retryable_cursor_gives_the_last_batch_again(db: StandardDatabase) -> None:
    cursor = db.aql.execute("FOR x IN 1..4 RETURN x", batch_size=2, allow_retry=True)
    again = Request(method="post", endpoint=f"/_api/cursor/{cursor.id}/2")
    assert db.request(again).body["result"] == [3, 4]
    assert db.request(again).body["result"] == [3, 4]


def test_statistics_and_full_count(db: StandardDatabase) -> None:
    c = db.create_collection("c")
    c.import_bulk([{"n": n} for n in range(20)])
    cursor = db.aql.execute("FOR d IN c FILTER d.n < 10 LIMIT 2 RETURN d", full_count=True)
    statistics = cursor.statistics()
    assert statistics["fullCount"] == 10
    assert (statistics["scanned_full"], statistics["filtered"]) == (20, 10)
    written = db.aql.execute("FOR d IN c UPDATE d WITH {m: 1} IN c")
    assert written.statistics()["modified"] == 20


def test_warnings_are_returned_or_fail(db: StandardDatabase) -> None:
    cursor = db.aql.execute("RETURN 1 / 0")
    assert list(cursor) == [None]
    assert cursor.warnings()[0]["code"] == 1562
    assert failure(db, "RETURN 1 / 0", fail_on_warning=True) == (1562, 400)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("RETURN", (1501, 400)),
        ("RETURN NOPE()", (1540, 400)),
        ("FOR x IN [1] LIMIT x RETURN x", (1504, 400)),
        ("RETURN @x", (1551, 400)),
        ("FOR d IN missing RETURN d", (1203, 404)),
        ("RETURN c", (1568, 500)),
        ("FOR x IN [1] COLLECT AGGREGATE m = MEDIAN(x) RETURN m", (1574, 500)),
        ("FOR x IN [1] OPTIONS {indexHint: x} RETURN x", (1575, 400)),
        ("INSERT {} INTO c RETURN LENGTH(c)", (1579, 400)),
        ("FOR x IN 1 RETURN x", (1563, 400)),
        ("FOR v IN 1 OUTBOUND 'c/a' GRAPH 'none' RETURN v", (1924, 404)),
    ],
)
def test_errors_travel_with_their_http_status(db: StandardDatabase, query: str, expected: tuple[int, int]) -> None:
    db.create_collection("c")
    assert failure(db, query) == expected


def test_limits_on_time_and_memory(db: StandardDatabase) -> None:
    assert failure(db, "RETURN SLEEP(5)", max_runtime=0.05) == (1500, 410)
    assert failure(db, "FOR x IN 1..9999 RETURN CONCAT('text ', x)", memory_limit=40000) == (32, 500)


def test_a_running_query_is_listed_and_killed(db: StandardDatabase) -> None:
    failures: list[tuple[int, int]] = []
    worker = threading.Thread(target=lambda: failures.append(failure(db, "RETURN SLEEP(600)")))
    worker.start()
    deadline = time.monotonic() + HANG_SECONDS
    while not (running := db.aql.queries()) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert running[0]["query"] == "RETURN SLEEP(600)"
    assert db.aql.kill(running[0]["id"])
    worker.join(timeout=HANG_SECONDS)
    assert failures == [(1500, 410)]


def test_unknown_options_are_errors_and_known_ones_are_not(db: StandardDatabase) -> None:
    body = {"query": "RETURN 1", "options": {"fulCount": True}}
    answer = db.request(Request(method="post", endpoint="/_api/cursor", data=body))
    assert (answer.status_code, answer.error_code) == (400, 10)
    assert list(db.aql.execute("RETURN 1", cache=False, stream=True, max_plans=2, optimizer_rules=["-all"])) == [1]
    assert failure(db, "RETURN 1", stream=True, full_count=True)[0] == 10


def test_explain_names_the_index(db: StandardDatabase) -> None:
    c = db.create_collection("c")
    c.add_index({"type": "persistent", "fields": ["n"], "name": "by_n"})
    plan = db.aql.explain("FOR d IN c FILTER d.n == @n RETURN d", bind_vars={"n": 1})
    nodes = {node["type"]: node for node in plan["nodes"]}
    assert nodes["IndexNode"]["indexes"][0]["name"] == "by_n"
    assert plan["isModificationQuery"] is False if "isModificationQuery" in plan else True
    scan = db.aql.explain("FOR d IN c FILTER d.m == 1 RETURN d")
    assert "EnumerateCollectionNode" in {node["type"] for node in scan["nodes"]}
    with pytest.raises(AQLQueryExplainError):
        db.aql.explain("FOR d IN c FILTER d.n == @n RETURN d")


def test_validate_needs_neither_binds_nor_collections(db: StandardDatabase) -> None:
    parsed = db.aql.validate("FOR d IN missing FILTER d.n == @n RETURN d")
    assert (parsed["collections"], parsed["bind_vars"]) == (["missing"], ["n"])
    with pytest.raises(AQLQueryValidateError) as caught:
        db.aql.validate("FOR d IN c RETURN")
    assert caught.value.error_code == 1501


def test_a_failed_write_query_leaves_nothing(db: StandardDatabase) -> None:
    c = db.create_collection("c")
    assert failure(db, "FOR k IN ['a', 'b', 'a'] INSERT {_key: k} INTO c")[0] == 1210
    assert c.count() == 0


def test_jobs_run_in_the_background(db: StandardDatabase) -> None:
    job = db.begin_async_execution(return_result=True).aql.execute("RETURN SLEEP(0.05) || 7")
    deadline = time.monotonic() + HANG_SECONDS
    while job.status() != "done" and time.monotonic() < deadline:
        time.sleep(0.01)
    assert list(job.result()) == [7]
