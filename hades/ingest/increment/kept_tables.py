"""Tables that one run keeps in a folder for the next: they count together, with their checksums, for one version.

A folder that is absent, damaged or of another version holds nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import orjson
import pyarrow as pa

from hades.ingest.workers.arrow_bytes import read_file, replace_file, write_file

# What reading files that somebody damaged may raise; whoever takes tables apart expects the same.
DAMAGE = (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError, pa.ArrowException)
_STATE = "state.json"


class KeptTables:
    """Tables by name below one folder; the version names all that they follow from beside the corpus."""

    def __init__(self, folder: Path, version: str) -> None:
        self._folder, self._version = folder, version
        self.name = ""  # of the tables that were loaded or kept last: a digest of their checksums

    def load(self) -> dict[str, pa.Table] | None:
        """The tables, mapped into memory; None when they cannot be trusted."""
        try:
            told = (self._folder / _STATE).read_bytes()
            state = orjson.loads(told)
            if state["version"] != self._version:
                return None
            tables = {name: read_file(self._folder / file, checksum) for name, file, checksum in state["files"]}
        except DAMAGE:
            return None
        self.name = sha256(told).hexdigest()
        return tables

    def keep(self, tables: Mapping[str, pa.Table]) -> None:
        """Keep these tables and no others; where they cannot be written, keep none."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            files = [(name, *self._write(name, table)) for name, table in tables.items()]
            told = orjson.dumps({"version": self._version, "files": files})
            replace_file(self._folder / _STATE, told)
            self.name = sha256(told).hexdigest()
        except OSError:
            files, self.name = [], ""
        kept = {file for _, file, _ in files}
        for file in list(self._folder.glob("*")):
            if file.name not in kept and (file.name != _STATE or not kept):
                with suppress(OSError):  # another process may hold or have removed it
                    file.unlink()

    def _write(self, name: str, table: pa.Table) -> tuple[str, int]:
        """The name of the file and its checksum; a file that the last state names is not written over."""
        waiting = self._folder / f"{name}.new"
        checksum = write_file(waiting, table)
        file = f"{name}-{checksum:08x}-{table.num_rows}.arrow"
        waiting.replace(self._folder / file)
        return file, checksum
