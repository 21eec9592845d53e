"""SEARCH: conditions on views, evaluated on term indexes."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import NoReturn

from tests.arango_double import syntax
from tests.arango_double.errors import aql_error
from tests.arango_double.evaluate import Compiler
from tests.arango_double.operators import attribute_path
from tests.arango_double.options import VIEW_OPTIONS, read_options
from tests.arango_double.scoring import Evidence, Hit
from tests.arango_double.search_terms import (
    Matches,
    both,
    compare_scalars,
    edit_matches,
    either,
    enough,
    like_matches,
    ngram_matches,
    phrase_matches,
    prefix_matches,
    range_matches,
    term_matches,
)
from tests.arango_double.syntax import Node
from tests.arango_double.values import Row, Value, to_number, truthy
from tests.arango_double.views import TermIndex, View

Condition = Callable[[Row], Matches]


def view_stage(compiler: Compiler, node: syntax.For, name: str) -> Callable[[Iterator[Row], Row], Iterator[Row]]:
    """Documents of a view that fulfil SEARCH, each with what BM25() and TFIDF() need."""
    context = compiler.context
    view = context.database.views[name]
    options = read_options(context, "SEARCH", node.options, VIEW_OPTIONS)
    allowed = _collections(view, options)
    for collection in view.collections():
        context.transaction.allow_read(collection)
    compiler.view_variables.add(node.variable)
    scope = _Scope(compiler, view, node.variable)
    with context.database.condition:
        view.refresh(bool(options.get("waitForSync")))
    condition = scope.compile(node.search) if node.search is not None else scope.everything
    variable = node.variable

    def stage(rows: Iterator[Row], base: Row) -> Iterator[Row]:
        for row in rows:
            with context.database.condition:
                found = condition(row)
            for handle, evidence in found.items():
                context.check()
                collection, _, key = handle.partition("/")
                document = context.transaction.get(collection, key) if collection in allowed else None
                if document is not None:
                    context.stats.scanned_index += 1
                    yield {**row, variable: document, f"$hit:{variable}": Hit(handle, evidence)}

    return stage


def _collections(view: View, options: dict[str, Value]) -> set[str]:
    wanted = options.get("collections")
    if wanted is None:
        return set(view.collections())
    names = [wanted] if isinstance(wanted, str) else wanted
    for name in names:
        if name not in view.collections():
            aql_error(10, f"collection '{name}' is not part of view '{view.name}'", "planning")
    return set(names)


@dataclass(frozen=True)
class _Scope:
    """Compiles conditions under the analyzer and boost of the surrounding ANALYZER() and BOOST()."""

    compiler: Compiler
    view: View
    variable: str
    analyzer: str = "identity"
    boost: float = 1.0

    def compile(self, node: Node) -> Condition:
        if not _mentions(node, self.variable):
            value = self.compiler.compile(node)
            return lambda row: self.everything(row) if truthy(value(row)) else {}
        if isinstance(node, syntax.Binary):
            return self._binary(node)
        if isinstance(node, syntax.Unary) and node.operator == "NOT":
            inner = self.compile(node.operand)
            return lambda row: self._without(inner(row))
        if isinstance(node, syntax.Quantified):
            return self._quantified(node)
        if isinstance(node, syntax.Call):
            return self._call(node)
        return self._refuse()

    def everything(self, row: Row) -> Matches:
        return dict.fromkeys(self.view.handles(), ())

    def _refuse(self) -> NoReturn:
        aql_error(10, "unsupported SEARCH condition", "planning")

    def _without(self, matches: Matches) -> Matches:
        return {handle: () for handle in self.view.handles() if handle not in matches}

    def _path(self, node: Node) -> str | None:
        return attribute_path(node, self.variable, self.compiler.context.binds)

    def _index(self, path: str) -> TermIndex:
        return self.view.index(path, self.analyzer)

    def _found(self, index: TermIndex, found: dict[str, dict[str, int]]) -> Matches:
        """Evidence per document from {term: {document: frequency}}."""
        matches: dict[str, list[Evidence]] = {}
        for term, holders in found.items():
            for handle, frequency in holders.items():
                matches.setdefault(handle, []).append(Evidence(index, term, frequency, self.boost))
        return {handle: tuple(items) for handle, items in matches.items()}

    # -- operators ------------------------------------------------------------------------------------------------

    def _binary(self, node: syntax.Binary) -> Condition:
        if node.operator in ("AND", "OR"):
            left, right = self.compile(node.left), self.compile(node.right)
            join = both if node.operator == "AND" else either
            return lambda row: join(left(row), right(row))
        flipped = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}
        path, operator, other = self._path(node.left), node.operator, node.right
        if path is None:
            path, other = self._path(node.right), node.left
            if operator in ("IN", "NOT IN"):
                operator = "==" if operator == "IN" else "!="
            operator = flipped.get(operator, operator)
        if path is None or _mentions(other, self.variable):
            return self._refuse()
        return self._comparison(path, operator, other)

    def _comparison(self, path: str, operator: str, other: Node) -> Condition:
        if operator in ("!=", "NOT IN"):
            positive = self._comparison(path, "==" if operator == "!=" else "IN", other)
            return lambda row: self._without(positive(row))
        if isinstance(other, syntax.Range) and operator == "IN":
            low, high = self.compiler.compile(other.low), self.compiler.compile(other.high)
            return lambda row: self._within(path, low(row), high(row), True, True)
        value = self.compiler.compile(other)
        if operator == "IN":
            return lambda row: self._any_equal(path, value(row))
        if operator == "==":
            return lambda row: self._any_equal(path, [value(row)])
        if operator not in ("<", "<=", ">", ">="):
            return self._refuse()
        return lambda row: self._ordered(path, operator, value(row))

    def _any_equal(self, path: str, values: Value) -> Matches:
        index = self._index(path)
        matches: Matches = {}
        for value in values if isinstance(values, list) else []:
            if isinstance(value, str):
                matches = either(matches, self._found(index, term_matches(index, [value])))
            else:
                matches = either(matches, compare_scalars(self._any_index(path), "==", value))
        return matches

    def _ordered(self, path: str, operator: str, value: Value) -> Matches:
        if not isinstance(value, str):
            return compare_scalars(self._any_index(path), operator, value)
        index = self._index(path)
        return self._found(index, range_matches(index, operator, value))

    def _within(self, path: str, low: Value, high: Value, with_low: bool, with_high: bool) -> Matches:
        return both(
            self._ordered(path, ">=" if with_low else ">", low), self._ordered(path, "<=" if with_high else "<", high)
        )

    def _any_index(self, path: str) -> TermIndex:
        """Numbers, booleans and nulls are indexed whatever the analyzer; take any that the path has."""
        for collection in self.view.collections():
            for analyzer in self.view.analyzers_of(collection, path):
                return self.view.index(path, analyzer)
        return self._index(path)

    def _quantified(self, node: syntax.Quantified) -> Condition:
        path = self._path(node.right)
        if path is None or _mentions(node.left, self.variable) or node.operator not in ("IN", "=="):
            return self._refuse()
        values = self.compiler.compile(node.left)
        least = self.compiler.compile(node.at_least) if node.at_least is not None else None

        def test(row: Row) -> Matches:
            terms = values(row)
            parts = [self._any_equal(path, [term]) for term in terms] if isinstance(terms, list) else []
            if node.quantifier == "NONE":
                return self._without(enough(parts, 1))
            if not parts:
                return self.everything(row) if node.quantifier == "ALL" else {}
            wanted = {"ALL": len(parts), "ANY": 1}.get(node.quantifier)
            if wanted is None and least is not None:
                wanted = int(to_number(least(row)))
            return enough(parts, wanted or 0)

        return test

    # -- functions ------------------------------------------------------------------------------------------------

    def _call(self, node: syntax.Call) -> Condition:
        arguments = node.arguments
        if node.name == "ANALYZER":
            name = str(self._constant(arguments[1]))
            self.compiler.context.analyzer(name)
            return replace(self, analyzer=name).compile(arguments[0])
        if node.name == "BOOST":
            return replace(self, boost=self.boost * float(to_number(self._constant(arguments[1])))).compile(
                arguments[0]
            )
        if node.name == "MIN_MATCH":
            parts = [self.compile(part) for part in arguments[:-1]]
            least = self.compiler.compile(arguments[-1])
            return lambda row: enough([part(row) for part in parts], int(to_number(least(row))))
        path = self._path(arguments[0])
        if path is None or any(_mentions(argument, self.variable) for argument in arguments[1:]):
            return self._refuse()
        rest = [self.compiler.compile(argument) for argument in arguments[1:]]
        maker = getattr(self, "_fn_" + node.name.lower(), None)
        if maker is None:
            return self._refuse()
        return lambda row: maker(path, [value(row) for value in rest])

    def _constant(self, node: Node) -> Value:
        return self.compiler.compile(node)({})

    def _named(self, analyzer: Value) -> "_Scope":
        name = str(analyzer)
        self.compiler.context.analyzer(name)
        return replace(self, analyzer=name)

    def _fn_phrase(self, path: str, values: list[Value]) -> Matches:
        scope = self
        if len(values) == 1 and isinstance(values[0], list):
            values = values[0]
        elif len(values) == 2 and isinstance(values[0], list):
            scope, values = self._named(values[1]), values[0]
        elif len(values) % 2 == 0:
            scope, values = self._named(values[-1]), values[:-1]
        index = scope._index(path)
        return scope._found(index, phrase_matches(index, values))

    def _fn_starts_with(self, path: str, values: list[Value]) -> Matches:
        index = self._index(path)
        prefixes = values[0] if isinstance(values[0], list) else [values[0]]
        parts = [self._found(index, prefix_matches(index, str(prefix))) for prefix in prefixes]
        return enough(parts, int(to_number(values[1])) if len(values) > 1 else 1)

    def _fn_exists(self, path: str, values: list[Value]) -> Matches:
        index = self._any_index(path)
        if values:
            aql_error(9, "the test double does not implement EXISTS() with a type", "planning")
        return {handle: () for handle in index.lengths if self.view.stores(handle.partition("/")[0])}

    def _fn_ngram_match(self, path: str, values: list[Value]) -> Matches:
        scope, threshold = self, 0.7
        if len(values) == 3:
            threshold, scope = float(to_number(values[1])), self._named(values[2])
        elif len(values) == 2:
            if isinstance(values[1], str):
                scope = self._named(values[1])
            else:
                threshold = float(to_number(values[1]))
        index = scope._index(path)
        return scope._found(index, ngram_matches(index, str(values[0]), threshold))

    def _fn_levenshtein_match(self, path: str, values: list[Value]) -> Matches:
        index = self._index(path)
        swaps = truthy(values[2]) if len(values) > 2 else True
        return self._found(index, edit_matches(index, str(values[0]), int(to_number(values[1])), swaps))

    def _fn_like(self, path: str, values: list[Value]) -> Matches:
        index = self._index(path)
        return self._found(index, like_matches(self.compiler.context, index, str(values[0])))

    def _fn_in_range(self, path: str, values: list[Value]) -> Matches:
        return self._within(path, values[0], values[1], truthy(values[2]), truthy(values[3]))


def _mentions(node: Node, variable: str) -> bool:
    return any(isinstance(part, syntax.Ref) and part.name == variable for part in syntax.walk(node))
