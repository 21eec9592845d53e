"""SEARCH: words in fields of views, and the BM25 of what is found.

The conditions that `aql/` uses: `terms ANY IN d.field` under ANALYZER(), joined by OR.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from tests.arango_double import syntax
from tests.arango_double.errors import NotInDouble, aql_error
from tests.arango_double.evaluate import Compiler
from tests.arango_double.language import ANALYZER
from tests.arango_double.operators import attribute_path, constant
from tests.arango_double.syntax import Node
from tests.arango_double.values import Row, Value, normal, to_number
from tests.arango_double.views import TermIndex, View


class Evidence(NamedTuple):
    """A term found in a document."""

    terms: TermIndex
    term: str
    frequency: int


Matches = dict[str, tuple[Evidence, ...]]
Condition = Callable[[Row], Matches]


@dataclass(frozen=True, slots=True)
class Hit:
    """A document that SEARCH kept, and why."""

    handle: str
    evidence: tuple[Evidence, ...]

    def score(self, parameters: list[Value]) -> Value:
        """BM25 over the terms that made the document match."""
        k = to_number(parameters[0]) if parameters else 1.2
        b = to_number(parameters[1]) if len(parameters) > 1 else 0.75
        return normal(float(sum(self._bm25(item, k, b) for item in self.evidence)))

    def _bm25(self, item: Evidence, k: float, b: float) -> float:
        known = item.terms
        if not known.has("frequency"):
            return 0.0
        length, average = known.lengths.get(self.handle, 0), known.total / len(known.lengths) if known.lengths else 0.0
        documents, holders = len(known.lengths), len(known.postings.get(item.term, ()))
        rarity = math.log(1 + (documents - holders + 0.5) / (holders + 0.5))
        b = b if known.has("norm") else 0.0
        scale = k * (1 - b + b * length / average) if average else k
        return rarity * (k + 1) * item.frequency / (item.frequency + scale)


def view_stage(compiler: Compiler, node: syntax.For, name: str) -> Callable[[Iterator[Row], Row], Iterator[Row]]:
    """Documents of a view that fulfil SEARCH, each with what BM25() needs."""
    context = compiler.context
    view = context.database.views[name]
    for collection in view.collections():
        context.transaction.allow_read(collection)
    compiler.view_variables.add(node.variable)
    with context.database.condition:
        view.refresh(_waits(compiler, node.options))
    if node.search is None:
        raise NotInDouble("FOR over a view without SEARCH")
    condition = _Scope(compiler, view, node.variable).compile(node.search)
    variable = node.variable

    def stage(rows: Iterator[Row], base: Row) -> Iterator[Row]:
        for row in rows:
            with context.database.condition:
                found = condition(row)
            for handle, evidence in found.items():
                context.check()
                document = context.transaction.get(*handle.split("/", 1))
                if document is not None:
                    context.stats.scanned_index += 1
                    yield {**row, variable: document, f"$hit:{variable}": Hit(handle, evidence)}

    return stage


def _waits(compiler: Compiler, options: syntax.Object | None) -> bool:
    """The option waitForSync; a server only warns about others, the double refuses them."""
    _, values = constant(options, compiler.context.binds) if options is not None else (True, {})
    for name, value in values.items():
        if name != "waitForSync" or not isinstance(value, bool):
            aql_error(1539, f"invalid option in SEARCH: '{name}' with {value!r}", "planning")
    return bool(values.get("waitForSync"))


@dataclass(frozen=True)
class _Scope:
    """Compiles conditions under the analyzer of the surrounding ANALYZER()."""

    compiler: Compiler
    view: View
    variable: str
    analyzer: str = "identity"

    def compile(self, node: Node) -> Condition:
        if isinstance(node, syntax.Binary) and node.operator == "OR":
            left, right = self.compile(node.left), self.compile(node.right)
            return lambda row: _either(left(row), right(row))
        if isinstance(node, syntax.Quantified) and (node.quantifier, node.operator) == ("ANY", "IN"):
            return self._any_in(node)
        if isinstance(node, syntax.Call) and node.name == ANALYZER:
            name = str(self.compiler.compile(node.arguments[1])({}))
            self.compiler.context.analyzer(name)
            return _Scope(self.compiler, self.view, self.variable, name).compile(node.arguments[0])
        return aql_error(10, "unsupported SEARCH condition", "planning")

    def _any_in(self, node: syntax.Quantified) -> Condition:
        path = attribute_path(node.right, self.variable, self.compiler.context.binds)
        if path is None:
            aql_error(10, "unsupported SEARCH condition", "planning")
        values = self.compiler.compile(node.left)

        def test(row: Row) -> Matches:
            index, matches, terms = self.view.index(path, self.analyzer), Matches(), values(row)
            for term in terms if isinstance(terms, list) else ():
                for handle, positions in index.postings.get(term, {}).items():
                    matches[handle] = (*matches.get(handle, ()), Evidence(index, term, len(positions)))
            return matches

        return test


def _either(left: Matches, right: Matches) -> Matches:
    """Documents in either, with all evidence."""
    joined = dict(left)
    for handle, evidence in right.items():
        joined[handle] = joined.get(handle, ()) + evidence
    return joined
