"""Every store under the same suite: SQLite, ArangoDB on the loopback double, and a real server
where one is given.

A server gets two databases for the whole run, emptied between tests and dropped at the end. At the
end a table says which query files ran.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from hades.ports.store import GraphStore, Mode
from hades.stores.arango.client import ArangoEndpoints, ArangoSession
from hades.stores.arango.store import ArangoStore
from hades.stores.sqlite.store import SqliteStore
from tests.arango_double.server import ArangoDouble

REAL_SERVER = os.environ.get("HADES_TEST_ARANGO_URL")
OpenStore = Callable[[Mode], GraphStore]
PASSWORD = "of the double"
SMALL = 256 * 1024  # so small a limit makes every build of the suite span several transactions
RUN = uuid.uuid4().hex[:8]
DATABASE, VIEW_DATABASE = f"hades_test_{RUN}", f"hades_test_view_{RUN}"
QUERIES = sorted(path for path in (Path(__file__).resolve().parents[2] / "aql").rglob("*.aql"))
executed: dict[str, tuple[int, int]] = {}
provisioned: set[str] = set()  # databases that have every collection
NOT_RUN = {
    "maintenance/probe_vectors": "parsed only, to learn whether the server has vector indexes",
    "view/find_near_by_index": "needs a server with --vector-index",
}
bound: dict[
    str, dict[str, Any]
] = {}  # what each query file was first run with, to ask the server for its plan
plans: dict[str, str] = {}


@pytest.hookimpl(tryfirst=True)  # before `-m` chooses
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A socket file instead of a port changes the transport alone: one file of tests shows it,
    `make soak` all.

    Where a real server is given, the tests of other stores are left out; skipping them would bury
    the table of queries.
    """
    elsewhere = [
        item for item in items if REAL_SERVER and _store_of(item) in ("sqlite", "arango-socket")
    ]
    if elsewhere:
        config.hook.pytest_deselected(items=elsewhere)
        items[:] = [item for item in items if item not in elsewhere]
    for item in items:
        if _store_of(item) == "arango-socket" and item.path.name != "test_store_rows.py":
            item.add_marker(pytest.mark.soak)


def _store_of(item: pytest.Item) -> str | None:
    """Which store a test of the suite runs on; None where it is not of the suite."""
    called = getattr(item, "callspec", None)
    return called.params.get("open_store") if called else None


@pytest.fixture(scope="session")
def double() -> Iterator[ArangoDouble]:
    """One loopback double for the whole run."""
    with ArangoDouble(
        root_password=PASSWORD, transaction_size_limit=SMALL, tells_options=True
    ) as server:
        yield server


@pytest.fixture(scope="session")
def socket_path(double: ArangoDouble, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The double behind one socket file for the whole run: each listener has a thread that wakes 20
    times a second.
    """
    return double.unix_socket(tmp_path_factory.mktemp("double") / "arangod.sock")


@pytest.fixture(scope="session", autouse=True)
def query_log() -> Iterator[None]:
    """Count which query files run and how many rows they give."""
    names = {path.read_text("utf-8"): name_of(path) for path in QUERIES}
    run = ArangoSession.execute

    def noted(self: ArangoSession, db: Any, text: str, *arguments: Any, **options: Any) -> Any:
        cursor = run(self, db, text, *arguments, **options)
        times, rows = executed.get(names.get(text, ""), (0, 0))
        changed = (cursor.statistics() or {}).get("modified", 0)
        executed[names.get(text, "")] = (times + 1, rows + len(cursor.batch() or ()) + int(changed))
        bound.setdefault(names.get(text, ""), dict(arguments[0]) if arguments else {})
        return cursor

    ArangoSession.execute = noted  # type: ignore[method-assign]
    yield
    ArangoSession.execute = run  # type: ignore[method-assign]


@pytest.fixture(scope="session", autouse=True)
def databases() -> Iterator[None]:
    """Drop what the run made on a real server."""
    yield
    if REAL_SERVER:
        system = ArangoStore(real_endpoints("_system"), mode=Mode.ADMIN).session.system_database()
        for name in (DATABASE, VIEW_DATABASE):
            system.delete_database(name, ignore_missing=True)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """The table of query files, on a real server."""
    if not REAL_SERVER:
        return
    terminalreporter.section("query files")
    for path in QUERIES:
        times, rows = executed.get(name_of(path), (0, 0))
        told = plans.get(name_of(path), "") if times else NOT_RUN.get(name_of(path), "NOT RUN")
        terminalreporter.write_line(
            f"{name_of(path):32} executed {times:>6}   rows {rows:>8}   {told}"
        )


@pytest.fixture(params=["sqlite", "arango-socket", "arango"])
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OpenStore]:
    """Opens handles, in any mode, on one provisioned and empty store."""
    handles: list[GraphStore] = []
    if request.param == "sqlite":

        def opener(mode: Mode) -> GraphStore:
            return SqliteStore.open(tmp_path / "graph.db", mode)
    else:
        endpoints = _endpoints(request)

        def opener(mode: Mode) -> GraphStore:
            return ArangoStore(endpoints, mode=mode, fail_on_warning=True, wait_for_view=True)

    def remembered(mode: Mode) -> GraphStore:
        handles.append(opener(mode))
        return handles[-1]

    admin = remembered(Mode.ADMIN)
    if isinstance(admin, ArangoStore):
        provision_empty(admin, request.getfixturevalue("double"))
    else:
        admin.provision()
    yield remembered
    for handle in handles:
        handle.close()


@pytest.fixture
def store(open_store: OpenStore) -> GraphStore:
    """A provisioned, empty store that may be written."""
    return open_store(Mode.READ_WRITE)


def provision_empty(store: ArangoStore, double: ArangoDouble) -> None:
    """Provision the database once in a run, and remove every row: 77 requests a test less than
    doing both each time.
    """
    database = store.session.patient_db
    if database.name not in provisioned:
        store.provision()
        provisioned.add(database.name)
    for name in _written(database, double):
        database.collection(name).truncate()


def _written(database: Any, double: ArangoDouble) -> list[str]:
    """The collections that hold rows; the double is looked into, a server is asked."""
    if not REAL_SERVER:
        held = double.databases[database.name].collections.values()
        return [one.name for one in held if one.documents and not one.is_system]
    names = [one["name"] for one in database.collections() if not one["system"]]
    return [name for name in names if database.collection(name).count()]


def real_endpoints(database: str) -> ArangoEndpoints:
    """The server that the environment names."""
    parts = urlsplit(str(REAL_SERVER))
    return ArangoEndpoints(
        url=f"{parts.scheme}://{parts.hostname}:{parts.port or 8529}",
        database=database,
        user=parts.username or os.environ.get("HADES_TEST_ARANGO_USER", "root"),
        password=parts.password or os.environ.get("HADES_TEST_ARANGO_PASSWORD", ""),
    )


def _endpoints(request: pytest.FixtureRequest) -> ArangoEndpoints:
    if REAL_SERVER:
        return real_endpoints(DATABASE)
    server: ArangoDouble = request.getfixturevalue("double")
    if request.param == "arango":
        return ArangoEndpoints(url=server.url, database=DATABASE, user="root", password=PASSWORD)
    path: str = request.getfixturevalue("socket_path")
    return ArangoEndpoints(
        url=None,
        database=DATABASE,
        user="root",
        password=PASSWORD,
        ro_socket=path,
        rw_socket=path,
        admin_socket=path,
    )


def name_of(path: Path) -> str:
    """What `aql.load` calls a query file."""
    return f"{path.parent.name}/{path.stem}"
