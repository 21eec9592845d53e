"""Which corpora have been ingested, so that a nightly build can read them again without being told."""

from __future__ import annotations

import hashlib

from hades.ports.store import RowStore
from schemas.columns import to_table
from schemas.sources import KnownSource, SourceSpec


def remember(store: RowStore, spec: SourceSpec) -> None:
    """Read this corpus again every night; the same path again replaces what was known of it."""
    key = hashlib.sha256(f"{spec.source}\n{spec.path}".encode()).hexdigest()[:32]
    store.upsert("sources", to_table(KnownSource, [KnownSource(key=key, **spec.model_dump())]))


def known(store: RowStore) -> list[SourceSpec]:
    """Every corpus that was ingested, in key order."""
    return [
        SourceSpec(**{name: value for name, value in row.items() if name != "_key"})
        for batch in store.scan("sources")
        for row in batch.to_pylist()
    ]
