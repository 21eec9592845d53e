"""Fixtures: an engine without HTTP, and a running double with a client for it."""

from collections.abc import Iterator

import pytest
from arango import ArangoClient
from arango.database import StandardDatabase
from arango.http import DefaultHTTPClient

from tests.arango_double.server import ArangoDouble
from tests.patience import HANG_SECONDS
from tests.unit.arango_double.engine import Engine


@pytest.fixture
def engine() -> Engine:
    return Engine()


@pytest.fixture
def double() -> Iterator[ArangoDouble]:
    with ArangoDouble(root_password="secret", write_lock_seconds=0.1, lock_seconds=0.2) as running:
        running.state.create_database("db")
        yield running


def connect(double: ArangoDouble, user: str = "root", password: str = "secret", **options: object) -> StandardDatabase:
    """A client that sends every request once: what the tests count is what was asked."""
    client = ArangoClient(
        double.url, http_client=DefaultHTTPClient(request_timeout=HANG_SECONDS, retry_attempts=0), resolver_max_tries=1
    )
    return client.db("db", username=user, password=password, **options)  # type: ignore[arg-type]


@pytest.fixture
def db(double: ArangoDouble) -> StandardDatabase:
    return connect(double)
