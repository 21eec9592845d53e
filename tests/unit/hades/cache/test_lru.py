"""The tier in memory: least recently used first, sizes exact, a miss unlike any value (A26 to A31,
X-08, X-10).
"""

from __future__ import annotations

import pytest

from hades.cache.stores import MIB, UNKNOWN_BYTES, LRUCache

TENTH = 0.1


def test_what_json_cannot_hold_counts_a_tenth_and_is_kept_as_it_is():
    cache, thing = LRUCache(1), object()
    cache.put("key", thing)
    assert cache.get("key") is thing
    assert cache.current_bytes == UNKNOWN_BYTES == int(TENTH * MIB)


def test_changing_what_a_look_up_returned_changes_nothing():
    cache = LRUCache(1)
    cache.put("key", {"paths": [1]})
    cache.get("key")["paths"].append(2)
    assert cache.get("key") == {"paths": [1]}


def test_whoever_is_pushed_out_is_told_of():
    told = []
    cache = LRUCache(1, on_evict=lambda key, value: told.append((key, value)))
    cache.put("a", [1], 0.6)
    cache.put("b", [2], 0.6)
    assert told == [("a", [1])]
    assert cache.counts.evicted == 1


@pytest.mark.parametrize("size", [0, -1])
def test_a_cache_needs_room(size):
    with pytest.raises(ValueError, match="room"):
        LRUCache(size)


def test_a_negative_size_is_refused():
    with pytest.raises(ValueError, match="negative"):
        LRUCache(1).put("key", 1, -0.5)
