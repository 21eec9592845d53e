"""Rules every row and question keeps, for both stores."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hades.errors import BadQuery, BadRows, StoreDamaged, UnknownCollection
from hades.ports.store import MAX_ROW_BYTES, OPERATORS, Predicate, Rows, RowStore, Term
from schemas.catalogue import Collection, EdgeShape, collection_named, collections_in
from schemas.ids import ID_PATTERN, KEY_PATTERN, split_id
from schemas.record import TIME, Column, canonical_json, repeated

# Which of these keys name no row of a collection.
MissingKeys = Callable[[str, Sequence[str]], Iterable[str]]


def require(name: str) -> Collection:
    """The declared collection of that name."""
    collection = collection_named(name)
    if collection is None:
        raise UnknownCollection(name)

    return collection


def as_tables(rows: Rows) -> Iterator[pa.Table]:
    """The batches of a write, each as a table; a table is one batch."""
    if isinstance(rows, pa.Table):
        yield rows
    elif isinstance(rows, pa.RecordBatch):
        yield pa.Table.from_batches([rows])
    else:
        for batch in rows:
            yield pa.Table.from_batches([batch])


def prepare(
    collection: Collection,
    table: pa.Table,
    *,
    partial: bool = False,
) -> pa.Table:
    """The rows in catalogue order and types, checked, or `BadRows` naming the first row that breaks
    a rule.

    `partial` is a patch: only `_key` and the columns given.
    """
    table = table.combine_chunks()
    columns = _columns_given(collection, table, partial)
    arrays = {column.name: _cast_array(collection, column, table) for column in columns}
    batch = _Batch(collection, pa.table(arrays))
    batch.check_keys()

    for column in columns:
        batch.check_column(column)

    if collection.edge and not partial:
        batch.check_ends(collection.edge)

    for column in columns:
        if column.is_json:
            arrays[column.name] = batch.canonical(column.name)

    batch = _Batch(collection, pa.table(arrays))
    batch.check_sizes()
    return batch.table


def _columns_given(
    collection: Collection,
    table: pa.Table,
    partial: bool,
) -> list[Column]:
    def refuse(rule: str) -> NoReturn:
        raise BadRows(collection.name, None, rule)

    known = {column.name: column for column in collection.columns}
    names = table.column_names
    if len(set(names)) < len(names):
        refuse("a column is given twice")

    for name in names:
        if name not in known:
            refuse(f"unknown column {name!r}; it has {', '.join(known)}")

    if "_key" not in names:
        refuse("column _key is missing")

    if not partial:
        for column in known.values():
            if column.name not in names and not column.nullable and column.default is None:
                refuse(f"column {column.name!r} is missing and has no default")

        return list(known.values())

    if frozen := {"_from", "_to"}.intersection(names):
        refuse(f"the ends of an edge cannot be patched ({', '.join(sorted(frozen))})")

    return [known[name] for name in names]


def _cast_array(
    collection: Collection,
    column: Column,
    table: pa.Table,
) -> pa.Array:
    if column.name not in table.column_names:
        if column.default is None:
            return pa.nulls(table.num_rows, column.type)
        return repeated(
            column.default,
            column.type,
            table.num_rows,
        )

    values = table.column(column.name).combine_chunks()
    if values.type == column.type:
        return values

    if not _is_castable(values.type, column.type):
        raise BadRows(
            collection.name,
            0,
            f"column {column.name!r} is {values.type}, expected {column.type}",
        )

    try:
        return values.cast(column.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        row = _first_uncastable(values, column.type)
        rule = f"column {column.name!r} cannot be read as {column.type}"
        raise _Batch(collection, table).problem(row, rule) from error


def _is_castable(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether a cast keeps meaning: numbers to numbers, text to text; never text to number or
    back.
    """
    if pa.types.is_null(source):
        return True
    if pa.types.is_dictionary(source):
        return _is_castable(source.value_type, target)

    if pa.types.is_list(target):
        is_list = (
            pa.types.is_list(source)
            or pa.types.is_large_list(source)
            or pa.types.is_fixed_size_list(source)
        )
        return is_list and _is_castable(source.value_type, target.value_type)

    if pa.types.is_struct(target):
        return bool(pa.types.is_struct(source))
    if target == TIME:
        return pa.types.is_timestamp(source) and source.tz is not None

    if pa.types.is_string(target):
        fits = (
            pa.types.is_string(source)
            or pa.types.is_large_string(source)
            or pa.types.is_string_view(source)
        )
    elif pa.types.is_boolean(target):
        fits = pa.types.is_boolean(source)
    else:
        fits = pa.types.is_integer(source) or (
            pa.types.is_floating(target) and pa.types.is_floating(source)
        )

    return bool(fits)


