"""What the index of memory knows of each state, as arrays that grow by doubling."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hades.memory.recall.standing import ALWAYS, NEVER
from models.vectors import unit_rows

TIMES = ("valid_from", "valid_until", "timestamp", "retracted_at")
_ABSENT = dict.fromkeys(TIMES, NEVER) | {"last_accessed": ALWAYS}
_YEAR_9999 = 253_370_764_800_000_000


class StateColumns:
    """What is known of each place, as arrays that grow by doubling."""

    def __init__(self) -> None:
        self.size = 0
        self.words_in_all = 0
        self._alive = np.zeros(0, np.bool_)
        self._level = np.zeros(0, np.int8)
        self._length = np.zeros(0, np.float32)
        self._importance = np.zeros(0, np.float32)
        self._embedded = np.zeros(0, np.bool_)
        self._vectors = np.zeros((0, 0), np.float32)
        self._times = {name: np.zeros(0, np.int64) for name in (*TIMES, "last_accessed")}

    def extend(self, batch: pa.RecordBatch, lengths: Sequence[int], model: str) -> None:
        """Places for the rows of a batch; a row without a beginning is the place of an erased state."""
        first = self.size
        self.size += batch.num_rows
        while self.size > len(self._alive):
            self._grow()
        places = slice(first, self.size)
        for name, absent in _ABSENT.items():
            self._times[name][places] = _micros(batch.column(name), absent)
        self._alive[places] = self._times["valid_from"][places] != NEVER
        self._level[places] = batch.column("consolidation_level").to_numpy(zero_copy_only=False)
        self._importance[places] = batch.column("importance_score").to_numpy(zero_copy_only=False)
        self._length[places] = lengths
        self.words_in_all += sum(lengths)
        self._set_vectors(first, batch.column("embedding"), batch.column("embedding_model"), model)

    def _set_vectors(self, first: int, vectors: pa.Array, models: pa.Array, model: str) -> None:
        """The vectors of the places that were added last; those of another model count as absent."""
        is_ours = pc.and_(pc.fill_null(pc.equal(models, model), False), pc.is_valid(vectors))
        wanted = np.flatnonzero(is_ours.to_numpy(zero_copy_only=False))
        if not len(wanted):
            return
        found = vectors.filter(is_ours).flatten().to_numpy().astype(np.float32).reshape(len(wanted), -1)
        if self._vectors.shape[1] != found.shape[1]:
            self._vectors = np.zeros((len(self._alive), found.shape[1]), np.float32)
        places = first + wanted
        self._vectors[places] = unit_rows(found)
        self._embedded[places] = True

    def kill(self, place: int) -> None:
        """Let a place count no more."""
        self._alive[place] = self._embedded[place] = False
        self.words_in_all -= int(self._length[place])

    def _grow(self) -> None:
        size = max(1_024, 2 * len(self._alive))
        for name in ("_alive", "_level", "_length", "_importance", "_embedded", "_vectors"):
            old = getattr(self, name)
            new = np.zeros((size, *old.shape[1:]), old.dtype)
            new[: len(old)] = old
            setattr(self, name, new)
        for name, old in self._times.items():
            self._times[name] = np.concatenate([old, np.zeros(size - len(old), np.int64)])

    @property
    def has_vectors(self) -> bool:
        """Whether any state has a vector of the model."""
        return self._vectors.shape[1] > 0

    @property
    def alive(self) -> NDArray[np.bool_]:
        """Which places count."""
        return self._alive[: self.size]

    @property
    def level(self) -> NDArray[np.int8]:
        """Level of consolidation."""
        return self._level[: self.size]

    @property
    def length(self) -> NDArray[np.float32]:
        """Words in the text."""
        return self._length[: self.size]

    @property
    def importance(self) -> NDArray[np.float32]:
        """Importance of each state."""
        return self._importance[: self.size]

    @property
    def embedded(self) -> NDArray[np.bool_]:
        """Which places have a vector of the model."""
        return self._embedded[: self.size]

    @property
    def vectors(self) -> NDArray[np.float32]:
        """(n_places, dimension) float32, rows unit length or zero."""
        return self._vectors[: self.size]

    @property
    def last_accessed(self) -> NDArray[np.int64]:
        """Microseconds since 1970 when each state was last read."""
        return self._times["last_accessed"]

    @property
    def times(self) -> dict[str, NDArray[np.int64]]:
        """Microseconds since 1970 of each time."""
        return {name: column[: self.size] for name, column in self._times.items()}


def _micros(times: pa.Array, absent: int) -> NDArray[np.int64]:
    """Microseconds since 1970, as `to_micros` gives them."""
    values = pc.fill_null(times.cast(pa.timestamp("us", tz="UTC")).cast(pa.int64()), absent).to_numpy()
    endless = (values >= _YEAR_9999) & (values != NEVER)
    return np.where(endless, NEVER - 1, values)
