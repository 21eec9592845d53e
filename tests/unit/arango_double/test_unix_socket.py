"""The same protocol over a UNIX socket, through a custom HTTP client of the driver."""

import os
import socket
import stat
from pathlib import Path
from typing import Any

import requests
import urllib3
from arango import ArangoClient
from arango.http import DefaultHTTPClient

from tests.arango_double.server import ArangoDouble
from tests.patience import HANG_SECONDS


class _Connection(urllib3.connection.HTTPConnection):
    def __init__(self, *args: Any, uds: str, **options: Any) -> None:
        super().__init__(*args, **options)
        self.uds = uds

    def connect(self) -> None:
        made = socket.socket(socket.AF_UNIX)
        made.settimeout(self.timeout if isinstance(self.timeout, (int, float)) else None)
        made.connect(self.uds)
        self.sock = made


class _Pool(urllib3.connectionpool.HTTPConnectionPool):
    ConnectionCls = _Connection  # type: ignore[assignment]


class _Adapter(requests.adapters.HTTPAdapter):
    def __init__(self, path: str, **options: Any) -> None:
        self._pool = _Pool("localhost", maxsize=10, uds=path)
        super().__init__(**options)

    def get_connection_with_tls_context(self, *_: Any, **__: Any) -> Any:
        return self._pool


class UnixClient(DefaultHTTPClient):
    """python-arango over a socket file."""

    def __init__(self, path: str, **options: Any) -> None:
        super().__init__(**options)
        self._path = path

    def create_session(self, host: str) -> requests.Session:
        session = requests.Session()
        session.trust_env = False
        session.mount("http://", _Adapter(self._path, max_retries=0))
        return session


def test_the_driver_works_over_a_socket_file(double: ArangoDouble, tmp_path: Path) -> None:
    path = double.unix_socket(tmp_path / "arangod.sock", mode=0o600)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    client = ArangoClient(
        "http://localhost", http_client=UnixClient(path, request_timeout=HANG_SECONDS), resolver_max_tries=1
    )
    db = client.db("db", username="root", password="secret", verify=True)
    db.create_collection("c").insert({"_key": "a"})
    assert list(db.aql.execute("FOR d IN c RETURN d._key")) == ["a"]
    assert "a" in double.databases["db"].collection("c").documents


def test_the_socket_file_goes_away_with_the_double(tmp_path: Path) -> None:
    with ArangoDouble() as double:
        path = double.unix_socket(tmp_path / "x.sock")
        assert os.path.exists(path)
    assert not os.path.exists(path)
