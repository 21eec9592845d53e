"""The cache of bridges: exact about generation, time and edges."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hades.cache.bridges import BridgeCache, pin, prune_expired
from hades.errors import BadRows
from hades.ports.store import GraphStore
from tests.contract.examples import day
from tests.unit.hades.stages.bridges.bridge_worlds import NOW, build, cached, empty, join, later, place, scatter, shake

TOPICS = [f"t{number}" for number in range(6)]


@pytest.fixture
def store(tmp_path: Path) -> GraphStore:
    store = empty(tmp_path / "graph.db")
    place(store, x="a b", y="c")
    join(store, "a c .9", "b c .8")
    build(store)
    return store


def test_a_hit_is_found_from_either_side_heaviest_first(store: GraphStore) -> None:
    cache = BridgeCache(store)
    found = cache.hit(["x", "other"], ["y"], "w1", NOW)
    assert [bridge.nodes for bridge in found] == [("entities/a", "entities/c"), ("entities/b", "entities/c")]
    assert cache.hit(["y"], ["x"], "w1", NOW) == found
    assert cache.hit(["x"], ["x"], "w1", NOW) == []
    assert (cache.counts.asked, cache.counts.hits, cache.counts.given, cache.counts.stale) == (3, 2, 4, 0)


def test_another_generation_is_no_hit(store: GraphStore) -> None:
    cache = BridgeCache(store)
    assert cache.hit(["x"], ["y"], "w2", NOW) == []
    assert cache.counts.stale == 2


def test_an_expired_bridge_is_no_hit_unless_it_is_pinned(store: GraphStore) -> None:
    heaviest = BridgeCache(store).hit(["x"], ["y"], "w1", NOW)[0].key
    pin(store, heaviest)
    assert len(BridgeCache(store).hit(["x"], ["y"], "w1", later(29.9))) == 2
    assert [bridge.key for bridge in BridgeCache(store).hit(["x"], ["y"], "w1", later(30))] == [heaviest]
    assert prune_expired(store, later(29.9)) == 0
    assert prune_expired(store, later(30)) == 1
    assert list(cached(store)) == [heaviest]
    pin(store, heaviest, False)
    assert prune_expired(store, later(30)) == 1


def test_an_unknown_bridge_cannot_be_pinned(store: GraphStore) -> None:
    with pytest.raises(BadRows, match="nothing"):
        pin(store, "nothing")


@pytest.mark.parametrize("change", ["weight", "ended", "gone"])
def test_a_bridge_with_a_changed_edge_is_no_hit_whoever_changed_it(store: GraphStore, change: str) -> None:
    if change == "weight":
        join(store, "a c .85")
    elif change == "ended":
        join(store, "a c .9", retracted_at=day(1))
    else:
        store.delete("relations", keys=[BridgeCache(store).hit(["x"], ["y"], "w1", NOW)[0].edges[0][10:]])
    assert [bridge.nodes for bridge in BridgeCache(store).hit(["x"], ["y"], "w1", NOW)] == [
        ("entities/b", "entities/c")
    ]


def weights(store: GraphStore) -> dict[str, float]:
    rows = (row for batch in store.scan("relations", columns=["_key", "weight"]) for row in batch.to_pylist())
    return {f"relations/{row['_key']}": row["weight"] for row in rows}


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 25))
def test_no_change_of_edges_ever_leaves_a_stale_hit(seed: int, changes: int) -> None:
    with TemporaryDirectory() as folder:
        store = empty(Path(folder) / "graph.db")
        scatter(store, seed)
        build(store)
        built = {
            f"relations/{row['_key']}": row["weight"] for batch in store.scan("relations") for row in batch.to_pylist()
        }
        shake(store, seed + 1, changes)
        now = {
            f"relations/{row['_key']}": row["weight"] for batch in store.scan("relations") for row in batch.to_pylist()
        }
        found = BridgeCache(store).hit(TOPICS, TOPICS, "w1", NOW)
        expected = [row for row in cached(store).values() if all(now.get(edge) == built[edge] for edge in row["edges"])]
        assert {bridge.key for bridge in found} == {row["_key"] for row in expected}
        store.close()
