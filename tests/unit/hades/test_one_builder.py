"""A command that builds holds a lock; another says who builds, waits for it, and gives up with nothing changed."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from inspect import signature
from pathlib import Path

import pyarrow as pa
import pytest

from hades.build.context import wait_to_build
from hades.errors import StoreBusy
from hades.files import FileLock
from hades.ports.store import Mode
from hades.stores.arango.client import ArangoEndpoints
from hades.stores.arango.store import ArangoStore
from hades.stores.arango.transaction import BuildLease, Unit
from tests.arango_double.server import ArangoDouble
from tests.patience import HANG_SECONDS

SECRET = "of the double"
Lock = FileLock | BuildLease


@contextmanager
def only_builder(lock: Lock, command: str, wait_seconds: float) -> Iterator[None]:
    with closing(lock):
        wait_to_build(lock.claim, command, wait_seconds)
        yield


@pytest.fixture(scope="module")
def store() -> Iterator[ArangoStore]:
    with ArangoDouble(root_password=SECRET) as server:
        endpoints = ArangoEndpoints(url=server.url, database="kg", user="root", password=SECRET)
        opened = ArangoStore(endpoints, Mode.ADMIN)
        opened.provision()
        yield opened
        opened.close()


@pytest.fixture(params=["home", "database"])
def lock(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Lock]:
    if request.param == "home":
        return lambda: FileLock(tmp_path / "home" / ".build.lock")
    opened = request.getfixturevalue("store")
    return lambda: BuildLease(opened.session)


def test_a_second_build_says_who_builds_and_since_when(lock: Callable[[], Lock]) -> None:
    refused = rf"nightly \(process {os.getpid()} on .+, since \d{{4}}-.+ UTC\) builds this graph.+forget waited 0 s"
    with only_builder(lock(), "nightly", 0), pytest.raises(StoreBusy, match=refused), only_builder(lock(), "forget", 0):
        pass
    with only_builder(lock(), "forget", 0):  # the first has ended
        pass


def test_a_build_that_waits_tells_it_once_and_begins_when_the_other_ends(
    lock: Callable[[], Lock], caplog: pytest.LogCaptureFixture
) -> None:
    begun = threading.Event()

    def build_second() -> None:
        with only_builder(lock(), "watch", HANG_SECONDS):
            begun.set()

    second = threading.Thread(target=build_second)
    with only_builder(lock(), "nightly", 0):
        second.start()
        assert not begun.wait(0.7)
    second.join()
    assert begun.is_set()
    assert [record.getMessage().count("watch waits for it, at most") for record in caplog.records] == [1]


def test_a_builder_that_is_silent_too_long_is_replaced(store: ArangoStore) -> None:
    dead = BuildLease(store.session, renewed_seconds=3600.0)
    assert dead.claim("killed") is None
    with only_builder(BuildLease(store.session, expires_seconds=0.5), "nightly", HANG_SECONDS):
        dead.close()  # ends nothing that is another's
        assert "nightly" in str(BuildLease(store.session).claim("forget"))


def test_who_replaces_a_killed_builder_can_write_the_rows_that_it_was_writing() -> None:
    faster = 12  # the server's clock, and the lease with it
    with ArangoDouble(root_password=SECRET, write_lock_seconds=0.05, clock=lambda: faster * time.monotonic()) as server:
        endpoints = ArangoEndpoints(url=server.url, database="kg", user="root", password=SECRET)
        with closing(ArangoStore(endpoints, Mode.ADMIN)) as store:
            store.provision()
            killed = BuildLease(store.session, renewed_seconds=3600.0)
            assert killed.claim("killed") is None
            store.upsert("entities", pa.table({"_key": ["a"], "name": ["A"], "name_lower": ["a"], "type": ["concept"]}))
            Unit.begin(store.session.db, ["entities"]).collection("entities").delete("a")  # and never commits
            expires = signature(BuildLease).parameters["expires_seconds"].default / faster
            with only_builder(BuildLease(store.session, expires_seconds=expires), "nightly", HANG_SECONDS):
                assert store.delete("entities", keys=["a"]) == 1


def test_a_builder_that_comes_back_after_it_was_replaced_stops(store: ArangoStore) -> None:
    paused = BuildLease(store.session, renewed_seconds=0.05)
    journal = store.session.db.collection("write_journal")

    def build() -> None:
        with only_builder(paused, "nightly", 0):
            journal.update({"_key": "builder", "token": "of another process"})
            threading.Event().wait(HANG_SECONDS)

    with pytest.raises(StoreBusy, match="another has begun"):
        build()
    journal.delete("builder")
