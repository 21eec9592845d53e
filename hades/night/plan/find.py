"""Which corpora a plan reads."""

from __future__ import annotations

from pathlib import Path

from hades.ingest.manifest import known
from hades.ingest.sources.files import SourceError
from hades.night.watch import source_kind_of
from hades.ports.store import RowStore
from schemas.sources import SourceKind, SourceSpec


def find_corpora(store: RowStore, where: Path | str | None) -> list[SourceSpec]:
    """The corpus at a path: as it was ingested, or a folder as `hades watch` would read it. Without
    a path none, which means all that are known.
    """
    if where is None:
        return []

    path = Path(where)
    if not path.exists():
        raise SourceError(f"{path} is not there; expected a folder or a file to read")

    place = str(path.resolve())
    for spec in known(store):
        if spec.path == place:
            return [spec]

    return [SourceSpec(source=SourceKind(source_kind_of(path)), path=place)]
