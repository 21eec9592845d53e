"""The contracts of what is made of the graph: bridges, the snapshot that will serve, the exam, a
ranker's graph.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hades import stage_ledger
from hades.night.columns import Frames, column, flags, ids, read, with_columns
from hades.night.contracts.graph import TOLERANCE
from hades.night.contracts.rule import (
    between,
    contract,
    equal,
    give,
    has_text,
    holds,
    some_rows,
    unique,
)
from hades.ports.store import GraphStore, RowStore
from hades.snapshot.files import hash_file
from hades.snapshot.manifest import NEWER
from schemas.edges import NEVER_BRIDGES
from schemas.record import JsonObject

MAX_BRIDGE_EDGES = 5
BRIDGES_CONTRACT = contract(
    "bridges",
    "relations that join topics, and cached paths between topics",
    "run `hades repair bridges`",
    {
        "relations": [
            ("coref_never_labelled", "coref is never a bridge", "type"),
            (
                "label_joins_two_topics",
                "a relation labelled a bridge joins two topics",
                "from_topic",
                "to_topic",
            ),
        ],
        "bridge_cache": [
            (
                "length_in_range",
                f"a bridge has 1 to {MAX_BRIDGE_EDGES} edges",
                between("n_edges", 1, MAX_BRIDGE_EDGES),
            ),
            (
                "one_node_more_than_edges",
                "a bridge has one node more than edges",
                "n_nodes",
                "n_edges",
            ),
            ("nodes_exist", "every node of a bridge is stored", "missing_node"),
            ("edges_exist", "every edge of a bridge is stored", "missing_edge"),
            (
                "edges_join_nodes",
                "each edge of a bridge joins the nodes beside it",
                "nodes",
                "edges",
            ),
            ("no_node_twice", "a bridge passes each node once", "nodes"),
            ("coref_never_crosses", "no coref leads a bridge from one topic to another", "edges"),
            ("edges_stand", "no edge of a bridge has ended or was withdrawn", "edges"),
            (
                "topics_exist",
                "a bridge joins two different level 1 topics that are stored",
                "from_cluster",
                "to_cluster",
            ),
            (
                "ends_in_their_topics",
                "a bridge begins and ends in the topics it names",
                "from_cluster",
                "first_topic",
                "to_cluster",
                "last_topic",
            ),
            (
                "current_generation",
                "a bridge is of the generation of the weights in use",
                holds("is_current"),
                "generation",
                "current_generation",
            ),
            (
                "cost_adds_up",
                "a bridge costs what its edges cost together",
                "cost",
                "cost_of_edges",
            ),
        ],
    },
)
_BRIDGED_RELATION = ("_from", "_to", "type", "cost", "layer_bridge", "valid_until", "retracted_at")
_BRIDGE = ("from_cluster", "to_cluster", "nodes", "edges", "cost", "generation", "created")
_BRIDGE_FACTS = {
    **dict.fromkeys(("n_nodes", "n_edges"), pa.int64()),
    **dict.fromkeys(
        ("missing_node", "missing_edge", "first_topic", "last_topic", "current_generation"),
        pa.string(),
    ),
    **dict.fromkeys(
        ("one_node_more_than_edges", "nodes_exist", "edges_exist", "edges_join_nodes"),
        pa.bool_(),
    ),
    **dict.fromkeys(
        ("no_node_twice", "coref_never_crosses", "edges_stand", "topics_exist"),
        pa.bool_(),
    ),
    **dict.fromkeys(
        ("ends_in_their_topics", "cost_adds_up", "is_current"),
        pa.bool_(),
    ),
    "cost_of_edges": pa.float64(),
}
Facts = dict[str, Any]


def bridge_frames(store: RowStore) -> Frames:
    """Labelled relations with the topics they join, and bridges with what walking them finds."""
    relations = read(store, "relations", *_BRIDGED_RELATION)
    bridges = read(store, "bridge_cache", *_BRIDGE)
    labelled = relations.filter(relations.column("layer_bridge"))
    ran = stage_ledger.last_completion(store, stage_ledger.BRIDGES) is not None

    if not bridges.num_rows and not labelled.num_rows and not ran:
        return Frames({}, ("no bridges have been built yet",))

    clusters = read(store, "clusters", "level")
    topics = set(clusters.filter(pc.equal(clusters.column("level"), 1)).column("_key").to_pylist())
    entities = read(store, "entities", "cluster_id")
    topic_of = dict.fromkeys(ids("entities", column(entities, "_key")).to_pylist())

    for entity, topic in zip(topic_of, entities["cluster_id"].to_pylist(), strict=True):
        if topic in topics:
            topic_of[entity] = topic

    weighed = stage_ledger.last_completion(store, stage_ledger.WEIGHTS)
    current = weighed.generation if weighed else None
    names = ids("relations", column(relations, "_key"))
    walked = pc.is_in(
        names,
        value_set=pc.unique(pc.list_flatten(column(bridges, "edges"))),
    )
    edges = dict(
        zip(names.filter(walked).to_pylist(), relations.filter(walked).to_pylist(), strict=True)
    )

    walks = []
    for row in bridges.to_pylist():
        walks.append(_walk(row, edges, topic_of, topics, current))

    facts = pa.Table.from_pylist(walks, schema=pa.schema(_BRIDGE_FACTS))
    tails = pa.array(map(topic_of.get, labelled["_from"].to_pylist()), pa.string())
    heads = pa.array(map(topic_of.get, labelled["_to"].to_pylist()), pa.string())
    kinds = labelled["type"].to_pylist()
    frames = {
        "relations": with_columns(
            labelled.select(["_key", "type"]),
            from_topic=tails,
            to_topic=heads,
            coref_never_labelled=[kind not in NEVER_BRIDGES for kind in kinds],
            label_joins_two_topics=flags(pc.not_equal(tails, heads)),
        ),
        "bridge_cache": with_columns(
            bridges,
            **{name: column(facts, name) for name in _BRIDGE_FACTS},
        ),
    }
    return Frames(
        frames,
        notes=() if weighed else ("generations were not compared: the ledger has no weighing",),
    )


def _walk(
    row: Facts,
    edges: Mapping[str, Facts],
    topic_of: Mapping[str, str | None],
    topics: set[str],
    current: str | None,
) -> Facts:
    """What walking one bridge finds; what another rule reports is not held against it twice."""
    nodes = row["nodes"]
    stated_topics = (row["from_cluster"], row["to_cluster"])

    walked = []
    for name in row["edges"]:
        if name in edges:
            walked.append(edges[name])

    missing_node = next((node for node in nodes if node not in topic_of), None)
    missing_edge = next((name for name in row["edges"] if name not in edges), None)
    nodes_exist = missing_node is None
    edges_exist = missing_edge is None
    fits = len(nodes) == len(row["edges"]) + 1
    pairs = zip(walked, pairwise(nodes), strict=False)
    joins = all({edge["_from"], edge["_to"]} == set(pair) for edge, pair in pairs)

    if nodes:
        ends = (topic_of.get(nodes[0]), topic_of.get(nodes[-1]))
    else:
        ends = (None, None)

    topics_exist = stated_topics[0] != stated_topics[1] and topics.issuperset(stated_topics)
    costs = [edge["cost"] for edge in walked]
    if edges_exist and None not in costs:
        cost = sum(costs)
    else:
        cost = None

    tolerance = TOLERANCE * max(1.0, abs(cost or 0.0))
    crosses = False
    for edge in walked:
        if edge["type"] in NEVER_BRIDGES:
            crosses |= topic_of.get(edge["_from"]) != topic_of.get(edge["_to"])

    return {
        "n_nodes": len(nodes),
        "n_edges": len(row["edges"]),
        "one_node_more_than_edges": fits,
        "nodes_exist": nodes_exist,
        "edges_exist": edges_exist,
        "missing_node": missing_node,
        "missing_edge": missing_edge,
        "edges_join_nodes": joins or not (fits and nodes_exist and edges_exist),
        "no_node_twice": len(set(nodes)) == len(nodes) or not nodes_exist,
        "coref_never_crosses": not crosses,
        "edges_stand": not any(edge["valid_until"] or edge["retracted_at"] for edge in walked),
        "topics_exist": topics_exist,
        "first_topic": ends[0],
        "last_topic": ends[1],
        "ends_in_their_topics": ends == stated_topics or not topics_exist or not nodes_exist,
        "cost_of_edges": cost,
        "cost_adds_up": cost is None or abs(row["cost"] - cost) <= tolerance,
        "current_generation": current,
        "is_current": current is None or row["generation"] == current,
    }


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


STANDING_CONTRACT = contract(
    "standing",
    "answers that must cite a source, before the pointer moves",
    "bring the source back, or drop the requirement: `hades standing remove`",
    {
        "questions": [
            (
                "cites_its_source",
                "the answer to a standing question cites the source that it requires",
                holds("cites"),
                "question",
                "requires",
                "cited",
            ),
        ],
    },
)
EXAM_CONTRACT = contract(
    "exam",
    "the questions that the corpus supplies",
    "write it again: remove HADES_HOME/exam and run `hades build`",
    {
        "questions": [
            ("question_unique", "a question is asked once", unique("_key")),
            ("question_has_text", "a question has words", has_text("text")),
            (
                "answer_known",
                "a question that can be answered names the passages that answer it",
                "text",
            ),
            ("weight_positive", "a question counts for something", between("weight", 1e-9)),
        ],
    },
)
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
