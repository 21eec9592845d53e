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
    """`base[* FILTER .. RETURN ..]`; `item` is what later `.attr` accesses are appended to."""

    base: Node
    iterator: str
    item: Node
    condition: Node | None = None
    projection: Node | None = None


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
    """`left ALL|ANY operator right`."""

    operator: str
    left: Node
    quantifier: str
    right: Node


@dataclass(slots=True)
class Ternary(Node):
    condition: Node
    yes: Node
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
    key: str
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
class SortKey(Node):
    value: Node
    ascends: bool


@dataclass(slots=True)
class Sort(Statement):
    keys: list[SortKey]


@dataclass(slots=True)
class Limit(Statement):
    count: Node


@dataclass(slots=True)
class Collect(Statement):
    groups: list[Assignment]
    count_into: str | None
    outer: list[str]


@dataclass(slots=True)
class Return(Statement):
    value: Node


@dataclass(slots=True)
class For(Statement):
    variable: str
    source: Node
    search: Node | None
    options: Object | None
    offset: int


@dataclass(slots=True)
class Traversal(Statement):
    """`FOR vertex, edge IN depth OUTBOUND|INBOUND start edges`."""

    variables: list[str]
    depth: Range
    direction: str
    start: Node
    edges: list[Node]
    offset: int


@dataclass(slots=True)
class Removal(Statement):
    document: Node
    collection: Node
    offset: int
