"""INSERT, UPDATE, REPLACE, REMOVE and UPSERT statements."""

from tests.arango_double import syntax
from tests.arango_double.parse_graphs import GraphParser
from tests.arango_double.syntax import Node, Statement


class WriteParser(GraphParser):
    """Adds data modification to the grammar."""

    def insert_statement(self) -> Statement:
        offset = self.expect("INSERT").offset
        document = self._payload()
        collection, options = self._target()
        self.scopes.declare_special("NEW")
        if _overwrites(options):
            self.scopes.declare_special("OLD")
        return syntax.Modification("INSERT", None, document, collection, options, offset)

    def remove_statement(self) -> Statement:
        offset = self.expect("REMOVE").offset
        document = self._payload()
        collection, options = self._target()
        self.scopes.declare_special("OLD")
        return syntax.Modification("REMOVE", None, document, collection, options, offset)

    def update_statement(self) -> Statement:
        token = self.take()
        key: Node | None = None
        document = self._payload()
        if self.accept("WITH"):
            key, document = document, self._payload()
        collection, options = self._target()
        self.scopes.declare_special("OLD")
        self.scopes.declare_special("NEW")
        return syntax.Modification(token.kind, key, document, collection, options, token.offset)

    def upsert_statement(self) -> Statement:
        offset = self.expect("UPSERT").offset
        current: str | None = None
        if self.accept("FILTER"):
            current = self.scopes.push_current()
            search = self.expression()
            self.scopes.pop_current()
        elif self.token.kind == "bind":
            search = self.value_bind()
        else:
            search = self.object()
            if any(not isinstance(entry.key, str) for entry in search.entries):
                self.fail("expecting object literal with literal attribute names in example", offset=offset)
        self.scopes.declare_special("OLD")
        self.expect("INSERT")
        insert = self.expression()
        if self.token.kind not in ("UPDATE", "REPLACE"):
            self.unexpected("UPDATE")
        kind = self.take().kind
        update = self._payload()
        collection, options = self._target()
        self.scopes.declare_special("NEW")
        return syntax.Upsert(search, current, insert, kind, update, collection, options, offset)

    def _payload(self) -> Node:
        """An expression that `IN collection` ends, as in `UPDATE doc IN c`."""
        outer, self.target_depth = self.target_depth, self.depth
        payload = self.expression()
        self.target_depth = outer
        return payload

    def _target(self) -> tuple[Node, syntax.Object | None]:
        if not (self.accept("IN") or self.accept("INTO")):
            self.unexpected("INTO")
        token = self.token
        if token.kind in ("name", "quoted"):
            self.take()
            collection: Node = syntax.CollectionRef(str(token.value), token.offset)
        elif token.kind == "source_bind":
            collection = self.source_bind()
        else:
            self.unexpected("name")
        return collection, self.options()


def _overwrites(options: syntax.Object | None) -> bool:
    """Whether INSERT may meet an old document, so that OLD is defined after it."""
    values = {entry.key: entry.value for entry in options.entries} if options is not None else {}
    mode, flag = values.get("overwriteMode"), values.get("overwrite")
    if isinstance(mode, syntax.Literal):
        return mode.value in ("update", "replace")
    return isinstance(flag, syntax.Literal) and flag.value is True
