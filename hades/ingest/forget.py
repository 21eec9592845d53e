"""Forgetting: a document goes with all that only it supports; a certificate says what went and what stayed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hades.errors import HadesError
from hades.ingest import manifest
from hades.ingest.edges import derive_edges
from hades.ingest.entities.rules import EntityRules
from hades.ingest.openie import remove_unused
from hades.ingest.removal import OWNED_BY_DOCUMENT, keys_of_documents, remove_nodes
from hades.ports.store import GraphStore, RowStore, Term
from hades.ports.text import Embedder
from schemas.catalogue import NAMES
from schemas.ids import node_id

_SHOWN = 200


class UnknownDocument(HadesError):
    """An id that names no ingested document."""


@dataclass(frozen=True)
class Certificate:
    """Proof of one act of forgetting."""

    documents: list[dict[str, str]]
    removed: dict[str, int]
    entities_removed: list[str]
    entities_kept: list[dict[str, Any]]
    left_behind: dict[str, int] = field(default_factory=dict)

    @property
    def is_complete(self) -> bool:
        """Whether nothing in the store names the documents any more."""
        return not self.left_behind

    def as_dict(self) -> dict[str, Any]:
        """The certificate as JSON."""
        return {
            "documents": self.documents,
            "removed": self.removed,
            "entities_removed": self.entities_removed,
            "entities_kept": self.entities_kept,
            "left_behind": self.left_behind,
            "complete": self.is_complete,
        }


def forget_documents(store: GraphStore, embedder: Embedder, rules: EntityRules, ids: Sequence[str]) -> Certificate:
    """Remove documents named by origin or key; every derived row is brought to what the others still say."""
    keys = [resolve(store, identifier) for identifier in dict.fromkeys(ids)]
    documents = [
        {"id": row["origin"], "key": row["_key"], "source": row["source"], "sha256": row["sha256"]}
        for row in store.get("documents", keys, columns=["origin", "source", "sha256"]).to_pylist()
    ]
    mentioned = _mentioned(store, keys)
    before = store.counts()
    remove_documents(store, keys)
    derive_edges(store, embedder, rules)
    after = store.counts()
    kept = store.get("entities", sorted(mentioned), columns=["name", "frequency"]).to_pylist()
    still = {row["_key"] for row in kept}
    return Certificate(
        documents=documents,
        removed={name: before[name] - after[name] for name in before if before[name] > after[name]},
        entities_removed=sorted(name for key, name in mentioned.items() if key not in still)[:_SHOWN],
        entities_kept=[
            {"id": node_id("entities", row["_key"]), "name": row["name"], "why": _support(store, row["_key"])}
            for row in kept[:_SHOWN]
        ],
        left_behind=_left_behind(store, keys),
    )


def remove_documents(store: GraphStore, keys: Sequence[str]) -> None:
    """Take documents out with all rows that belong to them alone; derived rows follow in the edges phase."""
    if not keys:
        return
    with store.transaction(NAMES) as inside:
        for collection in OWNED_BY_DOCUMENT:
            held = keys_of_documents(inside, collection, keys)
            remove_nodes(inside, collection, sorted({key for listed in held.values() for key in listed}))
        inside.delete("documents", keys=keys)
        inside.delete("ingest_manifest", keys=keys)
        remove_unused(inside)


def resolve(store: RowStore, identifier: str) -> str:
    """The key of the document with this origin, key or `_id`."""
    plain = identifier.removeprefix("documents/")
    found = [
        row
        for batch in store.scan("documents", where=[Term("origin", "==", plain)], columns=["source"])
        for row in batch.to_pylist()
    ]
    if len(found) > 1:
        choices = ", ".join(f"{row['_key']} ({row['source']})" for row in found)
        raise UnknownDocument(f"{identifier!r} is the id of several documents: {choices}; give the key of one")
    if found:
        key: str = found[0]["_key"]
        return key
    if store.get("documents", [plain], columns=["_key"]).num_rows:
        return plain
    raise UnknownDocument(f"no document has the id {identifier!r}; `hades status` counts what there is")


def _mentioned(store: RowStore, keys: Sequence[str]) -> dict[str, str]:
    """Entities the documents speak of, key to name."""
    chunks = [
        node_id("doc_chunks", key) for listed in keys_of_documents(store, "doc_chunks", keys).values() for key in listed
    ]
    targets = {
        target.partition("/")[2]
        for batch in store.scan("mentions", where=[Term("_from", "in", chunks)], columns=["_to"])
        for target in batch.column("_to").to_pylist()
    }
    rows = store.get("entities", sorted(targets), columns=["name"]).to_pylist()
    return {row["_key"]: row["name"] for row in rows}


def _support(store: RowStore, entity: str) -> str:
    count = store.count("mentions", where=[Term("_to", "==", node_id("entities", entity))])
    return f"mentioned in {count} other chunk{'s' if count != 1 else ''}" if count else "stated by another document"


def _left_behind(store: GraphStore, keys: Sequence[str]) -> dict[str, int]:
    """Rows that still name a forgotten document, by collection; must be empty."""
    wanted = {node_id("documents", key) for key in keys}
    found: dict[str, int] = {}
    for collection in OWNED_BY_DOCUMENT:
        found[collection] = store.count(collection, where=[Term("document", "in", sorted(wanted))])
    for batch in store.scan("relations", columns=["provenance"]):
        for provenance in batch.column("provenance").to_pylist():
            found["relations"] = found.get("relations", 0) + (provenance is not None and provenance["doc"] in wanted)
    found["ingest_manifest"] = len(manifest.entries(store, list(keys)))
    found["edges without an end"] = sum(map(len, store.dangling().values()))
    return {name: count for name, count in found.items() if count}
