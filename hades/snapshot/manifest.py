"""What a snapshot says of itself; verification; pointer."""

from __future__ import annotations

import hashlib
import json
import logging
import re
import shutil
from collections.abc import Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from pydantic import StringConstraints
from pydantic.dataclasses import dataclass

from hades import stage_ledger
from hades.errors import SnapshotError
from hades.files import hold_lock, write_whole
from hades.ports.graph import EDGES, KINDS
from hades.ports.store import RowStore
from hades.snapshot.files import SnapshotFile, hash_file, sync
from schemas.catalogue import declared

FORMAT = 8  # raise it with any change of what a file holds: another format is not read
MANIFEST, ABOUT = "manifest.json", "about.json"
_ID_DIGITS = 24


@dataclass(frozen=True)
class Manifest:
    """Nothing here depends on when or where it was written: equal contents give equal bytes.

    `nodes` and `edges` are counts by collection, in the order in which numbers and handles are
    given out. `parts` are the generations of what was built together, which are hashes of contents
    too: one id covers them all.
    """

    catalogue: str
    nodes: dict[str, int]
    edges: dict[str, int]
    documents: int
    bridges: int
    parts: dict[str, str]
    types: tuple[str, ...]
    node_types: tuple[str, ...]
    models: dict[str, tuple[str, ...]]
    longest_name: int
    has_validity: bool
    files: dict[str, SnapshotFile]

    def to_bytes(self) -> bytes:
        """Canonical JSON; what is hashed."""
        ordered = {}
        for name, counts in (("nodes", self.nodes), ("edges", self.edges)):
            ordered[name] = list(counts.items())
        body = {**asdict(self), **ordered, "format": FORMAT}
        return (json.dumps(body, sort_keys=True, ensure_ascii=True, indent=1) + "\n").encode()


def hash_of(body: bytes) -> str:
    """The manifest hash."""
    return hashlib.sha256(body).hexdigest()


def id_of(manifest_hash: str) -> str:
    """The snapshot's id, which is also its folder's name."""
    return f"g{manifest_hash[:_ID_DIGITS]}"


def load(folder: Path) -> tuple[Manifest, str]:
    """The manifest of a snapshot folder and its hash; the folder's name vouches for its bytes."""
    path = folder / MANIFEST
    try:
        body = path.read_bytes()
    except OSError as error:
        raise SnapshotError(
            f"snapshot {folder.name}: {MANIFEST} cannot be read ({error.strerror}); publish again"
        ) from error
    manifest_hash = hash_of(body)
    if id_of(manifest_hash) != folder.name:
        raise SnapshotError(
            f"snapshot {folder.name}: {MANIFEST} has the hash of {id_of(manifest_hash)}, so it was "
            "changed; publish again"
        )
    values: dict[str, Any] = json.loads(body)
    if (form := values.pop("format", None)) != FORMAT:
        raise SnapshotError(
            f"snapshot {folder.name} has format {form}, this version reads {FORMAT}; run `hades "
            "build`"
        )
    return Manifest(
        **{**values, **{name: dict(values[name]) for name in ("nodes", "edges")}}
    ), manifest_hash


RANKER = "ranker"
PARTS = (stage_ledger.HIERARCHY, stage_ledger.WEIGHTS, stage_ledger.BRIDGES, RANKER)


NEWER = "newer"  # the part that names documents whose edges were not derived yet


def newer_documents(home: Path) -> set[str]:
    """Documents (ids) of the snapshot that serves that are newer than its graph."""
    try:
        contents, _ = load(root_of(home) / served(home))
    except SnapshotError:
        return set()
    return set(contents.parts.get(NEWER, "").split())


def parts_of(store: RowStore) -> dict[str, str]:
    """The generation of each thing that was built into the store, empty where it never was."""
    done = {stage: stage_ledger.last_completion(store, stage) for stage in PARTS}
    return {stage: "" if record is None else record.generation for stage, record in done.items()}


