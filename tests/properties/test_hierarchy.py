"""Whatever the store holds and however it changes: one topic each, nothing lost, the same rows
every time.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from hades.night.topics.cluster import match_keys
from hades.night.topics.inputs import HierarchyRules
from models.arrays import unit_rows
from models.topics import cut_tree
from schemas.edges import ClusterEdgeType
from tests.contract.examples import entity, everything, put, relation
from tests.homes import empty_store
from tests.patience import examples
from tests.unit.hades.night.topics.worlds import MODEL, build, paper_vector, rows_of, topic_of

NUMBERS = range(24)
RULES = HierarchyRules(max_fanout=2)
embedded = st.sets(st.sampled_from(NUMBERS))
edges = st.sets(st.tuples(st.sampled_from(NUMBERS), st.sampled_from(NUMBERS)), max_size=30)
worlds = st.lists(
    st.tuples(st.sets(st.sampled_from(NUMBERS)), embedded, edges), min_size=1, max_size=3
)


@settings(max_examples=examples(8))
@given(history=worlds)
def test_every_entity_has_one_topic_after_every_change(history: list) -> None:
    with tempfile.TemporaryDirectory() as folder:
        stores = [empty_store(Path(folder) / f"{name}.db") for name in "ab"]
        for step, world in enumerate(history):
            for store in stores:
                _become(store, *world)
                report = build(store, str(step), RULES, on=1 + step)
            _holds(stores[0], report.topics)
            assert rows_of(stores[0]) == rows_of(stores[1])
        for store in stores:
            store.close()


@given(seed=st.integers(0, 1000), topics=st.integers(1, 60), fanout=st.integers(2, 9))
def test_fan_out_holds_for_any_centroids(seed: int, topics: int, fanout: int) -> None:
    rows = unit_rows(np.random.default_rng(seed).standard_normal((topics, 8)).astype(np.float32))
    found = cut_tree(rows, np.ones(topics), fanout)
    assert sorted(set(found)) == list(range(found.max() + 1))
    assert np.bincount(found).max() <= fanout


@given(
    before=st.dictionaries(st.sampled_from("abcdefghij"), st.sampled_from(["k1", "k2", "k3"])),
    groups=st.lists(st.integers(0, 4), min_size=10, max_size=10),
)
def test_keys_are_distinct_and_do_not_depend_on_the_order_of_topics(
    before: dict[str, str], groups: list[int]
) -> None:
    members = [
        sorted(key for key, group in zip("abcdefghij", groups, strict=True) if group == n)
        for n in range(5)
    ]
    members = [group for group in members if group]
    keys = match_keys("t1", members, before, match_share=0.25)
    assert len(set(keys)) == len(members)
    assert match_keys("t1", members[::-1], before, match_share=0.25) == keys[::-1]


def _become(store, present, with_vector, pairs) -> None:
    """Bring the store to these entities and relations, keeping what the stage wrote on those that
    stay.
    """
    held = {row["_key"]: row for row in everything(store, "entities")}
    store.delete("relations", keys=[row["_key"] for row in everything(store, "relations")])
    store.delete("entities", keys=sorted(set(held) - {f"e{number}" for number in present}))
    rows = []
    for number in sorted(present):
        vector = {"embedding": None, "embedding_model": None}
        if number in with_vector:
            vector = {"embedding": paper_vector(number % 3, number), "embedding_model": MODEL}
        rows.append(
            {**held.get(f"e{number}", entity(f"e{number}", name=f"thing {number}")), **vector}
        )
    if rows:
        put(store, "entities", *rows)
    joined = [
        relation(f"e{a}", f"e{b}")
        for a, b in sorted(pairs)
        if a in present and b in present and a != b
    ]
    if joined:
        put(store, "relations", *joined)


def _holds(store, topics: int) -> None:
    placed = topic_of(store)
    clusters = {row["_key"]: row for row in everything(store, "clusters")}
    edges = everything(store, "cluster_edges")
    members = {
        edge["_from"]: edge["_to"] for edge in edges if edge["type"] == ClusterEdgeType.PART_OF
    }
    assert members == {f"entities/{key}": f"clusters/{topic}" for key, topic in placed.items()}
    assert len([edge for edge in edges if edge["type"] == ClusterEdgeType.PART_OF]) == len(placed)
    sizes = Counter(placed.values())
    assert {key: row["size"] for key, row in clusters.items() if row["level"] == 1} == sizes
    assert len(sizes) == topics
    fan_out = Counter(row["parent"] for row in clusters.values() if row["level"] == 1)
    assert set(fan_out) == {key for key, row in clusters.items() if row["level"] == 2}
    assert store.dangling() == {}
