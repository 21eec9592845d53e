"""The tier on disk: survives, stays inside its bytes, and reads damage as a miss (A32 to A38, X-10
to X-12).
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hades.cache.stores import GIB, MISS, DiskCache


class Clock:
    """A clock that a test moves."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


def of_bytes(folder: Path, size: int, **options: Any) -> DiskCache:
    return DiskCache(folder, size / GIB, **options)


def held(cache: DiskCache) -> int:
    """The bytes of the values in the file, counted without the cache's own sums."""
    with closing(sqlite3.connect(cache.path)) as connection:
        return int(
            connection.execute("SELECT COALESCE(SUM(LENGTH(payload)), 0) FROM entry").fetchone()[0]
        )


@pytest.mark.parametrize("value", [None, [], {}, 0, "", {"a": [1, "ü", None]}])
def test_values_survive_a_restart_and_empty_ones_are_no_miss(tmp_path, value):
    DiskCache(tmp_path).put("a: key / with \\ anything\n", value)
    again = DiskCache(tmp_path)
    assert again.get("a: key / with \\ anything\n", MISS) == value
    assert again.get("another", MISS) is MISS


def test_an_entry_says_what_the_requirement_lists(tmp_path):
    clock = Clock()
    cache = DiskCache(tmp_path, now=clock)
    cache.put("key", "x" * 100, {"importance": 0.5})
    clock.now = 1060.0
    cache.get("key")
    entry = cache.index["items"]["key"]
    assert entry | {"filename": ""} == {
        "filename": "",
        "size_mb": 102 / 1024**2,
        "created": 1000.0,
        "last_accessed": 1060.0,
        "access_count": 2,
        "metadata": {"importance": 0.5},
    }
    assert (tmp_path / entry["filename"]).is_file()
    assert cache.index["total_size_mb"] == 102 / 1024**2


def test_the_least_recently_used_leaves_first_and_of_equals_the_least_used(tmp_path):
    clock = Clock()
    cache = of_bytes(tmp_path, 36, now=clock)
    for name in ("old", "rare", "often"):
        cache.put(name, "x" * 10)
    clock.now += 1
    for name in ("rare", "often", "often"):
        cache.get(name)
    clock.now += 1
    cache.put("new", "x" * 10)
    assert [name in cache for name in ("old", "rare", "often", "new")] == [False, True, True, True]
    cache.put("newer", "x" * 10)
    assert [name in cache for name in ("rare", "often")] == [False, True]


@pytest.mark.parametrize("body", [b"", b"this is no database" * 100])
def test_a_file_that_is_no_database_is_replaced(tmp_path, body):
    before = DiskCache(tmp_path)
    before.put("key", 1)
    before.close()
    for suffix in ("-wal", "-shm"):
        (tmp_path / f"cache.db{suffix}").unlink(missing_ok=True)
    (tmp_path / "cache.db").write_bytes(body)
    cache = DiskCache(tmp_path)
    assert cache.get("key", MISS) is MISS
    assert cache.put("other", 2)
    assert cache.get("other") == 2
    assert len(cache) == 1


def test_clearing_leaves_no_byte_of_a_value_behind(tmp_path):
    cache, other = DiskCache(tmp_path), DiskCache(tmp_path)
    cache.put("key", "secret" * 1000)
    assert other.get("key") == "secret" * 1000
    assert cache.clear() == 1
    assert (held(cache), cache.current_bytes) == (0, 0)
    assert not any(b"secret" in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert other.get("key", MISS) is MISS


def test_looking_into_a_cache_that_is_not_there_creates_nothing(tmp_path):
    cache = DiskCache(tmp_path / "none")
    assert (cache.get("key", MISS), "key" in cache, len(cache)) == (MISS, False, 0)
    assert not (tmp_path / "none").exists()


def test_a_disk_that_cannot_be_written_costs_a_miss_and_no_answer(tmp_path):
    (tmp_path / "file").write_text("in the way")
    cache = DiskCache(tmp_path / "file")
    assert not cache.put("key", 1)
    assert cache.get("key", MISS) is MISS
    assert cache.counts.failed == 1
