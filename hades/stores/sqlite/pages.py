"""A sorted table kept as columnar pages in SQLite, each under a fence key.

A page holds some hundreds of neighbouring rows; its fence is the smallest sort key it may hold.
SQLite's B-tree finds pages, the tree's codec reads them: a scan is as fast as reading a columnar file, and a write
re-makes only the pages its keys fall in. The first page's fence is always empty, so every key has exactly one page. See
ADR 0004."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import zlib
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hades.stores.sqlite.trees import MAX_PAGE_ROWS, PageVersion, Tree
from schemas.record import make_array, make_scalar, make_table

SEPARATOR = "\x1f"  # no key holds it, and it sorts before every letter
LAST = "\U0010ffff"
MARK_BYTES = 8
_GROUP_PAGES = 64
_GROUP_BYTES = 8 * 1024 * 1024  # of pages that are rewritten together
_SHORT_GAP = 8  # pages
_FEW_KEYS = 64
_KEYS_PER_LOOKUP = 1_000
_CHECKSUMS = "SELECT first, rows, layout, absent, crc FROM page WHERE tree = ? ORDER BY first"
_FENCES = "SELECT first FROM page WHERE tree = ? ORDER BY first"
_FENCE_OF = "SELECT max(first) FROM page WHERE tree = ? AND first <= ?"
_PAGES_BETWEEN = "SELECT layout, absent, data FROM page WHERE tree = ? AND first BETWEEN ? AND ? ORDER BY first"
_HEADS_AFTER = (
    "SELECT first, id, rows, crc, layout, absent FROM page WHERE tree = ? AND first > ? ORDER BY first LIMIT ?"
)
_PAGES_OF_IDS = "SELECT id, data FROM page WHERE id IN (SELECT value FROM json_each(?))"
_PAGE_UP_TO = "SELECT first, layout, absent, data FROM page WHERE tree = ? AND first <= ? ORDER BY first DESC LIMIT 1"
_PAGE_NUMBER = "SELECT first, id FROM page WHERE tree = ? AND first <= ? ORDER BY first DESC LIMIT 1"
_PAGE_NUMBERS = "SELECT first, id FROM page WHERE tree = ? ORDER BY first"
_PAGE_BEFORE = _PAGE_UP_TO.replace("first <= ?", "first < ?")
_DROP_BETWEEN = "DELETE FROM page WHERE tree = ? AND first BETWEEN ? AND ?"
_INSERT = "INSERT INTO page (tree, first, rows, layout, absent, crc, data) VALUES (?, ?, ?, ?, ?, ?, ?)"
_PAGES_OF_KEYS = """
SELECT layout, absent, data FROM page WHERE id IN (
  SELECT (SELECT id FROM page WHERE tree = ?1 AND first <= wanted.value ORDER BY first DESC LIMIT 1)
  FROM json_each(?2) AS wanted) ORDER BY first"""
_PAGES_OF_RANGES = """
SELECT layout, absent, data FROM page WHERE id IN (
  SELECT page.id FROM json_each(?2) AS wanted CROSS JOIN page
  WHERE page.tree = ?1 AND page.first <= wanted.value || ?3
    AND page.first >= (SELECT max(first) FROM page WHERE tree = ?1 AND first <= wanted.value)) ORDER BY first"""


def sort_keys(tree: Tree, rows: pa.Table) -> pa.Array:
    """The text each row is sorted by."""
    if len(tree.sort) == 1:
        return _one(rows.column(tree.sort[0]))
    return _one(
        pc.binary_join_element_wise(*(rows.column(name) for name in tree.sort), make_scalar(SEPARATOR, pa.string()))
    )


def write(
    connection: sqlite3.Connection, tree: Tree, rows: pa.Table | None, drop: Sequence[str] = ()
) -> tuple[pa.Table, int]:
    """Put rows (sorted, each sort key once), remove the keys in `drop`; both replace what was there.

    Returns the rows that were replaced or removed, and by how many the table grew.
    """
    new = rows if rows is not None else make_table([], tree.schema)
    new_keys = sort_keys(tree, new)
    if connection.execute("SELECT 1 FROM page WHERE tree = ? LIMIT 1", (tree.id,)).fetchone() is None:
        _write_pages(connection, tree, "", new)
        return make_table([], tree.schema), new.num_rows
    touched = np.union1d(_as_objects(new_keys), np.array(list(drop), dtype=object)) if drop else _as_objects(new_keys)
    replaced: list[pa.Table] = []
    grown = 0
    for first, last, touched_part, new_part in _groups(connection, tree, touched, new_keys):
        pages = connection.execute(_PAGES_BETWEEN, (tree.id, first, last))
        old = tree.codec.decode_run(tree, pages).combine_chunks()
        hit = pc.is_in(sort_keys(tree, old), value_set=make_array(touched_part, pa.string()))
        replaced.append(old.filter(hit))
        merged = _merge(tree, old.filter(pc.invert(hit)), new.slice(*new_part))
        tree.held.drop(tree.id, first, last)
        connection.execute(_DROP_BETWEEN, (tree.id, first, last))
        _write_pages(connection, tree, first, merged)
        grown += merged.num_rows - old.num_rows
    return pa.concat_tables(replaced) if replaced else make_table([], tree.schema), grown


def scan(
    connection: sqlite3.Connection, tree: Tree, names: tuple[str, ...] | None = None, batch_pages: int = _GROUP_PAGES
) -> Iterator[pa.RecordBatch]:
    """Every page in sort order, with these columns or all; keeps no cursor open between steps.

    Pages that are scanned by their columns are held between scans, as far as the budget goes.
    """
    for _, _, batch in scan_pages(connection, tree, names, batch_pages=batch_pages):
        if batch is not None:
            yield batch


def mark_page(fence: str, version: PageVersion) -> str:
    """A text that equals that of another page of the table only where fence, layout and checksum do."""
    told = f"{version.rows} {version.layout} {version.absent} {version.crc} {fence}".encode()
    return hashlib.blake2b(told, digest_size=MARK_BYTES).hexdigest()


def mark_pages(connection: sqlite3.Connection, tree: Tree) -> Iterator[tuple[str, int]]:
    """The mark of each page in sort order, and how many rows it has; no page is read."""
    for fence, rows, layout, absent, crc in connection.execute(_CHECKSUMS, (tree.id,)):
        yield mark_page(fence, PageVersion(0, rows, crc, layout, absent)), rows


def scan_pages(
    connection: sqlite3.Connection,
    tree: Tree,
    names: tuple[str, ...] | None = None,
    is_wanted: Callable[[str, PageVersion], bool] = lambda fence, version: True,
    batch_pages: int = _GROUP_PAGES,
) -> Iterator[tuple[str, PageVersion, pa.RecordBatch | None]]:
    """Every page in sort order with its fence and version; without rows where it is empty or not wanted."""
    after = None
    while True:
        # The first page's fence is '', which nothing is greater than when asked with '>': begin before it.
        heads = connection.execute(
            _HEADS_AFTER if after is not None else _HEADS_AFTER.replace("first > ?", "first >= ?"),
            (tree.id, after or "", batch_pages),
        ).fetchall()
        versions = [(fence, PageVersion(*version)) for fence, *version in heads]
        wanted = [is_wanted(fence, version) and version.rows > 0 for fence, version in versions]
        found = [tree.held.find(tree.id, *one) if names is not None else None for one in versions]
        states = list(zip(versions, wanted, found, strict=True))
        missing = [version.id for (_, version), is_read, held in states if is_read and held is None]
        data = dict(connection.execute(_PAGES_OF_IDS, (json.dumps(missing),))) if missing else {}
        for (fence, version), is_read, held in states:
            batch = None
            if is_read:
                batch = held if held is not None else _decode(tree, fence, version, data.pop(version.id), names)
                batch = batch.select(list(names)) if names is not None and len(names) < batch.num_columns else batch
            yield fence, version, batch
        if len(heads) < batch_pages:
            return
        after = heads[-1][0]


def _decode(tree: Tree, fence: str, version: PageVersion, data: bytes, names: tuple[str, ...] | None) -> pa.RecordBatch:
    """The rows of a page: all columns, which are held, or those that are asked for where there is no room."""
    if names is None or not tree.held.has_room(len(data)):
        return tree.codec.decode(tree, version.layout, version.absent, data, names)
    whole = tree.codec.decode(tree, version.layout, version.absent, data)
    tree.held.keep(tree.id, fence, version, whole, len(data))
    return whole


def mark(connection: sqlite3.Connection, tree: Tree) -> str:
    """A hash over the fences and checksums of all pages: it changes whenever a row does."""
    digest = hashlib.sha256(f"{tree.id}".encode())
    for page in connection.execute(_CHECKSUMS, (tree.id,)):
        digest.update(repr(page).encode())
    return digest.hexdigest()


def pages_of_keys(connection: sqlite3.Connection, tree: Tree, keys: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The pages in which these sorted keys would stand, in order; a page can repeat for a later slice of keys."""
    if len(keys) == 1:
        for _, *page in connection.execute(_PAGE_UP_TO, (tree.id, keys[0])):
            yield tree.codec.decode(tree, *page)
        return
    for start in range(0, len(keys), _KEYS_PER_LOOKUP):
        wanted = json.dumps(list(keys[start : start + _KEYS_PER_LOOKUP]))
        for page in connection.execute(_PAGES_OF_KEYS, (tree.id, wanted)):
            yield tree.codec.decode(tree, *page)


