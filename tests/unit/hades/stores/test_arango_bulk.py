"""Writes larger than the server's transaction limit: bounded units, all or nothing, whatever is
killed in between.
"""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from hades.errors import BadRows, StoreBusy, StoreError
from hades.ports.store import Mode, RowStore, Term
from hades.stores.arango import write as journal
from hades.stores.arango.errors import TooLarge
from hades.stores.arango.store import ArangoStore
from tests.arango_double.server import ArangoDouble
from tests.unit.hades.stores.arango_stores import SECRET, opened

LIMIT = 64 * 1024
COMMIT = "PUT /_api/transaction/"
CHANGE = "PATCH /_api/document"


class Killed(BaseException):
    """The process ends here."""


@pytest.fixture(scope="module")
def double() -> Iterator[ArangoDouble]:
    with ArangoDouble(
        root_password=SECRET, transaction_size_limit=LIMIT, tells_options=True
    ) as server:
        opened(server, Mode.ADMIN).provision()
        yield server


@pytest.fixture
def store(double: ArangoDouble) -> Iterator[ArangoStore]:
    handle = opened(double)
    for name in ("entities", "relations", "build_stages", "write_journal"):
        handle.session.db.collection(name).truncate()
    double.requests.clear()
    yield handle
    double.faults.clear()
    handle.close()


def entities(count: int, **more: Any) -> pa.Table:
    keys = [f"k{number:04}" for number in range(count)]
    return pa.Table.from_pylist(
        [{"_key": key, "name": key, "name_lower": key, "type": "concept", **more} for key in keys]
    )


def relations(count: int) -> pa.Table:
    return pa.Table.from_pylist(
        [
            {
                "_key": f"e{one}",
                "_from": f"entities/k{one:04}",
                "_to": f"entities/k{one + 1:04}",
                "type": "refers_to",
            }
            for one in range(count - 1)
        ]
    )


def journal_rows(store: ArangoStore) -> int:
    return int(store.session.db.collection("write_journal").count())  # type: ignore[arg-type]


def summaries(store: RowStore) -> set[str]:
    return set(
        store.get("entities", [f"k{one:04}" for one in range(40)]).column("summary").to_pylist()
    )


def test_one_transaction_over_the_limit_is_refused_with_what_to_do(store: ArangoStore) -> None:
    with (
        pytest.raises(TooLarge, match="HADES_ARANGO_TRANSACTION_SHARE"),
        store.transaction(["entities"]) as inside,
    ):
        inside.upsert("entities", entities(90))
    assert store.count("entities") == 0


def test_a_bulk_write_of_many_times_the_limit_is_written_whole(store: ArangoStore) -> None:
    with store.bulk(["entities", "relations"]) as inside:
        inside.upsert("entities", entities(40))
        inside.upsert("relations", relations(40))
        inside.patch(
            "entities",
            entities(40).select(["_key"]).append_column("summary", pa.array(["new"] * 40)),
        )
        assert inside.delete("relations", keys=["e0", "unknown"]) == 1
    assert (store.count("entities"), store.count("relations"), summaries(store)) == (
        40,
        38,
        {"new"},
    )
    assert journal_rows(store) == 0


def test_a_small_bulk_write_is_one_transaction(double: ArangoDouble, store: ArangoStore) -> None:
    with store.bulk(["entities", "build_stages"]) as inside:
        inside.upsert("entities", entities(3))
    commits = [
        one for one in double.requests if one.method == "PUT" and "/_api/transaction/" in one.path
    ]
    assert len(commits) == 1


def test_a_plain_write_larger_than_the_limit_goes_in_units(store: ArangoStore) -> None:
    store.upsert("entities", entities(40))
    assert store.count("entities") == 40
    assert store.delete("entities", where=[Term("type", "==", "concept")]) == 40
    assert (store.count("entities"), journal_rows(store)) == (0, 0)


def test_nothing_is_visible_before_the_last_piece_is_kept(
    double: ArangoDouble, store: ArangoStore
) -> None:
    with store.bulk(["entities"]) as inside:
        inside.upsert("entities", entities(40))
        assert journal_rows(store) > 1
        assert opened(double, Mode.READ_ONLY).count("entities") == 0


