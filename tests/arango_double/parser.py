"""Statement grammar of AQL, as far as `aql/` uses it; `parse` turns a query text into a checked syntax tree."""

from dataclasses import dataclass
from functools import lru_cache

from tests.arango_double import syntax
from tests.arango_double.errors import ServerError
from tests.arango_double.language import Language
from tests.arango_double.parse_expressions import ExpressionParser
from tests.arango_double.syntax import Node, Statement

_DIRECTIONS = ("OUTBOUND", "INBOUND")
_CONSTANT = (syntax.Literal, syntax.Bind, syntax.Object, syntax.ObjectEntry)


@dataclass(frozen=True, slots=True)
class Parsed:
    """A query tree, the bind keys it declares (first use each) and its text."""

    query: syntax.Query
    binds: dict[str, int]
    text: str


@lru_cache(maxsize=512)
def parse(text: str, language: Language) -> Parsed:
    """Parse one query; every mistake is a ServerError with the server's number. The tree is shared, never changed."""
    if not text.strip():
        raise ServerError(1502, "AQL: query is empty (while parsing)")
    parser = StatementParser(text, language)
    query = parser.whole_query()
    return Parsed(query, parser.binds, text)


class StatementParser(ExpressionParser):
    """Reads statements; expressions come from the base class."""

    def whole_query(self) -> syntax.Query:
        withs: list[Node] = []
        if self.accept("WITH"):
            withs = self._collections()
        statements = self._statements()
        if self.token.kind != "end":
            self.unexpected("end")
        return syntax.Query(statements, withs)

    def subquery(self) -> Node:
        hidden = self.scopes.hide_currents()
        self.scopes.open("subquery")
        query = syntax.Query(self._statements())
        self.scopes.close_subquery()
        self.scopes.restore_currents(hidden)
        return syntax.Subquery(query)

    def _statements(self) -> list[Statement]:
        statements: list[Statement] = []
        readers = {
            "FOR": self._for,
            "FILTER": self._filter,
            "LET": self._let,
            "COLLECT": self._collect,
            "SORT": self._sort,
            "LIMIT": self._limit,
            "RETURN": self._return,
            "REMOVE": self._remove,
        }
        while not statements or not isinstance(statements[-1], (syntax.Return, syntax.Removal)):
            reader = readers.get(self.token.kind)
            if reader is None:
                self.unexpected()
            offset = self.take().offset
            statements.append(reader(offset))
        self.scopes.end_nested()
        return statements

    def _for(self, offset: int) -> Statement:
        variables = [self.name()]
        while self.accept(","):
            variables.append(self.name())
        self.expect("IN")
        source = self.expression()
        if self.token.kind in _DIRECTIONS:
            return self._traversal(variables, source, offset)
        if len(variables) != 1:
            self.fail("Collections and views FOR loops only allow a single return variable", offset=offset)
        self.scopes.open("for")
        self.scopes.declare(variables[0])
        search: Node | None = None
        if self._word("SEARCH"):
            if not isinstance(source, (syntax.CollectionRef, syntax.SourceBind)):
                self.fail("SEARCH condition used on non-view")
            search = self.expression()
        return syntax.For(variables[0], source, search, self._options(), offset)

    def _traversal(self, variables: list[str], depth: Node, offset: int) -> Statement:
        direction = self.take().kind
        start = self.expression()
        edges = self._collections()
        if len(variables) > 2 or not isinstance(depth, syntax.Range):
            self.fail("the test double knows traversals of a depth range with a vertex and an edge", offset=offset)
        self.scopes.open("for")
        for name in variables:
            self.scopes.declare(name)
        return syntax.Traversal(variables, depth, direction, start, edges, offset)

    def _collections(self) -> list[Node]:
        found: list[Node] = []
        while not found or self.accept(","):
            token = self.expect("name")
            found.append(syntax.CollectionRef(str(token.value), token.offset))
        return found

    def _word(self, word: str) -> bool:
        """Take a word that is no keyword of the language if it stands here."""
        if self.token.kind != "name" or str(self.token.value).upper() != word:
            return False
        self.take()
        return True

    def _options(self) -> syntax.Object | None:
        """An optional trailing `OPTIONS { .. }`."""
        if not self._word("OPTIONS"):
            return None
        if self.token.kind != "{":
            self.unexpected("{")
        node = self.object()
        if not all(isinstance(part, _CONSTANT) for part in syntax.walk(node)):
            self.fail("'OPTIONS' have to be known at query compile time", 1575)
        return node

    def _filter(self, offset: int) -> Statement:
        return syntax.Filter(self.expression())

    def _let(self, offset: int) -> Statement:
        name = self.name()
        self.expect("=")
        value = self.expression()
        self.scopes.declare(name)
        return syntax.Let(name, value)

    def _sort(self, offset: int) -> Statement:
        keys: list[syntax.SortKey] = []
        while not keys or self.accept(","):
            value = self.expression()
            keys.append(syntax.SortKey(value, not self.accept("DESC")))
        return syntax.Sort(keys)

    def _limit(self, offset: int) -> Statement:
        return syntax.Limit(self.expression())

    def _return(self, offset: int) -> Statement:
        return syntax.Return(self.expression())

    def _remove(self, offset: int) -> Statement:
        outer, self.target_depth = self.target_depth, self.depth
        document = self.expression()
        self.target_depth = outer
        if not self.accept("IN"):
            self.unexpected("IN")
        if self.token.kind == "source_bind":
            return syntax.Removal(document, self.source_bind(), offset)
        return syntax.Removal(document, self._collections()[0], offset)

    def _collect(self, offset: int) -> Statement:
        groups: list[syntax.Assignment] = []
        while self.token.kind == "name" and (not groups or self.accept(",")):
            name = self.name()
            self.expect("=")
            groups.append(syntax.Assignment(name, self.expression()))
        count_into = None
        if self.accept("WITH"):
            if not self._word("COUNT"):
                self.unexpected()
            self.expect("INTO")
            count_into = self.name()
        if not groups and count_into is None:
            self.unexpected()
        introduced = [one.variable for one in groups] + ([count_into] if count_into else [])
        if self.scopes.kind() not in ("main", "subquery"):
            self.scopes.end_nested()
            self.scopes.open("collect")
        for name in introduced:
            self.scopes.declare(name)
        outer = [name for name in self.scopes.outer_names() if name not in introduced]
        return syntax.Collect(groups, count_into, outer)
