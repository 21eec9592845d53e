"""REMOVE of AQL."""

from collections.abc import Callable, Iterator

from tests.arango_double import syntax, writes
from tests.arango_double.errors import ServerError, aql_error
from tests.arango_double.evaluate import Compiler
from tests.arango_double.values import Row


def removal_stage(compiler: Compiler, node: syntax.Removal) -> Callable[[Iterator[Row], Row], Iterator[Row]]:
    """Remove the document of every input row; all rows are read before the first is removed."""
    context, name = compiler.context, compiler.source_name(node.collection)
    document = compiler.compile(node.document)

    def stage(rows: Iterator[Row], base: Row) -> Iterator[Row]:
        for row in list(rows):
            context.check()
            value = document(row)
            if not isinstance(value, (str, dict)):
                aql_error(1227 if value is None else 1205, "invalid document selector", "executing")
            try:
                writes.remove(context.transaction, name, writes.key_of(name, value)[0])
            except ServerError as error:
                raise ServerError(error.number, f"AQL: {error.message} (while executing)") from error
            context.stats.writes_executed += 1
            yield row

    return stage
