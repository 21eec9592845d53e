"""Runs AQL on the double's engine without HTTP, for tests of the language."""

from typing import Any

from tests.arango_double.context import Limits, QueryContext
from tests.arango_double.documents import DOCUMENT_COLLECTION, EDGE_COLLECTION, Database
from tests.arango_double.errors import ServerError
from tests.arango_double.execute import run_query
from tests.arango_double.language import Language
from tests.arango_double.parser import parse
from tests.arango_double.state import State
from tests.arango_double.transactions import Transaction
from tests.arango_double.users import Access, Users
from tests.arango_double.writes import insert


class Engine:
    """One database and a shorthand for running queries on it."""

    def __init__(self, version: str = "3.12.8", vector_index: bool = False, strict: bool = True) -> None:
        self.state = State(Language(version, vector_index, strict), Users(""))
        self.database: Database = self.state.create_database("db")
        self.last: QueryContext | None = None

    def collection(self, name: str, *documents: dict[str, Any], edge: bool = False) -> None:
        """A collection with documents."""
        self.database.create_collection(name, EDGE_COLLECTION if edge else DOCUMENT_COLLECTION, {})
        transaction = self.transaction()
        for document in documents:
            insert(transaction, name, document)
        transaction.commit()

    def edges(self, name: str, *pairs: tuple[str, str, dict[str, Any]] | tuple[str, str]) -> None:
        """An edge collection; each edge is (from, to[, attributes]) and its key is `from-to` without collections."""
        rows = []
        for source, target, *rest in pairs:
            key = f"{source.partition('/')[2]}-{target.partition('/')[2]}"
            rows.append({"_key": key, "_from": source, "_to": target, **(rest[0] if rest else {})})
        self.collection(name, *rows, edge=True)

    def transaction(self) -> Transaction:
        return Transaction(self.database, Access(self.state.users, "root"))

    def run(self, query: str, binds: dict[str, Any] | None = None, **limits: Any) -> list[Any]:
        """Results of a committed query; `self.last` keeps its warnings and counts."""
        parsed = parse(query, self.state.language)
        transaction = self.transaction()
        self.last = QueryContext(
            self.database, transaction, self.state.language, "root", binds or {}, Limits(**limits), query
        )
        try:
            results = run_query(parsed, self.last)
        except ServerError:
            transaction.abort()
            raise
        transaction.commit()
        return results

    def one(self, expression: str, **binds: Any) -> Any:
        """The value of one expression."""
        return self.run(f"RETURN {expression}", binds)[0]

    def error(self, query: str, binds: dict[str, Any] | None = None, **limits: Any) -> int:
        """The error number of a query that must fail; 0 when it did not."""
        try:
            self.run(query, binds, **limits)
        except ServerError as error:
            return error.number
        return 0

    def warnings(self) -> list[int]:
        assert self.last is not None
        return [warning["code"] for warning in self.last.warnings]