def pages_holding(
    connection: sqlite3.Connection, tree: Tree, keys: Sequence[str]
) -> Iterator[tuple[int, bytes, int, int]]:
    """Number and bytes of each page in which some of these sorted keys stand, and which: first and after the last.

    None of a table that is empty.
    """
    for number, _, first, last in find_pages(connection, tree, keys):
        (data,) = connection.execute("SELECT data FROM page WHERE id = ?", (number,)).fetchone()
        yield number, data, first, last


def find_pages(connection: sqlite3.Connection, tree: Tree, keys: Sequence[str]) -> Iterator[tuple[int, str, int, int]]:
    """Number and fence of each page in which some of these sorted keys would stand, and which, as `pages_holding`."""
    if connection.execute(_PAGE_NUMBERS, (tree.id,)).fetchone() is None:
        return
    if len(keys) <= _FEW_KEYS:
        found = [connection.execute(_PAGE_NUMBER, (tree.id, key)).fetchone() for key in keys]
    else:
        heads = connection.execute(_PAGE_NUMBERS, (tree.id,)).fetchall()
        fences = [fence for fence, _ in heads]
        found = [heads[bisect_right(fences, key) - 1] for key in keys]
    first = 0
    for (fence, number), run in groupby(found):
        last = first + sum(1 for _ in run)
        yield number, fence, first, last
        first = last


