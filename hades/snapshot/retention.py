"""Which snapshots there are, and going back to an older one."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from hades.errors import SnapshotError
from hades.snapshot import manifest as manifests
from hades.snapshot import pointer

_ABOUT = "about.json"


@dataclass(frozen=True)
class SnapshotEntry:
    """One snapshot of a home. `problem` says why it cannot be read, if so; files are not hashed for it."""

    snapshot: str
    serves: bool
    pins: tuple[str, ...]
    created_at: str | None
    nodes: int
    edges: int
    problem: str | None = None


def snapshots(home: Path) -> list[SnapshotEntry]:
    """All snapshots: the one that serves, then those that did, newest first, then the others by id."""
    root = pointer.root_of(home)
    if not root.is_dir():
        return []
    now = pointer.read_or_none(root, pointer.CURRENT)
    served = (now.snapshot, *now.before) if now else ()
    there = pointer.folders(root)
    order = [one for one in served if one in there]
    order += sorted(there - set(order))
    pinned = pointer.pins(root)
    return [_hold(root / one, bool(served) and one == served[0], pinned) for one in order]


def rollback(home: Path, snapshot: str | None = None) -> str:
    """Let an older snapshot serve: the named one, or the one before; what served stays in the history."""
    root = pointer.root_of(home)
    with pointer.changing(root):
        now = pointer.read(root)
        if snapshot is None:
            older = [one for one in (now.before if now else ()) if (root / one).is_dir()]
            if not older:
                raise SnapshotError(f"no snapshot served before in {root}; name one of `hades snapshots`")
            snapshot = older[0]
        return pointer.move(root, snapshot).snapshot


def _hold(folder: Path, serves: bool, pinned: dict[str, str]) -> SnapshotEntry:
    names = tuple(name for name, snapshot in pinned.items() if snapshot == folder.name)
    try:
        contents, _ = manifests.load(folder)
    except SnapshotError as error:
        return SnapshotEntry(folder.name, serves, names, None, 0, 0, str(error))
    nodes, edges = sum(contents.nodes.values()), sum(contents.edges.values())
    return SnapshotEntry(folder.name, serves, names, _create_at(folder), nodes, edges)


def _create_at(folder: Path) -> str | None:
    try:
        moment = json.loads((folder / _ABOUT).read_text("utf-8")).get("created_at")
    except (OSError, ValueError):  # the note is beside the hashed files and may be missing
        return None
    return moment if isinstance(moment, str) else None
