"""Several processes behind one socket: all answer, one that dies is replaced, and all stop
together.
"""

import json
import socket
import urllib.request
from urllib.parse import urlsplit

import psutil

from hades.surfaces.access.limits import Limits
from hades.surfaces.rest.app import share_of
from tests.integration.rest_site import build_home, serving_process
from tests.patience import HANG_SECONDS, wait_until


def workers_of(process):
    alive = [
        one
        for one in psutil.Process(process.pid).children()
        if one.status() != psutil.STATUS_ZOMBIE
    ]
    return [one.pid for one in alive if "spawn_main" in " ".join(one.cmdline())]


def ask(address, text, recipe="lexical"):
    body = json.dumps({"query": text, "recipe": recipe}).encode()
    request = urllib.request.Request(
        f"{address}/v1/query", body, {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=HANG_SECONDS) as reply:
        return json.load(reply)


def answering(address):
    where = urlsplit(address)
    with socket.create_connection((where.hostname, where.port), timeout=HANG_SECONDS):
        return bool(ask(address, "which towns does the Rhine pass?")["passages"])


def test_a_worker_that_dies_is_replaced_and_all_stop_with_the_service(tmp_path):
    settings = build_home(tmp_path)
    with serving_process(settings, "--port", "0", "--no-token", "--workers", "2") as (
        process,
        address,
    ):
        wait_until(lambda: len(workers_of(process)) == 2)
        assert answering(address)
        first = workers_of(process)
        snapshots = {ask(address, "which towns does the Elbe pass?")["snapshot"] for _ in range(6)}
        assert len(snapshots) == 1
        psutil.Process(first[0]).kill()
        wait_until(lambda: len(workers_of(process)) == 2 and first[0] not in workers_of(process))
        assert answering(address)
        last = workers_of(process)
    assert process.returncode == 0
    assert not any(psutil.pid_exists(one) for one in last)


def test_workers_share_the_limits_of_the_service():
    share = share_of(Limits(per_second=100.0, burst=200.0, waiting=512, cache_bytes=64), 4)
    assert (share.per_second, share.burst, share.waiting, share.cache_bytes) == (
        25.0,
        50.0,
        128,
        16,
    )
