"""A command that builds holds a lock; another says who builds, waits for it, and gives up with
nothing changed.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from contextvars import copy_context
from functools import partial
from inspect import signature
from pathlib import Path

import pyarrow as pa
import pytest

from hades.errors import StoreBusy, StoreUnavailable
from hades.files import FileLock
from hades.night.context import BUILD_CHECKS, wait_to_build
from hades.ports.store import Mode
from hades.snapshot.pointer import served
from hades.stores.arango import client
from hades.stores.arango.build_lease import BuildLease
from hades.stores.arango.client import BUILT_HERE, ArangoEndpoints, ArangoSession
from hades.stores.arango.errors import RetryPolicy, TimedOut
from hades.stores.arango.store import ArangoStore
from hades.stores.arango.transaction import Unit, in_unit
from hades.wiring import hold_build, open_hades
from tests.arango_double.server import ArangoDouble
from tests.homes import settings_of
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


def test_what_a_build_reads_waits_for_a_server_that_answers_late_and_says_what_for(
    store: ArangoStore, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "TELL_SECONDS", 0.01)
    endpoints = ArangoEndpoints(
        url=store.session.endpoint.url, database="kg", user="root", password=SECRET
    )
    session = ArangoSession(endpoints, Mode.READ_WRITE, retry=RetryPolicy(sleep=lambda _: None))
    calls: list[str] = []

    def answer_late() -> str:
        calls.append("asked")
        if len(calls) < 3:
            raise TimedOut("it did not answer within 30 s")
        while "waiting for the server" not in caplog.text:
            time.sleep(0.01)
        return "answered"

    with pytest.raises(StoreUnavailable, match="did not answer within 30 s"):
        session.run("reading entities", answer_late, again=True)
    with only_builder(BuildLease(store.session), "nightly", 0):
        assert session.run("reading entities", answer_late, again=True) == "answered"
    assert f"waiting for the server at {endpoints.url}: reading entities" in caplog.text
    session.close()


@pytest.fixture(params=["home", "database"])
def lock(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Lock]:
    if request.param == "home":
        return lambda: FileLock(tmp_path / "home" / ".build.lock")
    opened = request.getfixturevalue("store")
    return lambda: BuildLease(opened.session)


def test_a_second_build_says_who_builds_and_since_when(lock: Callable[[], Lock]) -> None:
    refused = (
        rf"nightly \(process {os.getpid()} on .+, since \d{{4}}-.+ UTC\) builds this "
        r"graph.+forget waited 0 s"
    )
    with (
        only_builder(lock(), "nightly", 0),
        pytest.raises(StoreBusy, match=refused),
        only_builder(lock(), "forget", 0),
    ):
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
    assert [
        record.getMessage().count("watch waits for it, at most") for record in caplog.records
    ] == [1]


def test_a_builder_that_is_silent_too_long_is_replaced(store: ArangoStore) -> None:
    dead = BuildLease(store.session, renewed_seconds=3600.0)
    assert dead.claim("killed") is None
    with only_builder(BuildLease(store.session, expires_seconds=0.5), "nightly", HANG_SECONDS):
        dead.close()  # ends nothing that is another's
        assert "nightly" in str(BuildLease(store.session).claim("forget"))


def test_who_replaces_a_killed_builder_can_write_the_rows_that_it_was_writing(
    store: ArangoStore,
) -> None:
    """What the killed one left open is undone at once, not by the server after a minute."""
    killed = BuildLease(store.session, renewed_seconds=3600.0)
    assert killed.claim("killed") is None
    store.upsert(
        "entities",
        pa.table({"_key": ["a"], "name": ["A"], "name_lower": ["a"], "type": ["concept"]}),
    )
    unit = Unit.begin(store.session.db, ["entities"])
    unit.collection("entities").delete("a")  # and never commits
    BUILT_HERE.clear()  # the killed one was a process of its own
    with only_builder(BuildLease(store.session, expires_seconds=0.5), "nightly", HANG_SECONDS):
        assert unit.transaction_status() == "aborted"
        assert store.delete("entities", keys=["a"]) == 1


def test_a_builder_that_was_paused_asks_before_it_writes() -> None:
    with ArangoDouble(root_password=SECRET) as server:
        endpoints = ArangoEndpoints(url=server.url, database="kg", user="root", password=SECRET)
        with (
            closing(ArangoStore(endpoints, Mode.ADMIN)) as store,
            closing(ArangoStore(endpoints)) as lease_store,
        ):
            store.provision()
            paused = BuildLease(lease_store.session, renewed_seconds=3600.0, expires_seconds=0.0)
            assert paused.claim("paused") is None
            write = partial(in_unit, store.session, "writing", ["entities"], lambda unit: None)
            write()
            store.session.db.collection("write_journal").update(
                {"_key": "builder", "token": "of another process"}
            )
            with pytest.raises(StoreBusy, match="another has begun"):
                write()
            with pytest.raises(StoreBusy, match="another has begun"):
                paused.close()


def test_a_build_that_was_replaced_does_not_publish(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings_of(tmp_path / "home")
    (tmp_path / "page.md").write_text("# Karst\n\nWater dissolves limestone.")

    def refuse() -> None:
        raise StoreBusy("another has begun")

    with open_hades(settings) as hades:
        hades.ingest.documents(tmp_path)
        monkeypatch.setitem(BUILD_CHECKS, settings.home.resolve(), refuse)
        with pytest.raises(StoreBusy, match="another has begun"):
            hades.build()
    assert served(settings.home) == ""


def test_a_killed_builder_is_replaced_within_fifteen_seconds() -> None:
    """By the defaults: it renews three times before it counts as dead."""
    defaults = signature(BuildLease).parameters
    expires = defaults["expires_seconds"].default
    assert expires + 1.0 <= 15.0  # one look, and a second for what it left open
    assert defaults["renewed_seconds"].default * 3 <= expires


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


def test_calls_of_the_library_wait_for_the_command_that_builds(tmp_path: Path) -> None:
    settings = settings_of(tmp_path / "home").model_copy(update={"build_wait_seconds": 0.0})
    (tmp_path / "page.md").write_text("# Karst\n\nWater dissolves limestone.")
    with open_hades(settings) as hades:
        calls = (
            hades.build,
            hades.publish,
            lambda: hades.forget(["page.md"]),
            lambda: hades.ingest.documents(tmp_path),
        )
        with only_builder(FileLock(settings.home / ".build.lock"), "hades watch", 0):
            for call in calls:
                with pytest.raises(StoreBusy, match=r"hades watch .+ builds this graph"):
                    call()
        hades.ingest.documents(tmp_path)
        assert hades.build()["released"]["snapshot"]


def test_what_a_build_calls_goes_on_under_its_lock_and_another_thread_does_not(
    tmp_path: Path,
) -> None:
    settings = settings_of(tmp_path / "home").model_copy(update={"build_wait_seconds": 0.0})

    def build_too() -> None:
        with pytest.raises(StoreBusy, match="nightly"), hold_build("build", settings):
            pass

    with hold_build("nightly", settings):
        with hold_build("ingest", settings), ThreadPoolExecutor(1) as other:
            other.submit(build_too).result()
        with ThreadPoolExecutor(1) as shard:  # of this build
            shard.submit(
                copy_context().run, lambda: hold_build("ingest", settings).__enter__()
            ).result()
    with ThreadPoolExecutor(1) as other:
        other.submit(lambda: hold_build("build", settings).__enter__()).result()