def test_a_failure_leaves_nothing_of_a_bulk_write(store: ArangoStore) -> None:
    def write_both() -> None:
        with store.bulk(["entities", "relations"]) as inside:
            inside.upsert("entities", entities(40))
            edge = {
                "_key": "e",
                "_from": "entities/k0000",
                "_to": "entities/nobody",
                "type": "refers_to",
            }
            inside.upsert("relations", pa.Table.from_pylist([edge]))

    with pytest.raises(BadRows, match="nobody"):
        write_both()
    assert (store.count("entities"), journal_rows(store)) == (0, 0)


def test_an_edge_to_a_node_that_the_same_write_removes_is_refused(store: ArangoStore) -> None:
    store.upsert("entities", entities(5))
    with store.bulk(["entities", "relations"]) as inside:
        inside.delete("entities", keys=["k0001"])
        with pytest.raises(BadRows, match="k0001"):
            inside.upsert("relations", relations(5))


@pytest.mark.parametrize("commits", [0, 1, 3])
def test_a_write_killed_between_two_units_is_finished_before_the_next_build_reads(
    double: ArangoDouble, store: ArangoStore, monkeypatch: pytest.MonkeyPatch, commits: int
) -> None:
    store.upsert("entities", entities(40, summary="old"))
    applied = journal.write_unit
    left = [commits]

    def killed(*arguments: Any, **options: Any) -> None:
        if left[0] == 0:
            raise Killed
        left[0] -= 1
        applied(*arguments, **options)

    monkeypatch.setattr(journal, "write_unit", killed)
    with pytest.raises(Killed), store.bulk(["entities"]) as inside:
        inside.patch(
            "entities",
            entities(40).select(["_key"]).append_column("summary", pa.array(["new"] * 40)),
        )
    monkeypatch.undo()
    reader = opened(double, Mode.READ_ONLY)
    assert summaries(reader) == ({"old"} if commits == 0 else {"old", "new"})
    with pytest.raises(StoreBusy, match="of two states"):
        reader.reading()
    other = opened(double)
    assert summaries(other) == {"new"}
    assert journal_rows(other) == 0
    assert reader.reading()


