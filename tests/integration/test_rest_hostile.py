"""Hostile requests: whatever is sent, no 5xx, no write, no leak; and the service still answers
afterwards.
"""

import json
import random
import socket

import httpx
import pytest

from hades.ports.store import Mode
from hades.surfaces.access.limits import Door, Limits, tcp_door
from hades.wiring import open_hades
from tests.integration.rest_site import build_home, serving
from tests.patience import HANG_SECONDS

LIMITS = Limits(per_second=0, body_bytes=64 * 1024, arrive_seconds=2.0)
INJECTIONS = (
    "' OR 1=1 --",
    '"; DROP TABLE entities; --',
    "') UNION SELECT sql FROM sqlite_master --",
    "x' AND randomblob(9)",
    "FOR d IN entities REMOVE d IN entities",
    "' RETURN (FOR u IN _users RETURN u) //",
    "@@collection",
    "${7*7}",
    "{{7*7}}",
    "NEAR(a b",
    'AND OR NOT "',
    "a* OR b:",
    "^%$#~`|\\",
    "rhine\x00",
    "\u202e\u200b\ufeff",
    "../../../../etc/passwd",
    "..%2f..%2f..%2fetc%2fpasswd",
    "/etc/passwd",
    "file:///etc/passwd",
    "entities/../tokens",
    "C:\\Windows\\win.ini",
    "tokens.json",
    "<script>alert(1)</script>",
    "%s%s%n",
    "a" * 5000,
    "𝕽" * 500,
    "-1",
    "1e400",
    "null",
    "true",
    "[]",
    "{}",
    "\r\nSet-Cookie: a=b",
    "%0d%0aX-Evil: 1",
    "__proto__",
    "constructor.prototype",
)
LEAKS = ("root:x:", "Traceback", "site-packages", "sha256")
READS = (
    "/v1/graph/nodes/",
    "/v1/queries/",
    "/v1/graph/neighbours?id=",
    "/v1/graph/subgraph?id=",
    "/",
)
VALUES = (
    None,
    True,
    -1,
    0,
    1e308,
    10**40,
    float("nan"),
    "",
    "x",
    [],
    [[]],
    {},
    {"a": {"b": []}},
    "2026-13-45",
    "\ud800",
)
KEYS = (
    "query",
    "recipe",
    "plan",
    "as_of",
    "known_at",
    "max_paths",
    "mode",
    "near",
    "domain",
    "$where",
    "__class__",
)


def hostile_requests(count: int, seed: int):
    """(method, path, headers, body): injections, wrong shapes, wrong encodings, wrong sizes, wrong
    tokens.
    """
    chance = random.Random(seed)
    for _ in range(count):
        poison = chance.choice(INJECTIONS)
        kind = chance.randrange(8)
        headers = {"Content-Type": "application/json"}
        if kind == 0:
            yield (
                "POST",
                "/v1/query",
                headers,
                dumped({"query": poison, "recipe": chance.choice(("lexical", "pathrag"))}),
            )
        elif kind == 1:
            body = {
                key: chance.choice((*VALUES, poison))
                for key in chance.sample(KEYS, chance.randint(1, 6))
            }
            yield "POST", chance.choice(("/v1/query", "/v1/query/stream")), headers, dumped(body)
        elif kind == 2:
            yield (
                chance.choice(("GET", "DELETE", "PUT", "PATCH")),
                chance.choice(READS) + quoted(poison),
                {},
                b"",
            )
        elif kind == 3:
            raw = chance.choice(
                (
                    b"{",
                    b"[" * 20_000,
                    b"\xff\xfe",
                    b'{"query": "' + b"a" * 90_000,
                    b"",
                    b"null",
                    b"0",
                )
            )
            yield "POST", "/v1/query", headers, raw
        elif kind == 4:
            wrong = {
                "Authorization": chance.choice(
                    ("Bearer x", "Bearer hades_0_x", f"Basic {quoted(poison)}", "x")
                )
            }
            yield "POST", "/v1/snapshots/rollback", {**headers, **wrong}, dumped({"what": poison})
        elif kind == 5:
            plan = {
                chance.choice(("graph", "budget", "reasons", "profile", poison)): chance.choice(
                    (*VALUES, poison)
                )
            }
            yield "POST", "/v1/query", headers, dumped({"query": "x", "plan": plan})
        elif kind == 6:
            fanout = chance.choice((-1, 10**9, "x"))
            params = f"id=entities/x&types={quoted(poison)}&fanout={fanout}&as_of={quoted(poison)}"
            yield "GET", f"/v1/graph/{chance.choice(('neighbours', 'subgraph'))}?{params}", {}, b""
        else:
            target = chance.choice(
                (
                    "/v1/queries/x/feedback",
                    "/v1/entities/x",
                    "/v1/memory/states",
                    "/v1/memory/erase",
                )
            )
            yield (
                "POST",
                target,
                {**headers, "X-Long": "y" * chance.choice((1, 9000))},
                dumped({"fields": poison}),
            )


