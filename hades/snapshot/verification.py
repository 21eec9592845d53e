"""Whether the files of a snapshot are what its manifest says: fully once, by a mark of that look afterwards.

A snapshot shares files with the one that served before the present one, as links, and never with the present one:
should a file of what serves be damaged, the snapshot before it has files of its own and serves instead.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from hades.errors import SnapshotError
from hades.snapshot import manifest as manifests
from hades.snapshot.arrays import ArrayFile
from hades.snapshot.file_hash import hash_file

VERIFIED = "verified.json"
_LINK = ".link"

logger = logging.getLogger(__name__)

Stamp = list[int]  # size, mtime and ctime in nanoseconds, inode


def verify(folder: Path, arrays: Mapping[str, ArrayFile]) -> bool:
    """Refuse a folder with a file that is missing, cut or changed. True when hashes had to be computed.

    After a full look each file's size, times and inode are noted in an unhashed file beside; as long as they stay,
    the look is not repeated.
    """
    stamps = stamps_of(folder, arrays)
    if _note(folder) == stamps:
        return False
    for name, spec in arrays.items():
        found = hash_file(folder / name)
        if found != spec.hash:
            raise SnapshotError(
                f"snapshot {folder.name}: {name} has the hash {found[:16]}..., expected {spec.hash[:16]}...; "
                "it was damaged after publishing: publish again"
            )
    note(folder, stamps)
    return True


def sound(folder: Path, arrays: Mapping[str, ArrayFile], optional: str) -> Mapping[str, ArrayFile]:
    """The arrays that may be used: all, or those whose name does not begin with `optional` where only such are hurt."""
    try:
        verify(folder, arrays)
    except SnapshotError as problem:
        needed = {name: spec for name, spec in arrays.items() if not name.startswith(optional)}
        if len(needed) == len(arrays):
            raise
        verify(folder, needed)
        logger.warning("snapshot %s serves without a part of it: %s", folder.name, problem)
        return needed
    return arrays


def stamps_of(folder: Path, arrays: Mapping[str, ArrayFile]) -> dict[str, Stamp]:
    """The present stamp of each file; raises where a size is wrong."""
    return {name: _stamp(folder, name, spec) for name, spec in arrays.items()}


def is_noted(folder: Path, arrays: Mapping[str, ArrayFile]) -> bool:
    """Whether the files are those of the last full look, without looking again."""
    return _note(folder) == stamps_of(folder, arrays)


def note(folder: Path, stamps: Mapping[str, Stamp]) -> None:
    """Remember that files with these stamps were looked at. A folder nobody may write is looked at again each time."""
    partial = folder / f".{VERIFIED}.{os.getpid()}"
    with suppress(OSError):
        partial.write_text(json.dumps(stamps), "utf-8")
        partial.replace(folder / VERIFIED)


def _stamp(folder: Path, name: str, spec: ArrayFile) -> Stamp:
    try:
        status = os.stat(f"{folder}/{name}")  # several times faster than a Path for each of a thousand files
    except OSError as error:
        raise SnapshotError(
            f"snapshot {folder.name}: {name} cannot be read ({error.strerror}), expected {spec.size} bytes; "
            "publish again"
        ) from error
    if status.st_size != spec.size:
        raise SnapshotError(
            f"snapshot {folder.name}: {name} has {status.st_size} bytes, expected {spec.size}; publish again"
        )
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]


def _note(folder: Path) -> object:
    try:
        return json.loads((folder / VERIFIED).read_text("utf-8"))
    except (OSError, ValueError):  # no mark, or half a mark: look again
        return None


def link_equal_parts(building: Path, arrays: Mapping[str, ArrayFile], older: Path | None) -> set[str]:
    """Replace each array of a new snapshot that the older one also has by a link to its file; which ones.

    Equal means equal hashes in the two manifests, so a file of the old folder that was changed since is not linked:
    the folder must be as it was verified. Where the file system has no links, the new files stay.
    """
    known = _read_array_notes(older) if older is not None else None
    if older is None or known is None:
        return set()
    linked: set[str] = set()
    for name, one in arrays.items():
        if known.get(name) != one or not one.size:
            continue
        try:
            os.link(older / name, building / _LINK)
        except OSError:
            return linked
        (building / _LINK).replace(building / name)
        linked.add(name)
    return linked


@contextmanager
def keep_verified(root: Path, names: set[str]) -> Iterator[None]:
    """Around a change of links: it touches the times of files that other snapshots share, whose marks must follow."""
    marked = [(root / name, arrays) for name in sorted(names) if (arrays := _read_array_notes(root / name)) is not None]
    yield
    for folder, arrays in marked:
        if folder.is_dir():
            note(folder, stamps_of(folder, arrays))


def _read_array_notes(folder: Path) -> Mapping[str, ArrayFile] | None:
    try:
        arrays = manifests.load(folder)[0].arrays
        return arrays if is_noted(folder, arrays) else None
    except SnapshotError:
        return None
