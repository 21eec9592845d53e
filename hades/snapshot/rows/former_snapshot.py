"""What the serving snapshot holds of rows that stay the same: it is copied by key and not computed again.

Only a snapshot whose files are as they were verified is used. What is copied was computed from the same bytes by the
same rules (`FORMAT` names them), so the new snapshot is the same with an earlier one and without.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hades.errors import SnapshotError
from hades.snapshot import manifest as manifests
from hades.snapshot.arrays import mapped, view_of
from hades.snapshot.columns import NOWHERE, integers
from hades.snapshot.lookup import Hashes
from hades.snapshot.manifest import Manifest
from hades.snapshot.verification import is_noted

Places = NDArray[np.int64]
Singles = NDArray[np.float32]
Coded = tuple[NDArray[np.int8], Singles, Singles]  # codes, steps, error bounds


@dataclass(frozen=True)
class FormerVectors:
    """The vectors of one model in one collection: `place` by row, the others by place. No codes below a size."""

    collection: str
    snapshot: FormerSnapshot
    place: NDArray[np.int32]
    value: Singles
    norm: Singles
    coded: Coded | None

    def find_same(self, keys: pa.Array, values: Singles) -> Places:
        """Where the same vector, bit for bit, stands under the same key; -1 where it does not."""
        rows = self.snapshot.rows_of(self.collection, keys)
        places = np.where(rows >= 0, self.place[rows], NOWHERE).astype(np.int64)
        held = np.flatnonzero(places >= 0)
        before = self.value[places[held]].view(np.uint32)
        differs = (before != np.ascontiguousarray(values, np.float32)[held].view(np.uint32)).any(axis=1)
        places[held[differs]] = NOWHERE
        return places


class FormerSnapshot:
    """The snapshot that serves while a new one is written."""

    def __init__(self, contents: Manifest, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._contents, self._arrays = contents, arrays
        self._keys: dict[str, pa.Array] = {}
        self._last: tuple[str, pa.Array, Places] | None = None

    @classmethod
    def load(cls, folder: Path | None) -> Self | None:
        """The snapshot of a folder; None where there is none that can be trusted."""
        if folder is None:
            return None
        try:
            contents = manifests.load(folder)[0]
            if not is_noted(folder, contents.arrays):
                return None
        except SnapshotError:
            return None
        return cls(contents, {name: view_of(mapped(folder / name), spec) for name, spec in contents.arrays.items()})

    def rows_of(self, collection: str, keys: pa.Array) -> Places:
        """The row of each of some keys in key order, -1 for one that it does not hold.

        The last answer is kept, because vectors and hashes of the same rows are asked for one after the other.
        """
        if self._last is None or self._last[0] != collection or not self._last[1].equals(keys):
            self._last = (collection, keys, self._find_rows(collection, keys))
        return self._last[2]

    def _find_rows(self, collection: str, keys: pa.Array) -> Places:
        held = self._keys_of(collection)
        if not len(held) or not len(keys):
            return np.full(len(keys), NOWHERE, np.int64)
        low = bisect_left(held, keys[0].as_py(), key=_text)
        high = bisect_right(held, keys[-1].as_py(), key=_text)
        found = pc.index_in(keys.cast(pa.large_string()), value_set=held.slice(low, high - low))
        rows = integers(found, NOWHERE).copy()
        rows[rows >= 0] += low
        return rows

    def hashes_of(self, collection: str, keys: pa.Array) -> tuple[Hashes, NDArray[np.bool_]]:
        """The hashes of nodes by their keys, and which of them it holds."""
        rows = self.rows_of(collection, keys)
        return self._hashes[rows + self._first_of(collection)], rows >= 0

    def vectors(self, collection: str, tag: str) -> FormerVectors | None:
        """The vectors of a model, if there are any."""
        tags = self._contents.models.get(collection, ())
        if tag not in tags:
            return None
        prefix = f"vector.{collection}.{tags.index(tag)}"
        place, value, norm = (self._arrays[f"{prefix}.{part}"] for part in ("place", "value", "norm"))
        code, step, slack = (self._arrays.get(f"{prefix}.{part}") for part in ("code", "step", "slack"))
        coded = None if code is None or step is None or slack is None else (code, step, slack)
        return FormerVectors(collection, self, place, value, norm, coded)

    @cached_property
    def _hashes(self) -> Hashes:
        """By number; one more for what is not held."""
        hashes = np.zeros(len(self._arrays["node.hash"]) + 1, np.uint64)
        hashes[self._arrays["node.number"]] = self._arrays["node.hash"]
        return hashes

    def _keys_of(self, collection: str) -> pa.Array:
        if collection not in self._keys:
            first, count = self._first_of(collection), self._contents.nodes.get(collection, 0)
            ends = self._arrays["node.key.ends"][first : first + count + 1]
            buffers = [None, pa.py_buffer(np.ascontiguousarray(ends)), pa.py_buffer(self._arrays["node.key.text"])]
            self._keys[collection] = pa.Array.from_buffers(pa.large_string(), count, buffers)
        return self._keys[collection]

    def _first_of(self, collection: str) -> int:
        names = list(self._contents.nodes)
        before = names[: names.index(collection)] if collection in names else names
        return sum(self._contents.nodes[name] for name in before)


def _text(scalar: pa.Scalar) -> str:
    text: str = scalar.as_py()
    return text
