"""Where a forgotten document would come back from: nightly builds read every known source again."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from hades.ingest.manifest import Entry
from hades.ingest.source_document import RejectReason
from hades.ingest.source_registry import known
from hades.ports.store import RowStore, Term
from schemas.sources import SourceSpec


def sources_holding(store: RowStore, forgotten: Iterable[Entry]) -> list[str]:
    """Files that the next build would read these documents from; a file of many documents may hold them.

    Forgetting changes the store and never a source: the document has to be taken out there as well.
    """
    specs = known(store)
    return sorted({place for entry in forgotten for spec in specs for place in _places(spec, entry)})


def drop_quarantined(store: RowStore, forgotten: Iterable[Entry]) -> list[str]:
    """Remove what was set aside of these documents; copies of their text, which would be read in their place."""
    copies = []
    for entry in forgotten:
        where = [Term("source", "==", entry.source), Term("corpus", "==", entry.corpus)]
        rows = [row for batch in store.scan("quarantine", where=where) for row in batch.to_pylist()]
        copied = [
            row for row in rows if row["reason"] == RejectReason.DUPLICATE and _names(row["detail"], entry.origin)
        ]
        copies += [str(Path(entry.place) / row["uri"]) for row in copied]
        store.delete("quarantine", keys=[row["_key"] for row in rows if row in copied or row["uri"] == entry.origin])
    return sorted(copies)


def _places(spec: SourceSpec, entry: Entry) -> Iterable[str]:
    path = Path(spec.path)
    if spec.source != entry.source or path.name != entry.corpus:
        return
    if entry.place:  # a folder or a file of one document each
        path = Path(entry.place) / entry.origin if Path(entry.place).is_dir() else Path(entry.place)
    if path.exists():
        yield str(path)


def _names(detail: str, origin: str) -> bool:
    return detail.endswith(f" {origin}")
