"""Contracts of the snapshot and of the ranker export."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from hades import build_state
from hades.build.contracts.columns import Frames
from hades.build.contracts.rule import Contract, Rule, between, equal, give, holds, one_of, some_rows, unique
from hades.ports.store import GraphStore
from hades.snapshot.files import hash_file

# Snapshot: it holds what the store holds, and every file is what the manifest says.


_PUBLISH = "run `hades run publish` while nothing else writes the store"
SNAPSHOT_CONTRACT = Contract(
    "snapshot",
    "the read index, before the pointer moves to it",
    (
        Rule(
            "snapshot.manifest_readable",
            "manifest",
            "the manifest can be read",
            holds("is_readable"),
            ("problem",),
            repair=_PUBLISH,
        ),
        Rule(
            "snapshot.id_of_manifest",
            "manifest",
            "the folder is named after the hash of its manifest",
            holds("id_matches"),
            ("folder", "hash"),
            repair=_PUBLISH,
        ),
        Rule(
            "snapshot.node_counts_equal",
            "nodes",
            "the snapshot has as many nodes of each kind as the store",
            equal("in_snapshot", "in_store"),
            repair=_PUBLISH,
        ),
        Rule(
            "snapshot.edge_counts_equal",
            "edges",
            "the snapshot has as many edges of each collection as the store",
            equal("in_snapshot", "in_store"),
            repair=_PUBLISH,
        ),
        Rule(
            "snapshot.document_count_equal",
            "documents",
            "the snapshot has as many documents as the store",
            equal("in_snapshot", "in_store"),
            repair=_PUBLISH,
        ),
        Rule(
            "snapshot.parts_are_the_stores",
            "parts",
            "topics, weights and bridges in the snapshot are of the generation the store has",
            equal("in_snapshot", "in_store"),
            repair=_PUBLISH,
        ),
        Rule(
            "snapshot.files_listed",
            "files",
            "the manifest has listed its files",
            some_rows(),
            repair=_PUBLISH,
        ),
        Rule(
            "snapshot.file_present",
            "files",
            "every file of the manifest is in the folder",
            give("bytes"),
            repair=_PUBLISH,
        ),
        Rule(
            "snapshot.file_size_as_listed",
            "files",
            "a file has the size its type and shape say",
            holds("size_matches"),
            ("bytes", "listed_bytes"),
            repair=_PUBLISH,
        ),
        Rule(
            "snapshot.file_hash_as_listed",
            "files",
            "a file has the hash the manifest lists",
            holds("hash_matches"),
            ("hash", "listed_hash"),
            repair=_PUBLISH,
        ),
    ),
)
# The frames of the contract `snapshot`: a folder that is about to serve, beside the store it was written from. The
# manifest is read as a file, and the bytes of every listed file are hashed as they lie on the disk.
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
    done = {stage: build_state.complete(store, stage) for stage in told}
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
# What a ranker is fitted to: the exported graph holds together, and preferences are between things that were there.
_EXPORT = "export again: `hades run train_ranker`"
SPLITS = ("fit", "held")
SOURCES = ("file", "feedback")
RANKER_CONTRACT = Contract(
    "ranker",
    "the export that a ranker is fitted to",
    (
        Rule("ranker.some_nodes", "nodes", "the export has nodes", some_rows(), repair=_EXPORT),
        Rule("ranker.node_unique", "nodes", "a node is there once a graph", unique("graph", "id"), repair=_EXPORT),
        Rule(
            "ranker.node_of_its_kind",
            "nodes",
            "a node's id names the collection of its kind",
            holds("kind_matches"),
            ("id", "kind"),
            repair=_EXPORT,
        ),
        Rule(
            "ranker.features_finite",
            "nodes",
            "every feature of a node is a finite number",
            holds("is_finite"),
            ("id",),
            repair="embed again: `hades run embed`",
        ),
        Rule(
            "ranker.degrees_match",
            "nodes",
            "a node has as many edges as it says",
            holds("degree_matches"),
            ("id", "degree", "edges"),
            repair=_EXPORT,
        ),
        Rule(
            "ranker.edge_ends_exist",
            "edges",
            "both ends of an edge are nodes of its graph",
            holds("ends_exist"),
            ("source", "target"),
            repair=_EXPORT,
        ),
        Rule(
            "ranker.some_questions", "questions", "there are questions", some_rows(), repair="name a file of questions"
        ),
        Rule("ranker.question_has_text", "questions", "a question has words", holds("has_text"), ("text",)),
        Rule("ranker.split_known", "questions", "a question is fitted or held out", one_of("split", SPLITS)),
        Rule(
            "ranker.source_known",
            "questions",
            "a question comes from a file or from feedback",
            one_of("source", SOURCES),
        ),
        Rule(
            "ranker.held_out_is_later",
            "questions",
            "of logged questions the later ones are held out",
            holds("is_in_time"),
            ("at", "split"),
            repair=_EXPORT,
        ),
        Rule(
            "ranker.pair_of_a_question",
            "preferences",
            "a preference belongs to a question",
            holds("question_exists"),
            ("question",),
            repair=_EXPORT,
        ),
        Rule(
            "ranker.pair_of_nodes",
            "preferences",
            "both sides of a preference are nodes of the graph",
            holds("nodes_exist"),
            ("better", "worse"),
            repair=_EXPORT,
        ),
        Rule(
            "ranker.pair_is_one_way",
            "preferences",
            "nothing is preferred to itself, and nothing both ways",
            holds("is_one_way"),
            ("better", "worse"),
            repair="judge the answer again: `hades feedback`",
        ),
        Rule(
            "ranker.propensity_in_range",
            "preferences",
            "the chance that a passage stood where it stood lies above 0 and not above 1",
            between("propensity", 1e-6, 1),
            repair=_EXPORT,
        ),
    ),
)
