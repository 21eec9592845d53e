"""Expressions compiled to Python closures over a row of variables."""

import math
from collections.abc import Callable

from tests.arango_double import syntax
from tests.arango_double.context import QueryContext
from tests.arango_double.errors import NotInDouble, ServerError, aql_error
from tests.arango_double.functions_arrays import flattened
from tests.arango_double.language import SCORERS, SEARCH_FUNCTIONS, VECTOR_FUNCTIONS
from tests.arango_double.operators import ARITHMETIC, ORDER, matches, member, span
from tests.arango_double.syntax import Node
from tests.arango_double.values import Row, Value, compare, equal, hash_key, normal, to_number, to_text, truthy

Evaluator = Callable[[Row], Value]
QueryCompiler = Callable[[syntax.Query], Callable[[Row], list[Value]]]

_TAKES_COLLECTION = {"LENGTH", "COUNT", "COLLECTION_COUNT", "DOCUMENT", "IS_SAME_COLLECTION"}


class Compiler:
    """Turns expression nodes into functions; one per query run, so bind values are constants."""

    def __init__(self, context: QueryContext, compile_query: QueryCompiler) -> None:
        self.context = context
        self.compile_query = compile_query
        self.view_variables: set[str] = set()

    def compile(self, node: Node) -> Evaluator:
        maker = getattr(self, "_" + type(node).__name__.lower(), None)
        if maker is None:
            raise NotInDouble(f"expression {type(node).__name__}")
        return maker(node)  # type: ignore[no-any-return]

    def bind(self, name: str) -> Value:
        return self.context.binds[name]

    def source_name(self, node: Node) -> str:
        """The collection (or view) that a name or an `@@` bind means."""
        if isinstance(node, syntax.SourceBind):
            return str(self.bind(node.key))
        assert isinstance(node, syntax.CollectionRef)
        return node.name

    # -- leaves ---------------------------------------------------------------------------------------------------

    def _literal(self, node: syntax.Literal) -> Evaluator:
        value = node.value
        return lambda row: value

    def _bind(self, node: syntax.Bind) -> Evaluator:
        value = self.bind(node.name)
        return lambda row: value

    def _sourcebind(self, node: syntax.SourceBind) -> Evaluator:
        raise _collection_operand(self.source_name(node))

    def _collectionref(self, node: syntax.CollectionRef) -> Evaluator:
        raise _collection_operand(node.name)

    def _ref(self, node: syntax.Ref) -> Evaluator:
        name = node.name
        return lambda row: row[name]

    def _passthru(self, node: syntax.Passthru) -> Evaluator:
        return self.compile(node.inner)

    def _subquery(self, node: syntax.Subquery) -> Evaluator:
        return self.compile_query(node.query)

    # -- accesses -------------------------------------------------------------------------------------------------

    def _attribute(self, node: syntax.Attribute) -> Evaluator:
        base, name = self.compile(node.base), node.name
        return lambda row: value.get(name) if isinstance(value := base(row), dict) else None

    def _boundattribute(self, node: syntax.BoundAttribute) -> Evaluator:
        path = self.bind(node.bind.name)
        names = path if isinstance(path, list) else [path]
        if not names or not all(isinstance(name, str) for name in names):
            raise ServerError(1553, f"AQL: bind parameter '{node.bind.name}' has an invalid value or type")
        base = self.compile(node.base)

        def access(row: Row) -> Value:
            value = base(row)
            for name in names:
                value = value.get(name) if isinstance(value, dict) else None
            return value

        return access

    def _index(self, node: syntax.Index) -> Evaluator:
        base, index = self.compile(node.base), self.compile(node.index)
        return lambda row: member(base(row), index(row))

    def _expansion(self, node: syntax.Expansion) -> Evaluator:
        base, iterator, levels = self.compile(node.base), node.iterator, node.levels
        result = self.compile(node.projection if node.projection is not None else node.item)
        condition = self.compile(node.condition) if node.condition is not None else None
        offset = self.compile(node.offset) if node.offset is not None else None
        count = self.compile(node.count) if node.count is not None else None

        def expand(row: Row) -> list[Value]:
            items = _items(base(row), levels)
            if condition is None and count is None:
                return [result({**row, iterator: item}) for item in items]
            skip = int(to_number(offset(row))) if offset is not None else 0
            most = int(to_number(count(row))) if count is not None else len(items)
            found: list[Value] = []
            for item in items:
                inner = {**row, iterator: item}
                if condition is not None and not truthy(condition(inner)):
                    continue
                if skip > 0:
                    skip -= 1
                elif len(found) < most:
                    found.append(result(inner))
            return found

        return expand

    def _booleanexpansion(self, node: syntax.BooleanExpansion) -> Evaluator:
        base, iterator = self.compile(node.base), node.iterator
        condition = self.compile(node.condition) if node.condition is not None else lambda row: True
        wanted = self._quantifier(node.quantifier)

        def test(row: Row) -> bool:
            items = _items(base(row), node.levels)
            hits = sum(truthy(condition({**row, iterator: item})) for item in items)
            return wanted(row, hits, len(items))

        return test

    def _quantifier(self, quantifier: object) -> Callable[[Row, int, int], bool]:
        if quantifier in (None, "ANY"):
            return lambda row, hits, size: hits > 0
        if quantifier == "ALL":
            return lambda row, hits, size: hits == size
        if quantifier == "NONE":
            return lambda row, hits, size: hits == 0
        assert isinstance(quantifier, tuple)
        kind, node = quantifier
        if kind == "RANGE" and isinstance(node, syntax.Range):
            low, high = self.compile(node.low), self.compile(node.high)
            return lambda row, hits, size: bool(to_number(low(row)) <= hits <= to_number(high(row)))
        number = self.compile(node)
        if kind == "RANGE":
            return lambda row, hits, size: bool(hits == to_number(number(row)))
        return lambda row, hits, size: bool(hits >= to_number(number(row)))

    # -- constructors ---------------------------------------------------------------------------------------------

    def _array(self, node: syntax.Array) -> Evaluator:
        members = [self.compile(item) for item in node.members]
        return lambda row: [item(row) for item in members]

    def _object(self, node: syntax.Object) -> Evaluator:
        entries = [(self._key(entry.key), self.compile(entry.value)) for entry in node.entries]
        if all(isinstance(key, str) for key, _ in entries):
            return lambda row: {key: value(row) for key, value in entries}
        return lambda row: {(key if isinstance(key, str) else to_text(key(row))): value(row) for key, value in entries}

    def _key(self, key: str | Node) -> str | Evaluator:
        if isinstance(key, str):
            return key
        if isinstance(key, syntax.Bind):
            name = self.bind(key.name)
            if not isinstance(name, str):
                raise ServerError(1553, f"AQL: bind parameter '{key.name}' has an invalid value or type")
            return name
        return self.compile(key)

    def _range(self, node: syntax.Range) -> Evaluator:
        low, high = self.compile(node.low), self.compile(node.high)
        return lambda row: list(span(low(row), high(row)))

    # -- operators ------------------------------------------------------------------------------------------------

    def _unary(self, node: syntax.Unary) -> Evaluator:
        operand = self.compile(node.operand)
        if node.operator == "NOT":
            return lambda row: not truthy(operand(row))
        if node.operator == "-":
            return lambda row: normal(-to_number(operand(row)))
        return lambda row: to_number(operand(row))

    def _ternary(self, node: syntax.Ternary) -> Evaluator:
        condition, no = self.compile(node.condition), self.compile(node.no)
        if node.yes is None:
            return lambda row: value if truthy(value := condition(row)) else no(row)
        yes = self.compile(node.yes)
        return lambda row: yes(row) if truthy(condition(row)) else no(row)

    def _binary(self, node: syntax.Binary) -> Evaluator:
        operator = node.operator
        left, right = self.compile(node.left), self.compile(node.right)
        if operator == "OR":
            return lambda row: value if truthy(value := left(row)) else right(row)
        if operator == "AND":
            return lambda row: right(row) if truthy(value := left(row)) else value
        if operator in ("IN", "NOT IN"):
            return self._membership(node, left, right)
        if operator == "==":
            return lambda row: equal(left(row), right(row))
        if operator == "!=":
            return lambda row: not equal(left(row), right(row))
        if operator in ("/", "%"):
            return self._division(operator, left, right)
        if operator in ORDER:
            test = ORDER[operator]
            return lambda row: test(compare(left(row), right(row)))
        compute = ARITHMETIC[operator]
        return lambda row: normal(compute(to_number(left(row)), to_number(right(row))))

    def _membership(self, node: syntax.Binary, left: Evaluator, right: Evaluator) -> Evaluator:
        wanted = node.operator == "IN"
        if isinstance(node.right, (syntax.Bind, syntax.Literal)):
            values = right({})
            keys = {hash_key(value) for value in values} if isinstance(values, list) else set()
            return lambda row: (hash_key(left(row)) in keys) is wanted

        def test(row: Row) -> bool:
            value, values = left(row), right(row)
            return (isinstance(values, list) and any(equal(value, item) for item in values)) is wanted

        return test

    def _division(self, operator: str, left: Evaluator, right: Evaluator) -> Evaluator:
        context = self.context

        def divide(row: Row) -> Value:
            dividend, divisor = to_number(left(row)), to_number(right(row))
            if divisor == 0:
                context.warn(1562, "division by zero")
                return None
            return normal(dividend / divisor if operator == "/" else math.fmod(dividend, divisor))

        return divide

    def _quantified(self, node: syntax.Quantified) -> Evaluator:
        left, right = self.compile(node.left), self.compile(node.right)
        operator = node.operator
        quantifier: object = node.quantifier
        if node.at_least is not None:
            quantifier = ("AT LEAST", node.at_least)
        wanted = self._quantifier(quantifier)

        def test(row: Row) -> bool:
            values, other = left(row), right(row)
            if not isinstance(values, list) or (operator in ("IN", "NOT IN") and not isinstance(other, list)):
                return False
            hits = sum(matches(value, operator, other) for value in values)
            return wanted(row, hits, len(values))

        return test

    # -- calls ----------------------------------------------------------------------------------------------------

    def _call(self, node: syntax.Call) -> Evaluator:
        name = node.name
        if name in SCORERS:
            return self._scorer(node)
        if name in SEARCH_FUNCTIONS:
            aql_error(9, f"function '{name}()' is designed to be used with ArangoSearch view only", "executing")
        if name in VECTOR_FUNCTIONS:
            aql_error(1554, f"failed vector search: {name}() not in a form that a vector index can answer", "planning")
        context, call = self.context, self.context.language.function(name).call
        arguments = [self._argument(name, argument) for argument in node.arguments]
        if any(isinstance(item, (syntax.CollectionRef, syntax.SourceBind)) for item in node.arguments):
            call = _for_collection(context, name, call)
        if len(arguments) == 1:
            only = arguments[0]
            return lambda row: call(context, only(row))
        return lambda row: call(context, *[argument(row) for argument in arguments])

    def _argument(self, function: str, node: Node) -> Evaluator:
        if function in _TAKES_COLLECTION and isinstance(node, (syntax.CollectionRef, syntax.SourceBind)):
            name = self.source_name(node)
            return lambda row: name
        return self.compile(node)

    def _scorer(self, node: syntax.Call) -> Evaluator:
        subject = node.arguments[0]
        if not isinstance(subject, syntax.Ref) or subject.name not in self.view_variables:
            aql_error(9, f"scorer '{node.name}()' is designed to be used with ArangoSearch view only", "planning")
        hit, name = f"$hit:{subject.name}", node.name
        parameters = [self.compile(argument) for argument in node.arguments[1:]]
        return lambda row: row[hit].score(name, [parameter(row) for parameter in parameters])


def _items(value: Value, levels: int) -> list[Value]:
    if not isinstance(value, list):
        return []
    return flattened(value, levels - 1) if levels > 1 else value


def _for_collection(context: QueryContext, name: str, call: Callable[..., Value]) -> Callable[..., Value]:
    if name in ("LENGTH", "COUNT"):
        return lambda _, collection: context.count(collection)
    return call


def _collection_operand(name: str) -> ServerError:
    return ServerError(1568, f"AQL: collection '{name}' used as expression operand (while planning)")
