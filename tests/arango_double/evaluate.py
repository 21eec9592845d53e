"""Expressions compiled to Python closures over a row of variables."""

from collections.abc import Callable

from tests.arango_double import syntax
from tests.arango_double.context import QueryContext
from tests.arango_double.errors import NotInDouble, ServerError, aql_error
from tests.arango_double.language import ANALYZER, APPROXIMATE, SCORER
from tests.arango_double.operators import ARITHMETIC, ORDER, matches, member
from tests.arango_double.syntax import Node
from tests.arango_double.values import Row, Value, compare, equal, hash_key, normal, to_number, truthy

Evaluator = Callable[[Row], Value]
QueryCompiler = Callable[[syntax.Query], Callable[[Row], list[Value]]]

_TAKES_COLLECTION = {"LENGTH", "DOCUMENT"}


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

    def _ref(self, node: syntax.Ref) -> Evaluator:
        name = node.name
        return lambda row: row[name]

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
        base, iterator = self.compile(node.base), node.iterator
        result = self.compile(node.projection if node.projection is not None else node.item)
        condition = self.compile(node.condition) if node.condition is not None else None

        def expand(row: Row) -> list[Value]:
            items = base(row)
            inner = ({**row, iterator: item} for item in (items if isinstance(items, list) else ()))
            return [result(one) for one in inner if condition is None or truthy(condition(one))]

        return expand

    # -- constructors ---------------------------------------------------------------------------------------------

    def _array(self, node: syntax.Array) -> Evaluator:
        members = [self.compile(item) for item in node.members]
        return lambda row: [item(row) for item in members]

    def _object(self, node: syntax.Object) -> Evaluator:
        entries = [(entry.key, self.compile(entry.value)) for entry in node.entries]
        return lambda row: {key: value(row) for key, value in entries}

    # -- operators ------------------------------------------------------------------------------------------------

    def _unary(self, node: syntax.Unary) -> Evaluator:
        operand = self.compile(node.operand)
        if node.operator == "NOT":
            return lambda row: not truthy(operand(row))
        return lambda row: to_number(operand(row))

    def _ternary(self, node: syntax.Ternary) -> Evaluator:
        condition, no = self.compile(node.condition), self.compile(node.no)
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

    def _quantified(self, node: syntax.Quantified) -> Evaluator:
        left, right = self.compile(node.left), self.compile(node.right)
        operator = node.operator

        def test(row: Row) -> bool:
            values, other = left(row), right(row)
            if not isinstance(values, list):
                return False
            return (all if node.quantifier == "ALL" else any)(matches(value, operator, other) for value in values)

        return test

    # -- calls ----------------------------------------------------------------------------------------------------

    def _call(self, node: syntax.Call) -> Evaluator:
        name = node.name
        if name == SCORER:
            return self._scorer(node)
        if name == ANALYZER:
            aql_error(9, f"function '{name}()' is designed to be used with ArangoSearch view only", "executing")
        if name == APPROXIMATE:
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
        hit = f"$hit:{subject.name}"
        parameters = [self.compile(argument) for argument in node.arguments[1:]]
        return lambda row: row[hit].score([parameter(row) for parameter in parameters])


def _for_collection(context: QueryContext, name: str, call: Callable[..., Value]) -> Callable[..., Value]:
    if name == "LENGTH":
        return lambda _, collection: context.count(collection)
    return call
