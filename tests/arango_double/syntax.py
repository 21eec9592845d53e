"""AQL syntax tree. Names are resolved while parsing: a reference is a variable, anything else is a collection."""

from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(slots=True)
class Node:
    """Base of all nodes; `children` walks dataclass fields in source order."""

    def children(self) -> Iterator["Node"]:
        for name in self.__dataclass_fields__:
            yield from _nodes(getattr(self, name))


def _nodes(value: object) -> Iterator[Node]:
    if isinstance(value, Node):
        yield value
    elif isinstance(value, (list, tuple)):
        for member in value:
            yield from _nodes(member)


def walk(node: Node) -> Iterator[Node]:
    """The node and everything below it, parents first."""
    yield node
    for child in node.children():
        yield from walk(child)


@dataclass(slots=True)
class Literal(Node):
    value: object


@dataclass(slots=True)
class Bind(Node):
    name: str
    offset: int


@dataclass(slots=True)
class SourceBind(Node):
    """`@@name`, or `@name` where only a collection may stand; `key` is the key in the bind variables."""

    key: str
    offset: int


@dataclass(slots=True)
class CollectionRef(Node):
    name: str
    offset: int


@dataclass(slots=True)
class Ref(Node):
    name: str


@dataclass(slots=True)
class Call(Node):
    name: str
    arguments: list[Node]
    offset: int


@dataclass(slots=True)
class Attribute(Node):
    base: Node
    name: str


@dataclass(slots=True)
class BoundAttribute(Node):
    base: Node
    bind: Bind


@dataclass(slots=True)
class Index(Node):
    base: Node
    index: Node


@dataclass(slots=True)
class Expansion(Node):
    """`base[* FILTER .. LIMIT .. RETURN ..]`; `item` is what later `.attr` accesses are appended to."""

    base: Node
    levels: int
    iterator: str
    item: Node
    condition: Node | None = None
    offset: Node | None = None
    count: Node | None = None
    projection: Node | None = None


@dataclass(slots=True)
class BooleanExpansion(Node):
    """`base[? ANY FILTER ..]`."""

    base: Node
    levels: int
    iterator: str
    quantifier: object
    condition: Node | None


@dataclass(slots=True)
class Passthru(Node):
    """Parentheses around an expansion: later accesses apply to its result."""

    inner: Node


@dataclass(slots=True)
class Unary(Node):
    operator: str
    operand: Node


@dataclass(slots=True)
class Binary(Node):
    operator: str
    left: Node
    right: Node


@dataclass(slots=True)
class Quantified(Node):
    """`left ALL|ANY|NONE|AT LEAST (n) operator right`."""

    operator: str
    left: Node
    quantifier: str
    at_least: Node | None
    right: Node


@dataclass(slots=True)
class Ternary(Node):
    condition: Node
    yes: Node | None
    no: Node


@dataclass(slots=True)
class Range(Node):
    low: Node
    high: Node


@dataclass(slots=True)
class Array(Node):
    members: list[Node]


@dataclass(slots=True)
class ObjectEntry(Node):
    key: str | Node
    value: Node


@dataclass(slots=True)
class Object(Node):
    entries: list[ObjectEntry]


@dataclass(slots=True)
class Subquery(Node):
    query: "Query"


@dataclass(slots=True)
class Statement(Node):
    """Base of the statements of a query."""


@dataclass(slots=True)
class Query(Node):
    statements: list[Statement]
    withs: list[Node] = field(default_factory=list)


@dataclass(slots=True)
class For(Statement):
    variable: str
    source: Node
    search: Node | None
    options: Object | None
    offset: int


@dataclass(slots=True)
class GraphSubject(Node):
    """Named graph (`graph`) or a list of (direction or None, collection)."""

    graph: Node | None
    edges: list[Node]
    directions: list[str | None]


@dataclass(slots=True)
class Traversal(Statement):
    variables: list[str]
    depth: Node | None
    direction: str
    start: Node
    subject: GraphSubject
    prune_variable: str | None
    prune: Node | None
    options: Object | None
    offset: int


@dataclass(slots=True)
class Paths(Statement):
    """SHORTEST_PATH, K_SHORTEST_PATHS, K_PATHS or ALL_SHORTEST_PATHS, named by `kind`."""

    kind: str
    variables: list[str]
    depth: Node | None
    direction: str
    start: Node
    target: Node
    subject: GraphSubject
    options: Object | None
    offset: int


@dataclass(slots=True)
class Filter(Statement):
    condition: Node


@dataclass(slots=True)
class Let(Statement):
    variable: str
    value: Node


@dataclass(slots=True)
class Assignment(Node):
    variable: str
    value: Node


@dataclass(slots=True)
class Collect(Statement):
    groups: list[Assignment]
    aggregates: list[Assignment]
    into: str | None
    projection: Node | None
    keep: list[str] | None
    count_into: str | None
    options: Object | None
    visible: list[str]
    outer: list[str]


@dataclass(slots=True)
class SortKey(Node):
    value: Node
    direction: Node


@dataclass(slots=True)
class Sort(Statement):
    keys: list[SortKey]


@dataclass(slots=True)
class Limit(Statement):
    offset: Node
    count: Node


@dataclass(slots=True)
class Return(Statement):
    value: Node
    distinct: bool


@dataclass(slots=True)
class Modification(Statement):
    """INSERT, UPDATE, REPLACE or REMOVE, named by `kind`."""

    kind: str
    key: Node | None
    document: Node
    collection: Node
    options: Object | None
    offset: int


@dataclass(slots=True)
class Upsert(Statement):
    search: Node
    current: str | None
    insert: Node
    kind: str
    update: Node
    collection: Node
    options: Object | None
    offset: int
