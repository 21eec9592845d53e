"""The frames of the contract `snapshot`: a folder that is about to serve, beside the store it was written from.

The manifest is read as a file, and the bytes of every listed file are hashed as they lie on the disk.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from hades.build_state import ledger
from hades.ports.store import GraphStore
from hades.snapshot.file_hash import hash_file
from hades.stages.contracts.columns import Frames

MANIFEST = "manifest.json"
_ID_DIGITS = 24


def snapshot_frames(store: GraphStore, folder: Path) -> Frames:
    """The manifest, its counts beside the store's, and every file beside what is listed of it."""
    manifest, state = _manifest(folder)
    frames = {"manifest": pa.Table.from_pylist([state])}
    if manifest is not None:
        counts = store.counts()
        frames["nodes"] = _counts(dict(manifest["nodes"]), counts)
        frames["edges"] = _counts(dict(manifest["edges"]), counts)
        frames["documents"] = _counts({"documents": manifest["documents"]}, counts)
        frames["parts"] = _parts(store, manifest["parts"])
        frames["files"] = _files(folder, manifest["arrays"])
    return Frames(frames)


def _manifest(folder: Path) -> tuple[dict[str, Any] | None, dict[str, Any]]:
    """What the manifest says, or None with the reason. A folder still being built has no name to compare."""
    state = {"_key": MANIFEST, "folder": folder.name, "hash": "", "is_readable": False, "id_matches": True}
    try:
        body = (folder / MANIFEST).read_bytes()
        manifest = json.loads(body)
        for part in ("nodes", "edges", "documents", "parts", "arrays"):
            manifest[part]
    except OSError as error:
        return None, {**state, "problem": error.strerror}
    except (ValueError, TypeError, KeyError) as error:
        return None, {**state, "problem": f"{type(error).__name__}: {error}"}
    name = f"g{hashlib.sha256(body).hexdigest()[:_ID_DIGITS]}"
    fits = folder.name in (name, "") or folder.name.startswith(".")
    return manifest, {**state, "hash": name, "is_readable": True, "id_matches": fits, "problem": None}


def _counts(told: Mapping[str, int], counts: Mapping[str, int]) -> pa.Table:
    return pa.table(
        {
            "_key": pa.array(list(told), pa.string()),
            "in_snapshot": pa.array(list(told.values()), pa.int64()),
            "in_store": pa.array([counts.get(name, 0) for name in told], pa.int64()),
        }
    )


def _parts(store: GraphStore, told: Mapping[str, str]) -> pa.Table:
    """The generation of each stage; an empty text where it never ran."""
    done = {stage: ledger.complete(store, stage) for stage in told}
    held = ["" if one is None else one.generation for one in done.values()]
    columns = {"_key": list(told), "in_snapshot": list(told.values()), "in_store": held}
    return pa.table({name: pa.array(values, pa.string()) for name, values in columns.items()})


def _files(folder: Path, arrays: Mapping[str, Mapping[str, Any]]) -> pa.Table:
    rows = []
    for name in sorted(arrays):
        listed = arrays[name]
        expected = int(np.dtype(listed["dtype"]).itemsize * np.prod(listed["shape"], dtype=np.int64))
        path = folder / name
        size = path.stat().st_size if path.is_file() else None
        found = hash_file(path) if size is not None else ""
        rows.append(
            {
                "_key": name,
                "bytes": size,
                "listed_bytes": expected,
                "size_matches": size in (None, expected),
                "hash": found,
                "listed_hash": listed["blake3"],
                "hash_matches": size != expected or found == listed["blake3"],
            }
        )
    return pa.Table.from_pylist(rows, schema=_FILES)


_FILES = pa.schema(
    [
        ("_key", pa.string()),
        ("bytes", pa.int64()),
        ("listed_bytes", pa.int64()),
        ("size_matches", pa.bool_()),
        ("hash", pa.string()),
        ("listed_hash", pa.string()),
        ("hash_matches", pa.bool_()),
    ]
)
