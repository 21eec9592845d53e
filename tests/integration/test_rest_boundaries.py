"""Who gets in, what is kept of them, and what they cannot do to the service."""

import json
import os
import shutil
import socket
import stat
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from hades.ports.services import utc_now
from hades.ports.store import Mode
from hades.surfaces.access.limits import Door, Limits, Tokens, tcp_door
from tests.integration.rest_site import build_home, serving, serving_process
from tests.patience import HANG_SECONDS

QUESTION = {"query": "which towns does the Rhine flow through?"}
NOBODY = 65534


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    return build_home(tmp_path_factory.mktemp("boundaries"))


def audit(settings, mode):
    path = settings.home / "logs" / f"audit_{mode}.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def as_nobody(act, groups=()):
    """The errno that an act of an unprivileged user ends with; 0 when it succeeds."""
    child = os.fork()
    if child == 0:
        try:
            os.setgroups(list(groups))
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            act()
            os._exit(0)
        except OSError as error:
            os._exit(error.errno or 255)
        except BaseException:
            os._exit(254)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def connect_to(path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.connect(str(path))


@pytest.fixture
def open_folder():
    """A folder that every user may look into, as /run is."""
    folder = Path(tempfile.mkdtemp(prefix="hades-sockets-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user to try this")
@pytest.mark.parametrize(
    ("mode", "rights", "in_group"),
    [(Mode.READ_ONLY, 0o660, True), (Mode.READ_WRITE, 0o600, False), (Mode.ADMIN, 0o600, False)],
)
def test_only_those_whom_the_socket_allows_can_connect(
    settings, open_folder, mode, rights, in_group
):
    path, group = open_folder / "hades.sock", 54321
    with serving(settings, Door(mode), uds=path) as running:
        assert stat.S_IMODE(path.stat().st_mode) == rights
        assert running.client.get("/health").status_code == 200
        os.chown(path, 0, group)
        assert as_nobody(lambda: connect_to(path)) == 13  # permission denied
        assert as_nobody(lambda: connect_to(path), groups=(group,)) == (0 if in_group else 13)


def test_the_audit_names_the_user_at_the_other_end_of_a_unix_socket(settings, open_folder):
    with serving(settings, Door(Mode.READ_ONLY), uds=open_folder / "s") as running:
        answer = running.client.post("/v1/query", json=QUESTION).json()
    line = audit(settings, "ro")[-1]
    assert line["who"] == f"uid:{os.geteuid()}"
    assert (line["mode"], line["path"], line["status"]) == ("RO", "/v1/query", "200")
    assert line["query_id"] == answer["query_id"]
    assert line["ms"] > 0


def test_tcp_needs_a_token_of_enough_rights(settings):
    tokens = Tokens(settings.home)
    reader, _ = tokens.add("reader", Mode.READ_ONLY, utc_now())
    writer, _ = tokens.add("writer", Mode.READ_WRITE, utc_now())
    with serving(settings, tcp_door(Mode.READ_WRITE, "127.0.0.1", needs_token=True)) as running:
        client = running.client
        for headers in (
            {},
            {"Authorization": "Bearer nonsense"},
            {"Authorization": f"Basic {reader}"},
        ):
            refused = client.post("/v1/query", json=QUESTION, headers=headers)
            assert refused.status_code == 401
            assert refused.json()["message"] == "Not authenticated"
            assert refused.headers["WWW-Authenticate"] == "Bearer"
        assert client.get("/metrics").status_code == 401
        assert client.get("/health").status_code == 200
        asked = client.post(
            "/v1/query", json=QUESTION, headers={"Authorization": f"Bearer {reader}"}
        )
        assert asked.status_code == 200
        judged = f"/v1/queries/{asked.json()['query_id']}/feedback"
        good = {"good": {"passages": [1]}}
        assert (
            client.post(
                judged, json=good, headers={"Authorization": f"Bearer {reader}"}
            ).status_code
            == 403
        )
        assert (
            client.post(
                judged, json=good, headers={"Authorization": f"bearer {writer}"}
            ).status_code
            == 200
        )
        tokens.revoke("reader")
        assert (
            client.post(
                "/v1/query", json=QUESTION, headers={"Authorization": f"Bearer {reader}"}
            ).status_code
            == 401
        )
    wrote = audit(settings, "rw")
    assert [(line["who"], line["status"]) for line in wrote[-2:]] == [
        ("reader", "403"),
        ("writer", "200"),
    ]
    assert all(line["mode"] == "RW" for line in wrote)
    assert all(line["mode"] == "RO" for line in audit(settings, "ro"))
    tokens.revoke("writer")


def test_no_secret_reaches_a_log(settings, programs):
    text, _ = Tokens(settings.home).add("leaky", Mode.READ_ONLY, utc_now())
    secret = "S3cretPassphrase"
    headers = {"Authorization": f"Bearer {text}", "Cookie": f"a={secret}"}
    with (
        serving_process(settings, "--port", "0", programs=programs) as (_, address),
        httpx.Client(base_url=address, timeout=HANG_SECONDS) as client,
    ):
        asked = client.post(
            "/v1/query", json={"query": f"{QUESTION['query']} {secret}"}, headers=headers
        )
        assert asked.status_code == 200
        client.get(f"/v1/graph/nodes/entities/{text}", headers=headers)
        client.get(f"/v1/queries/x/explain?missing={secret}", headers=headers)
        client.get(f"/{text}")
        client.get(f"/v1/queries/{text}/explain", headers=headers)
        client.post("/v1/query", json=QUESTION, headers={"Authorization": f"Bearer {text}x"})
        client.post("/v1/query", content=secret, headers=headers)
    logs = [path for path in (settings.home / "logs").rglob("*") if path.is_file()]
    passage = asked.json()["passages"][0]["text"]
    for log in (*logs, settings.home.parent / "service.log"):
        said = log.read_text(errors="replace")
        assert text.split("_", 2)[2][:20] not in said
        assert secret not in said
        assert passage not in said
    assert "leaky" in (settings.home / "logs" / "audit_ro.jsonl").read_text()
    Tokens(settings.home).revoke("leaky")


def test_another_sites_page_cannot_talk_through_a_door_without_a_token(settings):
    with serving(settings, tcp_door(Mode.READ_WRITE, "127.0.0.1", needs_token=False)) as running:
        post = running.client.post
        assert post("/v1/query", json=QUESTION).status_code == 200
        assert (
            post("/v1/query", json=QUESTION, headers={"Origin": running.address}).status_code == 200
        )
        assert (
            post("/v1/query", json=QUESTION, headers={"Origin": "https://evil.example"}).status_code
            == 403
        )
        assert post("/v1/query", json=QUESTION, headers={"Origin": "null"}).status_code == 403
        assert post("/v1/query", json=QUESTION, headers={"Host": "evil.example"}).status_code == 403
        plain = post(
            "/v1/query", content=json.dumps(QUESTION), headers={"Content-Type": "text/plain"}
        )
        assert plain.status_code == 422


def test_a_body_that_is_too_large_is_refused_stated_or_not(settings):
    limits = Limits(body_bytes=1000, per_second=0)
    with serving(settings, limits=limits) as running:
        stated = running.client.post("/v1/query", content=b"x" * 1001)
        dripped = running.client.post("/v1/query", content=iter([b"x" * 600, b"x" * 600]))
        assert [stated.status_code, dripped.status_code] == [413, 413]
        assert running.client.post("/v1/query", json=QUESTION).status_code == 200


def test_a_client_that_comes_too_often_is_told_when_to_come_again(settings):
    with serving(settings, limits=Limits(per_second=0.001, burst=3)) as running:
        answers = [running.client.get("/v1/snapshots") for _ in range(4)]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
    assert 1 <= int(answers[-1].headers["Retry-After"]) <= 1000


def test_slow_clients_are_let_go_and_keep_nobody_waiting(settings):
    limits = Limits(per_second=0, arrive_seconds=1.0, connections=200)
    with serving(settings, limits=limits) as running:
        port = httpx.URL(running.address).port
        starts = (
            b"",
            b"POST /v1/query HTTP/1.1\r\nHost: localhost\r\nX: ",
            b"POST /v1/query HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{",
        )
        slow = [socket.create_connection(("127.0.0.1", port)) for _ in range(60)]
        for number, one in enumerate(slow):
            one.sendall(starts[number % 3])
        stop = threading.Event()

        def drip():
            while not stop.wait(0.2):
                for one in slow:
                    with suppress(OSError):
                        one.sendall(b"a")

        dripping = threading.Thread(target=drip)
        dripping.start()
        assert running.client.post("/v1/query", json=QUESTION).status_code == 200
        time.sleep(1.5)
        stop.set()
        dripping.join()
        for one in slow:
            one.settimeout(HANG_SECONDS)
            try:
                assert not one.recv(1000).startswith(b"HTTP/1.1 5")
                left = one.recv(1)
            except ConnectionError:
                left = b""
            assert left == b""
            one.close()
        assert running.client.post("/v1/query", json=QUESTION).status_code == 200


def test_a_client_that_goes_away_leaves_the_service_well(settings):
    with serving(settings) as running:
        port = httpx.URL(running.address).port
        body = json.dumps({"query": "who went away?"}).encode()
        head = f"POST /v1/query/stream HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n"
        for _ in range(20):
            with socket.create_connection(("127.0.0.1", port)) as one:
                one.sendall(head.encode() + b"Content-Type: application/json\r\n\r\n" + body)
        assert running.client.post("/v1/query", json=QUESTION).status_code == 200


def test_more_than_the_service_can_answer_is_told_to_come_again(settings):
    limits = Limits(per_second=0, threads=1, waiting=1)
    with serving(settings, limits=limits) as running:
        statuses, refused, answer_at_once = [], threading.Event(), running.services.cached.ask

        def answer_late(*given, **named):
            refused.wait(HANG_SECONDS)
            return answer_at_once(*given, **named)

        def ask(number):
            with httpx.Client(base_url=running.address, timeout=HANG_SECONDS) as client:
                answer = client.post(
                    "/v1/query", json={"query": f"question {number} about the Rhine"}
                )
                statuses.append((answer.status_code, answer.headers.get("Retry-After")))
                if answer.status_code == 503:
                    refused.set()

        running.services.cached.ask = answer_late
        askers = [threading.Thread(target=ask, args=(number,)) for number in range(12)]
        for asker in askers:
            asker.start()
        for asker in askers:
            asker.join()
    assert {status for status, _ in statuses} == {200, 503}
    assert all(wait == "1" for status, wait in statuses if status == 503)


def test_what_nobody_foresaw_is_a_500_without_details_and_the_service_goes_on(settings, caplog):
    def broken(*given: object, **named: object) -> None:
        raise RuntimeError("a wheel came off")

    with serving(settings) as running:
        running.services.cached.ask = broken
        answer = running.client.post("/v1/query", json=QUESTION)
        assert running.client.get("/health").status_code == 200
    assert answer.status_code == 500
    assert answer.json()["error"] == "Unexpected"
    assert "wheel" not in answer.text
    assert "X-Content-Type-Options" in answer.headers
    assert "a wheel came off" in caplog.text
    assert audit(settings, "ro")[-2]["status"] == "500"
