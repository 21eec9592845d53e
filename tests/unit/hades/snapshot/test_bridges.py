"""Bridges in a snapshot: what the build made is what a reader finds, and the id covers every
part.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hades.errors import SnapshotError
from hades.snapshot.open import open_snapshot
from hades.snapshot.publish import publish
from hades.stage_ledger import HIERARCHY, record
from tests.contract.examples import put
from tests.unit.hades.night.bridges.bridge_worlds import (
    build,
    cached,
    empty,
    join,
    later,
    place,
    scatter,
)


def test_every_bridge_of_the_build_is_published_with_its_numbers(tmp_path: Path) -> None:
    store = empty(tmp_path / "graph.db")
    scatter(store, 7)
    report = build(store)
    published = publish(store, tmp_path)
    assert published.contents.bridges == report.bridges
    assert published.contents.parts == {
        "hierarchy": "1",
        "weights": "w1",
        "bridges": report.generation,
        "ranker": "",
    }
    view = open_snapshot(tmp_path)
    assert view.info.parts == published.contents.parts
    found = view.bridges(view.number([f"clusters/t{number}" for number in range(6)]), limit=999)
    shown = {
        tuple(view.ids(np.array(path.nodes))): (
            tuple(one.id for one in view.edges(np.array(path.edges))),
            tuple(view.ids(np.array([path.from_cluster, path.to_cluster]))),
            path.weight,
            path.cost,
        )
        for path in found
    }
    assert shown == {
        tuple(row["nodes"]): (
            tuple(row["edges"]),
            (f"clusters/{row['from_cluster']}", f"clusters/{row['to_cluster']}"),
            row["weight"],
            row["cost"],
        )
        for row in cached(store).values()
    }
    assert [path.weight for path in found] == sorted((path.weight for path in found), reverse=True)
    for path in found:
        assert view.clusters_of(np.array(path.nodes))[[0, -1]].tolist() == [
            path.from_cluster,
            path.to_cluster,
        ]


def test_bridges_whose_edges_changed_since_stay_out(tmp_path: Path) -> None:
    store = empty(tmp_path / "graph.db")
    place(store, x="a b", y="c")
    join(store, "a c .9", "b c .8")
    build(store)
    join(store, "a c .91")
    published = publish(store, tmp_path)
    assert published.contents.bridges == 1


def test_a_bridge_that_is_no_path_is_refused_by_key(tmp_path: Path) -> None:
    store = empty(tmp_path / "graph.db")
    place(store, x="a b", y="c")
    join(store, "a c .9")
    build(store)
    (row,) = cached(store).values()
    put(store, "bridge_cache", {**row, "nodes": ["entities/b", "entities/c"]})
    with pytest.raises(
        SnapshotError, match=rf"bridge_cache/{row['_key']}.*do not join.*nothing was published"
    ):
        publish(store, tmp_path)


def test_the_id_follows_contents_and_not_the_day_of_the_build(tmp_path: Path) -> None:
    stores = [empty(tmp_path / f"{number}.db") for number in range(2)]
    for number, store in enumerate(stores):
        scatter(store, 7)
        build(store, as_of=later(number))
    first, second = (publish(store, tmp_path / str(number)) for number, store in enumerate(stores))
    assert first.manifest_hash == second.manifest_hash
    record(stores[0], HIERARCHY, "d", "h2")
    assert publish(stores[0], tmp_path / "0").manifest_hash != first.manifest_hash
