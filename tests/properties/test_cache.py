"""Whatever is done in whatever order, sizes are the sums of what is held and no budget is ever
exceeded (A30, A37).
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from hades.cache.stores import GIB, MIB, MISS, DiskCache, LRUCache, to_json
from tests.patience import examples

KEYS = st.sampled_from(["a", "b", "c", "d", "a:b"])
VALUES = st.one_of(
    st.none(),
    st.just([]),
    st.integers(-5, 5),
    st.text(max_size=40),
    st.builds(lambda n: "x" * n, st.integers(0, 130)),
)
LIMIT = 200


class MemoryTier(RuleBasedStateMachine):
    """The tier in memory beside a plain model of it: a list of entries, the least recently used
    first.
    """

    def __init__(self) -> None:
        super().__init__()
        self.cache = LRUCache(LIMIT / MIB)
        self.model: dict[str, tuple[object, int]] = {}

    @rule(key=KEYS, value=VALUES, stated=st.one_of(st.none(), st.integers(0, LIMIT + 50)))
    def put(self, key: str, value: object, stated: int | None) -> None:
        size = len(to_json(value) or b"") if stated is None else stated
        self.model.pop(key, None)
        fits = size <= LIMIT
        assert self.cache.put(key, value, None if stated is None else stated / MIB) == fits
        if fits:
            while sum(held for _, held in self.model.values()) + size > LIMIT:
                self.model.pop(next(iter(self.model)))
            self.model[key] = (value, size)

    @rule(key=KEYS)
    def get(self, key: str) -> None:
        expected = self.model.get(key)
        assert self.cache.get(key, MISS) == (MISS if expected is None else expected[0])
        if expected is not None:
            self.model[key] = self.model.pop(key)

    @rule(key=KEYS)
    def remove(self, key: str) -> None:
        assert self.cache.remove(key) == (self.model.pop(key, None) is not None)

    @rule()
    def clear(self) -> None:
        self.cache.clear()
        self.model.clear()

    @invariant()
    def sizes_are_exact(self) -> None:
        assert self.cache.current_bytes == sum(size for _, size in self.model.values()) <= LIMIT
        assert len(self.cache) == len(self.model)


class DiskTier(RuleBasedStateMachine):
    """Two handles on one folder, as two processes have them, with files damaged and handles
    reopened in between.
    """

    @initialize()
    def begin(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="hades-cache-"))
        self.clock = 0.0
        self.handles = [self.opened(), self.opened()]
        self.stored: dict[str, object] = {}

    def opened(self) -> DiskCache:
        return DiskCache(self.folder, LIMIT / GIB, now=self.tick)

    def tick(self) -> float:
        self.clock += 1
        return self.clock

    def held(self) -> dict[str, int]:
        """The bytes of each value in the file, counted without the cache's own sums."""
        path = self.folder / "cache.db"
        if not path.exists():
            return {}
        with closing(sqlite3.connect(path)) as connection:
            return dict(connection.execute("SELECT key, LENGTH(payload) FROM entry").fetchall())

    @rule(who=st.integers(0, 1), key=KEYS, value=VALUES)
    def put(self, who: int, key: str, value: object) -> None:
        self.stored[key] = value
        assert self.handles[who].put(key, value) == (len(to_json(value) or b"") <= LIMIT)

    @rule(who=st.integers(0, 1), key=KEYS)
    def get(self, who: int, key: str) -> None:
        found = self.handles[who].get(key, MISS)
        assert found is MISS or found == self.stored[key]

    @rule(who=st.integers(0, 1), key=KEYS)
    def remove(self, who: int, key: str) -> None:
        self.handles[who].remove(key)
        assert self.handles[1 - who].get(key, MISS) is MISS

    @rule(who=st.integers(0, 1))
    def reopen(self, who: int) -> None:
        self.handles[who].close()
        self.handles[who] = self.opened()

    @rule(which=st.integers(0, 9), body=st.sampled_from([b"{", b"null", b'"other"']))
    def damage(self, which: int, body: bytes) -> None:
        if keys := sorted(self.held()):
            key = keys[which % len(keys)]
            with closing(sqlite3.connect(self.folder / "cache.db")) as connection, connection:
                connection.execute("UPDATE entry SET payload = ? WHERE key = ?", (body, key))
            if body != to_json(self.stored[key]):
                assert self.handles[0].get(key, MISS) is MISS

    @rule()
    def clear(self) -> None:
        self.handles[0].clear()
        assert self.held() == {}

    @invariant()
    def sizes_are_exact_and_inside_the_budget(self) -> None:
        items = self.handles[0].index["items"]
        sizes = {key: round(entry["size_mb"] * MIB) for key, entry in items.items()}
        assert (
            self.handles[0].current_bytes
            == self.handles[1].current_bytes
            == sum(sizes.values())
            <= LIMIT
        )
        assert self.held() == sizes
        assert len(self.handles[0]) == len(items)

    def teardown(self) -> None:
        for handle in self.handles:
            handle.close()
        shutil.rmtree(self.folder)


TestMemoryTier = MemoryTier.TestCase
TestMemoryTier.settings = settings(max_examples=examples(20), stateful_step_count=30)
TestDiskTier = DiskTier.TestCase
TestDiskTier.settings = settings(max_examples=examples(8), stateful_step_count=25)
