"""Killed at any moment, a publisher leaves a snapshot that opens: the old one or the new one."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

from hades.snapshot.open import open_snapshot
from hades.snapshot.publish import publish
from tests.contract.examples import entity, put
from tests.unit.hades.snapshot.homes import chain_store
from tests.warm_process import start_program

PUBLISHER = """
import os, sys
from pathlib import Path
from hades.ports.store import Mode
from hades.snapshot.publish import publish
from hades.stores.sqlite.store import SqliteStore
from tests.contract.examples import entity, put
home = Path(sys.argv[1])
store = SqliteStore.open(home / "graph.db", Mode.READ_WRITE)
print(os.getpid(), flush=True)
for number in range(1000):
    print(number, flush=True)
    put(store, "entities", entity("changing", name=f"name {number} of {sys.argv[2]}"))
    publish(store, home)
"""


@pytest.mark.slow
@pytest.mark.parametrize("kills", [4, pytest.param(40, marks=pytest.mark.soak)])
def test_current_always_opens_whenever_a_publisher_is_killed(
    tmp_path: Path, programs: Path, kills: int
) -> None:
    store = chain_store(tmp_path / "graph.db", 200)
    began = time.perf_counter()
    publish(store, tmp_path)
    one_publish_seconds = time.perf_counter() - began
    store.close()
    chance = random.Random(7)
    seen = set()
    for round_ in range(kills):
        with start_program(programs, PUBLISHER, tmp_path, round_, stdout=subprocess.PIPE) as child:
            assert child.stdout is not None
            publisher = int(child.stdout.readline())
            for number in range(chance.randint(1, 3)):
                assert child.stdout.readline() == f"{number}\n"
            time.sleep(chance.uniform(0.0, one_publish_seconds))
            os.kill(publisher, signal.SIGKILL)
        view = open_snapshot(tmp_path)
        assert view.info.degraded_from is None
        assert view.number(["entities/e0"]).tolist() != [-1]
        seen.add(view.info.snapshot)
    assert len(seen) > 1
    store = chain_store(tmp_path / "graph.db", 200)
    put(store, "entities", entity("last"))
    publish(store, tmp_path)
    assert not list((tmp_path / "snapshots").glob(".*-*"))
    assert open_snapshot(tmp_path).number(["entities/last"]).tolist() != [-1]
