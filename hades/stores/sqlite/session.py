"""All row operations on one connection; the transaction around them belongs to the caller."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hades.errors import BadQuery, BadRows, LostUpdate
from hades.ports.store import (
    BATCH_ROWS,
    HIT_SCHEMA,
    Changes,
    Direction,
    MarkedRows,
    Mode,
    Predicate,
    Rows,
    Term,
    WriteReport,
)
from hades.stores import row_checks
from hades.stores.sqlite import lookups, neighbours, pages, patches
from hades.stores.sqlite import lookups as fulltext
from hades.stores.sqlite.lookups import Registry, lookups_of
from hades.stores.sqlite.patches import LaterRows, find_rows, patch_rows
from hades.stores.sqlite.trees import (
    PageVersion,
    Tree,
    declare_columns,
    distinct_heads,
    keys_within,
    make_outward,
    outward_columns,
    places_of,
    rebatch,
    row_of,
    sort_by_key,
)
from schemas.catalogue import Collection, collection_named, names_in
from schemas.ids import Mask
from schemas.record import repeated

_FEW = 1_000  # rows that are always found one by one
_MANY = 8  # reading every page is faster than finding more than one row in this number


class Session:
    """A `RowStore` over a connection that is already inside a transaction."""

    def __init__(self, connection: sqlite3.Connection, registry: Registry, mode: Mode) -> None:
        self._connection = connection
        self._registry = registry
        self._mode = mode

    @property
    def mode(self) -> Mode:
        """What this handle may do."""
        return self._mode

    def upsert(self, collection: str, rows_given: Rows, *, check_rev: bool = False) -> WriteReport:
        """See `RowStore.upsert`."""
        target = row_checks.require(collection)
        written = batches = 0
        is_one = isinstance(rows_given, pa.Table | pa.RecordBatch)
        later = None if is_one else LaterRows(self._connection, self._registry, target)
        for table in row_checks.as_tables(rows_given):
            checked = row_checks.prepare(target, table, with_rev=check_rev)
            if check_rev:
                self._check_revisions(target, checked)
                checked = checked.drop_columns([row_checks.REV])
            if target.edge:
                self._check_ends(target, checked)
            self._put(target, sort_by_key(checked), later=later)
            written, batches = written + checked.num_rows, batches + 1
        if later is not None:
            later.enter()
        return WriteReport(written, batches)

    def patch(self, collection: str, rows_given: Rows) -> WriteReport:
        """See `RowStore.patch`."""
        target = row_checks.require(collection)
        written = batches = 0
        for table in row_checks.as_tables(rows_given):
            given = row_checks.prepare(target, table, partial=True)
            changes = sort_by_key(given)
            touched = find_rows(self._connection, self._registry.rows(target), changes.column("_key").to_pylist())
            if touched is None:
                self._refuse_missing(target, given)
            else:
                patch_rows(self._connection, self._registry, target, touched, self._revise(changes))
            written, batches = written + changes.num_rows, batches + 1
        return WriteReport(written, batches)

    def delete(self, collection: str, *, keys: Iterable[str] = (), where: Predicate = ()) -> int:
        """See `RowStore.delete`."""
        target = row_checks.require(collection)
        wanted = list(keys)
        if bool(wanted) == bool(where):
            if not wanted and not where:
                return 0
            raise BadQuery(f"delete from {collection} by keys or by a predicate, not by both")
        if where:
            wanted = [
                key
                for batch in self.scan(collection, where=where, columns=["_key"])
                for key in batch.column("_key").to_pylist()
            ]
        if not wanted:
            return 0
        return -self._replace(target, None, sorted(set(wanted)))

    def get(
        self, collection: str, keys: Sequence[str], *, columns: Sequence[str] | None = None, with_rev: bool = False
    ) -> pa.Table:
        """See `RowStore.get`."""
        target = row_checks.require(collection)
        names = [*row_checks.check_columns(target, columns), *([row_checks.REV] if with_rev else [])]
        found = list(self._rows_by_key(target, sorted(set(keys)), names))
        schema = declare_columns(target, names)
        if len(found) == 1:
            return pa.Table.from_arrays(outward_columns(found[0], schema), schema=schema)
        return pa.Table.from_batches([make_outward(batch, schema) for batch in found], schema=schema).combine_chunks()

    def scan(
        self,
        collection: str,
        *,
        where: Predicate = (),
        columns: Sequence[str] | None = None,
        batch_rows: int = BATCH_ROWS,
    ) -> Iterator[pa.RecordBatch]:
        """See `RowStore.scan`."""
        target = row_checks.require(collection)
        terms = row_checks.check_terms(target, where)
        names = row_checks.check_columns(target, columns)
        row_checks.check_limit("batch_rows", batch_rows)
        schema = declare_columns(target, names)
        return (make_outward(batch, schema) for batch in rebatch(self._matching(target, terms, names), batch_rows))

    def scan_marked(
        self, collection: str, *, columns: Sequence[str], known: AbstractSet[str] = frozenset()
    ) -> Iterator[MarkedRows]:
        """See `RowStore.scan_marked`: a part is a page."""
        target = row_checks.require(collection)
        tree = self._registry.rows(target)
        if not columns:
            yield from (MarkedRows(*page, None) for page in pages.mark_pages(self._connection, tree))
            return
        names = row_checks.check_columns(target, columns)
        schema, marks = declare_columns(target, names), dict[str, str]()

        def is_new(fence: str, version: PageVersion) -> bool:
            marks[fence] = pages.mark_page(fence, version)
            return marks[fence] not in known

        for fence, version, batch in pages.scan_pages(self._connection, tree, tuple(names), is_new):
            outward = None if batch is None else make_outward(batch, schema)
            yield MarkedRows(marks.pop(fence), version.rows, outward)

    def last(
        self,
        collection: str,
        *,
        same: Term,
        by: str,
        at_most: object,
        limit: int,
        columns: Sequence[str] | None = None,
    ) -> pa.Table:
        """See `RowStore.last`."""
        target = row_checks.require(collection)
        equality, bound = row_checks.check_last(target, same, by, at_most)
        row_checks.check_limit("limit", limit)
        names = row_checks.check_columns(target, columns)
        lookup = lookups.last_lookup(target, equality.column, by)
        if lookup is None:  # a broad index, which this store answers by a scan
            found = pa.Table.from_batches(self._matching(target, (equality, bound), list(target.schema.names)))
            order = [(by, "descending"), ("_key", "descending")]
            return found.take(pc.sort_indices(found, order)[:limit]).select(names)
        tree = self._registry.lookup(target, lookup)
        keys = lookups.last_keys(self._connection, tree, equality.value, bound.value, limit)
        return self.get(collection, keys, columns=names).take(places_of(keys))

    def changes(self, collection: str, since: int) -> Changes | None:
        """See `RowStore.changes`."""
        return patches.changes(self._connection, self._registry.rows(row_checks.require(collection)), since)

    def marks(self, collections: Sequence[str]) -> dict[str, str]:
        """See `RowStore.marks`: a hash over the checksums of the pages."""
        held = names_in(self._registry.part)
        trees = {name: self._registry.rows(row_checks.require(name)) for name in collections if name in held}
        return {name: pages.mark(self._connection, tree) for name, tree in trees.items()}

    def count(self, collection: str, *, where: Predicate = ()) -> int:
        """See `RowStore.count`."""
        target = row_checks.require(collection)
        if not where:
            tree = self._registry.rows(target)
            total: int = self._connection.execute("SELECT rows FROM tree WHERE id = ?", (tree.id,)).fetchone()[0]
            return total
        return sum(batch.num_rows for batch in self.scan(collection, where=where, columns=["_key"]))

    def search(self, collection: str, text: str, *, limit: int, where: Predicate = ()) -> pa.Table:
        """See `RowStore.search`."""
        target = row_checks.require(collection)
        row_checks.check_limit("limit", limit)
        terms = row_checks.check_terms(target, where)
        hits = fulltext.search(self._connection, target, text)
        if terms:
            allowed = self._keys_matching(target, [key for key, _ in hits], terms)
            hits = [hit for hit in hits if hit[0] in allowed]
        return pa.table([list(column) for column in zip(*hits[:limit], strict=True)] or [[], []], schema=HIT_SCHEMA)

    def nearest(
        self, collection: str, vector: Sequence[float], *, model: str, limit: int, where: Predicate = ()
    ) -> pa.Table:
        """See `RowStore.nearest`."""
        target = row_checks.require(collection)
        asked = row_checks.check_vector(target, vector)
        row_checks.check_limit("limit", limit)
        if row_checks.declare_dimension(model) not in (None, asked.size):
            raise BadQuery(
                f"the vector has dimension {asked.size}, {model} makes {row_checks.declare_dimension(model)}"
            )
        terms = (*row_checks.check_terms(target, where), Term("embedding_model", "==", model))
        field = str(target.vector_field)
        keys: list[str] = []
        scores: list[np.ndarray] = []
        for batch in self._matching(target, (*terms, Term(field, "not_null")), ["_key", field]):
            held = batch.column(field)
            matrix = held.flatten().to_numpy().reshape(-1, len(held[0]))
            if matrix.shape[1] != asked.size:
                raise BadQuery(f"vectors of {model} in {collection} have dimension {matrix.shape[1]}, not {asked.size}")
            scores.append(row_checks.cosines(matrix, asked))
            keys.extend(batch.column("_key").to_pylist())
        best = np.concatenate(scores) if scores else np.empty(0, np.float32)
        order = np.argsort(-best, kind="stable")[:limit]
        return pa.table([[keys[row] for row in order], best[order].astype(np.float64)], schema=HIT_SCHEMA)

    def neighbours(
        self,
        nodes: Sequence[str],
        *,
        edges: str = "relations",
        direction: Direction = Direction.OUT,
        types: Sequence[str] | None = None,
        fanout: int,
        mask: Mask = Mask(),
    ) -> pa.Table:
        """See `RowStore.neighbours`."""
        target = _edges(edges)
        row_checks.check_limit("fanout", fanout)
        question = neighbours.Question(*self._edge_lookups(target), direction, types, mask)
        return neighbours.neighbours(self._connection, question, nodes, fanout)

    def missing_nodes(self, identifiers: pa.Array) -> pa.Array:
        """Those of these distinct `_id`s that name nothing that is stored."""
        missing = identifiers
        for name in distinct_heads(identifiers):
            collection = collection_named(name)
            lookup = next((one for one in lookups_of(collection) if one.name == "#keys"), None) if collection else None
            if collection is None or lookup is None:
                continue
            ours = missing.filter(pc.starts_with(missing, f"{name}/"))
            keys = pc.utf8_slice_codeunits(ours, len(name) + 1)
            there = pages.are_there(self._connection, self._registry.lookup(collection, lookup), keys)
            missing = missing.filter(pc.invert(pc.is_in(missing, value_set=ours.filter(there))))
        return missing

    def _edge_lookups(self, collection: Collection) -> tuple[Tree, Tree]:
        by_tail, by_head = (lookup for lookup in lookups_of(collection) if lookup.far)
        return self._registry.lookup(collection, by_tail), self._registry.lookup(collection, by_head)

    def _revise(self, table: pa.Table) -> pa.Table:
        """The rows with the next revision of the store."""
        revision = self._connection.execute(
            "UPDATE counter SET value = value + 1 WHERE name = 'revision' RETURNING value"
        ).fetchone()[0]
        return table.append_column(row_checks.REV, repeated(revision, pa.int64(), table.num_rows))

    def _put(self, collection: Collection, table: pa.Table, later: LaterRows | None = None) -> None:
        """Write rows. With `later`, rows that are new enter the look-ups with those of the batches after them."""
        new, schema = self._revise(table), self._registry.rows(collection).schema
        new = pa.Table.from_arrays([new.column(name) for name in schema.names], schema=schema)
        self._replace(collection, new, (), later)

    def _replace(
        self, collection: Collection, new: pa.Table | None, drop: Sequence[str], later: LaterRows | None = None
    ) -> int:
        """Put rows and remove keys, with look-ups and the full text; by how many rows the collection grew."""
        tree, concerned = self._registry.rows(collection), lookups_of(collection)
        if later is not None and new is not None:
            old, grown = pages.write(self._connection, tree, new, drop)
            self._connection.execute("UPDATE tree SET rows = rows + ? WHERE id = ?", (grown, tree.id))
            later.add(old, new)
        else:
            with lookups.prepare(self._registry, collection, concerned, new) as entries:
                old, grown = pages.write(self._connection, tree, new, drop)
                self._connection.execute("UPDATE tree SET rows = rows + ? WHERE id = ?", (grown, tree.id))
                lookups.maintain_lookups(self._connection, self._registry, collection, concerned, old, entries)
        fulltext.maintain_fulltext(self._connection, collection, old, new)
        if collection.followed:
            patches.record(
                self._connection, tree, [*(new.column("_key").to_pylist() if new is not None else ()), *drop]
            )
        return grown

    def _matching(self, collection: Collection, terms: Sequence[Term], names: list[str]) -> Iterator[pa.RecordBatch]:
        """Rows that satisfy the terms, in key order, through a look-up where one narrows them."""
        keys = self._narrow(collection, terms)
        tree = self._registry.rows(collection)
        needed = list(dict.fromkeys([*names, *(term.column for term in terms)]))
        source: Iterator[pa.RecordBatch]
        if keys is None:
            source = pages.scan(self._connection, tree, tuple(needed))
        else:
            source = self._rows_by_key(collection, keys, needed)
        for batch in source:
            keep = row_checks.matches(batch, terms)
            kept = batch if len(needed) == len(names) else batch.select(names)
            kept = kept if keep is None else kept.filter(keep)
            if kept.num_rows:
                yield kept

    def _narrow(self, collection: Collection, terms: Sequence[Term]) -> list[str] | None:
        for term in terms:
            if term.column == "_key" and term.op in ("==", "in"):
                return sorted(set(term.value if isinstance(term.value, list) else [str(term.value)]))
        answer = lookups.answerable(collection, terms)
        if answer is None:
            return None
        lookup, term = answer
        keys = lookups.keys_for(self._connection, self._registry.lookup(collection, lookup), lookup, term)
        return keys if len(keys) * _MANY < self.count(collection.name) or len(keys) < _FEW else None

    def _rows_by_key(self, collection: Collection, keys: Sequence[str], names: list[str]) -> Iterator[pa.RecordBatch]:
        """Rows of sorted keys. Each page is asked only for the keys that can stand in it."""
        tree = self._registry.rows(collection)
        for start in range(0, len(keys), 1_000):
            part = keys[start : start + 1_000]
            for batch in pages.pages_of_keys(self._connection, tree, part):
                wanted = keys_within(batch, part)
                if not wanted:
                    continue
                if len(wanted) == 1:  # finding the one row and cutting it out beats testing and copying every row
                    kept = row_of(batch, wanted[0]).select(names)
                else:
                    among = pa.array(wanted, pa.string())
                    kept = batch.select(names).filter(pc.is_in(batch.column("_key"), value_set=among))
                if kept.num_rows:
                    yield kept

    def _keys_matching(self, collection: Collection, keys: list[str], terms: Sequence[Term]) -> set[str]:
        by_key = (Term("_key", "in", keys), *terms)
        return {
            key for batch in self._matching(collection, by_key, ["_key"]) for key in batch.column("_key").to_pylist()
        }

    def _check_revisions(self, collection: Collection, table: pa.Table) -> None:
        keys = table.column("_key").to_pylist()
        now = self.get(collection.name, keys, columns=["_key"], with_rev=True)
        held = dict(zip(now.column("_key").to_pylist(), now.column(row_checks.REV).to_pylist(), strict=True))
        for key, expected in zip(keys, table.column(row_checks.REV).to_pylist(), strict=True):
            if held.get(key) != expected:
                raise LostUpdate(collection.name, key, expected, held.get(key))

    def _check_ends(self, collection: Collection, table: pa.Table) -> None:
        for end in ("_from", "_to"):
            column = table.column(end)
            missing = self.missing_nodes(pc.unique(column))
            if len(missing):
                bad = pc.index(pc.is_in(column, value_set=missing), True).as_py()
                raise BadRows(
                    collection.name,
                    bad,
                    f"{end} points at {column[bad].as_py()}, which is not stored; write the node first",
                    table.column("_key")[bad].as_py(),
                )

    def _refuse_missing(self, collection: Collection, changes: pa.Table) -> None:
        present = self.get(collection.name, changes.column("_key").to_pylist(), columns=["_key"])
        known = pc.is_in(changes.column("_key"), value_set=present.column("_key").combine_chunks())
        row = pc.index(known, False).as_py()
        key = changes.column("_key")[row].as_py()
        raise BadRows(collection.name, row, "there is no row to patch; upsert it first", key)


def _edges(name: str) -> Collection:
    collection = row_checks.require(name)
    if collection.edge is None:
        raise BadQuery(f"{name} holds no edges; name an edge collection")
    return collection
