"""What a snapshot says of itself; verification; pointer."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pydantic.dataclasses import dataclass

from hades import stage_ledger
from hades.errors import SnapshotError
from hades.files import write_whole
from hades.ports.graph import EDGES, KINDS
from hades.ports.store import RowStore
from hades.snapshot.files import SnapshotFile, hash_file
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

        body = {
            **asdict(self),
            **ordered,
            "format": FORMAT,
        }
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
        **{
            **values,
            **{name: dict(values[name]) for name in ("nodes", "edges")},
        }
    ), manifest_hash


RANKER = "ranker"
PARTS = (stage_ledger.HIERARCHY, stage_ledger.WEIGHTS, stage_ledger.BRIDGES, RANKER)


NEWER = "newer"  # the part that names documents whose edges were not derived yet


def parts_of(store: RowStore) -> dict[str, str]:
    """The generation of each thing that was built into the store, empty where it never was."""
    done = {}
    for stage in PARTS:
        done[stage] = stage_ledger.last_completion(store, stage)

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
    folder: Path,
    files: Mapping[str, SnapshotFile],
    optional: str,
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
        logger.warning(
            "snapshot %s serves without a part of it: %s",
            folder.name,
            problem,
        )
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
