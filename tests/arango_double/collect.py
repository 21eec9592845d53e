"""COLLECT: grouping, and counting the rows of each group."""

from collections.abc import Callable, Iterator
from typing import Any

from tests.arango_double import syntax
from tests.arango_double.evaluate import Compiler
from tests.arango_double.values import Row, Value, hash_key, sort_key


def collect_stage(compiler: Compiler, node: syntax.Collect) -> Callable[[Iterator[Row], Row], Iterator[Row]]:
    """Rows in, one row per group out, groups in ascending order of their values."""
    groups = [(item.variable, compiler.compile(item.value)) for item in node.groups]
    context, outer = compiler.context, set(node.outer)

    def stage(rows: Iterator[Row], base: Row) -> Iterator[Row]:
        found: dict[Any, tuple[list[Value], Row, list[Row]]] = {}
        for row in rows:
            context.hold()
            values = [value(row) for _, value in groups]
            found.setdefault(tuple(map(hash_key, values)), (values, row, []))[2].append(row)
        if not groups and not found:
            found[()] = ([], base, [])
        for values, first, members in sorted(found.values(), key=lambda item: [sort_key(value) for value in item[0]]):
            made = {name: value for name, value in first.items() if name.removeprefix("$hit:") in outer}
            made.update({name: value for (name, _), value in zip(groups, values, strict=True)})
            if node.count_into is not None:
                made[node.count_into] = len(members)
            yield made

    return stage