def catalogue_hash() -> str:
    """The hash of the declarations a snapshot was made under: columns of what it reads, and its
    edge types.
    """
    digest = hashlib.sha256(json.dumps(edge_types()).encode())
    for name in ("documents", *KINDS, *EDGES):
        collection = declared(name)
        columns = [
            [column.name, str(column.type), column.nullable] for column in collection.columns
        ]
        digest.update(json.dumps([collection.name, columns, list(collection.text_fields)]).encode())
    return digest.hexdigest()


def edge_types() -> tuple[str, ...]:
    """Every type an edge of the graph can have, in catalogue order; its place is its code in every
    view.
    """
    types: dict[str, None] = {}
    for name in EDGES:
        choices = next(column.choices for column in declared(name).columns if column.name == "type")
        types.update(dict.fromkeys(choices))
    return tuple(types)


VERIFIED = "verified.json"
logger = logging.getLogger(__name__)
Stamp = list[int]  # size, mtime and ctime in nanoseconds, inode


def verify(folder: Path, files: Mapping[str, SnapshotFile]) -> None:
    """Refuse a folder with a file that is missing, cut or changed.

    After a full look each file's size, times and inode are noted in an unhashed file beside; as
    long as they stay, the look is not repeated.
    """
    stamps = stamps_of(folder, files)
    with suppress(OSError, ValueError):  # no mark, or half a mark: look again
        if json.loads((folder / VERIFIED).read_text("utf-8")) == stamps:
            return
    for name, spec in files.items():
        file_hash = hash_file(folder / name)
        if file_hash != spec.blake3:
            raise SnapshotError(
                f"snapshot {folder.name}: {name} has the hash {file_hash[:16]}..., expected "
                f"{spec.blake3[:16]}...; "
                "it was damaged after publishing: publish again"
            )
    note(folder, stamps)


def sound(
    folder: Path, files: Mapping[str, SnapshotFile], optional: str
) -> Mapping[str, SnapshotFile]:
    """The files that may be used: all, or those whose name does not begin with `optional` where
    only such are hurt.
    """
    try:
        verify(folder, files)
    except SnapshotError as problem:
        needed = {name: spec for name, spec in files.items() if not name.startswith(optional)}
        if len(needed) == len(files):
            raise
        verify(folder, needed)
        logger.warning("snapshot %s serves without a part of it: %s", folder.name, problem)
        return needed
    return files


def stamps_of(folder: Path, files: Mapping[str, SnapshotFile]) -> dict[str, Stamp]:
    """The present stamp of each file; raises where a size is wrong."""
    stamps = {}
    for name, spec in files.items():
        try:
            status = (folder / name).stat()
        except OSError as error:
            raise SnapshotError(
                f"snapshot {folder.name}: {name} cannot be read ({error.strerror}), expected "
                f"{spec.bytes} bytes; "
                "publish again"
            ) from error
        if status.st_size != spec.bytes:
            raise SnapshotError(
                f"snapshot {folder.name}: {name} has {status.st_size} bytes, expected "
                f"{spec.bytes}; publish again"
            )
        stamps[name] = [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]
    return stamps


def note(folder: Path, stamps: Mapping[str, Stamp]) -> None:
    """Remember that files with these stamps were looked at. A folder nobody may write is looked at
    again each time.
    """
    with suppress(OSError):
        write_whole(folder / VERIFIED, json.dumps(stamps))


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


@dataclass(frozen=True)
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
        snapshot, tuple(former for former in served if former != snapshot)[:_REMEMBERED]
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
    names = (
        sorted(path.name for path in folder.iterdir() if _PIN_NAME.fullmatch(path.name))
        if folder.is_dir()
        else []
    )
    pointers = {name: read(folder, name) for name in names}
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
        pinned = {name for name in pins(root).values() if not (root / name / RETIRED).exists()}
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
    write_whole(path, json.dumps({"snapshot": pointer.snapshot, "before": pointer.before}))
    sync(path.parent)
