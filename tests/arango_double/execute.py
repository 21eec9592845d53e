"""Queries compiled to a chain of row generators, one per statement."""

from collections.abc import Callable, Iterator
from itertools import islice

from tests.arango_double import syntax
from tests.arango_double.collect import collect_stage
from tests.arango_double.context import QueryContext
from tests.arango_double.errors import NotInDouble, aql_error
from tests.arango_double.evaluate import Compiler
from tests.arango_double.index_choice import Choice, choose, wishes_for
from tests.arango_double.indexes import Condition, Document
from tests.arango_double.modify import removal_stage
from tests.arango_double.operators import limit_value, span
from tests.arango_double.parser import Parsed
from tests.arango_double.search import view_stage
from tests.arango_double.syntax import Node, Statement
from tests.arango_double.traverse import traversal_stage
from tests.arango_double.validate import check_binds, check_sources
from tests.arango_double.values import Row, Value, sort_key, truthy, type_name
from tests.arango_double.vectors import plan_vector_search

Stage = Callable[[Iterator[Row], Row], Iterator[Row]]


def run_query(parsed: Parsed, context: QueryContext) -> list[Value]:
    """Check and run a query inside the context's transaction; the caller commits."""
    check_binds(parsed, context.binds)
    check_sources(parsed, context)
    executor = Executor(context)
    return executor.compile_query(parsed.query)({})


