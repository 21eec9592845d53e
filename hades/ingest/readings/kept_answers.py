"""Answers of pure functions, kept in the scratch folder by a signature of 128 bits of what they were asked.

Only answers that the last derivation needed are kept, so that nothing of a forgotten document stays. A file that is
absent, damaged or made by other code costs the time to find its answers again, never a result.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b, sha256
from pathlib import Path

import numpy as np
import orjson
import pyarrow as pa

from hades.ingest.readings.kept_readings import readers_digest
from hades.ingest.workers.arrow_bytes import read_file, replace_file, write_file
from hades.text.arrays import Flags, Hashes, Longs, distinct

_SEEDS = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93))


@dataclass(frozen=True)
class Signatures:
    """What is asked, as two independent numbers of 64 bits each."""

    high: Hashes
    low: Hashes

    def __len__(self) -> int:
        return len(self.high)

    def mix(self, values: Longs) -> Signatures:
        """Signatures of these questions together with a number each."""
        number = values.astype(np.uint64)
        return self.join(Signatures(number, number))

    def join(self, other: Signatures) -> Signatures:
        """Signatures of these questions together with others beside them."""
        return Signatures(
            _scatter(_scatter(other.high + _SEEDS[0]) ^ self.high), _scatter(_scatter(other.low + _SEEDS[1]) ^ self.low)
        )

    def take(self, rows: Longs) -> Signatures:
        """Some of the signatures, in the order given."""
        return Signatures(self.high[rows], self.low[rows])

    def join_runs(self, begins: Longs) -> Signatures:
        """One signature for each run that begins at these places; a run is at least one long, its order counts."""
        sizes = np.diff(np.append(begins, len(self)))
        place = np.arange(len(self)) - np.repeat(begins, sizes)
        placed = self.mix(place)
        return Signatures(*(np.add.reduceat(half, begins) for half in (placed.high, placed.low)))


class KeptAnswers:
    """Answers below one folder, one file for each question that is asked of many things."""

    def __init__(self, scratch: Path) -> None:
        self._folder = scratch / "answers"

    def answer(
        self, question: str, module: str, asked: Signatures, work: Callable[[list[int]], Sequence[str]]
    ) -> list[str]:
        """`answer_column` as a list."""
        column = self.answer_column(
            question, module, asked, lambda places: pa.array(work(places.tolist()), pa.string())
        )
        answers: list[str] = column.to_pylist()
        return answers

    def answer_column(
        self, question: str, module: str, asked: Signatures, work: Callable[[Longs], pa.StringArray]
    ) -> pa.StringArray:
        """The answer to each signature; `work` finds those at the places that it is given, and is in `module`.

        From now on these answers are kept, and no others.
        """
        version = sha256(readers_digest().encode() + Path(str(sys.modules[module].__file__)).read_bytes()).hexdigest()
        place, values = self._find(question, version, asked)
        missing = np.flatnonzero(place < 0)
        if not len(missing) and len(distinct(place)) == len(values):
            return values.take(pa.array(place))
        place[missing] = len(values) + np.arange(len(missing))
        answers = pa.concat_arrays([values, work(missing)]).take(pa.array(place))
        self._keep(question, version, asked, answers)
        return answers

    def _find(self, question: str, version: str, asked: Signatures) -> tuple[Longs, pa.StringArray]:
        """The place of each answer among those kept, -1 for none, and the answers kept."""
        nothing = np.full(len(asked), -1, dtype=np.int64), pa.array([], pa.string())
        try:
            state = orjson.loads((self._folder / f"{question}.json").read_bytes())
            if state["version"] != version:
                return nothing
            table = read_file(self._folder / f"{question}.arrow", int(state["checksum"])).combine_chunks()
            high, low = (table.column(name).to_numpy() for name in ("high", "low"))
            values = pa.concat_arrays(table.column("answer").chunks)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, pa.ArrowException):
            return nothing
        if not len(high):
            return nothing
        place = np.minimum(np.searchsorted(high, asked.high), len(high) - 1)
        same: Flags = (high[place] == asked.high) & (low[place] == asked.low)
        return np.where(same, place, -1), values

    def _keep(self, question: str, version: str, asked: Signatures, answers: pa.StringArray) -> None:
        high, order = np.unique(asked.high, return_index=True)
        columns = [pa.array(high), pa.array(asked.low[order]), answers.take(pa.array(order))]
        state, file = (self._folder / f"{question}.{suffix}" for suffix in ("json", "arrow"))
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            state.unlink(missing_ok=True)  # until the new answers are whole, none count
            checksum = write_file(file, pa.table(columns, names=["high", "low", "answer"]))
            replace_file(state, orjson.dumps({"version": version, "checksum": checksum}))
        except OSError:  # where they cannot be written, none are kept
            with suppress(OSError):
                file.unlink(missing_ok=True)


def sign_texts(texts: Iterable[str]) -> Signatures:
    """The signature of each text."""
    return sign_digests(b"".join(blake2b(text.encode(), digest_size=16).digest() for text in texts))


def sign_digests(digests: bytes) -> Signatures:
    """The signatures that digests of 16 bytes each stand for."""
    numbers = np.frombuffer(digests, dtype=np.uint64)
    return Signatures(numbers[0::2], numbers[1::2])


def _scatter(values: Hashes) -> Hashes:
    """Numbers whose bits depend on all bits of those given (the finaliser of splitmix64)."""
    mixed = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
