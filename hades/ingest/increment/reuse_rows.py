"""Rows of the last derivation that are still true are taken from it: a row is known by a signature of all it says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hades.ingest.increment.equal_rows import equal_rows
from hades.ingest.readings.signatures import Signatures, join_all
from hades.text.arrays import Longs

HIGH, LOW = "signature_high", "signature_low"  # columns beside those of the collection
_SHORTEST_RUN = 8  # rows on average; shorter runs are taken row by row


@dataclass(frozen=True)
class RowChange:
    """How rows differ from those of the last derivation: keys of rows that are new or other, of rows that went so."""

    new: pa.Array
    gone: pa.Array


@dataclass(frozen=True)
class FormerRows:
    """Rows of the last derivation with the signature of each."""

    table: pa.Table
    signatures: Signatures
    reused: Longs | None = None  # of each row the row before it that it was taken from, -1 for a new one

    @cached_property
    def _order(self) -> Longs:
        return np.argsort(self.signatures.high, kind="stable")

    def find(self, asked: Signatures) -> Longs:
        """The row that has each signature, -1 for none."""
        if not self.table.num_rows:
            return np.full(len(asked), -1, dtype=np.int64)
        high = self.signatures.high[self._order]
        place = self._order[np.minimum(np.searchsorted(high, asked.high), len(high) - 1)]
        return np.where(self.signatures.take(place).equal(asked), place, -1)


def reuse_rows(former: FormerRows | None, asked: Signatures, build: Callable[[Longs], pa.Table]) -> FormerRows:
    """The row of each signature: those of the last derivation, and the others, which `build` makes by their places."""
    if former is None:
        return FormerRows(build(np.arange(len(asked))), asked)
    place = former.find(asked)
    missing = np.flatnonzero(place < 0)
    rows = np.where(place < 0, -1, place)
    place[missing] = former.table.num_rows + np.arange(len(missing))
    return FormerRows(take_runs(former.table, build(missing), place), asked, rows)


def join_rows(parts: Sequence[FormerRows]) -> FormerRows:
    """The rows of all parts, one part after the other."""
    reused = [part.reused for part in parts if part.reused is not None]
    return FormerRows(
        pa.concat_tables([part.table for part in parts]),
        join_all(part.signatures for part in parts),
        np.concatenate(reused) if len(reused) == len(parts) else None,
    )


def find_change(former: FormerRows, now: FormerRows) -> RowChange | None:
    """What separates these rows from the former ones; None where it is not known which were reused."""
    if now.reused is None:
        return None
    stays = np.zeros(former.table.num_rows, dtype=np.bool_)
    stays[now.reused[now.reused >= 0]] = True
    return RowChange(
        _take_keys(now.table, np.flatnonzero(now.reused < 0)), _take_keys(former.table, np.flatnonzero(~stays))
    )


def _take_keys(table: pa.Table, rows: Longs) -> pa.Array:
    return table.column("_key").combine_chunks().take(pa.array(rows))


def take_runs(former: pa.Table, made: pa.Table, place: Longs) -> pa.Table:
    """Rows by their places in both tables, one after the other; most stand in runs, which are joined as they lie."""
    both = pa.concat_tables([former, made.cast(former.schema)])
    starts = np.flatnonzero(np.diff(place, prepend=-2) != 1)
    if len(starts) * _SHORTEST_RUN > len(place) or (len(starts) == 1 and len(place) < both.num_rows):
        return both.combine_chunks().take(pa.array(place))  # a copy: a slice alone keeps the words of other rows
    ends = np.append(starts[1:], len(place))
    runs = zip(place[starts].tolist(), (ends - starts).tolist(), strict=True)
    slices = [both.slice(begin, size) for begin, size in runs]
    return pa.concat_tables(slices).combine_chunks() if slices else both.slice(0, 0)


def keep_equal(former: pa.Table, made: pa.Table, place: Longs) -> tuple[pa.Table, Longs]:
    """The made rows that say something new, and the places with the former row where the made one says the same.

    Rows are known by `_key`; `place` counts the made rows on from the former ones. Former rows stand in longer runs.
    """
    twin = pc.index_in(made.column("_key"), value_set=former.column("_key").combine_chunks()).combine_chunks()
    rows, twins = np.flatnonzero(twin.is_valid().to_numpy(zero_copy_only=False)), twin.drop_null().to_numpy()
    twins = twins.astype(np.int64)
    some, told = former.take(pa.array(twins)), made.take(pa.array(rows)).cast(former.schema)
    same = equal_rows(some, told, np.arange(len(rows)), np.arange(len(rows)))
    to = np.full(made.num_rows, -1, dtype=np.int64)
    to[rows[same]] = twins[same]
    new = np.flatnonzero(to < 0)
    to[new] = former.num_rows + np.arange(len(new))
    numbers = np.concatenate([np.arange(former.num_rows), to])
    return made.take(pa.array(new)), numbers[place]


def with_signatures(table: pa.Table, signatures: Signatures) -> pa.Table:
    """The rows with their signatures, as they are kept."""
    return table.append_column(HIGH, pa.array(signatures.high)).append_column(LOW, pa.array(signatures.low))


def part_signatures(table: pa.Table) -> FormerRows:
    """Kept rows and their signatures apart."""
    high, low = (table.column(name).to_numpy() for name in (HIGH, LOW))
    return FormerRows(table.drop_columns([HIGH, LOW]), Signatures(high, low))
