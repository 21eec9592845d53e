"""Compare rows with the store and the last run; write what differs."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Collection as Names
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hades.ingest.entities.corpus import Signatures, join_all
from hades.ingest.workers import read_file, replace_file, write_file
from hades.ports.store import RowStore
from schemas.catalogue import Collection, collection_named
from schemas.record import repeated

# Whether rows of two tables say the same, also in columns of lists and structs.


_SHORTEST_RUN = 64  # rows on average; of shorter runs a copy is faster than many comparisons


def equal_rows(held: pa.Table, wanted: pa.Table, first: Longs, second: Longs) -> Flags:
    """Whether the rows `first` of the one and `second` of the other are equal, pair by pair.

    Two derivations have most rows in the same order. Runs of neighbours are then compared where they lie, without a
    copy; one column is worked on at a time.
    """
    same = np.ones(len(first), dtype=np.bool_)
    starts = np.flatnonzero((np.diff(first, prepend=-2) != 1) | (np.diff(second, prepend=-2) != 1))
    runs = list(zip(starts.tolist(), [*starts[1:].tolist(), len(first)], strict=True)) if len(first) else []
    is_aligned = len(runs) * _SHORTEST_RUN <= len(first)
    for name in held.column_names:
        one, other = held.column(name), wanted.column(name).cast(held.schema.field(name).type)
        one, other = one.combine_chunks(), other.combine_chunks()
        if is_aligned:
            for begin, end in runs:
                left, right = one.slice(first[begin], end - begin), other.slice(second[begin], end - begin)
                if not left.equals(right):  # rows are told apart only in runs that differ
                    same[begin:end] &= _equal(left, right)
        else:
            same &= _equal(one.take(pa.array(first)), other.take(pa.array(second)))
    return same


def _equal(first: pa.Array, second: pa.Array) -> Flags:
    """Row by row equality; null equals null. Lists and structs by their parts, which Arrow does not compare itself."""
    nulls = pc.is_null(first).to_numpy(zero_copy_only=False)
    same_null = nulls == pc.is_null(second).to_numpy(zero_copy_only=False)
    if pa.types.is_struct(first.type):
        same = np.ones(len(first), dtype=bool)
        for number in range(first.type.num_fields):
            same &= _equal(pc.struct_field(first, number), pc.struct_field(second, number))
    elif pa.types.is_list(first.type):
        same = _equal_lists(first, second)
    else:
        same = pc.fill_null(pc.equal(first, second), False).to_numpy(zero_copy_only=False)
    agreed: Flags = same_null & (nulls | same)
    return agreed


def _equal_lists(first: pa.Array, second: pa.Array) -> Flags:
    lengths = pc.fill_null(pc.list_value_length(first), 0).to_numpy()
    same: Flags = lengths == pc.fill_null(pc.list_value_length(second), 0).to_numpy()
    rows = np.flatnonzero(same)
    if len(rows) < len(same):  # else both lie side by side already, and vectors are large
        first, second = first.take(pa.array(rows)), second.take(pa.array(rows))
    different = ~_equal(first.flatten(), second.flatten())
    if not different.any():
        return same
    owner = np.repeat(rows, lengths[rows])
    same[owner[different]] = False
    return same


# Rows of the last derivation that are still true are taken from it: a row is known by a signature of all it says.


HIGH, LOW = "signature_high", "signature_low"  # columns beside those of the collection
_SHORTEST_REUSED_RUN = 8  # rows on average; shorter runs are taken row by row


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
    if len(starts) * _SHORTEST_REUSED_RUN > len(place) or (len(starts) == 1 and len(place) < both.num_rows):
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


# Bringing a collection to what it should hold: write what is new or changed, remove what is stale, leave the rest.
# Derived rows are a function of the documents, so they are computed whole and compared; only the difference is
# written. They are compared with the rows of the last derivation where these are at hand, else with all that the
# store holds. Columns that other builds fill in (weights, topics, vectors) are not compared and survive a change of
# the rest.


Flags = NDArray[np.bool_]
Longs = NDArray[np.int64]
ADDED_BYTES = 32 << 20  # of rows that are written at a time: look-ups take up all of them at the end
PATCHED_BYTES = 128 << 20  # each portion writes its look-ups
STORE_ROWS = 16_384  # compared at a time
_MANY = 4  # a collection of which more than a quarter of the rows changed is compared whole


@dataclass(frozen=True)
class Change:
    """What bringing a collection up to date did."""

    added: int = 0
    changed: int = 0
    removed: int = 0
    removed_keys: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        """Rows touched."""
        return self.added + self.changed + self.removed


@dataclass(frozen=True)
class Difference:
    """New rows whole, changed rows with the columns compared, keys of stale rows."""

    added: pa.Table
    changed: pa.Table
    stale: list[str]


@dataclass(frozen=True)
class Comparison:
    """How a collection is compared: `owned` columns with the store, `compared` ones with the last derivation.

    `complete` adds columns that cost much to rows that are to be written. `suspects` are keys of rows that somebody
    else may have written since; they are always compared with the store.
    """

    collection: str
    owned: Sequence[str]
    compared: Sequence[str]
    complete: Callable[[pa.Table], pa.Table] = lambda table: table
    suspects: Sequence[str] = ()


@dataclass(frozen=True)
class Suspects:
    """Keys of all rows that may differ from those of the last derivation, those of them that it had, and its rows."""

    keys: pa.Array
    known: pa.Array
    n_before: int


def find_difference(store: RowStore, how: Comparison, wanted: pa.Table, suspects: Suspects | None) -> Difference:
    """What separates the collection from the wanted rows (each key once).

    Where it is known which rows may differ from the last derivation only those are read from the store. A count tells
    whether the others are still there; otherwise everything is compared.
    """
    if suspects is not None and len(suspects.keys) * _MANY <= suspects.n_before:
        keys = suspects.keys
        held = store.get(how.collection, keys.to_pylist(), columns=list(how.owned))
        known = pc.is_in(keys, value_set=suspects.known)
        absent = pc.invert(pc.is_in(keys, value_set=held.column("_key").combine_chunks()))
        lost = pc.sum(pc.and_(known, absent)).as_py() or 0
        found = pc.sum(pc.and_(pc.invert(known), pc.invert(absent))).as_py() or 0
        if store.count(how.collection) == suspects.n_before - lost + found:
            chosen = wanted.filter(pc.is_in(wanted.column("_key"), value_set=keys))
            return _compare_all(how, held, chosen)
    return _compare_with_store(store, how, wanted)


def suspect_all(how: Comparison, wanted: pa.Table, before: pa.Table) -> Suspects | None:
    """The rows that differ from those of the last derivation; None when it had other columns."""
    keys = _find_suspects(how, wanted, before)
    if keys is None:
        return None
    known = before.column("_key").filter(pc.is_in(before.column("_key"), value_set=keys)).combine_chunks()
    return Suspects(keys, known, before.num_rows)


def suspect_changed(
    how: Comparison, change: RowChange, derived: pa.Table, beside: pa.Table, before: pa.Table, n_before: int
) -> Suspects | None:
    """The rows of a change, and the rows beside it that differ.

    `derived` are all rows that follow from names now, and `change` says which of them are new; `beside` are the others
    and `before` those of the last derivation. One key may stand in both.
    """
    moved = _find_suspects(how, beside, before)
    if moved is None:
        return None
    keys = pa.array(sorted({*change.new.to_pylist(), *change.gone.to_pylist(), *moved.to_pylist()}), pa.string())
    standing = derived.column("_key").filter(pc.is_in(derived.column("_key"), value_set=keys))
    stayed = {*standing.to_pylist()} - {*change.new.to_pylist()}
    held = before.column("_key").filter(pc.is_in(before.column("_key"), value_set=keys))
    known = sorted({*change.gone.to_pylist(), *stayed, *held.to_pylist()})
    return Suspects(keys, pa.array(known, pa.string()), n_before)


def _find_suspects(how: Comparison, wanted: pa.Table, before: pa.Table) -> pa.Array | None:
    """Keys of rows that are not those of the last derivation; None when it had other columns."""
    if set(before.column_names) != set(how.compared):
        return None
    change = _compare(before, wanted.select(how.compared), how.compared)
    keys = [*change.added.column("_key").to_pylist(), *change.changed.column("_key").to_pylist()]
    return pa.array(sorted({*keys, *change.stale, *how.suspects}), pa.string())


def _compare_with_store(store: RowStore, how: Comparison, wanted: pa.Table) -> Difference:
    """The difference from all that the store holds; both come in key order, so that memory holds a part of them."""
    schema = pa.schema([_declare(how.collection).field(name) for name in how.owned])
    if not store.count(how.collection):
        return _compare_all(how, schema.empty_table(), wanted)
    order = pc.sort_indices(wanted.column("_key"))
    keys = wanted.column("_key").combine_chunks()
    parts: list[Difference] = []
    begin = 0
    for batch in store.scan(how.collection, columns=how.owned, batch_rows=STORE_ROWS):
        last = batch.column("_key")[-1].as_py()
        end = bisect_right(range(len(order)), last, lo=begin, key=lambda row: keys[order[row].as_py()].as_py())
        parts.append(_compare_all(how, pa.Table.from_batches([batch]), wanted.take(order.slice(begin, end - begin))))
        begin = end
    parts.append(_compare_all(how, schema.empty_table(), wanted.take(order.slice(begin))))
    return Difference(
        pa.concat_tables([part.added for part in parts]),
        pa.concat_tables([part.changed for part in parts]),
        [key for part in parts for key in part.stale],
    )


def _compare_all(how: Comparison, held: pa.Table, wanted: pa.Table) -> Difference:
    return _compare(held, how.complete(wanted), how.owned)


def _compare(held: pa.Table, wanted: pa.Table, owned: Sequence[str]) -> Difference:
    """Rows that are new or differ in the owned columns, and keys that are not wanted."""
    if not held.num_rows:
        return Difference(wanted, held.select(owned), [])
    keys = held.column("_key").combine_chunks()
    place: Longs = pc.fill_null(pc.index_in(wanted.column("_key"), value_set=keys), -1).to_numpy().astype(np.int64)
    rows = np.flatnonzero(place >= 0)
    changed = rows[~equal_rows(held.select(owned), wanted.select(owned), place[rows], rows)]
    is_wanted = np.zeros(len(keys), dtype=np.bool_)
    is_wanted[place[rows]] = True
    return Difference(
        _take(wanted, np.flatnonzero(place < 0)),
        _take(wanted.select(owned), changed).cast(held.select(owned).schema),
        keys.filter(pa.array(~is_wanted)).to_pylist(),
    )


def _take(table: pa.Table, rows: Longs) -> pa.Table:
    """These rows; Arrow joins all chunks of a text column even to take none."""
    return table.take(pa.array(rows)) if len(rows) else table.slice(0, 0)


def apply_removals(store: RowStore, collection: str, change: Difference) -> None:
    """Remove what is stale; edges before the nodes they join."""
    if change.stale:
        store.delete(collection, keys=change.stale)


def apply_writes(store: RowStore, collection: str, change: Difference) -> Change:
    """Write what is new or changed; nodes before the edges that join them."""
    if change.added.num_rows:
        store.upsert(
            collection, (rows.combine_chunks().to_batches()[0] for rows in _portions(change.added, ADDED_BYTES))
        )
    fixed = [name for name in change.changed.column_names if name not in ("_from", "_to")]
    for rows in _portions(change.changed.select(fixed), PATCHED_BYTES):
        store.patch(collection, rows)
    return Change(change.added.num_rows, change.changed.num_rows, len(change.stale), tuple(change.stale))


def _portions(table: pa.Table, size: int) -> Iterator[pa.Table]:
    """The rows in key order, some at a time, so that a large write needs little room beside itself."""
    if not table.num_rows:
        return
    rows = max(1, size * table.num_rows // max(1, table.nbytes))
    keys = table.column("_key").combine_chunks()
    is_sorted = pc.all(pc.less(keys.slice(0, len(keys) - 1), keys.slice(1))).as_py()
    order = None if is_sorted else pc.sort_indices(keys)
    for start in range(0, table.num_rows, rows):
        yield table.slice(start, rows) if order is None else table.take(order.slice(start, rows))


def _declare(collection: str) -> pa.Schema:
    declared = collection_named(collection)
    assert declared is not None
    return declared.schema


# Which rows of a document that was read again differ from those the store holds: only these are written. Keys are
# hashes, so the rows of one large file lie on nearly all pages of a collection. Writing equal rows again would
# write those pages again, and every contract would check every row on them.


def find_different(
    store: RowStore, collection: str, rows: pa.Table, kept: Sequence[str], left_out: Names[str] = ()
) -> pa.Table:
    """The rows (each key once) that are new or that the store holds otherwise; `kept` are the keys that it has.

    What the rows do not say counts as the default, as it does when they are written. Columns that are `left_out` are
    not compared.
    """
    if not kept:
        return rows
    declared = collection_named(collection)
    assert declared is not None
    names = [column.name for column in declared.columns if column.name not in left_out]
    held = store.get(collection, kept, columns=names)
    place: Longs = pc.fill_null(
        pc.index_in(rows.column("_key"), value_set=held.column("_key").combine_chunks()), -1
    ).to_numpy()
    known = np.flatnonzero(place >= 0)
    same = equal_rows(held, _as_stored(declared, rows, names), place[known].astype(np.int64), known)
    differs = np.ones(rows.num_rows, dtype=np.bool_)
    differs[known[same]] = False
    return rows.filter(pa.array(differs))


def _as_stored(declared: Collection, rows: pa.Table, names: Sequence[str]) -> pa.Table:
    """These columns of rows as the store keeps them: what is not given is the default, or absent."""
    given = set(rows.column_names)
    by_name = {column.name: column for column in declared.columns}
    return pa.table(
        {
            name: rows.column(name)
            if name in given
            else pa.nulls(rows.num_rows, by_name[name].type)
            if by_name[name].default is None
            else repeated(by_name[name].default, by_name[name].type, rows.num_rows)
            for name in names
        }
    )


# Tables that one run keeps in a folder for the next: they count together, with their checksums, for one version. A
# folder that is absent, damaged or of another version holds nothing.


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