def quoted(text: str) -> str:
    return httpx.QueryParams({"a": text.encode("utf-8", "replace").decode()}).__str__()[2:]


def dumped(body) -> bytes:
    return json.dumps(body).encode("utf-8", "replace")


def stored(settings) -> dict[str, int]:
    with open_hades(settings) as hades:
        return hades.store.counts()


def attack(settings, door: Door, count: int, seed: int) -> dict[int, int]:
    """Send them all; the statuses that came back."""
    statuses: dict[int, int] = {}
    with serving(settings, door, LIMITS) as running:
        for method, path, headers, body in hostile_requests(count, seed):
            answer = running.client.request(method, path, headers=headers, content=body)
            statuses[answer.status_code] = statuses.get(answer.status_code, 0) + 1
            assert answer.status_code < 500, (method, path, body[:300], answer.text)
            leaks = (*LEAKS, str(settings.home))
            assert not [leak for leak in leaks if leak in answer.text], (
                method,
                path,
                answer.text[:500],
            )
            assert "x-evil" not in answer.headers
        assert running.client.get("/health").json() == {"status": "ok"}
    return statuses


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    return build_home(tmp_path_factory.mktemp("hostile"))


@pytest.fixture(scope="module")
def running(settings):
    with serving(settings, limits=LIMITS) as service:
        yield service


def test_hostile_requests_neither_break_nor_write_nor_leak(settings):
    before = stored(settings)
    statuses = attack(settings, tcp_door(Mode.READ_ONLY, "127.0.0.1", needs_token=False), 500, 1)
    assert stored(settings) == before
    assert set(statuses) <= {200, 400, 401, 404, 405, 413, 422, 431}
    assert statuses[422] > 50


def test_without_a_token_nothing_is_learned(settings):
    statuses = attack(settings, tcp_door(Mode.ADMIN, "127.0.0.1", needs_token=True), 150, 2)
    assert set(statuses) <= {401, 404, 405}
    assert statuses[401] > 100


@pytest.mark.parametrize(
    "raw",
    [
        b"\x00" * 100,
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /v1/query HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET http://evil/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /%00%ff%fe HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /..%2f..%2fetc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET //etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 70_000 + b"\r\n\r\n",
        b"POST /v1/query HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: "
        b"chunked\r\n\r\n0\r\n\r\n",
        b"POST /v1/query HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"POST /v1/query HTTP/1.1\r\nHost: localhost\r\nContent-Length: "
        b"99999999999999999999999\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    ],
)
def test_what_is_hardly_http_is_refused_and_forgotten(running, raw):
    with socket.create_connection(
        ("127.0.0.1", httpx.URL(running.address).port), timeout=HANG_SECONDS
    ) as one:
        one.sendall(raw)
        try:
            said = one.recv(65536)
        except ConnectionError:
            said = b""
    assert not said.startswith(b"HTTP/1.1 5"), said[:300]
    assert b"root:x:" not in said
    assert running.client.get("/health").status_code == 200
