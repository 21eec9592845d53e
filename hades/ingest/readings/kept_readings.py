"""Readings of texts, kept in the scratch folder in segments: runs of documents in the order of their keys.

A reading is known by the digest of its text, so what is kept belongs to no state of the store. A segment that is
absent, damaged or made by other code costs the time to read its texts again, never a result. Segments hold the words of
their texts: what no document says any more is taken out when the corpus is next read.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b, sha256
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
from numpy.typing import NDArray

from hades.ingest.entities import acronyms, candidates, kinds, terms
from hades.ingest.readings import text_readings
from hades.ingest.readings.text_readings import TextReadings, pack_readings, unpack_readings
from hades.ingest.workers.arrow_bytes import read_file, replace_file, write_file
from hades.text import arrays, boundaries, letters, tokens, word_lists

# The modules that decide what a reading holds: what another version of them read is read again.
READERS = (arrays, boundaries, letters, tokens, word_lists, acronyms, candidates, kinds, terms, text_readings)
Digests = NDArray[np.bytes_]  # 32 hexadecimal digits each
_STATE = "state.json"
_DIGITS = 32


@dataclass(frozen=True)
class Segment:
    """The readings of the texts of documents from one key on, with the digest of each text; "" is before all keys."""

    begin: str
    digests: Digests
    readings: TextReadings

    def name(self) -> str:
        """The file of a segment: the same digests are the same readings."""
        return f"{blake2b(self.digests.tobytes(), digest_size=16).hexdigest()}.arrow"


class KeptReadings:
    """Segments below one folder, one file each, in the order of their first keys."""

    def __init__(self, scratch: Path) -> None:
        self._folder = scratch / "text-readings"
        self._files: dict[str, int] = {}  # with their checksums

    def load(self) -> list[Segment]:
        """The segments that can be trusted, mapped into memory; the first begins before all keys."""
        try:
            state = orjson.loads((self._folder / _STATE).read_bytes())
            rows = list(state["segments"]) if state["readers"] == readers_digest() else []
        except (OSError, ValueError, KeyError, TypeError):
            rows = []
        found = [segment for row in rows if (segment := self._load_segment(row)) is not None]
        if found:
            found[0] = Segment("", found[0].digests, found[0].readings)
        return found

    def keep(self, segments: list[Segment]) -> None:
        """Keep these segments and nothing else; where they cannot be written, keep none."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._write(segments)
        except OSError:  # a second derivation of the same home removes files that it does not know
            self._remove_others(set())

    def _write(self, segments: list[Segment]) -> None:
        """Files that hold a segment already are left alone."""
        rows: list[tuple[str, str, int]] = []
        for one in segments:
            file = one.name()
            if file not in self._files:
                table = pack_readings(one.readings)
                digests = pa.LargeListArray.from_arrays(
                    pa.array([0, len(one.digests)], pa.int64()), pa.array(one.digests)
                )
                self._files[file] = write_file(self._folder / file, table.append_column("digests", digests))
            rows.append((one.begin, file, self._files[file]))
        replace_file(self._folder / _STATE, orjson.dumps({"readers": readers_digest(), "segments": rows}))
        self._remove_others({_STATE, *(row[1] for row in rows)})

    def _load_segment(self, row: list[Any]) -> Segment | None:
        try:
            begin, file, checksum = str(row[0]), str(row[1]), int(row[2])
            table = read_file(self._folder / file, checksum)
            digests = np.array(table.column("digests").chunk(0).values.to_pylist(), dtype=f"S{_DIGITS}")
            segment = Segment(begin, digests, unpack_readings(table))
        except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError, pa.ArrowException):
            return None
        self._files[file] = checksum
        return segment

    def _remove_others(self, names: set[str]) -> None:
        for file in list(self._folder.glob("*")):
            if file.name not in names:
                with suppress(OSError):  # another process may hold or have removed it
                    file.unlink()


@cache
def readers_digest() -> str:
    """A digest of the code that reads texts."""
    sources = (Path(str(module.__file__)).read_bytes() for module in READERS)
    return sha256(b"\x00".join(sources)).hexdigest()