def test_a_write_of_several_units_that_fits_the_limit_is_seen_whole_or_not_at_all(
    double: ArangoDouble, store: ArangoStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    done, seen, reader = journal._apply_operation, [], opened(double, Mode.READ_ONLY)

    def watched(*arguments: Any) -> None:
        done(*arguments)
        seen.append(reader.count("entities"))

    monkeypatch.setattr(journal, "_apply_operation", watched)
    with store.bulk(["entities"]) as inside:
        inside.upsert("entities", entities(12))
        assert journal_rows(store) > 0
    assert seen == [0] * len(seen)
    assert len(seen) > 1
    assert (reader.count("entities"), journal_rows(store)) == (12, 0)


@pytest.mark.parametrize(("times", "share"), [(4, 0.25), (8, 0.9)])
def test_what_the_server_finds_too_large_is_applied_in_smaller_pieces(
    double: ArangoDouble, times: int, share: float
) -> None:
    careless = opened(double, transaction_limit_bytes=LIMIT * times, transaction_share=share)
    careless.session.db.collection("entities").truncate()
    with careless.bulk(["entities"]) as inside:
        inside.upsert("entities", entities(60))
    assert (careless.count("entities"), journal_rows(careless)) == (60, 0)


def test_pieces_of_a_complete_write_are_kept_however_old_they_are(
    store: ArangoStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*arguments: Any) -> None:
        raise Killed

    monkeypatch.setattr(journal, "apply", killed)
    with pytest.raises(Killed), store.bulk(["entities"]) as inside:
        inside.upsert("entities", entities(40))
    monkeypatch.undo()
    left = journal_rows(store)
    monkeypatch.setattr(journal, "_ABANDONED_S", -3600.0)
    journal.remove_abandoned(store.session)
    assert journal_rows(store) == left > 1
    assert journal.finish(store.session, again=True) == 1
    assert (store.count("entities"), journal_rows(store)) == (40, 0)


def test_pieces_that_another_process_applied_are_not_applied_again(
    double: ArangoDouble, store: ArangoStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slow process must not put old values over what came after."""
    store.upsert("entities", entities(40, summary="old"))
    applied, helped = journal.write_unit, []

    def slow(*arguments: Any, **options: Any) -> None:
        if not helped:
            helped.append(True)
            other = opened(double)
            journal.finish(other.session)
            other.patch("entities", pa.table({"_key": ["k0000"], "summary": ["later"]}))
        applied(*arguments, **options)

    monkeypatch.setattr(journal, "write_unit", slow)
    with store.bulk(["entities"]) as inside:
        inside.patch(
            "entities",
            entities(40).select(["_key"]).append_column("summary", pa.array(["new"] * 40)),
        )
    assert summaries(store) == {"new", "later"}


def test_a_read_of_what_is_queued_sees_it_and_opens_the_ledger_first(store: ArangoStore) -> None:
    store.upsert(
        "build_stages", pa.table({"_key": ["weights"], "stage": ["weights"], "digest": ["whole"]})
    )

    def reopen(rows: RowStore) -> None:
        rows.patch("build_stages", pa.table({"_key": ["weights"], "digest": [""]}))

    with store.bulk(["entities", "build_stages"], unfinished=reopen) as inside:
        inside.upsert("entities", entities(40))
        assert inside.count("entities") == 40
        assert store.get("build_stages", ["weights"]).column("digest").to_pylist() == [""]
        inside.patch("build_stages", pa.table({"_key": ["weights"], "digest": ["again"]}))
    assert store.get("build_stages", ["weights"]).column("digest").to_pylist() == ["again"]


@pytest.mark.parametrize(
    ("code", "where"),
    [
        *(
            (code, CHANGE)
            for code in (30, 38, 503, 1200, 1429, 1457, 1478, 1495, 1496, 1654, 1655, 21003)
        ),
        *((code, "POST /_api/transaction/begin") for code in (30, 503, 21003)),
        *((code, COMMIT) for code in (503, 1496, 1655)),
    ],
)
def test_a_restart_or_failover_in_the_middle_of_a_unit_is_waited_for(
    double: ArangoDouble, store: ArangoStore, code: int, where: str
) -> None:
    store.upsert("entities", entities(8, summary="old"))
    double.faults.error(code, times=3, matching=where)
    with store.bulk(["entities"]) as inside:
        inside.patch(
            "entities", entities(8).select(["_key"]).append_column("summary", pa.array(["new"] * 8))
        )
    assert double.faults.pending() == 0
    assert summaries(store) == {"new"}


def test_a_connection_dropped_after_each_commit_doubles_nothing(
    double: ArangoDouble, store: ArangoStore
) -> None:
    double.faults.drop_after(times=4, matching=COMMIT)
    with store.bulk(["entities"]) as inside:
        inside.upsert("entities", entities(40))
    assert (store.count("entities"), journal_rows(store)) == (40, 0)


def test_the_limit_is_read_from_the_server_or_assumed_small(double: ArangoDouble) -> None:
    assert opened(double).session.unit_size.limit_bytes == LIMIT
    for version, mib in (("3.12.3", 128), ("3.12.9", 512)):
        with ArangoDouble(version, root_password=SECRET) as silent:
            opened(silent, Mode.ADMIN).session.system_database().create_database("kg")
            size = opened(silent).session.unit_size
        assert (size.limit_bytes, size.source) == (mib * 1024 * 1024, "assumed")
        assert size.unit_bytes == 32 * 1024 * 1024


def test_a_database_without_a_journal_says_how_to_get_one(double: ArangoDouble) -> None:
    store = opened(double)
    store.session.db.delete_collection("write_journal")
    with pytest.raises(StoreError, match="hades provision"), store.bulk(["entities"]) as inside:
        inside.upsert("entities", entities(60))
    opened(double, Mode.ADMIN).provision()
