"""The driver's HTTP, over AF_UNIX or TCP: every request goes out once, and failures keep what is known about them."""

from __future__ import annotations

import socket
from collections.abc import MutableMapping
from pathlib import Path
from typing import Any

import requests
from arango.http import HTTPClient
from arango.response import Response
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection
from urllib3.connectionpool import HTTPConnectionPool
from urllib3.exceptions import MaxRetryError, NewConnectionError

from hades.stores.arango.endpoints import Endpoint
from hades.stores.arango.faults import Lost, NotArango, NotSent, TimedOut, TransportError
from hades.stores.arango.retry import CircuitBreaker

_CONNECTIONS = 10


class SingleShotClient(HTTPClient):
    """Sends each request exactly once, through the circuit breaker; what to repeat is decided above, by meaning.

    The driver's own client repeats GETs, and its host resolver repeats every method, so a lost insert runs twice.
    """

    def __init__(self, endpoint: Endpoint, request_timeout_s: float, breaker: CircuitBreaker) -> None:
        self._endpoint = endpoint
        self._breaker = breaker
        self.request_timeout = request_timeout_s

    def create_session(self, host: str) -> requests.Session:
        """A session for one host whose adapter never retries."""
        session = requests.Session()
        # Proxies and .netrc of the environment must not see database traffic; TLS may need its certificate bundle.
        session.trust_env = host.startswith("https://")
        path = self._endpoint.unix_socket
        adapter = _UnixAdapter(path) if path else HTTPAdapter(pool_maxsize=_CONNECTIONS, max_retries=0)
        session.mount("https://", adapter)
        session.mount("http://", adapter)
        return session

    def send_request(
        self,
        session: requests.Session,
        method: str,
        url: str,
        headers: MutableMapping[str, str] | None = None,
        params: MutableMapping[str, str] | None = None,
        data: Any = None,
        auth: tuple[str, str] | None = None,
    ) -> Response:
        """One request, one answer, or a `TransportError`."""
        self._breaker.before_request()
        body = data.encode() if isinstance(data, str) else data
        try:
            answer = session.request(
                method, url, params=params, data=body, headers=headers, auth=auth, timeout=self.request_timeout
            )
        except requests.RequestException as error:
            self._breaker.failed()
            raise _failure(error, self._endpoint, self.request_timeout) from error
        problem = _not_an_answer(answer, self._endpoint)
        if problem is not None:
            self._breaker.failed()
            raise problem
        self._breaker.succeeded()
        answer.encoding = "utf-8"  # guessing it reads the whole body once more
        return Response(
            method=method,
            url=answer.url,
            headers=answer.headers,
            status_code=answer.status_code,
            status_text=answer.reason,
            raw_body=answer.text,
        )


def _failure(error: requests.RequestException, endpoint: Endpoint, timeout_s: float) -> TransportError:
    reason = error.args[0] if error.args else None
    if isinstance(reason, MaxRetryError):
        reason = reason.reason
    if isinstance(error, requests.ConnectTimeout) or isinstance(reason, NewConnectionError):
        return NotSent(f"nothing listens at {endpoint}")
    if isinstance(error, requests.Timeout):
        return TimedOut(f"{endpoint} did not answer within {timeout_s:g} s")
    return Lost(f"the connection to {endpoint} broke before the answer came")


def _not_an_answer(answer: requests.Response, endpoint: Endpoint) -> TransportError | None:
    """What an HTTP answer that is not the database's own means, or None when it is."""
    is_json = not answer.content or "json" in answer.headers.get("content-type", "")
    if answer.status_code == 503 and (not is_json or answer.json().get("errorNum", 503) == 503):
        # The driver would resend on this one: the server starts, stops or is in maintenance.
        return NotSent(f"{endpoint} says that it does not serve at the moment (503)")
    if is_json:
        return None
    if answer.status_code in (502, 504):
        return Lost(f"the proxy at {endpoint} got no answer from the server ({answer.status_code})")
    return NotArango(f"{endpoint} answers, but not as ArangoDB does; check the address")


class _UnixConnection(HTTPConnection):
    def __init__(self, *arguments: Any, unix_socket: str, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._unix_socket = unix_socket

    def connect(self) -> None:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(self.timeout if isinstance(self.timeout, (int, float)) else None)
        try:
            connection.connect(self._unix_socket)
        except OSError as error:
            connection.close()
            raise NewConnectionError(self, f"cannot connect to {self._unix_socket}: {error}") from error
        self.sock = connection


class _UnixPool(HTTPConnectionPool):
    ConnectionCls = _UnixConnection


class _UnixAdapter(HTTPAdapter):
    """Hands every request to one pool of connections to a socket file."""

    def __init__(self, path: Path) -> None:
        self._pool = _UnixPool("localhost", maxsize=_CONNECTIONS, unix_socket=str(path))
        super().__init__(max_retries=0)

    def get_connection_with_tls_context(
        self, request: Any, verify: Any, proxies: Any = None, cert: Any = None
    ) -> HTTPConnectionPool:
        return self._pool

    def close(self) -> None:
        self._pool.close()
        super().close()
