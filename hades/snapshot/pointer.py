"""Which snapshot serves: the pointer, moving and rolling it back, tags, and what is kept."""

from __future__ import annotations

import json
import logging
import re
import shutil
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated

from pydantic import StringConstraints
from pydantic.dataclasses import dataclass as checked_dataclass

from hades.errors import SnapshotError
from hades.files import hold_lock, write_whole
from hades.snapshot.files import sync
from hades.snapshot.manifest import ABOUT, NEWER, load, verify

logger = logging.getLogger(__name__)


# the pointer in `home/snapshots/`, replaced in one step: readers see the old one or the new
CURRENT = "current"
PREVIOUS = "previous"  # its former contents
PINS = "pins"  # named snapshots that are kept
RETIRED = "retired"  # in the folder of a snapshot from before something was forgotten
_LOCK = ".lock"  # held by whoever changes any of these
_REMEMBERED = 32
_SNAPSHOT_ID = re.compile(r"g[0-9a-f]{24}")
_SnapshotId = Annotated[str, StringConstraints(pattern=rf"^{_SNAPSHOT_ID.pattern}$")]
PAST_NIGHT = "as-of-"  # how the pin of a rebuilt night begins; every other pin is a tag
_PIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@checked_dataclass(frozen=True)
class Pointer:
    """The snapshot that serves and those that did before, newest first."""

    snapshot: _SnapshotId
    before: tuple[_SnapshotId, ...] = ()


def root_of(home: Path) -> Path:
    """The folder of all snapshots."""
    return home / "snapshots"


def read(root: Path, name: str = CURRENT) -> Pointer | None:
    """What a pointer file says; None when there is none, `SnapshotError` when it says nothing that
    can be used.
    """
    path = root / name
    try:
        return Pointer(**json.loads(path.read_bytes()))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SnapshotError(f"{path} cannot be read ({error}); publish again") from error
    except (ValueError, TypeError) as error:
        raise SnapshotError(f"{path} does not say which snapshot serves; publish again") from error


def named(root: Path, snapshot: str) -> Path:
    """Where a snapshot that somebody names would lie: by its id, never by a path."""
    if not _SNAPSHOT_ID.fullmatch(snapshot):
        raise SnapshotError(
            f"there is no snapshot {snapshot[:80]} in {root}; `hades snapshots` lists them"
        )

    return root / snapshot


def folder_of(root: Path, snapshot: str) -> Path:
    """The folder of a snapshot that somebody names and that is there."""
    folder = named(root, snapshot)
    if not folder.is_dir():
        raise SnapshotError(
            f"there is no snapshot {snapshot} in {root}; `hades snapshots` lists them"
        )

    return folder


def move(root: Path, snapshot: str) -> Pointer:
    """Let this snapshot serve from now on. Hold `changing` around it; rolling back is moving to an
    older one.
    """
    folder_of(root, snapshot)
    try:
        now = read(root)
    except SnapshotError:
        now = read_or_none(
            root, PREVIOUS
        )  # a broken pointer must not stop a good one from taking its place

    served = () if now is None else tuple(dict.fromkeys((now.snapshot, *now.before)))
    pointer = Pointer(
        snapshot,
        tuple(former for former in served if former != snapshot)[:_REMEMBERED],
    )
    if now is not None:
        _write(root / PREVIOUS, now)

    _write(root / CURRENT, pointer)
    return pointer


def served(home: Path) -> str:
    """The id of the snapshot that serves, empty when none does; cheap enough to ask before every
    question.
    """
    pointer = read_or_none(root_of(home), CURRENT)
    return pointer.snapshot if pointer is not None else ""


def read_or_none(root: Path, name: str) -> Pointer | None:
    """What a pointer file says, if it says anything."""
    try:
        return read(root, name)
    except SnapshotError:
        return None


def pin(home: Path, name: str, snapshot: str | None) -> None:
    """Keep a snapshot under a name whatever serves; None lets it go again."""
    if not _PIN_NAME.fullmatch(name):
        raise SnapshotError(
            f"{name!r} cannot be a tag; use letters, digits, dots, dashes and underscores"
        )

    root = root_of(home)
    with changing(root):
        path = root / PINS / name
        if snapshot is None:
            path.unlink(missing_ok=True)
            return

        if not named(root, snapshot).is_dir():
            raise SnapshotError(
                f"there is no snapshot {snapshot} to pin; `hades snapshots` lists them"
            )

        path.parent.mkdir(exist_ok=True)
        _write(path, Pointer(snapshot))


def pins(root: Path) -> dict[str, str]:
    """Pinned snapshots by name."""
    folder = root / PINS
    if folder.is_dir():
        names = sorted(path.name for path in folder.iterdir() if _PIN_NAME.fullmatch(path.name))
    else:
        names = []

    pointers = {}
    for name in names:
        pointers[name] = read(folder, name)

    return {name: pointer.snapshot for name, pointer in pointers.items() if pointer is not None}