def replace_bytes(connection: sqlite3.Connection, changed: Iterable[tuple[int, bytes]]) -> None:
    """Give pages other bytes of the same rows. Only for tables whose pages are not held between scans."""
    connection.executemany(
        "UPDATE page SET data = ?, crc = ? WHERE id = ?",
        ((data, zlib.crc32(data), number) for number, data in changed),
    )


def pages_of_prefixes(connection: sqlite3.Connection, tree: Tree, prefixes: Sequence[str]) -> list[pa.RecordBatch]:
    """Each page that may hold a sort key beginning with one of the prefixes, once, in order."""
    return [tree.codec.decode(tree, *page) for page in raw_pages_of_prefixes(connection, tree, prefixes)]


def raw_pages_of_prefixes(
    connection: sqlite3.Connection, tree: Tree, prefixes: Sequence[str]
) -> list[tuple[int, int, bytes]]:
    """The same pages as they are kept: layout, absent columns, bytes."""
    return connection.execute(_PAGES_OF_RANGES, (tree.id, json.dumps(list(prefixes)), LAST)).fetchall()


def backwards(connection: sqlite3.Connection, tree: Tree, bound: str) -> Iterator[pa.RecordBatch]:
    """The page in which the bound would stand, then the ones before it, last first."""
    row = connection.execute(_PAGE_UP_TO, (tree.id, bound)).fetchone()
    while row is not None:
        first, *page = row
        batch = tree.codec.decode(tree, *page)
        if batch.num_rows:
            yield batch
        row = connection.execute(_PAGE_BEFORE, (tree.id, first)).fetchone()


def are_there(connection: sqlite3.Connection, tree: Tree, keys: pa.Array) -> pa.Array:
    """Which of these sort keys the table holds (single-column sort)."""
    few = len(keys) <= _KEYS_PER_LOOKUP
    source = pages_of_keys(connection, tree, keys.to_pylist()) if few else scan(connection, tree)
    held = [batch.column(tree.sort[0]) for batch in source]
    return pc.is_in(keys, value_set=pa.concat_arrays(held) if held else pa.array([], pa.string()))


def damaged(connection: sqlite3.Connection, tree: Tree) -> Iterator[str]:
    """Sentences on pages whose checksum, order or fence is wrong."""
    previous = None
    for first, rows, crc, layout, absent, data in connection.execute(
        "SELECT first, rows, crc, layout, absent, data FROM page WHERE tree = ? ORDER BY first", (tree.id,)
    ):
        where = f"{tree.name} page {first!r}"
        if zlib.crc32(data) != crc:
            yield f"{where}: checksum differs"
            continue
        keys = sort_keys(tree, pa.Table.from_batches([tree.codec.decode(tree, layout, absent, data)])).to_pylist()
        if len(keys) != rows:
            yield f"{where}: {len(keys)} rows, {rows} expected"
        if keys != sorted(keys) or (keys and (keys[0] < first or (previous is not None and keys[0] <= previous))):
            yield f"{where}: rows out of order"
        previous = keys[-1] if keys else previous


