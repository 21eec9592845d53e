"""Queries: a tree compiled to Python closures over a row of variables, one generator of rows a
statement.
"""

import operator
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from tests.arango_double.database import EDGE_COLLECTION, Database, Document
from tests.arango_double.errors import NotInDouble, aql_error
from tests.arango_double.functions import FUNCTIONS, cosine
from tests.arango_double.parser import Node, Parsed, walk
from tests.arango_double.transactions import Transaction
from tests.arango_double.values import (
    Row,
    Value,
    equal,
    hash_key,
    normal,
    order,
    to_number,
    to_text,
    truthy,
)

Evaluator = Callable[[Row], Value]
Stage = Callable[[Iterator[Row]], Iterator[Row]]
Matches = dict[str, list[Any]]
_ORDER = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_ENDS = {"OUTBOUND": "_from", "INBOUND": "_to"}


@dataclass
class Query:
    """One run of a query: what it may see, its limits, and the warnings and counts it leaves
    behind.
    """

    database: Database
    transaction: Transaction
    binds: dict[str, Value]
    fails_on_warning: bool = False
    max_runtime: float = 0.0
    warnings: list[dict[str, Any]] = field(default_factory=list)
    written: int = 0
    started: float = field(default_factory=time.monotonic)

    def run(self, parsed: Parsed) -> list[Value]:
        """All results; the caller commits."""
        for name in parsed.binds - set(self.binds):
            aql_error(1551, f"no value specified for declared bind parameter '{name}'")
        for name in set(self.binds) - parsed.binds:
            aql_error(1552, f"bind parameter '{name}' was not declared in the query")
        return self._query(("query", parsed.statements))({})

    def warn(self, number: int, message: str) -> None:
        """Note a warning; with failOnWarning it ends the query."""
        if self.fails_on_warning:
            aql_error(number, message, "executing")
        self.warnings.append({"code": number, "message": message})

    def check(self) -> None:
        """End the query when it ran too long; called inside every loop."""
        if self.max_runtime and time.monotonic() - self.started > self.max_runtime:
            aql_error(1500, "query killed", "executing")

    def source(self, node: Node) -> str:
        """The collection or view that a name or an `@@` bind means."""
        _, name, is_bind = node
        if is_bind:
            name = self.binds[name]
            if not isinstance(name, str) or not name:
                aql_error(1553, f"bind parameter '{node[1]}' has an invalid value or type")
        if name in self.database.views:
            for collection in self.database.views[name].links:
                self.transaction.allow_read(collection)
            return str(name)
        self.database.collection(name)
        self.transaction.allow_read(name)
        return str(name)

    # -- expressions -------------------------------------------------------------------------------

    def compile(self, node: Node) -> Evaluator:
        if node[0] == "source":
            aql_error(1568, f"collection '{node[1]}' used as expression operand", "planning")
        maker: Callable[[Node], Evaluator] = getattr(self, f"_{node[0]}")
        return maker(node)

    def _value(self, node: Node) -> Evaluator:
        return lambda row: node[1]

    def _bind(self, node: Node) -> Evaluator:
        value = self.binds[node[1]]
        return lambda row: value

    def _ref(self, node: Node) -> Evaluator:
        name = node[1]
        return lambda row: row[name]

    def _query(self, node: Node) -> Callable[[Row], list[Value]]:
        statements = node[1]
        stages = [self._stage(one, statements[place + 1 :]) for place, one in enumerate(statements)]

        def run(base: Row) -> list[Value]:
            rows: Iterator[Row] = iter([base])
            for stage in stages:
                rows = stage(rows)
            return [row["$result"] for row in rows if "$result" in row]

        return run

    def _item(self, node: Node) -> Evaluator:
        base, key = self.compile(node[1]), self.compile(node[2])
        if node[2][0] == "value" and isinstance(node[2][1], str):
            name = node[2][1]
            return lambda row: held.get(name) if isinstance(held := base(row), dict) else None

        def member(row: Row) -> Value:
            held, wanted = base(row), key(row)
            if isinstance(held, dict):
                return held.get(to_text(wanted))
            if not isinstance(held, list) or isinstance(wanted, str):
                return None
            return held[int(wanted)] if -len(held) <= wanted < len(held) else None

        return member

    def _each(self, node: Node) -> Evaluator:
        base, condition, result = (self.compile(one) for one in node[1:])

        def expand(row: Row) -> list[Value]:
            items = base(row)
            inner = (
                {**row, "CURRENT": item} for item in (items if isinstance(items, list) else ())
            )
            return [result(one) for one in inner if truthy(condition(one))]

        return expand

    def _array(self, node: Node) -> Evaluator:
        members = [self.compile(item) for item in node[1]]
        return lambda row: [item(row) for item in members]

    def _object(self, node: Node) -> Evaluator:
        entries = [(name, self.compile(value)) for name, value in node[1]]
        return lambda row: {name: value(row) for name, value in entries}

    def _range(self, node: Node) -> Evaluator:
        low, high = self.compile(node[1]), self.compile(node[2])

        def span(row: Row) -> list[int]:
            first, last = int(low(row)), int(high(row))
            return list(range(first, last + 1) if first <= last else range(first, last - 1, -1))

        return span

    def _not(self, node: Node) -> Evaluator:
        operand = self.compile(node[1])
        return lambda row: not truthy(operand(row))

    def _if(self, node: Node) -> Evaluator:
        condition, yes, no = (self.compile(one) for one in node[1:])
        return lambda row: yes(row) if truthy(condition(row)) else no(row)

    def _binary(self, node: Node) -> Evaluator:
        kind = node[1]
        left, right = self.compile(node[2]), self.compile(node[3])
        if kind == "OR" and _is_fixed(node[2]):
            return left if truthy(left({})) else right
        if kind == "OR":
            return lambda row: value if truthy(value := left(row)) else right(row)
        if kind == "AND":
            return lambda row: right(row) if truthy(value := left(row)) else value
        if kind in ("IN", "NOT IN"):
            return _member(left, right, kind == "IN")
        if kind in ("+", "-"):
            compute = operator.add if kind == "+" else operator.sub
            return lambda row: normal(compute(to_number(left(row)), to_number(right(row))))
        if kind in ("==", "!=") and node[3] == ("value", None):
            return lambda row: (left(row) is None) is (kind == "==")
        if kind in ("==", "!="):
            return lambda row: equal(left(row), right(row)) is (kind == "==")
        return lambda row: _holds(left(row), kind, right(row))

    def _quantified(self, node: Node) -> Evaluator:
        _, quantifier, kind, values, other = node
        left, right, holds = (
            self.compile(values),
            self.compile(other),
            all if quantifier == "ALL" else any,
        )
        return lambda row: (
            isinstance(found := left(row), list)
            and holds(_holds(one, kind, right(row)) for one in found)
        )

    def _call(self, node: Node) -> Evaluator:
        _, name, arguments = node
        if name == "BM25":
            hit = f"$hit:{arguments[0][1]}"
            return lambda row: normal(
                sum(index.bm25(row[hit][0], term) for index, term in row[hit][1])
            )
        if name == "APPROX_NEAR_COSINE":
            stored, wanted = self.compile(arguments[0]), self.compile(arguments[1])
            return lambda row: (
                cosine(held, wanted(row)) if isinstance(held := stored(row), list) else None
            )
        if name not in FUNCTIONS:
            aql_error(
                9,
                f"function '{name}()' is designed to be used with ArangoSearch view only",
                "executing",
            )
        if name == "LENGTH" and arguments[0][0] == "source":
            collection = self.source(arguments[0])
            return lambda row: len(self.transaction.scan(collection))
        call, values = FUNCTIONS[name].call, [self.compile(one) for one in arguments]
        return lambda row: call(self, *[value(row) for value in values])

    # -- statements --------------------------------------------------------------------------------

    def _stage(self, statement: Node, following: list[Node]) -> Stage:
        maker = getattr(self, f"_{statement[0].lower()}_stage")
        stage: Stage = (
            maker(*statement[1:], following) if statement[0] == "FOR" else maker(*statement[1:])
        )
        return stage

    def _for_stage(
        self,
        variable: str,
        source: Node,
        search: Node | None,
        options: Node | None,
        following: list[Node],
    ) -> Stage:
        if source[0] != "source":
            return self._list_stage(variable, self.compile(source))
        name = self.source(source)
        if name in self.database.views:
            return self._view_stage(variable, name, search, options)
        if search is not None or options is not None:
            aql_error(1501, "SEARCH condition used on non-view", "planning")
        self._check_vector_search(name, following)
        fetch = self._fetch(variable, name, following)
        return self._loop(variable, fetch)

    def _loop(self, variable: str, values: Callable[[Row], Any]) -> Stage:
        def stage(rows: Iterator[Row]) -> Iterator[Row]:
            for row in rows:
                for value in values(row):
                    self.check()
                    yield {**row, variable: value}

        return stage

    def _list_stage(self, variable: str, values: Evaluator) -> Stage:
        def members(row: Row) -> list[Value]:
            found = values(row)
            if not isinstance(found, list):
                aql_error(1563, "collection or array expected as operand to FOR loop", "executing")
            return found

        return self._loop(variable, members)

    def _fetch(
        self, variable: str, name: str, following: list[Node]
    ) -> Callable[[Row], list[Document]]:
        """The documents that the filters may keep: by key or by an index where one of them says
        which.
        """
        collection, transaction = self.database.collection(name), self.transaction
        wishes = {
            wish: (many, self.compile(node))
            for wish, many, node in self._wishes(variable, following)
        }
        indexed = next(
            (
                one
                for one in ("_key", "_id", *wishes)
                if one in wishes and _answers(collection, one)
            ),
            None,
        )
        if indexed is None:
            return lambda row: transaction.scan(name)
        many, value = wishes[indexed]
        lookup = transaction.lookup_in(name, indexed) if indexed not in ("_key", "_id") else None

        def find(row: Row) -> list[Document]:
            wanted = value(row)
            values = {hash_key(one): one for one in (wanted or () if many else [wanted])}.values()
            if lookup is not None:
                return [document for one in values for document in lookup(one)]
            keys = [
                to_text(one) if indexed == "_key" else to_text(one).removeprefix(f"{name}/")
                for one in values
            ]
            return [
                document for key in keys if (document := transaction.get(name, key)) is not None
            ]

        return find

    def _wishes(self, variable: str, following: list[Node]) -> Iterator[tuple[str, bool, Node]]:
        """Conditions `variable.field == value` or `IN values` in the FILTERs right after a FOR,
        known before it.
        """
        hidden = {variable}
        for statement in following:
            if statement[0] == "LET":
                hidden.add(statement[1])
            elif statement[0] != "FILTER":
                return
            for part in _conjuncts(statement[1]) if statement[0] == "FILTER" else ():
                if (
                    part[0] != "binary"
                    or part[1] not in ("==", "IN")
                    or part[2][:2] != ("item", ("ref", variable))
                ):
                    continue
                known = all(one[0] != "ref" or one[1] not in hidden for one in walk(part[3]))
                if known and part[2][2][0] in ("value", "bind"):
                    yield str(self.compile(part[2][2])({})), part[1] == "IN", part[3]

    def _check_vector_search(self, name: str, following: list[Node]) -> None:
        """An approximate search is FOR, FILTER, LET, SORT by exactly that value, LIMIT; and has an
        index.
        """
        calls = [one for one in walk(following) if one[:2] == ("call", "APPROX_NEAR_COSINE")]
        if not calls:
            return
        kinds = [statement[0] for statement in following[:4]]
        _, stored, *_ = calls[0][2][0]
        field_name = self.compile(calls[0][2][0][2])({})
        indexes = self.database.collection(name).indexes.values()
        fits = any(index.type == "vector" and index.fields == [field_name] for index in indexes)
        sorts = following[2][1] if kinds == ["FILTER", "LET", "SORT", "LIMIT"] else []
        if not fits or sorts != [(("ref", following[1][1]), False)]:
            aql_error(
                1554,
                f"failed vector search over {stored}: not in a form that an index can answer",
                "planning",
            )

    def _walk_stage(
        self, vertex: str, edge: str, direction: str, start: Node, edges: list[Node]
    ) -> Stage:
        """One row for each edge of the start vertex; the vertex itself, which no query reads, is
        not loaded.
        """
        names = [self.source(one) for one in edges]
        for name in names:
            if self.database.collection(name).type != EDGE_COLLECTION:
                aql_error(
                    1218,
                    f"collection type invalid for collection '{name}': expecting edge",
                    "planning",
                )
        handle = self.compile(start)
        lookups = [self.transaction.lookup_in(name, _ENDS[direction]) for name in names]

        def stage(rows: Iterator[Row]) -> Iterator[Row]:
            for row in rows:
                node = handle(row)
                if not isinstance(node, str) or "/" not in node:
                    self.warn(
                        10,
                        "Invalid input for traversal: Only id strings or objects with _id are "
                        "allowed",
                    )
                    continue
                for lookup in lookups:
                    for found in lookup(node):
                        self.check()
                        yield {**row, edge: found}

        return stage

    def _view_stage(
        self, variable: str, name: str, search: Node | None, options: Node | None
    ) -> Stage:
        """Documents of a view that fulfil SEARCH, each with what BM25() needs."""
        if search is None or (
            options is not None and [one for one, _ in options[1]] != ["waitForSync"]
        ):
            raise NotInDouble(
                "FOR over a view without SEARCH or with another option than waitForSync"
            )
        condition, hit = (
            self._condition(self.database.views[name], variable, search, "identity"),
            f"$hit:{variable}",
        )

        def stage(rows: Iterator[Row]) -> Iterator[Row]:
            for row in rows:
                for handle, evidence in condition(row).items():
                    self.check()
                    document = self.transaction.get(*handle.split("/", 1))
                    if document is not None:
                        yield {**row, variable: document, hit: (handle, evidence)}

        return stage

    def _condition(
        self, view: Any, variable: str, node: Node, analyzer: str
    ) -> Callable[[Row], Matches]:
        if node[:2] == ("call", "ANALYZER"):
            return self._condition(view, variable, node[2][0], str(self.compile(node[2][1])({})))
        if node[:2] == ("binary", "OR"):
            sides = [self._condition(view, variable, one, analyzer) for one in node[2:]]
            return lambda row: _joined([side(row) for side in sides])
        if node[:3] != ("quantified", "ANY", "IN") or node[4][:2] != ("item", ("ref", variable)):
            aql_error(10, "unsupported SEARCH condition", "planning")
        terms, attribute = self.compile(node[3]), str(self.compile(node[4][2])({}))
        return lambda row: view.search(analyzer, attribute, terms(row))

    def _filter_stage(self, condition: Node) -> Stage:
        test = self.compile(condition)
        return lambda rows: (row for row in rows if truthy(test(row)))

    def _let_stage(self, variable: str, value: Node) -> Stage:
        compute, is_near = self.compile(value), value[:2] == ("call", "APPROX_NEAR_COSINE")

        def stage(rows: Iterator[Row]) -> Iterator[Row]:
            for row in rows:
                made = {**row, variable: compute(row)}
                if not is_near or made[variable] is not None:
                    yield made

        return stage

    def _sort_stage(self, keys: list[Node]) -> Stage:
        compiled = [(self.compile(value), ascends) for value, ascends in keys]
        return lambda rows: iter(_sorted(list(rows), compiled))

    def _limit_stage(self, node: Node) -> Stage:
        count = self.compile(node)({}) if node[0] in ("value", "bind") else None
        if not isinstance(count, int) or count < 0:
            aql_error(
                1504,
                "number out of range: LIMIT values must be constant non-negative numbers",
                "planning",
            )
        return lambda rows: islice(rows, count)

    def _collect_stage(
        self, groups: list[tuple[str, Node]], sums: list[tuple[str, Node]], count: str | None
    ) -> Stage:
        """One row a group, in the order of the groups' values; without groups one row."""
        compiled, added = (
            [(name, self.compile(value)) for name, value in one] for one in (groups, sums)
        )

        def stage(rows: Iterator[Row]) -> Iterator[Row]:
            found: dict[tuple[Any, ...], tuple[Row, list[Row]]] = {} if compiled else {(): ({}, [])}
            for row in rows:
                values = {name: value(row) for name, value in compiled}
                found.setdefault(tuple(map(order, values.values())), (values, []))[1].append(row)
            for _, (values, members) in sorted(found.items(), key=lambda one: one[0]):
                totals = {
                    name: normal(sum(to_number(value(row)) for row in members))
                    for name, value in added
                }
                yield {**values, **totals, **({count: len(members)} if count else {})}

        return stage

    def _return_stage(self, node: Node) -> Stage:
        value = self.compile(node)
        return lambda rows: ({"$result": value(row)} for row in rows)

    def _remove_stage(self, document: Node, collection: Node) -> Stage:
        """Remove the document of every row; all rows are read before the first is removed."""
        name, value = self.source(collection), self.compile(document)
        self.transaction.allow_write(name)

        def stage(rows: Iterator[Row]) -> Iterator[Row]:
            for row in list(rows):
                self.transaction.remove(name, value(row)["_key"])
                self.written += 1
            return iter(())

        return stage


