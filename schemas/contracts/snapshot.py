"""Snapshot: it holds what the store holds, and every file is what the manifest says."""

from __future__ import annotations

from schemas.contracts.rule import Contract, Rule, equal, give, holds, some_rows

_PUBLISH = "run `hades run publish` while nothing else writes the store"

CONTRACT = Contract(
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