def _first_uncastable(values: pa.Array, target: pa.DataType) -> int:
    for row in range(len(values)):
        try:
            values.slice(row, 1).cast(target)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return row

    return 0


def _key_at(table: pa.Table, row: int) -> str | None:
    if row < table.num_rows:
        value = table.column("_key")[row].as_py()
    else:
        value = None

    return value if isinstance(value, str) else None


@dataclass(frozen=True)
class _Batch:
    """Rows of a collection that are checked together."""

    collection: Collection
    table: pa.Table

    def problem(self, row: int, rule: str) -> BadRows:
        """What is wrong with a row, for raising."""
        return BadRows(
            self.collection.name,
            row,
            rule,
            _key_at(self.table, row),
        )

    def refuse(self, bad: pa.Array, rule: str) -> None:
        """Raise for the first row marked bad; nulls count as good."""
        first = pc.index(pc.fill_null(bad, False), True).as_py()
        if first >= 0:
            raise self.problem(first, rule)

    def refuse_values(
        self,
        column: str,
        bad: pa.Array,
        rule: str,
    ) -> None:
        """Raise for the first row whose value is among the bad ones."""
        if len(bad):
            self.refuse(
                pc.is_in(self.table.column(column), value_set=bad),
                f"{column} must be {rule}",
            )

    def check_keys(self) -> None:
        """Each key is there, legal, and stands once."""
        keys = self.table.column("_key")
        self.refuse(pc.is_null(keys), "_key is missing")
        self.refuse(
            pc.invert(pc.match_substring_regex(keys, KEY_PATTERN)),
            "_key must be 1 to 254 of A-Z a-z 0-9 _ - . @ ( ) + , = ; $ ! * ' %",
        )
        first = pc.index_in(keys, value_set=keys.combine_chunks())
        is_repeated = pc.not_equal(first, pa.array(range(len(keys))))
        self.refuse(is_repeated, "_key occurs twice in one batch")

    def check_column(self, column: Column) -> None:
        """The values of a column keep what the catalogue declares of it."""
        name, values = column.name, self.table.column(column.name)
        if not column.nullable:
            self.refuse(pc.is_null(values), f"{name} is missing")

        if column.choices:
            known = pc.is_in(values, value_set=pa.array(column.choices))
            wrong = pc.and_(pc.invert(known), pc.is_valid(values))
            self.refuse(wrong, f"{name} must be one of {', '.join(column.choices)}")

        if pa.types.is_floating(column.type):
            self.refuse(
                pc.invert(pc.is_finite(values)),
                f"{name} must be a finite number",
            )
        if column.minimum is not None:
            self.refuse(
                pc.less(values, column.minimum),
                f"{name} must be >= {column.minimum:g}",
            )
        if column.maximum is not None:
            self.refuse(
                pc.greater(values, column.maximum),
                f"{name} must be <= {column.maximum:g}",
            )
        if column.is_vector:
            self.check_vectors(name, values.combine_chunks())

    def check_vectors(self, name: str, values: pa.Array) -> None:
        """Vectors are finite, not empty, and as long as their model says."""
        lengths = pc.list_value_length(values)
        self.refuse(pc.equal(lengths, 0), f"{name} is an empty vector")
        bad = pc.index(pc.fill_null(pc.is_finite(values.flatten()), False), False).as_py()

        if bad >= 0:
            row = pc.list_parent_indices(values)[bad].as_py()
            raise self.problem(row, f"{name} holds a NaN, an infinity or a null")

        if "embedding_model" not in self.table.column_names:
            return

        models = self.table.column("embedding_model")
        self.refuse(
            pc.and_(pc.is_valid(lengths), pc.is_null(models)),
            f"{name} is given without embedding_model; vectors of unknown models cannot be "
            "compared",
        )
        for tag in filter(None, pc.unique(models).to_pylist()):
            of_model = pc.fill_null(pc.equal(models, tag), False)
            _, slash, declared = tag.rpartition("/")  # a tag is id@version/dimension
            if slash and declared.isdigit():
                dimension = int(declared)
            else:
                dimension = pc.max(pc.filter(lengths, of_model)).as_py()

            if dimension is not None:
                wrong = pc.and_(of_model, pc.not_equal(lengths, dimension))
                self.refuse(wrong, f"{name} must have dimension {dimension} as {tag} says")

    def check_ends(self, edge: EdgeShape) -> None:
        """Both ends are ids of collections that the edge may join."""
        for end, allowed in (("_from", edge.sources), ("_to", edge.targets)):
            ids = pc.unique(self.table.column(end))
            legal = pc.match_substring_regex(ids, ID_PATTERN)
            self.refuse_values(
                end,
                ids.filter(pc.invert(legal)),
                "an id of the form collection/key",
            )
            names = pa.array([split_id(node_id)[0] for node_id in ids.to_pylist()], pa.string())
            known = pc.is_in(names, value_set=pa.array(allowed, pa.string()))
            self.refuse_values(
                end,
                ids.filter(pc.invert(known)),
                f"in {' or '.join(allowed)}",
            )

    def canonical(self, name: str) -> pa.Array:
        """A free-form column in the one form in which it is kept; texts that are no JSON object are
        refused.
        """
        values = self.table.column(name).combine_chunks()
        encoded = values.dictionary_encode()
        texts = encoded.dictionary.to_pylist()
        objects = list(map(_json_object, texts))

        broken = []
        for text, value in zip(texts, objects, strict=True):
            if value is None:
                broken.append(text)

        self.refuse_values(
            name,
            pa.array(broken, pa.string()),
            "a JSON object as text",
        )
        canonical = list(map(canonical_json, objects))
        if canonical == texts:
            return values

        return pa.array(canonical, pa.string()).take(encoded.indices)

    def check_sizes(self) -> None:
        """No value is larger than a row may be."""
        if self.table.nbytes < MAX_ROW_BYTES:
            return

        for name, values in zip(self.table.column_names, self.table.columns, strict=True):
            if pa.types.is_string(values.type):
                is_too_large = pc.greater(pc.binary_length(values), MAX_ROW_BYTES)
                part = "document"
            elif pa.types.is_list(values.type):
                length = pc.list_value_length(values)
                is_too_large = pc.greater(length, MAX_ROW_BYTES // 8)
                part = "row"
            else:
                continue

            self.refuse(
                is_too_large,
                f"{name} is larger than {MAX_ROW_BYTES} bytes; split the {part}",
            )


def _json_object(text: str) -> dict[str, object] | None:
    try:
        value = json.loads(text)
    except ValueError:
        return None

    return value if isinstance(value, dict) else None


def check_stored_ends(
    collection: Collection,
    table: pa.Table,
    missing: MissingKeys,
) -> None:
    """Refuse edges with an end that names no row."""
    for end in ("_from", "_to"):
        row = pc.index(_lacks_end(table, end, missing), True).as_py()
        if row >= 0:
            node_id = table.column(end)[row].as_py()
            rule = f"{end} points at {node_id}, which is not stored; write the node first"
            raise _Batch(collection, table).problem(row, rule)


def _lacks_end(
    table: pa.Table,
    end: str,
    missing: MissingKeys,
) -> pa.ChunkedArray:
    """Which edges have an end that names no row."""
    by_collection: dict[str, list[str]] = {}
    for identifier in pc.unique(table.column(end)).to_pylist():
        name, key = split_id(identifier)
        by_collection.setdefault(name, []).append(key)

    lost: list[str] = []
    for name, keys in by_collection.items():
        lost += [f"{name}/{key}" for key in missing(name, keys)]

    return pc.is_in(
        table.column(end),
        value_set=pa.array(lost, pa.string()),
    )


def refuse_unknown(
    collection: Collection,
    changes: pa.Table,
    missing: AbstractSet[str],
) -> None:
    """Raise for the first row of a patch whose key is among those that name no row."""
    unknown = pc.is_in(
        changes.column("_key"),
        value_set=pa.array(sorted(missing), pa.string()),
    )
    _Batch(collection, changes).refuse(
        unknown,
        "there is no row to patch; upsert it first",
    )


def refuse_both(
    collection: str,
    keys: Sequence[str],
    where: Predicate,
) -> None:
    """Refuse a deletion by keys and by a predicate at once."""
    if keys and where:
        raise BadQuery(f"delete from {collection} by keys or by a predicate, not by both")


def dangling(store: RowStore, part: str) -> dict[str, list[str]]:
    """Keys of edges whose end is missing, in key order, per edge collection of a part that has
    any.
    """

    def missing(name: str, keys: Sequence[str]) -> set[str]:
        if collection_named(name) is None:
            return set(keys)

        stored = store.get(name, keys, columns=["_key"]).column("_key")
        return set(keys).difference(stored.to_pylist())

    dangling_keys: dict[str, list[str]] = {}
    for collection in collections_in(part):
        if not collection.edge:
            continue

        for batch in store.scan(collection.name, columns=["_from", "_to"]):
            table = pa.Table.from_batches([batch])
            loose = pc.or_(*(_lacks_end(table, end, missing) for end in ("_from", "_to")))
            if keys := table.filter(loose).column("_key").to_pylist():
                dangling_keys.setdefault(collection.name, []).extend(keys)

    return dangling_keys


def find_problems(store: RowStore, part: str) -> Iterator[str]:
    """What is wrong with the rows of a part, in sentences: a bad row of each batch, and edges
    without an end.
    """
    for collection in collections_in(part):
        try:
            for batch in store.scan(collection.name):
                try:
                    prepare(collection, pa.Table.from_batches([batch]))
                except BadRows as error:
                    yield f"{collection.name} (_key {error.key!r}): {error.rule}"
        except StoreDamaged as error:
            yield str(error)

    for name, keys in dangling(store, part).items():
        yield f"{name}: {len(keys)} edges without an end"


def check_columns(collection: Collection, columns: Sequence[str] | None) -> list[str]:
    """The columns asked for (all by default), `_key` always among them."""
    names = collection.schema.names
    if columns is None:
        return list(names)

    for name in columns:
        if name not in names:
            raise BadQuery(f"{collection.name} has no column {name!r}; it has {', '.join(names)}")

    return list(dict.fromkeys(["_key", *columns]))


def check_terms(collection: Collection, where: Predicate) -> tuple[Term, ...]:
    """The predicate with values of the columns' types, or `BadQuery` naming the term."""
    return tuple(_check_term(collection, term) for term in where)


def check_limit(name: str, value: int) -> int:
    """A positive limit; every loop has a budget."""
    if value < 1:
        raise BadQuery(f"{name} must be at least 1, not {value}")
    return value


def check_last(
    collection: Collection,
    same: Term,
    by: str,
    at_most: object,
) -> tuple[Term, Term]:
    """An equality and a bound that an index of the collection answers together, with values of the
    columns' types.
    """
    indexed = [index.fields for index in collection.indexes]
    if same.op != "==" or (same.column, by) not in indexed:
        raise BadQuery(
            f"{collection.name} has no index on ({same.column}, {by}) to find last rows by an "
            "equality; declare it in schemas/catalogue.py"
        )

    equality, bound = check_terms(collection, (same, Term(by, "<=", at_most)))
    return equality, bound


def _check_term(collection: Collection, term: Term) -> Term:
    check_columns(collection, [term.column])
    columns = {column.name: column for column in collection.columns}
    column = columns[term.column]

    if term.op not in OPERATORS:
        raise BadQuery(f"{term.op!r} is not an operator; use one of {', '.join(OPERATORS)}")
    if term.op in ("is_null", "not_null"):
        return Term(term.column, term.op)
    if pa.types.is_nested(column.type) or column.is_json:
        raise BadQuery(f"{collection.name}.{column.name} is nested and can only be asked for null")

    if term.op == "in":
        if not isinstance(term.value, (list, tuple, set, frozenset)):
            raise BadQuery(
                f"'in' on {collection.name}.{column.name} wants a list, not "
                f"{type(term.value).__name__}"
            )

        return Term(
            term.column,
            "in",
            [_typed_value(collection, column, value) for value in term.value],
        )

    if term.op == "starts_with" and column.type != pa.string():
        raise BadQuery(
            f"'starts_with' wants a text column; {collection.name}.{column.name} is {column.type}"
        )

    return Term(
        term.column,
        term.op,
        _typed_value(collection, column, term.value),
    )


def _typed_value(
    collection: Collection,
    column: Column,
    value: object,
) -> object:
    if value is None or (isinstance(value, bool) and not pa.types.is_boolean(column.type)):
        raise BadQuery(
            f"{value!r} cannot be compared with {collection.name}.{column.name} ({column.type})"
        )

    if isinstance(value, float) and not np.isfinite(value):
        raise BadQuery(
            f"{value!r} cannot be compared with {collection.name}.{column.name}; give a finite "
            "number"
        )

    if isinstance(value, datetime) and value.tzinfo is None:
        raise BadQuery(
            f"the time for {collection.name}.{column.name} has no zone; give an aware datetime"
        )

    try:
        scalar = pa.scalar(value, column.type)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise BadQuery(
            f"{value!r} cannot be compared with {collection.name}.{column.name} ({column.type})"
        ) from error

    result: object = scalar.as_py()
    if isinstance(result, datetime):
        return result.astimezone(UTC)

    return result
