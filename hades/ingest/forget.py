"""Forgetting: a document goes with all that only it supports; a certificate says what went and what stayed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hades.errors import HadesError
from hades.ingest import manifest
from hades.ingest.cleanup.logs import blank_questions
from hades.ingest.document_traces import find_traces, left_of, traces_of
from hades.ingest.entities.rules import EntityRules
from hades.ingest.known_records import forget_records
from hades.ingest.openie import remove_unused
from hades.ingest.reingest_check import drop_quarantined, sources_holding
from hades.ingest.remove_nodes import OWNED_BY_DOCUMENT, keys_of_documents, remove_nodes
from hades.ports.store import Direction, GraphStore, RowStore, Term
from hades.ports.text import Embedder
from schemas.catalogue import NAMES, edge_collections
from schemas.ids import node_id

_SHOWN = 200
_ALL = 1_000_000_000  # mentions of one entity
_LATER = ("clusters", "bridge_cache", "query_logs")  # rows that stay and are corrected


class UnknownDocument(HadesError):
    """An id that names no ingested document."""


@dataclass(frozen=True)
class Certificate:
    """Proof of one act of forgetting.

    `corrected` counts rows that stay without what they took from the documents. `left_behind` names rows, by
    collection, in which a search of the whole store still finds them. `read_again` are the files, as far as known, from
    which a nightly build would read them again. `answers_removed` counts kept answers that were deleted.
    """

    documents: list[dict[str, str]]
    removed: dict[str, int]
    entities_removed: list[str]
    entities_kept: list[dict[str, Any]]
    corrected: dict[str, int] = field(default_factory=dict)
    left_behind: dict[str, list[str]] = field(default_factory=dict)
    read_again: list[str] = field(default_factory=list)
    answers_removed: int = 0

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
            "corrected": self.corrected,
            "left_behind": {name: len(keys) for name, keys in self.left_behind.items()},
            "left_behind_rows": {name: keys[:_SHOWN] for name, keys in self.left_behind.items()},
            "read_again": self.read_again,
            "answers_removed": self.answers_removed,
            "complete": self.is_complete,
        }


def forget_documents(
    store: GraphStore, embedder: Embedder, rules: EntityRules, ids: Sequence[str], scratch: Path | None = None
) -> Certificate:
    """Remove documents named by origin or key; every derived row is brought to what the others still say."""
    keys = [resolve(store, identifier) for identifier in dict.fromkeys(ids)]
    documents = [
        {"id": row["origin"], "key": row["_key"], "source": row["source"], "sha256": row["sha256"]}
        for row in store.get("documents", keys, columns=["origin", "source", "sha256"]).to_pylist()
    ]
    entries = list(manifest.entries(store, keys).values())
    traces = traces_of(store, keys)
    owned = [
        node_id(collection, key)
        for collection in OWNED_BY_DOCUMENT
        for held in keys_of_documents(store, collection, keys).values()
        for key in held
    ]
    names = {
        row["_key"]: row["name"]
        for row in store.get("entities", list(traces.entities), columns=["_key", "name"]).to_pylist()
    }
    before = store.counts()
    remove_documents(store, keys)
    copies = drop_quarantined(store, entries)
    from hades.ingest.edges import derive_edges  # a quarter of a second, which reading sources does not need

    if scratch is not None:
        forget_records(scratch)
    changes = derive_edges(store, embedder, rules, scratch=scratch)
    traces = left_of(store, traces, changes["relations"].removed_keys if "relations" in changes else ())
    corrected = {name: changes[name].changed for name in _LATER if name in changes}
    corrected["query_logs"] = corrected.get("query_logs", 0) + blank_questions(store, traces.runs)
    after = store.counts()
    gone = [*owned, *(node_id("entities", key) for key in traces.entities)]
    kept = store.get("entities", sorted(names), columns=["_key", "name"]).to_pylist()[:_SHOWN]
    mentions = _count_mentions(store, [row["_key"] for row in kept])
    return Certificate(
        documents=documents,
        removed={name: before[name] - after[name] for name in before if before[name] > after[name]},
        entities_removed=sorted(names[key] for key in traces.entities)[:_SHOWN],
        entities_kept=[
            {"id": node_id("entities", row["_key"]), "name": row["name"], "why": _support(mentions[row["_key"]])}
            for row in kept
        ],
        corrected={name: count for name, count in corrected.items() if count},
        left_behind={**find_traces(store, traces), **find_loose_edges(store, gone)},
        read_again=[*sources_holding(store, entries), *copies],
    )


def remove_documents(store: GraphStore, keys: Sequence[str]) -> None:
    """Take documents out with all rows that belong to them alone; derived rows follow in the edges phase."""
    if not keys:
        return
    with store.bulk(NAMES) as inside:
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


def _count_mentions(store: RowStore, entities: Sequence[str]) -> Counter[str]:
    """How many chunks name each of these entities (keys)."""
    ids = [node_id("entities", key) for key in entities]
    found = store.neighbours(ids, edges="mentions", direction=Direction.IN, fanout=_ALL) if ids else None
    return Counter(one.partition("/")[2] for one in found.column("node").to_pylist()) if found else Counter()


def _support(count: int) -> str:
    return f"mentioned in {count} other chunk{'s' if count != 1 else ''}" if count else "stated by another document"


def find_loose_edges(store: RowStore, gone: Sequence[str]) -> dict[str, list[str]]:
    """Edges that still point at one of the nodes (ids) that went; found by their ends, so the cost follows `gone`."""
    loose: dict[str, list[str]] = {}
    for edges in edge_collections():
        keys = {
            key
            for end in ("_from", "_to")
            for batch in store.scan(edges.name, where=[Term(end, "in", list(gone))], columns=["_key"])
            for key in batch.column("_key").to_pylist()
        }
        if keys:
            loose[f"{edges.name} without an end"] = sorted(keys)
    return loose