def prune(home: Path, *, keep: int = 3) -> list[str]:
    """Remove all but the last `keep` that served and those that are pinned; the ids that went.

    Never removes what serves, and nothing at all when that is damaged. A process that has one open
    keeps reading it.
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

        verify(root / now.snapshot, load(root / now.snapshot)[0].files)  # else an older one serves
        present = folders(root)
        recent = [served_id for served_id in (now.snapshot, *now.before) if served_id in present][
            :keep
        ]

        # A tag does not keep what was forgotten.
        pinned = set()
        for name in pins(root).values():
            if not (root / name / RETIRED).exists():
                pinned.add(name)

        gone = sorted(present - set(recent) - pinned)
        for snapshot in gone:
            remove(root, snapshot)

    return gone


def remove(root: Path, snapshot: str) -> None:
    """Remove a snapshot and its pins; hold `changing` around it."""
    for name in [name for name, pinned in pins(root).items() if pinned == snapshot]:
        (root / PINS / name).unlink()

    leaving = root / f".leaving-{snapshot}"  # half a folder must not look like a snapshot
    (root / snapshot).rename(leaving)
    shutil.rmtree(leaving)


def folders(root: Path) -> set[str]:
    """Every snapshot that has a folder, sound or not."""
    return {path.name for path in root.iterdir() if _SNAPSHOT_ID.fullmatch(path.name)}


def changing(root: Path) -> AbstractContextManager[None]:
    """Be the only one who publishes, moves or prunes. The system lets go of it when the process
    dies.
    """
    return hold_lock(root / _LOCK)


def _write(path: Path, pointer: Pointer) -> None:
    write_whole(
        path,
        json.dumps(
            {
                "snapshot": pointer.snapshot,
                "before": pointer.before,
            }
        ),
    )
    sync(path.parent)


def newer_documents(home: Path) -> set[str]:
    """Documents (ids) of the snapshot that serves that are newer than its graph."""
    try:
        contents, _ = load(root_of(home) / served(home))
    except SnapshotError:
        return set()

    return set(contents.parts.get(NEWER, "").split())


def retire_snapshots(home: Path, at: datetime) -> None:
    """Mark every snapshot as from before something was forgotten: none serves again once another
    one does.
    """
    for folder in root_of(home).glob("g*/"):
        (folder / RETIRED).write_text(f"{at:%Y-%m-%d %H:%M} UTC", "utf-8")


@dataclass(frozen=True)
class SnapshotEntry:
    """One snapshot of a home. `problem` says why it cannot be read, if so; files are not hashed for
    it.
    """

    snapshot: str
    serves: bool
    pins: tuple[str, ...]
    created_at: str | None
    nodes: int
    edges: int
    problem: str | None = None


def snapshots(home: Path) -> list[SnapshotEntry]:
    """All snapshots: the one that serves, then those that did, newest first, then the others by
    id.
    """
    root = root_of(home)
    if not root.is_dir():
        return []

    now = read_or_none(root, CURRENT)
    served = (now.snapshot, *now.before) if now else ()
    present = folders(root)
    order = [snapshot for snapshot in served if snapshot in present]
    order += sorted(present - set(order))
    pinned = pins(root)
    return [
        _describe(
            root / snapshot,
            bool(served) and snapshot == served[0],
            pinned,
        )
        for snapshot in order
    ]


def rollback(home: Path, snapshot: str | None = None) -> str:
    """Let an older snapshot serve: the named one, or the one before; what served stays in the
    history.
    """
    root = root_of(home)
    with changing(root):
        now = read(root)
        if snapshot is None:
            older = []
            for former in now.before if now else ():
                if (root / former).is_dir():
                    older.append(former)

            if not older:
                raise SnapshotError(
                    f"no snapshot served before in {root}; name one of `hades snapshots`"
                )

            snapshot = older[0]

        if (mark := root / snapshot / RETIRED).is_file():
            raise SnapshotError(
                f"snapshot {snapshot} holds what `hades forget` removed on "
                f"{mark.read_text('utf-8') or 'another day'}; "
                "nothing was changed: go back to a later one of `hades snapshots`, or ingest it "
                "again and publish"
            )

        return move(root, snapshot).snapshot


def discard(home: Path, snapshot: str) -> None:
    """Remove a snapshot that does not serve, and its pins."""
    root = root_of(home)
    with changing(root):
        if snapshot == served(home):
            raise SnapshotError(
                f"{snapshot} serves; let another one serve first with `hades promote`"
            )

        folder_of(root, snapshot)
        remove(root, snapshot)


def _describe(
    folder: Path,
    serves: bool,
    pinned: dict[str, str],
) -> SnapshotEntry:
    names = tuple(name for name, snapshot in pinned.items() if snapshot == folder.name)
    try:
        contents, _ = load(folder)
    except SnapshotError as error:
        return SnapshotEntry(
            folder.name,
            serves,
            names,
            None,
            nodes=0,
            edges=0,
            problem=str(error),
        )

    try:
        created = json.loads((folder / ABOUT).read_text("utf-8")).get("created_at")
    except (OSError, ValueError):  # the note is beside the hashed files and may be missing
        created = None

    nodes = sum(contents.nodes.values())
    edges = sum(contents.edges.values())
    return SnapshotEntry(
        folder.name,
        serves,
        names,
        created,
        nodes=nodes,
        edges=edges,
    )
