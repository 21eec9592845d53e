"""The contracts of the snapshot that is about to serve, of the exam, and of the graph a ranker is fitted to."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from hades import build_state
from hades.build.columns import Frames
from hades.build.contracts.rule import between, contract, equal, give, holds, matches, some_rows, unique
from hades.ports.store import GraphStore
from hades.snapshot.files import hash_file

# fmt: off
SNAPSHOT_CONTRACT = contract(
    "snapshot",
    "the read index, before the pointer moves to it",
    "run `hades run publish` while nothing else writes the store",
    {
        "manifest": [
            ("manifest_readable", "the manifest can be read", "problem"),
            ("id_of_manifest", "the folder is named after the hash of its manifest", "folder", "hash"),
        ],
        "nodes": [
            ("node_counts_equal", "the snapshot has as many nodes of each kind as the store",
             equal("in_snapshot", "in_store")),
        ],
        "edges": [
            ("edge_counts_equal", "the snapshot has as many edges of each collection as the store",
             equal("in_snapshot", "in_store")),
        ],
        "documents": [
            ("document_count_equal", "the snapshot has as many documents as the store",
             equal("in_snapshot", "in_store")),
        ],
        "parts": [
            ("parts_are_the_stores", "topics, weights and bridges in the snapshot are of the generation the store has",
             equal("in_snapshot", "in_store")),
        ],
        "files": [
            ("files_listed", "the manifest has listed its files", some_rows()),
            ("file_present", "every file of the manifest is in the folder", give("bytes")),
            ("file_size_as_listed", "a file has the size its type and shape say", "bytes", "listed_bytes"),
            ("file_hash_as_listed", "a file has the hash the manifest lists", "hash", "listed_hash"),
        ],
    },
)
# fmt: on
# The frames of the contract `snapshot`: a folder that is about to serve, beside the store it was written from. The
# manifest is read as a file, and the bytes of every listed file are hashed as they lie on the disk.
MANIFEST = "manifest.json"
_ID_DIGITS = 24


def snapshot_frames(store: GraphStore, folder: Path) -> Frames:
    """The manifest, its counts beside the store's, and every file beside what is listed of it."""
    manifest, state = _manifest(folder)
    frames = {"manifest": pa.Table.from_pylist([state])}
    if manifest is not None:
        counts, parts = store.counts(), {one: build_state.complete(store, one) for one in manifest["parts"]}
        generations = {name: "" if done is None else done.generation for name, done in parts.items()}
        frames["nodes"] = _beside(dict(manifest["nodes"]), counts, pa.int64())
        frames["edges"] = _beside(dict(manifest["edges"]), counts, pa.int64())
        frames["documents"] = _beside({"documents": manifest["documents"]}, counts, pa.int64())
        frames["parts"] = _beside(manifest["parts"], generations, pa.string())
        frames["files"] = _files(folder, manifest["files"])
    return Frames(frames)


def _manifest(folder: Path) -> tuple[dict[str, Any] | None, dict[str, Any]]:
    """What the manifest says, or None with the reason. A folder still being built has no name to compare."""
    state = {"_key": MANIFEST, "folder": folder.name, "hash": "", "manifest_readable": False, "id_of_manifest": True}
    try:
        body = (folder / MANIFEST).read_bytes()
        manifest = json.loads(body)
        for part in ("nodes", "edges", "documents", "parts", "files"):
            manifest[part]
    except OSError as error:
        return None, {**state, "problem": error.strerror}
    except (ValueError, TypeError, KeyError) as error:
        return None, {**state, "problem": f"{type(error).__name__}: {error}"}
    name = f"g{hashlib.sha256(body).hexdigest()[:_ID_DIGITS]}"
    fits = folder.name in (name, "") or folder.name.startswith(".")
    return manifest, {**state, "hash": name, "manifest_readable": True, "id_of_manifest": fits, "problem": None}


def _beside(told: Mapping[str, Any], stored: Mapping[str, Any], kind: pa.DataType) -> pa.Table:
    """What the manifest tells beside what the store has, by name; 0 of what it has not."""
    columns = {"in_snapshot": told, "in_store": {name: stored.get(name, 0) for name in told}}
    values = {name: pa.array(list(column.values()), kind) for name, column in columns.items()}
    return pa.table({"_key": pa.array(list(told), pa.string()), **values})


def _files(folder: Path, files: Mapping[str, Mapping[str, Any]]) -> pa.Table:
    rows = []
    for name, listed in sorted(files.items()):
        expected, path = int(listed["bytes"]), folder / name
        size = path.stat().st_size if path.is_file() else None
        found = hash_file(path) if size is not None else ""
        hash_matches = size != expected or found == listed["blake3"]
        rows.append((name, size, expected, size in (None, expected), found, listed["blake3"], hash_matches))
    columns = list(zip(*rows, strict=True)) or [()] * len(_FILES)
    return pa.table({name: pa.array(one, kind) for (name, kind), one in zip(_FILES.items(), columns, strict=True)})


_FILES = {
    "_key": pa.string(), "bytes": pa.int64(), "listed_bytes": pa.int64(), "file_size_as_listed": pa.bool_(),
    "hash": pa.string(), "listed_hash": pa.string(), "file_hash_as_listed": pa.bool_(),
}  # fmt: skip


STANDING_CONTRACT = contract(
    "standing",
    "answers that must cite a source, before the pointer moves",
    "bring the source back, or drop the requirement: `hades standing remove`",
    {
        "questions": [
            ("cites_its_source", "the answer to a standing question cites the source that it requires",
             holds("cites"), "question", "requires", "cited"),
        ],
    },
)  # fmt: skip
EXAM_CONTRACT = contract(
    "exam",
    "the questions that the corpus supplies",
    "write it again: remove HADES_HOME/exam and run `hades build`",
    {
        "questions": [
            ("question_unique", "a question is asked once", unique("_key")),
            ("question_has_text", "a question has words", matches("text", r"\S")),
            ("answer_known", "a question that can be answered names the passages that answer it", "text"),
            ("weight_positive", "a question counts for something", between("weight", 1e-9)),
        ],
    },
)  # fmt: skip
# fmt: off
RANKER_CONTRACT = contract(
    "ranker",
    "the graph that states of nodes are fitted to",
    "publish a graph first: `hades build`",
    {
        "graphs": [
            ("some_nodes", "a graph has nodes", between("nodes", 1)),
            ("features_finite", "every feature of a node is a finite number", "nodes"),
        ],
    },
    {"features_finite": "embed again: `hades run embed`"},
)
# fmt: on
