"""What of a loop's output later statements look at; a server does not load what nobody reads."""

from collections.abc import Sequence

from tests.arango_double import syntax
from tests.arango_double.syntax import Node

PATH_PARTS = frozenset({"vertices", "edges", "weights", "weight"})


def used_names(nodes: Sequence[Node]) -> set[str]:
    """Variables that the nodes refer to; COLLECT .. INTO without a projection refers to all it hides."""
    names: set[str] = set()
    for node in nodes:
        for part in syntax.walk(node):
            if isinstance(part, syntax.Ref):
                names.add(part.name)
            elif isinstance(part, syntax.Collect) and part.into is not None and part.projection is None:
                names.update(part.visible if part.keep is None else part.keep)
    return names


def used_parts(name: str, nodes: Sequence[Node]) -> frozenset[str]:
    """Attributes of a path variable that the nodes read; all of them when the path is used as a whole."""
    if name not in used_names(nodes):
        return frozenset()
    parts: set[str] = set()
    accesses = 0
    references = 0
    for node in nodes:
        for part in syntax.walk(node):
            references += isinstance(part, syntax.Ref) and part.name == name
            if isinstance(part, syntax.Collect) and part.into is not None and part.projection is None:
                return PATH_PARTS
            if isinstance(part, syntax.Attribute) and isinstance(part.base, syntax.Ref) and part.base.name == name:
                accesses += 1
                parts.add(part.name)
    return frozenset(parts) if accesses == references else PATH_PARTS