def _holds(value: Value, kind: str, other: Value) -> bool:
    """Whether a comparison of AQL is true."""
    if kind in ("IN", "NOT IN"):
        return (isinstance(other, list) and any(equal(value, member) for member in other)) is (
            kind == "IN"
        )
    if kind in ("==", "!="):
        return equal(value, other) is (kind == "==")
    return bool(_ORDER[kind](order(value), order(other)))


def _member(value: Evaluator, values: Evaluator, is_in: bool) -> Evaluator:
    """Whether an array holds a value; what it holds is hashed once, as long as it stays the
    same.
    """
    held: list[Value] = [None, frozenset()]

    def test(row: Row) -> bool:
        found = values(row)
        if found is not held[0]:
            held[:] = (
                found,
                {hash_key(one) for one in found} if isinstance(found, list) else frozenset(),
            )
        return (hash_key(value(row)) in held[1]) is is_in

    return test


def _sorted(rows: list[Row], keys: list[tuple[Evaluator, bool]]) -> list[Row]:
    """The rows by the first key, those of one value by the next."""
    if not keys or len(rows) < 2:
        return rows
    (value, ascends), *rest = keys
    groups: dict[Any, list[Row]] = {}
    for row in rows:
        groups.setdefault(order(value(row)), []).append(row)
    return [
        row for key in sorted(groups, reverse=not ascends) for row in _sorted(groups[key], rest)
    ]


def _is_fixed(node: Node) -> bool:
    """Whether an expression is made of constants alone."""
    return node[0] in ("value", "bind") or (node[0] == "binary" and all(map(_is_fixed, node[2:])))


def _conjuncts(node: Node) -> list[Node]:
    return [*_conjuncts(node[2]), *_conjuncts(node[3])] if node[:2] == ("binary", "AND") else [node]


def _answers(collection: Any, name: str) -> bool:
    return name in ("_key", "_id") or collection.has_index(name)


def _joined(sides: list[Matches]) -> Matches:
    """Documents of any side, with all evidence."""
    joined: Matches = {}
    for side in sides:
        for handle, evidence in side.items():
            joined[handle] = [*joined.get(handle, ()), *evidence]
    return joined
