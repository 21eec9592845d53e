"""Pruning keeps what serves, what is pinned and the last few; rolling back is moving the
pointer.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from hades.errors import SnapshotError
from hades.snapshot.open import open_snapshot
from hades.snapshot.pointer import discard, pin, prune, rollback, snapshots
from hades.snapshot.publish import publish
from tests.contract.examples import entity, put
from tests.homes import empty_store


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    home, ids = tmp_path_factory.mktemp("published"), []
    store = empty_store(home / "graph.db")
    for number in range(5):
        put(store, "entities", entity(f"e{number}"))
        ids.append(publish(store, home).snapshot)
    store.close()
    return home, ids


@pytest.fixture
def five(published: tuple[Path, list[str]], tmp_path: Path) -> tuple[Path, list[str]]:
    """A home with five snapshots, oldest first."""
    shutil.copytree(published[0], tmp_path, dirs_exist_ok=True)
    return tmp_path, published[1]


def held(home: Path) -> list[str]:
    return [one.snapshot for one in snapshots(home)]


def test_snapshots_are_listed_newest_first(five: tuple[Path, list[str]]) -> None:
    home, ids = five
    assert held(home) == ids[::-1]
    assert [one.nodes for one in snapshots(home)] == [5, 4, 3, 2, 1]


def test_prune_keeps_the_last_few_and_the_pinned(five: tuple[Path, list[str]]) -> None:
    home, ids = five
    pin(home, "baseline", ids[0])
    assert prune(home, keep=2) == sorted(ids[1:3])
    assert held(home) == [ids[4], ids[3], ids[0]]
    assert snapshots(home)[2].pins == ("baseline",)
    pin(home, "baseline", None)
    assert prune(home, keep=1) == sorted([ids[3], ids[0]])
    assert open_snapshot(home).info.snapshot == ids[4]


def test_prune_never_removes_what_serves(five: tuple[Path, list[str]]) -> None:
    home, ids = five
    rollback(home, ids[1])
    prune(home, keep=1)
    assert held(home) == [ids[1]]
    with pytest.raises(SnapshotError, match="keep is 0"):
        prune(home, keep=0)


def test_nothing_is_pruned_while_what_serves_is_damaged(five: tuple[Path, list[str]]) -> None:
    home, ids = five
    (home / "snapshots" / ids[4] / "node.arrow").unlink()
    with pytest.raises(SnapshotError, match=r"node\.arrow"):
        prune(home, keep=1)
    assert open_snapshot(home).info.snapshot == ids[3]


def test_rollback_goes_to_the_one_before_or_the_one_named(five: tuple[Path, list[str]]) -> None:
    home, ids = five
    assert rollback(home) == ids[3]
    assert open_snapshot(home).info.snapshot == ids[3]
    assert rollback(home, ids[0]) == ids[0]
    assert held(home)[:2] == [ids[0], ids[3]]
    with pytest.raises(SnapshotError, match="there is no snapshot"):
        rollback(home, "g" + "0" * 24)


def test_an_open_view_survives_its_pruning(five: tuple[Path, list[str]]) -> None:
    home, ids = five
    old = open_snapshot(home, ids[0])
    prune(home, keep=1)
    assert old.number(["entities/e0", "entities/e1"]).tolist() == [0, -1]
    with pytest.raises(SnapshotError):
        open_snapshot(home, ids[0])


def test_a_pin_has_a_plain_name_and_a_real_snapshot(five: tuple[Path, list[str]]) -> None:
    home, ids = five
    with pytest.raises(SnapshotError, match="cannot be a tag"):
        pin(home, "../x", ids[0])
    with pytest.raises(SnapshotError, match="to pin"):
        pin(home, "x", "g" + "0" * 24)


def test_nothing_published_is_nothing_to_prune(tmp_path: Path) -> None:
    assert prune(tmp_path) == []
    assert snapshots(tmp_path) == []


@pytest.mark.parametrize("name", ["../outside", ".", "g\0", "/etc", "x" * 5_000])
def test_a_snapshot_is_named_by_its_id_and_by_no_path(tmp_path: Path, name: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / "snapshots").mkdir()
    for use in (discard, open_snapshot, lambda home, snapshot: pin(home, "kept", snapshot)):
        with pytest.raises(SnapshotError, match="there is no snapshot"):
            use(tmp_path, name)
    assert outside.is_dir()
