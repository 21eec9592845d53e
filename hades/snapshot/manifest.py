"""What a snapshot says of itself: counts, names, and the hash of every file. Its own hash is the snapshot's id."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hades.errors import SnapshotError
from hades.snapshot.arrays import ArrayFile

FORMAT = 4  # raise it with any change of what an array holds: values of an older format are neither read nor copied
MANIFEST = "manifest.json"
_ID_DIGITS = 24


@dataclass(frozen=True)
class Manifest:
    """Nothing here depends on when or where it was written: equal contents give equal bytes.

    `nodes` and `edges` are counts by collection, in the order in which numbers and handles are given out. `parts` are
    the generations of what was built together, which are hashes of contents too: one id covers them all.
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
    arrays: dict[str, ArrayFile]

    def to_bytes(self) -> bytes:
        """Canonical JSON; what is hashed."""
        body = {
            "format": FORMAT,
            "catalogue": self.catalogue,
            "nodes": list(self.nodes.items()),
            "edges": list(self.edges.items()),
            "documents": self.documents,
            "bridges": self.bridges,
            "parts": self.parts,
            "types": self.types,
            "node_types": self.node_types,
            "models": self.models,
            "longest_name": self.longest_name,
            "has_validity": self.has_validity,
            "arrays": {
                name: {"dtype": one.dtype, "shape": one.shape, "blake3": one.hash} for name, one in self.arrays.items()
            },
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
    found = hash_of(body)
    if id_of(found) != folder.name:
        raise SnapshotError(
            f"snapshot {folder.name}: {MANIFEST} has the hash of {id_of(found)}, so it was changed; publish again"
        )
    return _parse(folder, json.loads(body)), found


def _parse(folder: Path, body: dict[str, Any]) -> Manifest:
    if body.get("format") != FORMAT:
        raise SnapshotError(
            f"snapshot {folder.name} has format {body.get('format')}, this version reads {FORMAT}; publish again"
        )
    return Manifest(
        catalogue=body["catalogue"],
        nodes=dict(body["nodes"]),
        edges=dict(body["edges"]),
        documents=body["documents"],
        bridges=body["bridges"],
        parts=body["parts"],
        types=tuple(body["types"]),
        node_types=tuple(body["node_types"]),
        models={kind: tuple(tags) for kind, tags in body["models"].items()},
        longest_name=body["longest_name"],
        has_validity=body["has_validity"],
        arrays={
            name: ArrayFile(one["dtype"], tuple(one["shape"]), one["blake3"]) for name, one in body["arrays"].items()
        },
    )
