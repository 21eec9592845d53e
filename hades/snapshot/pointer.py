"""Which snapshot serves and which stay: one small file, replaced in one step; readers see the old one or the new.

In `home/snapshots/`: a folder a snapshot, `current` (the pointer), `previous` (what it said before), `pins/` (named
snapshots that are kept), `.lock` (held by whoever changes any of these).
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from hades.errors import SnapshotError
from hades.snapshot import manifest
from hades.snapshot.arrays import sync
from hades.snapshot.verification import keep_verified, verify

CURRENT = "current"
PREVIOUS = "previous"
PINS = "pins"
_LOCK = ".lock"
_REMEMBERED = 32
_SNAPSHOT_ID = re.compile(r"g[0-9a-f]{24}")
_PIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True)
class Pointer:
    """The snapshot that serves and those that did before, newest first."""

    snapshot: str
    before: tuple[str, ...] = ()


def root_of(home: Path) -> Path:
    """The folder of all snapshots."""
    return home / "snapshots"


def read(root: Path, name: str = CURRENT) -> Pointer | None:
    """What a pointer file says; None when there is none, `SnapshotError` when it says nothing that can be used."""
    path = root / name
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise SnapshotError(f"{path} cannot be read ({error}); publish again") from error
    try:
        body = json.loads(text)
        pointer = Pointer(body["snapshot"], tuple(body["before"]))
    except (ValueError, TypeError, KeyError) as error:
        raise SnapshotError(f"{path} does not say which snapshot serves; publish again") from error
    if not all(isinstance(one, str) and _SNAPSHOT_ID.fullmatch(one) for one in (pointer.snapshot, *pointer.before)):
        raise SnapshotError(f"{path} names something that is not a snapshot id; publish again")
    return pointer


def move(root: Path, snapshot: str) -> Pointer:
    """Let this snapshot serve from now on. Hold `changing` around it; rolling back is moving to an older one."""
    if not (root / snapshot).is_dir():
        raise SnapshotError(f"there is no snapshot {snapshot} in {root}; `hades snapshots` lists them")
    try:
        now = read(root)
    except SnapshotError:
        now = read_or_none(root, PREVIOUS)  # a broken pointer must not stop a good one from taking its place
    served = () if now is None else tuple(dict.fromkeys((now.snapshot, *now.before)))
    pointer = Pointer(snapshot, tuple(one for one in served if one != snapshot)[:_REMEMBERED])
    if now is not None:
        _write(root / PREVIOUS, now)
    _write(root / CURRENT, pointer)
    return pointer


def served(home: Path) -> str:
    """The id of the snapshot that serves, empty when none does; cheap enough to ask before every question."""
    pointer = read_or_none(root_of(home), CURRENT)
    return pointer.snapshot if pointer is not None else ""


class ServedPointer:
    """The same for who asks very often: the pointer is read again only when its file was replaced."""

    def __init__(self, home: Path) -> None:
        self._home, self._path = home, str(root_of(home) / CURRENT)
        self._said: tuple[tuple[int, int], str] | None = None

    def __call__(self) -> str:
        try:
            file = os.stat(self._path)
        except OSError:
            return served(self._home)
        version = (file.st_ino, file.st_mtime_ns)
        if self._said is None or self._said[0] != version:
            self._said = (version, served(self._home))
        return self._said[1]


def read_or_none(root: Path, name: str) -> Pointer | None:
    """What a pointer file says, if it says anything."""
    try:
        return read(root, name)
    except SnapshotError:
        return None


def pin(home: Path, name: str, snapshot: str | None) -> None:
    """Keep a snapshot under a name whatever serves; None lets it go again."""
    if not _PIN_NAME.fullmatch(name):
        raise SnapshotError(f"{name!r} cannot name a pin; use letters, digits, dots, dashes and underscores")
    root = root_of(home)
    with changing(root):
        path = root / PINS / name
        if snapshot is None:
            path.unlink(missing_ok=True)
            return
        if not (root / snapshot).is_dir():
            raise SnapshotError(f"there is no snapshot {snapshot} to pin; `hades snapshots` lists them")
        path.parent.mkdir(exist_ok=True)
        _write(path, Pointer(snapshot))


def pins(root: Path) -> dict[str, str]:
    """Pinned snapshots by name."""
    folder = root / PINS
    names = sorted(path.name for path in folder.iterdir() if _PIN_NAME.fullmatch(path.name)) if folder.is_dir() else []
    found = {name: read(folder, name) for name in names}
    return {name: pointer.snapshot for name, pointer in found.items() if pointer is not None}


def prune(home: Path, *, keep: int = 3) -> list[str]:
    """Remove all but the last `keep` that served and those that are pinned; the ids that went.

    Never removes what serves, and nothing at all when that is damaged. A process that has one open keeps reading it.
    """
    if keep < 1:
        raise SnapshotError(f"keep is {keep}; at least the snapshot that serves must stay")
    root = root_of(home)
    if not root.is_dir():
        return []
    with changing(root):
        now = read(root)  # a broken pointer stops the pruning: what serves is not known
        if now is None:
            return []
        verify(root / now.snapshot, manifest.load(root / now.snapshot)[0].arrays)  # else an older one serves
        there = folders(root)
        recent = [one for one in (now.snapshot, *now.before) if one in there][:keep]
        gone = sorted(there - set(recent) - set(pins(root).values()))
        with keep_verified(root, there - set(gone)) if gone else nullcontext():
            for one in gone:
                leaving = root / f".leaving-{one}"  # half a folder must not look like a snapshot
                (root / one).rename(leaving)
                shutil.rmtree(leaving)
    return gone


def folders(root: Path) -> set[str]:
    """Every snapshot that has a folder, sound or not."""
    return {path.name for path in root.iterdir() if _SNAPSHOT_ID.fullmatch(path.name)}


@contextmanager
def changing(root: Path) -> Iterator[None]:
    """Be the only one who publishes, moves or prunes. The system lets go of it when the process dies."""
    root.mkdir(parents=True, exist_ok=True)
    with (root / _LOCK).open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _write(path: Path, pointer: Pointer) -> None:
    partial = path.with_name(f".{path.name}.new")
    with partial.open("w", encoding="utf-8") as file:
        json.dump({"snapshot": pointer.snapshot, "before": pointer.before}, file)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)
    sync(path.parent)
