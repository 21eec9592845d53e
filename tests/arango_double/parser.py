"""Statement grammar of AQL; `parse` turns a query text into a checked syntax tree."""

from dataclasses import dataclass
from functools import lru_cache

from tests.arango_double import syntax
from tests.arango_double.errors import NotInDouble, ServerError
from tests.arango_double.language import Language
from tests.arango_double.parse_writes import WriteParser
from tests.arango_double.syntax import Node, Statement


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


class StatementParser(WriteParser):
    """Reads statements; expressions and graph clauses come from the base classes."""

    def whole_query(self) -> syntax.Query:
        withs: list[Node] = []
        if self.accept("WITH"):
            withs.append(self.collection_name())
            while self.accept(",") or self.token.kind in ("name", "bind", "source_bind"):
                withs.append(self.collection_name())
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
        while True:
            statements.extend(self._statement())
            if isinstance(statements[-1], syntax.Return):
                self.scopes.end_nested()
                return statements
            if isinstance(statements[-1], (syntax.Modification, syntax.Upsert)) and self._at_end():
                self.scopes.end_nested()
                return statements

    def _at_end(self) -> bool:
        return self.token.kind in ("end", ")", ",")

    def _statement(self) -> list[Statement]:
        kind = self.token.kind
        reader = {
            "FOR": self.for_statement,
            "FILTER": self._filter,
            "COLLECT": self._collect,
            "SORT": self._sort,
            "LIMIT": self._limit,
            "RETURN": self._return,
            "INSERT": self.insert_statement,
            "REMOVE": self.remove_statement,
            "UPDATE": self.update_statement,
            "REPLACE": self.update_statement,
            "UPSERT": self.upsert_statement,
        }.get(kind)
        if kind == "LET":
            return list(self._lets())
        if kind == "WINDOW":
            raise NotInDouble("WINDOW")
        if reader is None:
            self.unexpected()
        return [reader()]

    # -- reading --------------------------------------------------------------------------------------------------

    def _lets(self) -> list[syntax.Let]:
        self.expect("LET")
        lets = []
        while True:
            name = self.name()
            self.expect("=")
            value = self.expression()
            self.scopes.declare(name)
            lets.append(syntax.Let(name, value))
            if not self.accept(","):
                return lets

    def _filter(self) -> Statement:
        self.expect("FILTER")
        return syntax.Filter(self.expression())

    def _sort(self) -> Statement:
        self.expect("SORT")
        keys = [self._sort_key()]
        while self.accept(","):
            keys.append(self._sort_key())
        return syntax.Sort(keys)

    def _sort_key(self) -> syntax.SortKey:
        value = self.expression()
        if self.accept("DESC"):
            return syntax.SortKey(value, syntax.Literal(False))
        if self.accept("ASC"):
            return syntax.SortKey(value, syntax.Literal(True))
        if self.token.kind == "bind":
            return syntax.SortKey(value, self.value_bind())
        if self.token.kind in ("quoted", "TRUE", "FALSE"):
            token = self.take()
            return syntax.SortKey(value, syntax.Literal({"TRUE": True, "FALSE": False}.get(token.kind, token.value)))
        return syntax.SortKey(value, syntax.Literal(True))

    def _limit(self) -> Statement:
        self.expect("LIMIT")
        first = self.expression()
        if self.accept(","):
            return syntax.Limit(first, self.expression())
        return syntax.Limit(syntax.Literal(0), first)

    def _return(self) -> Statement:
        self.expect("RETURN")
        distinct = False
        if self.token.kind == "DISTINCT":
            if self.scopes.kind() in ("main", "subquery"):
                self.fail("cannot use DISTINCT modifier on top-level query element")
            self.take()
            distinct = True
        return syntax.Return(self.expression(), distinct)

    # -- COLLECT --------------------------------------------------------------------------------------------------

    def _collect(self) -> Statement:
        offset = self.expect("COLLECT").offset
        groups = self._assignments() if self.token.kind == "name" else []
        count_into = self._count_into()
        aggregates: list[syntax.Assignment] = []
        into, projection, keep = None, None, None
        if count_into is None:
            if self.accept("AGGREGATE"):
                aggregates = self._assignments(aggregate=True)
            if not groups and not aggregates:
                self.unexpected()
            into, projection = self._into()
            if not aggregates:
                keep = self._keep(into)
        introduced = [item.variable for item in (*groups, *aggregates)]
        self._check_collect_references(groups, aggregates, projection, keep, introduced, offset)
        hidden = [name for name in self.scopes.nest_names() if name not in introduced]
        options = self.options()
        self._open_collect_scope(introduced)
        for name in (into, count_into):
            if name is not None:
                self.scopes.declare(name)
        outer = [name for name in self.scopes.outer_names() if name not in {*introduced, into, count_into}]
        return syntax.Collect(groups, aggregates, into, projection, keep, count_into, options, hidden, outer)

    def _open_collect_scope(self, introduced: list[str]) -> None:
        if self.scopes.kind() in ("main", "subquery"):
            return
        self.scopes.end_nested()
        self.scopes.open("collect")
        for name in introduced:
            self.scopes.admit(name)

    def _assignments(self, aggregate: bool = False) -> list[syntax.Assignment]:
        found = []
        while True:
            name = self.name()
            self.expect("=")
            value = self._aggregate_call() if aggregate else self.expression()
            self.scopes.declare(name)
            found.append(syntax.Assignment(name, value))
            if not self.accept(","):
                return found

    def _aggregate_call(self) -> Node:
        token = self.expect("name")
        name = str(token.value).upper()
        if self.token.kind != "(":
            self.unexpected("(")
        if name in ("LENGTH", "COUNT") and self.peek() == ")":
            self.take()
            self.take()
            return syntax.Call(name, [syntax.Literal(None)], token.offset)
        pushes = name == "PUSH" and self.language.is_aggregate(name)
        call = self.call(name, token.offset, checked=not pushes)
        if pushes and len(call.arguments) != 1:
            self.fail("invalid number of arguments for aggregate function 'PUSH()'", 1541, token.offset)
        if not self.language.is_aggregate(name):
            self.fail("unknown aggregate function used", 1574, token.offset)
        return call

    def _count_into(self) -> str | None:
        if not self.accept("WITH"):
            return None
        token = self.expect("name")
        if str(token.value).upper() != "COUNT":
            self.fail(f"unexpected qualifier '{token.value}', expecting 'COUNT'", offset=token.offset)
        self.expect("INTO")
        return self.name()

    def _into(self) -> tuple[str | None, Node | None]:
        if not self.accept("INTO"):
            return None, None
        name = self.name()
        return name, self.expression() if self.accept("=") else None

    def _keep(self, into: str | None) -> list[str] | None:
        if self.token.kind != "name" or str(self.token.value).upper() == "OPTIONS":
            return None
        token = self.take()
        if str(token.value).upper() != "KEEP":
            self.fail(f"unexpected qualifier '{token.value}', expecting 'KEEP'", offset=token.offset)
        if into is None:
            self.fail("use of 'KEEP' without 'INTO'", offset=token.offset)
        names = [self._kept_name()]
        while self.accept(","):
            names.append(self._kept_name())
        return names

    def _kept_name(self) -> str:
        offset = self.token.offset
        name = self.name()
        if not self.scopes.is_visible(name):
            self.fail(f"use of unknown variable '{name}' for KEEP", offset=offset)
        return name

    def _check_collect_references(
        self,
        groups: list[syntax.Assignment],
        aggregates: list[syntax.Assignment],
        projection: Node | None,
        keep: list[str] | None,
        introduced: list[str],
        offset: int,
    ) -> None:
        expressions = [item.value for item in (*groups, *aggregates)] + ([projection] if projection else [])
        used = {node.name for root in expressions for node in syntax.walk(root) if isinstance(node, syntax.Ref)}
        for name in introduced:
            if name in used or name in (keep or ()):
                self.fail(f"use of COLLECT variable '{name}' inside same COLLECT's expression", 1512, offset)
