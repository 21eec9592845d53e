"""What a backup says of itself: which graph, from when, and the hash of every file in it."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from hades.errors import HadesError
from schemas.intervals import iso

MANIFEST = "backup.json"
FORMAT = 1
STORE, HOME = "store", "home"
_BLOCK = 1 << 20


class BackupError(HadesError):
    """A backup that cannot be written, read or restored: which file, what was expected, what to do."""


@dataclass(frozen=True)
class Backup:
    """A finished backup. `kind` is how the store's rows are kept: `sqlite` (its file) or `rows` (Parquet)."""

    at: str
    hades: str
    kind: str
    rows: dict[str, int]
    snapshot: str
    snapshots: tuple[str, ...]
    files: dict[str, tuple[int, str]] = field(default_factory=dict)

    @property
    def bytes(self) -> int:
        """What its files weigh."""
        return sum(size for size, _ in self.files.values())

    def as_dict(self) -> dict[str, Any]:
        """For people and scripts: everything but the list of files."""
        facts = {"at": self.at, "hades": self.hades, "store": self.kind, "rows": self.rows, "snapshot": self.snapshot}
        return {**facts, "snapshots": list(self.snapshots), "files": len(self.files), "bytes": self.bytes}


def seal(folder: Path, at: datetime, hades: str, kind: str, rows: Mapping[str, int], snapshots: list[str]) -> Backup:
    """Hash what the folder holds and write the manifest last: a folder without one is no backup."""
    files = {name: (path.stat().st_size, sha256_of(path)) for name, path in files_in(folder)}
    serving = snapshots[0] if snapshots else ""
    backup = Backup(iso(at), hades, kind, dict(rows), serving, tuple(snapshots), files)
    body = {
        "format": FORMAT,
        "at": backup.at,
        "hades": backup.hades,
        "store": backup.kind,
        "rows": backup.rows,
        "snapshots": snapshots,
        "files": {name: {"bytes": size, "sha256": digest} for name, (size, digest) in files.items()},
    }
    with (folder / MANIFEST).open("x", encoding="utf-8") as file:
        json.dump(body, file, indent=1, sort_keys=True)
        file.flush()
        os.fsync(file.fileno())
    return backup


def read(folder: Path) -> Backup:
    """What a backup says of itself, or `BackupError` where it says nothing that can be used."""
    path = folder / MANIFEST
    try:
        body = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise BackupError(
            f"{folder} holds no {MANIFEST}, so it is not a finished backup; name the folder of one"
        ) from None
    except (OSError, ValueError) as error:
        raise BackupError(f"{path} cannot be read ({error}); use another backup") from None
    if body.get("format") != FORMAT:
        raise BackupError(f"{path} has format {body.get('format')}, this version reads {FORMAT}; upgrade HADES")
    snapshots = tuple(body["snapshots"])
    files = {name: (int(one["bytes"]), str(one["sha256"])) for name, one in body["files"].items()}
    return Backup(
        body["at"], body["hades"], body["store"], body["rows"], snapshots[0] if snapshots else "", snapshots, files
    )


def verify(folder: Path) -> Backup:
    """Read every file of a backup; it comes back only when nothing is missing, added, cut or changed."""
    backup = read(folder)
    found = dict(files_in(folder))
    if missing := sorted(set(backup.files) - set(found)):
        raise BackupError(f"{folder} lacks {_some(missing)}; use another backup")
    if strange := sorted(set(found) - set(backup.files)):
        raise BackupError(f"{folder} holds {_some(strange)}, which its manifest does not name; use another backup")
    for name, (size, digest) in backup.files.items():
        if found[name].stat().st_size != size or sha256_of(found[name]) != digest:
            raise BackupError(f"{folder}: {name} is not what was written; use another backup")
    return backup


def files_in(folder: Path) -> Iterator[tuple[str, Path]]:
    """Every file by its name inside the folder, in order; without the manifest."""
    for path in sorted(folder.rglob("*")):
        if path.is_symlink():
            raise BackupError(f"{path} is a link, which a backup never holds; use another backup")
        if path.is_file() and path != folder / MANIFEST:
            yield path.relative_to(folder).as_posix(), path


def sha256_of(path: Path) -> str:
    """The hash of a file's bytes."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def _some(names: list[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more
