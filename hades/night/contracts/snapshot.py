"""The contract of a published snapshot."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from hades import stage_ledger
from hades.night.columns import Frames
from hades.night.contracts.rule import (
    contract,
    equal,
    give,
    some_rows,
)
from hades.ports.store import GraphStore
from hades.snapshot.files import hash_file
from hades.snapshot.manifest import NEWER
from schemas.record import JsonObject

SNAPSHOT_CONTRACT = contract(
    "snapshot",
    "the read index, before the pointer moves to it",
    "run `hades run publish` while nothing else writes the store",
    {
        "manifest": [
            ("manifest_readable", "the manifest can be read", "problem"),
            (
                "id_of_manifest",
                "the folder is named after the hash of its manifest",
                "folder",
                "hash",
            ),
        ],
        "nodes": [
            (
                "node_counts_equal",
                "the snapshot has as many nodes of each kind as the store",
                equal("in_snapshot", "in_store"),
            ),
        ],
        "edges": [
            (
                "edge_counts_equal",
                "the snapshot has as many edges of each collection as the store",
                equal("in_snapshot", "in_store"),
            ),
        ],
        "documents": [
            (
                "document_count_equal",
                "the snapshot has as many documents as the store",
                equal("in_snapshot", "in_store"),
            ),
        ],
        "parts": [
            (
                "parts_are_the_stores",
                "topics, weights and bridges in the snapshot are of the generation the store has",
                equal("in_snapshot", "in_store"),
            ),
        ],
        "files": [
            ("files_listed", "the manifest has listed its files", some_rows()),
            ("file_present", "every file of the manifest is in the folder", give("bytes")),
            (
                "file_size_as_listed",
                "a file has the size its type and shape say",
                "bytes",
                "listed_bytes",
            ),
            (
                "file_hash_as_listed",
                "a file has the hash the manifest lists",
                "hash",
                "listed_hash",
            ),
        ],
    },
)
MANIFEST = "manifest.json"
_ID_DIGITS = 24


def snapshot_frames(store: GraphStore, folder: Path) -> Frames:
    """The manifest, its counts beside the store's, and every file, hashed as it lies on the disk,
    beside its entry.
    """
    manifest, state = _manifest(folder)
    frames = {"manifest": pa.Table.from_pylist([state])}

    if manifest is not None:
        counts = store.counts()
        parts = {}
        for name, part in manifest["parts"].items():
            if name != NEWER:
                parts[name] = part

        done = {name: stage_ledger.last_completion(store, name) for name in parts}
        generations = {}
        for name, record in done.items():
            generations[name] = "" if record is None else record.generation

        frames["nodes"] = _beside(dict(manifest["nodes"]), counts, pa.int64())
        frames["edges"] = _beside(dict(manifest["edges"]), counts, pa.int64())
        frames["documents"] = _beside(
            {"documents": manifest["documents"]},
            counts,
            pa.int64(),
        )
        frames["parts"] = _beside(parts, generations, pa.string())
        frames["files"] = _files(folder, manifest["files"])

    return Frames(frames)


def _manifest(folder: Path) -> tuple[JsonObject | None, JsonObject]:
    """What the manifest says, or None with the reason. A folder still being built has no name to
    compare.
    """
    state = {
        "_key": MANIFEST,
        "folder": folder.name,
        "hash": "",
        "manifest_readable": False,
        "id_of_manifest": True,
    }
    try:
        body = (folder / MANIFEST).read_bytes()
        manifest = json.loads(body)
        for part in ("nodes", "edges", "documents", "parts", "files"):
            manifest[part]
    except OSError as error:
        return None, {**state, "problem": error.strerror}
    except (ValueError, TypeError, KeyError) as error:
        return None, {
            **state,
            "problem": f"{type(error).__name__}: {error}",
        }

    name = f"g{hashlib.sha256(body).hexdigest()[:_ID_DIGITS]}"
    fits = folder.name in (name, "") or folder.name.startswith(".")
    return manifest, {
        **state,
        "hash": name,
        "manifest_readable": True,
        "id_of_manifest": fits,
        "problem": None,
    }


def _beside(
    stated: Mapping[str, Any],
    stored: Mapping[str, Any],
    kind: pa.DataType,
) -> pa.Table:
    """What the manifest tells beside what the store has, by name; 0 of what it has not."""
    columns = {
        "in_snapshot": stated,
        "in_store": {name: stored.get(name, 0) for name in stated},
    }
    values = {name: pa.array(list(column.values()), kind) for name, column in columns.items()}
    return pa.table(
        {
            "_key": pa.array(list(stated), pa.string()),
            **values,
        }
    )


def _files(folder: Path, files: Mapping[str, Mapping[str, Any]]) -> pa.Table:
    rows = []
    for name, listed in sorted(files.items()):
        expected = int(listed["bytes"])
        listed_hash = listed["blake3"]
        path = folder / name
        size = path.stat().st_size if path.is_file() else None
        digest = hash_file(path) if size is not None else ""
        sizes = (size, expected, size in (None, expected))
        hashes = (digest, listed_hash, size != expected or digest == listed_hash)
        rows.append(dict(zip(_FILES, (name, *sizes, *hashes), strict=True)))

    return pa.Table.from_pylist(rows, schema=pa.schema(_FILES))


_FILES = {
    "_key": pa.string(),
    "bytes": pa.int64(),
    "listed_bytes": pa.int64(),
    "file_size_as_listed": pa.bool_(),
    "hash": pa.string(),
    "listed_hash": pa.string(),
    "file_hash_as_listed": pa.bool_(),
}
