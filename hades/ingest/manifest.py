"""What was ingested, by content, so that a second run touches only what changed; the report;
removing rows.

Each document has an entry with the hash of everything its source said, and for each phase the hash
of what that phase last worked from. A phase that was stopped has not written its hash, and is done
again. It also says how many rows belong to the document, so that a row that was lost is noticed.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow.compute as pc

from hades.ports.store import RowStore, Term, scan_rows, scan_values
from schemas.builds import ManifestEntry
from schemas.catalogue import edge_collections
from schemas.ids import node_id
from schemas.record import JsonObject, from_rows, to_table
from schemas.sources import KnownSource, SourceSpec

DERIVED = "derived"  # the entry of everything that follows from all documents together
# Beside the hashes of the phases: how many rows of each collection were written.
ROWS = "rows"
# Beside the rows of `DERIVED`: the digest of the documents that they were derived from.
_DOCUMENTS = "documents"
# What belongs to one document and goes with it, nodes before what they stand in.
OWNED_BY_DOCUMENT = ("doc_chunks", "funcs", "files", "papers_raw")


def entries(
    store: RowStore,
    keys: Sequence[str] | None = None,
) -> dict[str, ManifestEntry]:
    """Entries by document key: of these keys, or all."""
    if keys is None:
        rows = scan_rows(store, "ingest_manifest")
    else:
        rows = store.get("ingest_manifest", keys).to_pylist()

    return {entry.key: entry for entry in from_rows(ManifestEntry, rows) if entry.key != DERIVED}


def record(store: RowStore, changed: Sequence[ManifestEntry]) -> None:
    """Write entries."""
    if changed:
        store.upsert("ingest_manifest", to_table(ManifestEntry, changed))


def derive_digest(store: RowStore) -> str | None:
    """What the derived rows were last computed from."""
    rows = store.get(
        "ingest_manifest",
        [DERIVED],
        columns=["sha256"],
    ).to_pylist()
    return rows[0]["sha256"] if rows else None


def record_derived(
    store: RowStore,
    digest: str,
    rows: Mapping[str, int] | None = None,
) -> None:
    """Say what the derived rows were computed from and, where they are whole, how many there are by
    collection.
    """
    if rows:
        written = {
            _DOCUMENTS: phases_digest(store),
            ROWS: dict(rows),
        }
    else:
        written = {}

    entry = ManifestEntry(
        key=DERIVED,
        document="",
        source=DERIVED,
        origin="",
        sha256=digest,
        phases=written,
    )
    record(store, [entry])


def forget_derived(store: RowStore) -> None:
    """Let the next derivation compute everything again."""
    store.delete("ingest_manifest", keys=[DERIVED])


def forget_phases(store: RowStore, *, nodes: bool) -> None:
    """Let the next run cut every document again and, with `nodes`, write again all that sources say
    of it.
    """
    changed = []
    for entry in entries(store).values():
        phases = {phase: digest for phase, digest in entry.phases.items() if phase != "chunks"}
        changed.append(
            entry.model_copy(
                update={
                    "phases": phases,
                    "sha256": "" if nodes else entry.sha256,
                }
            )
        )

    record(store, changed)


@dataclass(frozen=True)
class RowCount:
    """How many rows of a collection were written, of one document or of all, and how many are
    stored.
    """

    entry: ManifestEntry
    collection: str
    written: int
    stored: int


def count_rows_of_documents(store: RowStore) -> list[RowCount]:
    """The rows of each document by collection, itself among them.

    Collections that an older version of this library wrote without counting are left out.
    """
    stored = {}
    for name in OWNED_BY_DOCUMENT:
        stored[name] = Counter(scan_values(store, name, "document"))

    stored["documents"] = Counter(
        node_id("documents", key) for key in scan_values(store, "documents", "_key")
    )
    counts = []
    for entry in entries(store).values():
        written = {
            "documents": 1,
            **entry.phases.get(ROWS, {}),
        }
        for collection, count in written.items():
            counts.append(
                RowCount(
                    entry,
                    collection,
                    count,
                    stored[collection][entry.document],
                )
            )

    return counts


def documents_with_lost_rows(store: RowStore, collections: Sequence[str]) -> set[str]:
    """Documents (keys) of which these collections no longer hold every row that was written."""
    lost: set[str] = set()
    for count in count_rows_of_documents(store):
        if count.collection in collections and count.stored != count.written:
            lost.add(count.entry.key)

    return lost


def count_derived_rows(store: RowStore) -> list[RowCount]:
    """The rows that follow from all documents together, by collection; none where a document
    changed since they were derived.
    """
    rows = store.get("ingest_manifest", [DERIVED]).to_pylist()

    counts = []
    for entry in from_rows(ManifestEntry, rows):
        is_current = entry.phases.get(_DOCUMENTS) == phases_digest(store)
        if is_current:
            written: Mapping[str, int] = entry.phases.get(ROWS, {})
        else:
            written = {}

        for collection, count in written.items():
            counts.append(
                RowCount(
                    entry,
                    collection,
                    count,
                    store.count(collection),
                )
            )

    return counts


def keys_of_place(
    store: RowStore,
    source: str,
    place: str,
    only: frozenset[str] | None = None,
) -> set[str]:
    """Documents that came from one place, or only from these files of it."""
    where = [Term("source", "==", source), Term("place", "==", place)]
    if only is None:
        return set(
            scan_values(
                store,
                "ingest_manifest",
                "_key",
                where=where,
            )
        )

    rows = scan_rows(
        store,
        "ingest_manifest",
        where=where,
        columns=["_key", "origin"],
    )
    return {row["_key"] for row in rows if row["origin"].partition("#")[0] in only}


def origins_of_place(
    store: RowStore,
    source: str,
    place: str,
) -> dict[str, str]:
    """The origin of each document (`_id`) that came from one place."""
    where = [Term("source", "==", source), Term("place", "==", place)]
    rows = scan_rows(
        store,
        "ingest_manifest",
        where=where,
        columns=["_key", "origin"],
    )
    return {node_id("documents", row["_key"]): row["origin"] for row in rows}


def distinct_corpus(
    store: RowStore,
    source: str,
    corpus: str,
    place: str,
) -> str:
    """The name of the corpus at this place: that of its folder, behind as many of the folders above
    as no corpus at another place is called by. A folder that moved keeps its name.
    """
    where = [Term("source", "==", source)]

    places: dict[str, set[str]] = {}
    for row in scan_rows(
        store,
        "ingest_manifest",
        where=where,
        columns=["corpus", "place"],
    ):
        places.setdefault(row["corpus"], set()).add(row["place"])

    taken_names: set[str] = set()
    for name, name_places in places.items():
        elsewhere = name_places - {"", place}
        if any(Path(other_place).exists() for other_place in elsewhere):
            taken_names.add(name)

    known = sorted(name for name, name_places in places.items() if place in name_places)
    folders = Path(place).parts[1:]

    longer = []
    for count in range(2, len(folders) + 1):
        longer.append("/".join(folders[-count:]))

    return next(
        (name for name in [*known, corpus, *longer] if name not in taken_names),
        place,
    )


def phases_digest(store: RowStore) -> str:
    """One hash over all documents and the phases they went through; rows come in key order, so it
    needs no sorting.
    """
    digest = hashlib.sha256()
    for batch in store.scan("ingest_manifest", columns=["_key", "phases"]):
        documents = batch.filter(pc.not_equal(batch["_key"], DERIVED))
        lines = pc.binary_join_element_wise(
            documents["_key"],
            documents["phases"],
            " ",
        )
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
    restored: int = 0
    removed: int = 0
    quarantined: Counter[str] = field(default_factory=Counter)
    # The first MAX_LISTED of them, with their reasons.
    set_aside: list[dict[str, str]] = field(default_factory=list)
    chunks: int = 0
    embedded: int = 0
    derived: dict[str, dict[str, int]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def note(self) -> str:
        """Why nothing was read, in words; empty where something was or nothing was to be."""
        if self.read or "nodes" not in self.seconds:
            return ""

        reasons = Counter(
            rejected["detail"] or rejected["reason"] for rejected in self.set_aside
        ).most_common(1)
        why = (
            f"{sum(self.quarantined.values())} inputs were set aside, most often: {reasons[0][0]}"
            if reasons
            else ""
        )
        return f"nothing was read; {why or 'there is no file of a kind that this source reads'}"

    def as_dict(self) -> JsonObject:
        """The report as JSON."""
        return {
            **({"note": self.note} if self.note else {}),
            "source": self.source,
            "documents": {
                name: getattr(self, name)
                for name in ("read", "new", "changed", "unchanged", "restored", "removed")
            },
            "quarantined": dict(sorted(self.quarantined.items())),
            "set_aside": self.set_aside,
            "chunks": self.chunks,
            "embedded": self.embedded,
            "derived": self.derived,
            "seconds": {phase: round(value, 3) for phase, value in self.seconds.items()},
        }


def remember(store: RowStore, spec: SourceSpec) -> None:
    """Read this corpus again every night; the same path again replaces what was known of it."""
    row = KnownSource(key=_source_key(spec), **spec.model_dump())
    store.upsert("sources", to_table(KnownSource, [row]))


def unremember(store: RowStore, spec: SourceSpec) -> None:
    """Read this corpus no more."""
    store.delete("sources", keys=[_source_key(spec)])


def _source_key(spec: SourceSpec) -> str:
    return hashlib.sha256(f"{spec.source}\n{spec.path}".encode()).hexdigest()[:32]


def known(store: RowStore) -> list[SourceSpec]:
    """Every corpus that was ingested, in key order."""
    specs = []
    for row in scan_rows(store, "sources"):
        del row["_key"]
        specs.append(SourceSpec(**row))

    return specs


def remove_nodes(
    store: RowStore,
    collection: str,
    keys: Sequence[str],
) -> None:
    """Delete nodes, their edges first.

    Where derived edges go along, what was derived is no longer whole, though the documents may be
    the same again when it is next looked at: an edit that was taken back.
    """
    if not keys:
        return
    if collection in OWNED_BY_DOCUMENT:
        forget_derived(store)

    identifiers = [node_id(collection, key) for key in keys]
    for edges in edge_collections():
        shape = edges.edge
        assert shape is not None
        for end, joined in (("_from", shape.sources), ("_to", shape.targets)):
            if collection in joined:
                store.delete(edges.name, where=[Term(end, "in", identifiers)])

    store.delete(collection, keys=keys)


def keys_of_documents(
    store: RowStore,
    collection: str,
    documents: Sequence[str],
) -> set[str]:
    """Keys of the rows that belong to these documents."""
    document_ids = [node_id("documents", key) for key in documents]
    return set(
        scan_values(
            store,
            collection,
            "_key",
            where=[Term("document", "in", document_ids)],
        )
    )
