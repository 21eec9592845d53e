"""Every store under the same suite: SQLite, ArangoDB on the loopback double, and a real server where one is given."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from hades.ports.store import GraphStore, Mode
from hades.stores.arango.endpoints import ArangoEndpoints
from hades.stores.arango.store import ArangoStore
from hades.stores.sqlite.store import SqliteStore
from tests.arango_double.server import ArangoDouble

REAL_SERVER = os.environ.get("HADES_TEST_ARANGO_URL")
OpenStore = Callable[[Mode], GraphStore]
PASSWORD = "of the double"
SMALL = 256 * 1024  # so small a limit makes every build of the suite span several transactions


@pytest.fixture(scope="session")
def double() -> Iterator[ArangoDouble]:
    """One loopback double for the whole run; each test has a database of its own."""
    with ArangoDouble(root_password=PASSWORD, transaction_size_limit=SMALL, tells_options=True) as server:
        yield server


@pytest.fixture(params=["sqlite", "arango-socket", "arango"])
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OpenStore]:
    """Opens handles, in any mode, on one provisioned and empty store."""
    handles: list[GraphStore] = []
    if request.param == "sqlite":
        if REAL_SERVER:
            pytest.skip("a real ArangoDB server is being tested")

        def opener(mode: Mode) -> GraphStore:
            return SqliteStore.open(tmp_path / "graph.db", mode)
    else:
        endpoints = _endpoints(request, tmp_path)

        def opener(mode: Mode) -> GraphStore:
            return ArangoStore.open(endpoints, mode=mode, fail_on_warning=True, wait_for_view=True)

    def remembered(mode: Mode) -> GraphStore:
        handles.append(opener(mode))
        return handles[-1]

    admin = remembered(Mode.ADMIN)
    admin.provision()
    yield remembered
    for handle in handles:
        handle.close()


@pytest.fixture
def store(open_store: OpenStore) -> GraphStore:
    """A provisioned, empty store that may be written."""
    return open_store(Mode.READ_WRITE)


def _endpoints(request: pytest.FixtureRequest, tmp_path: Path) -> ArangoEndpoints:
    database = f"test_{uuid.uuid4().hex[:12]}"
    if REAL_SERVER:
        if request.param == "arango-socket":
            pytest.skip("a real ArangoDB server is tested by its URL")
        parts = urlsplit(REAL_SERVER)
        return ArangoEndpoints(
            url=f"{parts.scheme}://{parts.hostname}:{parts.port or 8529}",
            database=database,
            user=parts.username or os.environ.get("HADES_TEST_ARANGO_USER", "root"),
            password=parts.password or os.environ.get("HADES_TEST_ARANGO_PASSWORD", ""),
        )
    server: ArangoDouble = request.getfixturevalue("double")
    if request.param == "arango":
        return ArangoEndpoints(url=server.url, database=database, user="root", password=PASSWORD)
    path = str(server.unix_socket(tmp_path / "arangod.sock"))
    return ArangoEndpoints(
        url=None,
        database=database,
        user="root",
        password=PASSWORD,
        ro_socket=path,
        rw_socket=path,
        admin_socket=path,
    )
