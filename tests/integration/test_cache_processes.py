"""Real processes on one tier: nobody reads half an entry, budgets hold, and a kill at any moment
costs a miss.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import sqlite3
import time
from contextlib import closing, suppress
from pathlib import Path

import pytest

from hades.cache.stores import GIB, MISS, DiskCache
from tests.patience import HANG_SECONDS

pytestmark = pytest.mark.integration

LIMIT = 40_000
KEYS = 60
spawned = multiprocessing.get_context("spawn")


def value_of(key: int, turn: int) -> dict[str, object]:
    """A value that says whose it is, of a size that changes with every turn."""
    return {"key": key, "turn": turn, "body": "x" * ((key * 37 + turn * 101) % 1500)}


def works(folder: str, seed: int, turns: int) -> None:
    """Put, read and remove; a value that is not whole or belongs to another key ends the process
    with an error.
    """
    cache, chance = DiskCache(folder, LIMIT / GIB), random.Random(seed)
    for turn in range(turns):
        key = chance.randrange(KEYS)
        cache.put(str(key), value_of(key, turn))
        asked = chance.randrange(KEYS)
        found = cache.get(str(asked), MISS)
        if found is not MISS:
            assert found == value_of(asked, found["turn"])
        if chance.random() < 0.1:
            cache.remove(str(chance.randrange(KEYS)))
        assert cache.current_bytes <= LIMIT
    assert cache.counts.failed == 0


def works_for_ever(folder: str, seed: int) -> None:
    works(folder, seed, 10**9)


def is_sound(folder: Path) -> bool:
    """Every entry can be read and belongs to its key; the kept sum is the sum of the values, inside
    the budget.
    """
    cache = DiskCache(folder, LIMIT / GIB)
    for key in cache.index["items"]:
        found = cache.get(key, MISS)
        assert found is not MISS
        assert found == value_of(int(key), found["turn"])
    with closing(sqlite3.connect(cache.path)) as connection:
        held = connection.execute("SELECT COALESCE(SUM(LENGTH(payload)), 0) FROM entry").fetchone()[
            0
        ]
        assert connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
    assert cache.counts.damaged == 0
    return bool(held == cache.current_bytes <= LIMIT)


def test_four_processes_share_a_tier(tmp_path):
    workers = [spawned.Process(target=works, args=(str(tmp_path), seed, 120)) for seed in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(HANG_SECONDS)
    assert [worker.exitcode for worker in workers] == [0] * 4
    assert is_sound(tmp_path)


def test_processes_killed_at_any_moment_cost_no_more_than_misses(tmp_path):
    chance = random.Random(1)
    for seed in range(5):
        worker = spawned.Process(target=works_for_ever, args=(str(tmp_path), seed))
        before = last_write(tmp_path)
        worker.start()
        wait_for_change(tmp_path, before)
        time.sleep(chance.random() / 5)
        assert worker.pid is not None
        os.kill(worker.pid, signal.SIGKILL)
        worker.join(HANG_SECONDS)
        assert worker.exitcode == -signal.SIGKILL
        assert is_sound(tmp_path)


def last_write(folder: Path) -> int:
    """A number that changes with every write.

    SQLite deletes its journal with each commit, so a file that was listed may be gone when it is
    read.
    """
    total = 0
    for path in folder.glob("cache.db*"):
        with suppress(FileNotFoundError):
            total += path.stat().st_mtime_ns
    return total


def wait_for_change(folder: Path, before: int) -> None:
    until = time.monotonic() + HANG_SECONDS
    while time.monotonic() < until:
        if last_write(folder) != before:
            return
        time.sleep(0.005)
    raise AssertionError("the process wrote nothing in a minute")
