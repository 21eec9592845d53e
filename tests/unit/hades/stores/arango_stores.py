"""Handles on a database of the loopback double."""

from typing import Any

from hades.ports.store import Mode
from hades.stores.arango.client import ArangoEndpoints
from hades.stores.arango.errors import RetryPolicy
from hades.stores.arango.store import ArangoStore
from tests.arango_double.server import ArangoDouble

SECRET = "not to be seen"


def opened(
    double: ArangoDouble, mode: Mode = Mode.READ_WRITE, attempts: int = 4, **options: Any
) -> ArangoStore:
    """A handle that waits for nothing between its attempts."""
    endpoints = ArangoEndpoints(url=double.url, database="kg", user="root", password=SECRET)
    quick = RetryPolicy(attempts=attempts, sleep=lambda _: None)
    return ArangoStore(endpoints, mode, fail_on_warning=True, retry=quick, **options)