def find_miscounts(connection: sqlite3.Connection, tree: Tree) -> Iterator[str]:
    """A sentence when the count kept for the table is not what its pages hold."""
    held = connection.execute("SELECT coalesce(sum(rows), 0) FROM page WHERE tree = ?", (tree.id,)).fetchone()[0]
    said = connection.execute("SELECT rows FROM tree WHERE id = ?", (tree.id,)).fetchone()[0]
    if held != said:
        yield f"{tree.name}: {held} rows in pages, {said} counted"


def _groups(
    connection: sqlite3.Connection, tree: Tree, touched: NDArray[np.object_], new_keys: pa.Array
) -> Iterator[tuple[str, str, list[str], tuple[int, int]]]:
    """Runs of neighbouring pages to re-make: first and last fence, keys touched there, slice of new rows there."""
    if len(touched) <= _FEW_KEYS:
        by_fence: dict[str, list[str]] = {}
        for key in touched:
            by_fence.setdefault(connection.execute(_FENCE_OF, (tree.id, key)).fetchone()[0], []).append(key)
        runs = [(fence, fence, keys) for fence, keys in by_fence.items()]
    else:
        fences = [row[0] for row in connection.execute(_FENCES, (tree.id,))]
        cuts = [0, *np.searchsorted(touched, np.array(fences[1:], dtype=object)).tolist(), len(touched)]
        busy = [page for page in range(len(fences)) if cuts[page] < cuts[page + 1]]
        runs = [
            (fences[first], fences[last], touched[cuts[first] : cuts[last + 1]].tolist())
            for first, last in _neighbours(busy, max(1, _GROUP_BYTES // tree.page_bytes))
        ]
    position = 0
    ordered = new_keys.to_pylist() if len(new_keys) <= _FEW_KEYS else _as_objects(new_keys)
    for first, last, keys in runs:
        end = bisect_right(ordered, keys[-1], lo=position)
        yield first, last, keys, (position, end - position)
        position = end


def _neighbours(pages: Sequence[int], most: int) -> Iterator[tuple[int, int]]:
    """First and last of runs of at most `most` pages; rewriting a short gap is cheaper than starting a new run."""
    first = last = pages[0]
    for page in pages[1:]:
        if page - last > _SHORT_GAP or page - first >= most:
            yield first, last
            first = page
        last = page
    yield first, last


def _merge(tree: Tree, kept: pa.Table, new: pa.Table) -> pa.Table:
    if not kept.num_rows or not new.num_rows:
        return new if not kept.num_rows else kept
    if sort_keys(tree, kept.slice(kept.num_rows - 1))[0].as_py() < sort_keys(tree, new.slice(0, 1))[0].as_py():
        return pa.concat_tables([kept, new])
    both = pa.concat_tables([kept, new]).combine_chunks()
    return both.take(pc.sort_indices(sort_keys(tree, both)))


def _write_pages(connection: sqlite3.Connection, tree: Tree, fence: str, rows: pa.Table) -> None:
    """Cut rows into pages of about `page_bytes`; the first takes the given fence, an empty '' page keeps the rule."""
    if not rows.num_rows:
        if fence == "" and connection.execute(_FENCE_OF, (tree.id, LAST)).fetchone()[0] is not None:
            _insert(connection, tree, [""], pa.RecordBatch.from_pylist([], schema=tree.schema), 1)
        return
    per_page = max(1, min(MAX_PAGE_ROWS, tree.page_bytes * rows.num_rows // max(1, rows.nbytes)))
    if not rows.schema.equals(tree.schema):
        rows = rows.select(tree.schema.names).cast(tree.schema)
    batch = rows.combine_chunks().to_batches()[0]
    starts = range(0, batch.num_rows, per_page)
    fences = sort_keys(tree, rows.select(tree.sort).take(make_array(list(starts), pa.int64()))).to_pylist()
    fences[0] = fence
    _insert(connection, tree, fences, batch, per_page)


def _insert(connection: sqlite3.Connection, tree: Tree, fences: list[str], rows: pa.RecordBatch, per_page: int) -> None:
    pages = tree.codec.encode(tree, rows, per_page)
    connection.executemany(
        _INSERT,
        (
            (tree.id, fence, count, tree.layout, absent, zlib.crc32(data), data)
            for fence, (count, absent, data) in zip(fences, pages, strict=True)
        ),
    )


def _as_objects(keys: pa.Array) -> NDArray[np.object_]:
    return np.array(keys.to_pylist(), object) if len(keys) <= _FEW_KEYS else keys.to_numpy(zero_copy_only=False)


def _one(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
