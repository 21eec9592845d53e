"""FOR statements: plain loops, views with SEARCH, traversals and path searches."""

from tests.arango_double import syntax
from tests.arango_double.parse_expressions import ExpressionParser
from tests.arango_double.syntax import Node, Statement

_DIRECTIONS = ("OUTBOUND", "INBOUND", "ANY")
_PATH_KINDS = ("SHORTEST_PATH", "K_SHORTEST_PATHS", "K_PATHS", "ALL_SHORTEST_PATHS")
_CONSTANT = (syntax.Literal, syntax.Bind, syntax.Array, syntax.Object, syntax.ObjectEntry)


class GraphParser(ExpressionParser):
    """Adds FOR to the expression grammar."""

    def for_statement(self) -> Statement:
        offset = self.expect("FOR").offset
        variables = [self.name()]
        while self.accept(","):
            variables.append(self.name())
        self.expect("IN")
        depth: Node | None = None
        if self.token.kind not in _DIRECTIONS:
            depth = self.expression()
            if self.token.kind not in _DIRECTIONS:
                return self._loop(variables, depth, offset)
        direction = self.take().kind
        if self.token.kind in _PATH_KINDS:
            return self._paths(variables, depth, direction, offset)
        return self._traversal(variables, depth, direction, offset)

    def _loop(self, variables: list[str], source: Node, offset: int) -> Statement:
        if len(variables) != 1:
            self.fail("Collections and views FOR loops only allow a single return variable", offset=offset)
        self.scopes.open("for")
        self.scopes.declare(variables[0])
        search: Node | None = None
        options: syntax.Object | None = None
        if self.token.kind == "name":
            word = str(self.take().value)
            if word.upper() == "SEARCH":
                if not isinstance(source, (syntax.CollectionRef, syntax.SourceBind)):
                    self.fail("SEARCH condition used on non-view")
                search = self.expression()
                options = self.options()
            elif word.upper() == "OPTIONS":
                options = self._options_object(self.expression())
                if self.token.kind == "name":
                    self.fail(f"unexpected qualifier '{word}', expecting 'SEARCH' and 'OPTIONS'")
            else:
                self.fail(f"unexpected qualifier '{word}', expecting 'SEARCH' or 'OPTIONS'")
        return syntax.For(variables[0], source, search, options, offset)

    def _traversal(self, variables: list[str], depth: Node | None, direction: str, offset: int) -> Statement:
        start = self.expression()
        subject = self._subject()
        if len(variables) > 3:
            self.fail("Traversals only have one, two or three return variables", offset=offset)
        self._declare_loop(variables)
        prune_variable, prune, options = self._prune_and_options()
        if prune is not None and any(isinstance(node, syntax.Subquery) for node in syntax.walk(prune)):
            self.fail("PRUNE condition must not use a subquery")
        if prune_variable is not None:
            self.scopes.declare(prune_variable)
        return syntax.Traversal(variables, depth, direction, start, subject, prune_variable, prune, options, offset)

    def _prune_and_options(self) -> tuple[str | None, Node | None, syntax.Object | None]:
        if self.token.kind != "name":
            return None, None, None
        word = str(self.token.value)
        if word.upper() == "OPTIONS":
            self.take()
            options = self._options_object(self.expression())
            if self.token.kind == "name":
                self.fail(f"unexpected qualifier '{word}', expecting 'PRUNE'")
            return None, None, options
        if word.upper() != "PRUNE":
            self.fail(f"unexpected qualifier '{word}', expecting 'PRUNE' or 'OPTIONS'")
        self.take()
        variable: str | None = None
        if self.token.kind == "name" and self.peek() == "=":
            variable = self.name()
            self.take()
        return variable, self.expression(), self.options()

    def _paths(self, variables: list[str], depth: Node | None, direction: str, offset: int) -> Statement:
        kind = self.take().kind
        if depth is not None and kind != "K_PATHS":
            self.position -= 1
            self.unexpected()
        start = self.expression()
        separator = self.expect("name")
        if str(separator.value).upper() != "TO":
            self.fail(f"unexpected qualifier '{separator.value}', expecting 'TO'", offset=separator.offset)
        target = self.expression()
        subject = self._subject()
        options = self.options()
        if kind == "SHORTEST_PATH" and len(variables) > 2:
            self.fail("SHORTEST_PATH must have one or two return variables", offset=offset)
        if kind != "SHORTEST_PATH" and len(variables) != 1:
            self.fail(f"{kind} only has one return variable", offset=offset)
        self._declare_loop(variables)
        return syntax.Paths(kind, variables, depth, direction, start, target, subject, options, offset)

    def _declare_loop(self, variables: list[str]) -> None:
        self.scopes.open("for")
        for name in variables:
            self.scopes.declare(name)

    def _subject(self) -> syntax.GraphSubject:
        if self.accept("GRAPH"):
            if self.token.kind == "bind":
                return syntax.GraphSubject(self.value_bind(), [], [])
            if self.token.kind in ("quoted", "name"):
                return syntax.GraphSubject(syntax.Literal(self.take().value), [], [])
            self.unexpected("quoted")
        edges: list[Node] = []
        directions: list[str | None] = []
        while True:
            directions.append(self.take().kind if self.token.kind in _DIRECTIONS else None)
            edges.append(self.collection_name())
            if not self.accept(","):
                return syntax.GraphSubject(None, edges, directions)

    def collection_name(self) -> Node:
        """A place where only a collection can stand, so `@x` binds one just as `@@x` does."""
        if self.token.kind == "name":
            token = self.take()
            return syntax.CollectionRef(str(token.value), token.offset)
        if self.token.kind == "source_bind":
            return self.source_bind()
        if self.token.kind == "bind":
            bind = self.value_bind()
            return syntax.SourceBind(bind.name, bind.offset)
        return self.unexpected("name")

    def options(self) -> syntax.Object | None:
        """An optional trailing `OPTIONS { .. }`."""
        if self.token.kind != "name":
            return None
        word = str(self.token.value)
        if word.upper() != "OPTIONS":
            self.fail(f"unexpected qualifier '{word}', expecting 'OPTIONS'")
        self.take()
        if self.token.kind != "{":
            self.unexpected("{")
        return self._options_object(self.object())

    def _options_object(self, node: Node) -> syntax.Object:
        if not isinstance(node, syntax.Object):
            self.fail("'OPTIONS' have to be an object")
        computed = any(not isinstance(entry.key, str) for entry in node.entries)
        if computed or not all(isinstance(part, _CONSTANT) for part in syntax.walk(node)):
            self.fail("'OPTIONS' have to be known at query compile time", 1575)
        return node
