"""The rows of the last derivation, kept in the scratch folder: the next one compares with them instead of the store.

Of mentions and relations only the rows that do not follow from names are kept here; the others are those of the kept
derivation (`hades/ingest/increment`) whose name stands beside them. All count only while the store says that its
derived rows come from the same documents, edits and rules (one digest), and while every file has the checksum it was
written with. A folder that is absent, damaged or of another state costs a comparison with the whole store, never a
result.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa

from hades.ingest.increment.kept_tables import DAMAGE
from hades.ingest.workers.arrow_bytes import read_file, replace_file, write_file

FORMAT = 3  # raise it with any change of what is kept
_STATE = "state.json"


@dataclass(frozen=True)
class LastRows:
    """Tables by collection, how many rows each collection had in all, and the derivation that gave the others."""

    tables: Mapping[str, pa.Table] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    derivation: str = ""


class LastDerivation:
    """Tables by collection below one folder, one file each, and the digest of what they were derived from."""

    def __init__(self, scratch: Path) -> None:
        self._folder = scratch / "last-derivation"
        self._staged: tuple[str, dict[str, Any]] = "", {}

    def load(self, digest: str | None) -> LastRows:
        """The rows of the derivation with this digest, mapped into memory; none when they cannot be trusted."""
        try:
            state = orjson.loads((self._folder / _STATE).read_bytes())
            if not digest or state["format"] != FORMAT or state["digest"] != digest:
                return LastRows()
            files = state["files"].items()
            tables = {name: read_file(self._folder / file, checksum) for name, (file, checksum) in files}
            return LastRows(tables, dict(state["counts"]), str(state["derivation"]))
        except DAMAGE:
            return LastRows()

    def stage(self, digest: str, rows: LastRows) -> None:
        """Write rows beside those that are kept; they count from `commit` on. What cannot be written is not kept."""
        names = {name: f"{name}-{digest[:16]}.arrow" for name in rows.tables}
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            files = {name: (file, write_file(self._folder / file, rows.tables[name])) for name, file in names.items()}
        except OSError:  # a second derivation of the same home removes files that it does not know
            return
        self._staged = digest, {"files": files, "counts": dict(rows.counts), "derivation": rows.derivation}

    def commit(self, digest: str) -> None:
        """Replace what is kept by what was staged, once the store holds the same rows and names this digest."""
        staged, state = self._staged
        if staged != digest:
            self.clear()
            return
        with suppress(OSError):
            replace_file(self._folder / _STATE, orjson.dumps({"format": FORMAT, "digest": digest, **state}))
        self._remove_others({_STATE, *(file for file, _ in state["files"].values())})

    def clear(self) -> None:
        """Remove everything: the rows quote the documents they were derived from."""
        self._remove_others(set())

    def _remove_others(self, names: set[str]) -> None:
        for file in list(self._folder.glob("*")):
            if file.name not in names:
                with suppress(OSError):  # another process may hold or have removed it
                    file.unlink()
