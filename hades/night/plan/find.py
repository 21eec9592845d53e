"""Which corpus a path means."""

from __future__ import annotations

from pathlib import Path

from hades.ingest.manifest import known
from hades.ingest.sources.files import SourceError
from hades.night.watch import source_kind_of
from hades.ports.store import RowStore
from schemas.sources import SourceKind, SourceSpec


def find_corpus(store: RowStore, path: Path) -> SourceSpec:
    """The corpus at a path: as it was ingested, or a folder as `hades watch` would read it."""
    if not path.exists():
        raise SourceError(f"{path} is not there; expected a folder or a file to read")
    place = str(path.resolve())
    for spec in known(store):
        if spec.path == place:
            return spec
    return SourceSpec(source=SourceKind(source_kind_of(path)), path=place)
