"""A damaged or half-written snapshot is refused with the reason, and the one before it serves."""

from __future__ import annotations

import json
import logging
import os
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hades.errors import SnapshotError
from hades.snapshot.open import open_snapshot
from hades.snapshot.pointer import RETIRED, retire_snapshots
from hades.snapshot.publish import publish
from tests.contract.examples import entity, put
from tests.unit.hades.snapshot.homes import chain_store


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    home = tmp_path_factory.mktemp("published")
    store = chain_store(home / "graph.db")
    older = publish(store, home)
    put(store, "entities", entity("newer"))
    newer = publish(store, home)
    store.close()
    return home, [older.snapshot, newer.snapshot]


@pytest.fixture
def two(published: tuple[Path, list[str]], tmp_path: Path) -> tuple[Path, Path, Path]:
    """A home with two snapshots: the home, the older folder, the newer folder."""
    shutil.copytree(published[0], tmp_path, dirs_exist_ok=True)
    older, newer = (tmp_path / "snapshots" / name for name in published[1])
    for one in (older, newer):
        open_snapshot(
            tmp_path, one.name
        )  # the files of the copy are verified once, as those of a publisher are
    return tmp_path, older, newer


def flip_a_byte(folder: Path) -> str:
    path = folder / "node.arrow"
    body = bytearray(path.read_bytes())
    body[len(body) // 2] ^= 1
    path.write_bytes(body)
    return r"node.arrow has the hash .*expected"


def flip_a_byte_and_hide_it(folder: Path) -> str:
    """The same size and the same time of modification."""
    path = folder / "out.arrow"
    status = path.stat()
    body = bytearray(path.read_bytes())
    body[0] ^= 1
    with path.open("r+b") as file:
        file.write(body)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    return r"out.arrow has the hash .*expected"


def truncate(folder: Path) -> str:
    size = (folder / "out.arrow").stat().st_size
    os.truncate(folder / "out.arrow", size - 4)
    return rf"out.arrow has {size - 4} bytes, expected {size}"


def delete_a_file(folder: Path) -> str:
    (folder / "edge.arrow").unlink()
    return r"edge.arrow cannot be read .*expected \d+ bytes"


def delete_the_manifest(folder: Path) -> str:
    (folder / "manifest.json").unlink()
    return "manifest.json cannot be read"


def change_the_manifest(folder: Path) -> str:
    path = folder / "manifest.json"
    path.write_text(path.read_text().replace('"format": ', '"format":  '))
    return "manifest.json has the hash of"


def delete_the_folder(folder: Path) -> str:
    folder.rename(folder.with_name("elsewhere"))
    return "manifest.json cannot be read"


DAMAGE = [
    flip_a_byte,
    flip_a_byte_and_hide_it,
    truncate,
    delete_a_file,
    delete_the_manifest,
    change_the_manifest,
    delete_the_folder,
]


@pytest.mark.parametrize("damage", DAMAGE, ids=lambda damage: damage.__name__)
def test_damage_is_refused_and_the_previous_serves(
    two: tuple[Path, Path, Path], damage: Callable[[Path], str], caplog: pytest.LogCaptureFixture
) -> None:
    home, older, newer = two
    reason = damage(newer)
    with pytest.raises(SnapshotError, match=f"{newer.name}.*{reason}"):
        open_snapshot(home, newer.name)
    with caplog.at_level(logging.WARNING):
        view = open_snapshot(home)
    assert view.info.snapshot == older.name
    assert view.info.degraded_from is not None
    assert newer.name in view.info.degraded_from
    assert newer.name in caplog.text


@pytest.mark.parametrize(
    "text", ["", "{", "null", '{"snapshot": "../x", "before": []}', '{"before": []}', "\x00\xff"]
)
def test_a_bad_pointer_is_refused_and_the_previous_serves(
    two: tuple[Path, Path, Path], text: str
) -> None:
    home, older, _ = two
    (home / "snapshots" / "current").write_bytes(text.encode("latin-1"))
    view = open_snapshot(home)
    assert view.info.snapshot == older.name
    assert "current" in str(view.info.degraded_from)


def test_what_was_forgotten_does_not_come_back_when_the_next_snapshot_is_damaged(two):
    home, older, newer = two
    retire_snapshots(home, datetime(2026, 3, 1, tzinfo=UTC))
    (newer / RETIRED).unlink()  # published after
    truncate(newer)
    with pytest.raises(SnapshotError, match="no snapshot can serve"):
        open_snapshot(home)
    assert open_snapshot(home, older.name).info.snapshot == older.name


def test_a_missing_pointer_is_noticed(two: tuple[Path, Path, Path]) -> None:
    home, older, _ = two
    (home / "snapshots" / "current").unlink()
    assert open_snapshot(home).info.snapshot == older.name


def test_when_all_are_damaged_every_reason_is_given(two: tuple[Path, Path, Path]) -> None:
    home, older, newer = two
    truncate(newer)
    delete_a_file(older)
    with pytest.raises(
        SnapshotError, match=rf"no snapshot can serve: .*{newer.name}.*{older.name}"
    ):
        open_snapshot(home)


def test_nothing_published_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(SnapshotError, match="nothing has been published"):
        open_snapshot(tmp_path)


def test_publishing_again_mends_a_damaged_snapshot(two: tuple[Path, Path, Path]) -> None:
    home, _, newer = two
    flip_a_byte(newer)
    store = chain_store(home / "graph.db")
    put(store, "entities", entity("newer"))
    again = publish(store, home)
    assert (again.path, again.is_new) == (newer, True)
    assert open_snapshot(home).info.degraded_from is None


def test_a_half_written_folder_is_never_opened_and_is_swept(two: tuple[Path, Path, Path]) -> None:
    home, _, newer = two
    half = home / "snapshots" / ".building-1"
    half.mkdir()
    (half / "node.arrow").write_bytes(b"half")
    assert open_snapshot(home).info.snapshot == newer.name
    publish(chain_store(home / "graph.db"), home)
    assert not half.exists()


def test_hashes_are_computed_once_and_again_when_a_file_was_touched(
    two: tuple[Path, Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    home, _, newer = two
    hashed: list[str] = []
    import hades.snapshot.manifest as verification

    real = verification.hash_file
    monkeypatch.setattr(
        verification, "hash_file", lambda path: hashed.append(path.name) or real(path)
    )
    open_snapshot(home)
    assert hashed == []
    (newer / "node.arrow").touch()
    open_snapshot(home)
    assert "node.arrow" in hashed
    hashed.clear()
    open_snapshot(home)
    assert hashed == []
    (newer / "verified.json").write_text("{")
    open_snapshot(home)
    assert hashed


def test_an_unknown_format_is_refused(two: tuple[Path, Path, Path]) -> None:
    from hades.snapshot.manifest import hash_of, id_of

    home, _, newer = two
    body = json.dumps({**json.loads((newer / "manifest.json").read_text()), "format": 99}).encode()
    future = newer.with_name(id_of(hash_of(body)))
    newer.rename(future)
    (future / "manifest.json").write_bytes(body)
    with pytest.raises(SnapshotError, match="has format 99, this version reads 8"):
        open_snapshot(home, future.name)