class Executor:
    """Compiles statements; expressions go to the Compiler."""

    def __init__(self, context: QueryContext) -> None:
        self.context = context
        self.compiler = Compiler(context, self.compile_query)

    def compile_query(self, query: syntax.Query) -> Callable[[Row], list[Value]]:
        """A function from the surrounding row to the list of results."""
        statements = query.statements
        stages: list[Stage] = []
        result: syntax.Return | None = None
        place = 0
        while place < len(statements):
            statement = statements[place]
            if isinstance(statement, syntax.Return):
                result = statement
            else:
                planned = plan_vector_search(self.compiler, statements, place)
                if planned is not None:
                    stage, place = planned
                    stages.append(stage)
                    continue
                stages.append(self._stage(statement, statements[place + 1 :]))
            place += 1
        return self._runner(stages, result)

    def _runner(self, stages: list[Stage], result: syntax.Return | None) -> Callable[[Row], list[Value]]:
        value = self.compiler.compile(result.value) if result is not None else None
        context = self.context

        def run(base: Row) -> list[Value]:
            rows: Iterator[Row] = iter([base])
            for stage in stages:
                rows = stage(rows, base)
            results: list[Value] = []
            for row in rows:
                if value is None:
                    continue
                item = value(row)
                context.hold()
                results.append(item)
            return results

        return run

    def _stage(self, statement: Statement, following: list[Statement]) -> Stage:
        if isinstance(statement, syntax.For):
            return self._for(statement, following)
        if isinstance(statement, syntax.Traversal):
            return traversal_stage(self.compiler, statement, following)
        if isinstance(statement, syntax.Filter):
            return self._filter(statement)
        if isinstance(statement, syntax.Let):
            return self._let(statement)
        if isinstance(statement, syntax.Collect):
            return collect_stage(self.compiler, statement)
        if isinstance(statement, syntax.Sort):
            return self._sort(statement)
        if isinstance(statement, syntax.Limit):
            return self._limit(statement)
        if isinstance(statement, syntax.Removal):
            return removal_stage(self.compiler, statement)
        raise NotInDouble(type(statement).__name__)

    # -- FOR ------------------------------------------------------------------------------------------------------

    def _for(self, node: syntax.For, following: list[Statement]) -> Stage:
        source = node.source
        name = ""
        if isinstance(source, (syntax.CollectionRef, syntax.SourceBind)):
            name = self.compiler.source_name(source)
            if name in self.context.database.views:
                return view_stage(self.compiler, node, name)
        if node.options is not None:
            raise NotInDouble("OPTIONS of FOR over collections and lists")
        if name:
            if node.search is not None:
                aql_error(1501, "SEARCH condition used on non-view", "planning")
            return self._collection_loop(node.variable, name, following)
        return self._list_loop(node.variable, source)

    def _list_loop(self, variable: str, source: Node) -> Stage:
        context = self.context
        if isinstance(source, syntax.Range):
            low, high = self.compiler.compile(source.low), self.compiler.compile(source.high)
            values: Callable[[Row], Value] = lambda row: span(low(row), high(row))  # noqa: E731
        else:
            values = self.compiler.compile(source)

        def stage(rows: Iterator[Row], base: Row) -> Iterator[Row]:
            for row in rows:
                members = values(row)
                if not isinstance(members, (list, range)):
                    kind = type_name(members)
                    text = "collection or array expected as operand to FOR loop; you provided a value of type"
                    aql_error(1563, f"{text} '{kind}'", "executing")
                for item in members:
                    context.check()
                    yield {**row, variable: item}

        return stage

    def _collection_loop(self, variable: str, name: str, following: list[Statement]) -> Stage:
        context = self.context
        choice = choose(context.database.collection(name), wishes_for(variable, following, context.binds))
        fetch = self._indexed(name, choice) if choice is not None else self._scanned(name)

        def stage(rows: Iterator[Row], base: Row) -> Iterator[Row]:
            for row in rows:
                for document in fetch(row):
                    context.check()
                    yield {**row, variable: document}

        return stage

    def _scanned(self, name: str) -> Callable[[Row], list[Document]]:
        context = self.context

        def scan(row: Row) -> list[Document]:
            documents = context.transaction.scan(name)
            context.stats.scanned_full += len(documents)
            return documents

        return scan

    def _indexed(self, name: str, choice: Choice) -> Callable[[Row], list[Document]]:
        context = self.context
        values = [(wish.field, wish.operator, self.compiler.compile(wish.value)) for wish in choice.wishes]
        scan = self._scanned(name)

        def find(row: Row) -> list[Document]:
            conditions = [Condition(field, operator, value(row)) for field, operator, value in values]
            if choice.index.sparse and any(item.value is None for item in conditions):
                return scan(row)
            if choice.buckets is None:
                documents = self._by_key(name, conditions[0])
            else:
                documents = context.transaction.lookup(name, choice.buckets, conditions)
            context.stats.scanned_index += len(documents)
            return documents

        return find

    def _by_key(self, name: str, condition: Condition) -> list[Document]:
        wanted = condition.value if condition.operator == "IN" else [condition.value]
        keys: dict[str, None] = {}
        for value in wanted:
            if isinstance(value, str):
                collection, slash, key = value.partition("/")
                if condition.field == "_key":
                    keys[value] = None
                elif slash and collection == name:
                    keys[key] = None
        found = (self.context.transaction.get(name, key) for key in keys)
        return [document for document in found if document is not None]

    # -- the rest -------------------------------------------------------------------------------------------------

    def _filter(self, node: syntax.Filter) -> Stage:
        condition, stats = self.compiler.compile(node.condition), self.context.stats

        def stage(rows: Iterator[Row], base: Row) -> Iterator[Row]:
            for row in rows:
                if truthy(condition(row)):
                    yield row
                else:
                    stats.filtered += 1

        return stage

    def _let(self, node: syntax.Let) -> Stage:
        value, variable = self.compiler.compile(node.value), node.variable
        return lambda rows, base: ({**row, variable: value(row)} for row in rows)

    def _sort(self, node: syntax.Sort) -> Stage:
        context = self.context
        keys = [(self.compiler.compile(key.value), key.ascends) for key in node.keys]

        def stage(rows: Iterator[Row], base: Row) -> Iterator[Row]:
            ordered = []
            for row in rows:
                context.hold()
                ordered.append(([key(row) for key, _ in keys], row))
            for place in reversed(range(len(keys))):
                ordered.sort(key=lambda item, at=place: sort_key(item[0][at]), reverse=not keys[place][1])  # type: ignore[misc]
            return iter([row for _, row in ordered])

        return stage

    def _limit(self, node: syntax.Limit) -> Stage:
        count = limit_value(node.count, self.context.binds)
        return lambda rows, base: islice(rows, count)
