"""Backups: the store, the snapshots that readers see, the registry's files; written beside, sealed, then named.

A service may ask and write meanwhile: SQLite files are copied as of one moment, snapshot folders never change once
they have a name. What can be made again (cache, locks, half-built folders) stays out, and so do tenants: each has
backups of its own.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path

from hades.errors import SnapshotError
from hades.snapshot import manifest as snapshot_manifests
from hades.snapshot import pointer
from hades.snapshot.arrays import sync
from hades.snapshot.verification import VERIFIED
from hades.stages.release.backup_manifest import HOME, MANIFEST, STORE, Backup, BackupError, seal

CopyFile = Callable[[Path, Path], None]  # of any kind; a database as of one moment
SaveStore = Callable[[Path], tuple[str, Mapping[str, int]]]  # into a folder: how its rows are kept, and how many

SNAPSHOTS = "snapshots"
LEFT_OUT = frozenset({"graph.db", "cache", "prefect", "demo", "bench", "tenants", SNAPSHOTS})
LOGS = "logs"
_DATED = re.compile(r"hades-\d{8}T\d{6}Z")
_TRIES = 5


def back_up(
    home: Path,
    target: Path,
    save_store: SaveStore,
    copy_file: CopyFile,
    *,
    at: datetime,
    hades: str,
    logs: bool = False,
) -> Backup:
    """Write a backup of a home to the folder `target`, which must not hold anything yet.

    Killed at any moment, `target` is not there: all is written to a folder beside it, which the next try removes.
    """
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise BackupError(f"{target} is there and not empty; name a new folder, or use --dated")
    if home.resolve() == target.resolve() or home.resolve() in target.resolve().parents:
        raise BackupError(f"{target} lies in {home}, which it is a backup of; name a folder elsewhere")
    partial = target.with_name(f".{target.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(mode=0o700, parents=True)  # the graph may hold what not everybody on the machine may read
    (partial / STORE).mkdir()
    try:
        snapshots = _copy_snapshots(home, partial / HOME / SNAPSHOTS)
        kind, rows = save_store(partial / STORE)
        _copy_rest(home, partial / HOME, copy_file, LEFT_OUT if logs else LEFT_OUT | {LOGS})
        backup = seal(partial, at, hades, kind, rows, snapshots)
        if target.exists():
            target.rmdir()
        partial.rename(target)
        sync(target.parent)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return backup


def dated(folder: Path, at: datetime) -> Path:
    """The folder of a backup of this moment among others."""
    return folder / f"hades-{at:%Y%m%dT%H%M%SZ}"


def retain(folder: Path, keep: int) -> list[str]:
    """Remove all but the newest finished dated backups; the names of those that went."""
    if keep < 1:
        raise BackupError(f"keep is {keep}; at least the newest backup must stay")
    held = sorted(path.name for path in folder.iterdir() if _DATED.fullmatch(path.name) and (path / MANIFEST).is_file())
    gone = held[:-keep]
    for name in gone:
        shutil.rmtree(folder / name)
    return gone


def _copy_snapshots(home: Path, into: Path) -> list[str]:
    """Every snapshot that is there, the one that serves first, and the pointers to them.

    One that is pruned while it is copied is left out; should it be the one that served, another serves by now.
    """
    root = pointer.root_of(home)
    if not root.is_dir():
        return []
    for _ in range(_TRIES):
        now = pointer.read(root)
        order = [] if now is None else [one for one in (now.snapshot, *now.before) if (root / one).is_dir()]
        copied = [
            one for one in dict.fromkeys([*order, *sorted(pointer.folders(root))]) if _copy_snapshot(root / one, into)
        ]
        if now is None or now.snapshot in copied:
            _copy_pointers(root, into, now is not None)
            return copied
    raise BackupError(f"the snapshot that serves in {root} could not be copied; run `hades doctor`")


def _copy_snapshot(folder: Path, into: Path) -> bool:
    """Copy a snapshot and what it says of itself; false when it was removed meanwhile or cannot be read."""
    target = into / folder.name
    if target.is_dir():
        return True
    try:
        snapshot_manifests.load(folder)
        shutil.copytree(folder, target, ignore=lambda _, names: [one for one in names if VERIFIED in one])
    except (SnapshotError, FileNotFoundError, shutil.Error):
        shutil.rmtree(target, ignore_errors=True)
        return False
    return True


def _copy_pointers(root: Path, into: Path, served: bool) -> None:
    """What serves, what did before, and what is pinned; pins of snapshots that are not in the backup are dropped."""
    into.mkdir(parents=True, exist_ok=True)
    for name in (pointer.CURRENT, pointer.PREVIOUS):
        if served and (root / name).is_file():
            shutil.copy2(root / name, into / name)
    for name, snapshot in pointer.pins(root).items():
        if (into / snapshot).is_dir():
            (into / pointer.PINS).mkdir(exist_ok=True)
            shutil.copy2(root / pointer.PINS / name, into / pointer.PINS / name)


def _copy_rest(home: Path, into: Path, copy_file: CopyFile, left_out: frozenset[str]) -> None:
    """Registry, artifacts, reports and whatever else stands in the home; databases as of one moment."""
    for folder, folders, files in os.walk(home):
        here = Path(folder)
        at_top = here == home
        folders[:] = sorted(one for one in folders if not one.startswith(".") and not (at_top and one in left_out))
        for name in sorted(files):
            path, target = here / name, into / here.relative_to(home) / name
            if (at_top and name in left_out) or _is_passing(name) or path.is_symlink():
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            copy_file(path, target)


def _is_passing(name: str) -> bool:
    """Locks, logs of databases and half-written files mean nothing in another place."""
    return name.startswith(".") or ".lock" in name or name.endswith(("-wal", "-shm", "-journal", ".new", ".partial"))
