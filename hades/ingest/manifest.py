"""What was ingested, by content, so that a second run touches only what changed; the report; removing rows.

Each document has an entry with the hash of everything its source said, and for each phase the hash of what that phase
last worked from. A phase that was stopped has not written its hash, and is done again.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow.compute as pc

from hades.ports.store import RowStore, Term, scan_rows, scan_values
from schemas.builds import ManifestEntry
from schemas.catalogue import edge_collections
from schemas.ids import node_id
from schemas.record import from_rows, to_table
from schemas.sources import KnownSource, SourceSpec

DERIVED = "derived"  # the entry of everything that follows from all documents together


def entries(store: RowStore, keys: Sequence[str] | None = None) -> dict[str, ManifestEntry]:
    """Entries by document key: those asked for, or all."""
    rows = scan_rows(store, "ingest_manifest") if keys is None else store.get("ingest_manifest", keys).to_pylist()
    return {one.key: one for one in from_rows(ManifestEntry, rows) if one.key != DERIVED}


def record(store: RowStore, changed: Sequence[ManifestEntry]) -> None:
    """Write entries."""
    if changed:
        store.upsert("ingest_manifest", to_table(ManifestEntry, changed))


def derive_digest(store: RowStore) -> str | None:
    """What the derived rows were last computed from."""
    found = store.get("ingest_manifest", [DERIVED], columns=["sha256"]).to_pylist()
    return found[0]["sha256"] if found else None


def record_derived(store: RowStore, digest: str) -> None:
    """Say what the derived rows were computed from."""
    record(store, [ManifestEntry(key=DERIVED, document="", source=DERIVED, origin="", sha256=digest)])


def forget_derived(store: RowStore) -> None:
    """Let the next derivation compute everything again."""
    store.delete("ingest_manifest", keys=[DERIVED])


def forget_phases(store: RowStore, *, nodes: bool) -> None:
    """Let the next run cut every document again and, with `nodes`, write again all that sources say of it."""
    changed = []
    for entry in entries(store).values():
        kept = {phase: digest for phase, digest in entry.phases.items() if phase != "chunks"}
        changed.append(entry.model_copy(update={"phases": kept, "sha256": "" if nodes else entry.sha256}))
    record(store, changed)


def keys_of_corpus(store: RowStore, source: str, corpus: str, place: str) -> set[str]:
    """Documents that came from one corpus at one place."""
    where = [Term("source", "==", source), Term("corpus", "==", corpus), Term("place", "==", place)]
    return set(scan_values(store, "ingest_manifest", "_key", where=where))


def phases_digest(store: RowStore) -> str:
    """One hash over all documents and the phases they went through; rows come in key order, so it needs no sorting."""
    digest = hashlib.sha256()
    for batch in store.scan("ingest_manifest", columns=["_key", "phases"]):
        documents = batch.filter(pc.not_equal(batch.column("_key"), DERIVED))
        lines = pc.binary_join_element_wise(documents.column("_key"), documents.column("phases"), " ")
        digest.update("".join(f"{line}\n" for line in lines.to_pylist()).encode())
    return digest.hexdigest()


MAX_LISTED = 100


@dataclass
class IngestReport:
    """Counts of one run; everything that was not done is counted too."""

    source: str
    read: int = 0
    new: int = 0
    changed: int = 0
    unchanged: int = 0
    removed: int = 0
    quarantined: Counter[str] = field(default_factory=Counter)
    set_aside: list[dict[str, str]] = field(default_factory=list)  # the first MAX_LISTED of them, with their reasons
    chunks: int = 0
    embedded: int = 0
    derived: dict[str, dict[str, int]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def note(self) -> str:
        """Why nothing was read, in words; empty where something was or nothing was to be."""
        if self.read or "nodes" not in self.seconds:
            return ""
        reasons = Counter(one["detail"] or one["reason"] for one in self.set_aside).most_common(1)
        why = f"{sum(self.quarantined.values())} inputs were set aside, most often: {reasons[0][0]}" if reasons else ""
        return f"nothing was read; {why or 'there is no file of a kind that this source reads'}"

    def as_dict(self) -> dict[str, Any]:
        """The report as JSON."""
        return {
            **({"note": self.note} if self.note else {}),
            "source": self.source,
            "documents": {name: getattr(self, name) for name in ("read", "new", "changed", "unchanged", "removed")},
            "quarantined": dict(sorted(self.quarantined.items())),
            "set_aside": self.set_aside,
            "chunks": self.chunks,
            "embedded": self.embedded,
            "derived": self.derived,
            "seconds": {phase: round(value, 3) for phase, value in self.seconds.items()},
        }


def remember(store: RowStore, spec: SourceSpec) -> None:
    """Read this corpus again every night; the same path again replaces what was known of it."""
    key = hashlib.sha256(f"{spec.source}\n{spec.path}".encode()).hexdigest()[:32]
    store.upsert("sources", to_table(KnownSource, [KnownSource(key=key, **spec.model_dump())]))


def known(store: RowStore) -> list[SourceSpec]:
    """Every corpus that was ingested, in key order."""
    return [
        SourceSpec(**{name: value for name, value in row.items() if name != "_key"})
        for row in scan_rows(store, "sources")
    ]


# What belongs to one document and goes with it, nodes before what they stand in.
OWNED_BY_DOCUMENT = ("doc_chunks", "funcs", "files", "papers_raw")


def remove_nodes(store: RowStore, collection: str, keys: Sequence[str]) -> None:
    """Delete nodes, their edges first."""
    if not keys:
        return
    identifiers = [node_id(collection, key) for key in keys]
    for edges in edge_collections():
        shape = edges.edge
        assert shape is not None
        for end, joined in (("_from", shape.sources), ("_to", shape.targets)):
            if collection in joined:
                store.delete(edges.name, where=[Term(end, "in", identifiers)])
    store.delete(collection, keys=keys)


def keys_of_documents(store: RowStore, collection: str, documents: Sequence[str]) -> set[str]:
    """Keys of the rows that belong to these documents."""
    wanted = [node_id("documents", key) for key in documents]
    return set(scan_values(store, collection, "_key", where=[Term("document", "in", wanted)]))
