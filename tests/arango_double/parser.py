"""AQL, as far as `aql/` uses it, from text to a tree of tuples whose first member says what they
are.

Expressions: value, bind, ref (a variable), source (a collection or view), item (`a.b` and `a[b]`),
each (`a[* .. ]`), call, not, binary, quantified, if, range, array, object, query. Statements carry
their keyword; WALK is a traversal.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NoReturn

from tests.arango_double.errors import ServerError, aql_error
from tests.arango_double.functions import FUNCTIONS

Node = tuple[Any, ...]
_WORDS = """
FOR LET FILTER RETURN COLLECT SORT LIMIT WINDOW DISTINCT AGGREGATE ASC DESC NOT AND OR IN INTO WITH
REMOVE INSERT UPDATE REPLACE UPSERT GRAPH SHORTEST_PATH K_SHORTEST_PATHS K_PATHS ALL_SHORTEST_PATHS
OUTBOUND INBOUND ANY ALL NONE LIKE NULL TRUE FALSE
"""
KEYWORDS = frozenset(_WORDS.split())
# Only inside SEARCH, next to a view, or where a vector index answers: how many arguments at least
# and at most.
SPECIAL_FUNCTIONS = {"ANALYZER": (2, 2), "BM25": (1, 3), "APPROX_NEAR_COSINE": (2, 3)}
_TOKEN = re.compile(
    r"""(?P<skip>\s+|//[^\n]*)
      | (?P<name>[A-Za-z_]\w*|`[^`]*`)
      | (?P<text>"(?:\\.|[^"\\])*")
      | (?P<number>\d+(?:\.\d+)?(?:[eE]\d+)?)
      | (?P<bind>@@?\w+)
      | (?P<mark>==|!=|>=|<=|\.\.|[-+*<>=?:,(){}\[\].])""",
    re.VERBOSE,
)
_LITERALS = {"NULL": None, "TRUE": True, "FALSE": False}
_POWER = {
    "OR": 1,
    "AND": 2,
    "==": 4,
    "!=": 4,
    "IN": 5,
    "NOT IN": 5,
    "<": 6,
    "<=": 6,
    ">": 6,
    ">=": 6,
    "..": 7,
}
_POWER.update({"+": 8, "-": 8})
_QUANTIFIER = 3
_UNARY = 9


@dataclass(frozen=True)
class Language:
    """The dialect of one server: its version, and whether vectors are on."""

    version: str = "3.12.8"
    vector_index: bool = False

    def at_least(self, *wanted: int) -> bool:
        """Whether the server's version is the wanted one or newer."""
        return tuple(int(part) for part in self.version.split(".")) >= wanted

    @property
    def has_vectors(self) -> bool:
        """Whether there are vector indexes and the function that asks them."""
        return self.vector_index and self.at_least(3, 12, 4)


@dataclass(frozen=True)
class Parsed:
    """The statements of a query and the bind keys it declares."""

    statements: list[Node]
    binds: set[str]


@lru_cache(maxsize=512)
def parse(text: str, language: Language) -> Parsed:
    """Parse one query; every mistake is a ServerError with the server's number."""
    if not text.strip():
        raise ServerError(1502, "AQL: query is empty (while parsing)")
    parser = _Parser(text, language)
    if parser.accept("WITH"):
        parser.sources()
    statements = parser.statements(set())
    parser.expect("end")
    return Parsed(statements, parser.binds)


def walk(node: object) -> Iterator[Node]:
    """Every node in a tree, parents first."""
    if isinstance(node, tuple) and node and isinstance(node[0], str):
        yield node
    if isinstance(node, (tuple, list)):
        for part in node:
            yield from walk(part)


class _Parser:
    def __init__(self, text: str, language: Language) -> None:
        self.text, self.language = text, language
        self.tokens = list(_tokens(text))
        self.place = 0
        self.binds: set[str] = set()
        self.visible: set[str] = set()

    # -- tokens: kind, value -----------------------------------------------------------------------

    @property
    def kind(self) -> str:
        return self.tokens[self.place][0]

    def take(self) -> Any:
        self.place += 1
        return self.tokens[self.place - 1][1]

    def accept(self, kind: str) -> bool:
        if self.kind == kind:
            self.place += 1
            return True
        return False

    def expect(self, kind: str) -> Any:
        if self.kind != kind:
            self.fail(f"syntax error, unexpected {self.tokens[self.place][1]!r}, expecting {kind}")
        return self.take()

    def word(self, wanted: str) -> bool:
        """Take a word that is no keyword of the language if it stands here."""
        return self.tokens[self.place] == ("name", wanted) and self.accept("name")

    def fail(self, message: str, number: int = 1501) -> NoReturn:
        aql_error(number, f"{message} near token {self.place} of {self.text[:60]!r}")

    # -- statements --------------------------------------------------------------------------------

    def statements(self, outer: set[str]) -> list[Node]:
        """The statements of a query or subquery up to the one that ends it."""
        held, self.visible = self.visible, set(outer)
        found: list[Node] = []
        while not found or found[-1][0] not in ("RETURN", "REMOVE"):
            keyword = self.kind
            reader = getattr(self, f"_{keyword.lower()}", None) if keyword in KEYWORDS else None
            if reader is None:
                self.fail(f"syntax error, unexpected {self.tokens[self.place][1]!r}")
            self.take()
            found.append(reader(outer))
        self.visible = held
        return found

    def declare(self, *names: str) -> None:
        for name in names:
            if name in self.visible:
                self.fail(f"variable '{name}' is assigned multiple times", 1511)
            self.visible.add(name)

    def sources(self) -> list[Node]:
        found: list[Node] = []
        while not found or self.accept(","):
            found.append(("source", self.expect("name"), False))
        return found

    def _for(self, outer: set[str]) -> Node:
        names = [self.expect("name")]
        while self.accept(","):
            names.append(self.expect("name"))
        self.expect("IN")
        source = self.expression()
        walks = self.kind in ("OUTBOUND", "INBOUND") and self.take().upper()
        start, edges = (self.expression(), self.sources()) if walks else (None, [])
        self.declare(*names)
        if walks:
            if len(names) != 2 or source != ("range", ("value", 1), ("value", 1)):
                self.fail("the test double knows traversals of one step with a vertex and an edge")
            return ("WALK", *names, walks, start, edges)
        if len(names) != 1:
            self.fail("Collections and views FOR loops only allow a single return variable")
        search = self.expression() if self.word("SEARCH") else None
        options = self.object() if self.word("OPTIONS") else None
        return ("FOR", names[0], source, search, options)

    def _filter(self, outer: set[str]) -> Node:
        return ("FILTER", self.expression())

    def _let(self, outer: set[str]) -> Node:
        name = self.expect("name")
        self.expect("=")
        value = self.expression()
        self.declare(name)
        return ("LET", name, value)

    def _sort(self, outer: set[str]) -> Node:
        keys: list[Node] = []
        while not keys or self.accept(","):
            keys.append((self.expression(), not self.accept("DESC")))
        return ("SORT", keys)

    def _limit(self, outer: set[str]) -> Node:
        return ("LIMIT", self.expression())

    def _return(self, outer: set[str]) -> Node:
        return ("RETURN", self.expression())

    def _remove(self, outer: set[str]) -> Node:
        document = self.operand()
        self.expect("IN")
        return ("REMOVE", document, self.operand())

    def _collect(self, outer: set[str]) -> Node:
        groups: list[tuple[str, Node]] = []
        while self.kind == "name" if not groups else self.accept(","):
            name = self.expect("name")
            self.expect("=")
            groups.append((name, self.expression()))
        sums: list[tuple[str, Node]] = []
        if self.accept("AGGREGATE"):
            sums.append(self._sum())
        while sums and self.accept(","):
            sums.append(self._sum())
        self.visible = {
            *outer,
            *(name for name, _ in (*groups, *sums)),
        }  # what was there before is hidden
        count = None
        if self.accept("WITH"):
            if not self.word("COUNT"):
                self.fail("syntax error, expecting COUNT")
            self.expect("INTO")
            count = self.expect("name")
            self.declare(count)
        if self.word("OPTIONS"):
            self.object()  # how the server groups, which changes no group
        return ("COLLECT", groups, sums, count)

    def _sum(self) -> tuple[str, Node]:
        name = self.expect("name")
        self.expect("=")
        if not self.word("SUM"):
            self.fail("only SUM is known here")
        self.expect("(")
        summed = self.expression()
        self.expect(")")
        return name, summed

    # -- expressions -------------------------------------------------------------------------------

    def expression(self, power: int = 0) -> Node:
        left = self.unary()
        while True:
            kind = self.kind
            if kind in ("ALL", "ANY") and power <= _QUANTIFIER:
                self.take()
                operator = self.take()
                left = ("quantified", kind, operator, left, self.expression(_POWER[operator] + 1))
            elif _POWER.get(kind, -1) >= power and kind in _POWER:
                self.take()
                right = self.expression(_POWER[kind] + 1)
                left = ("range", left, right) if kind == ".." else ("binary", kind, left, right)
            elif kind == "?" and power == 0:
                self.take()
                yes = self.expression()
                self.expect(":")
                left = ("if", left, yes, self.expression())
            else:
                return left

    def unary(self) -> Node:
        if self.accept("NOT"):
            return ("not", self.expression(_UNARY))
        return self.operand()

    def operand(self) -> Node:
        node = self._base()
        while True:
            if self.accept("."):
                name = self._bind() if self.kind == "bind" else ("value", self.expect("name"))
                node = ("item", node, name)
            elif self.kind == "[" and self.tokens[self.place + 1][0] == "*":
                self.place += 2
                node = self._each(node)
            elif self.accept("["):
                node = ("item", node, self.expression())
                self.expect("]")
            else:
                return node

    def _each(self, base: Node) -> Node:
        """`base[* FILTER .. RETURN ..]`, in which CURRENT is the member."""
        self.visible.add("CURRENT")
        condition = self.expression() if self.accept("FILTER") else ("value", True)
        result = self.expression() if self.accept("RETURN") else ("ref", "CURRENT")
        self.visible.discard("CURRENT")
        self.expect("]")
        return ("each", base, condition, result)

    def _base(self) -> Node:
        kind = self.kind
        if kind in ("text", "number"):
            return ("value", self.take())
        if kind in _LITERALS:
            self.take()
            return ("value", _LITERALS[kind])
        if kind == "bind":
            return self._bind()
        if kind == "{":
            return self.object()
        if self.accept("["):
            return ("array", self._list("]", self.expression))
        if self.accept("("):
            inner = self._argument()
            self.expect(")")
            return inner
        name = str(self.expect("name"))
        if self.accept("("):
            return self._call(name, self._list(")", self._argument))
        return ("ref", name) if name in self.visible else ("source", name, False)

    def _bind(self) -> Node:
        name = self.take()
        self.binds.add(name[1:])
        return ("source", name[1:], True) if name.startswith("@@") else ("bind", name[1:])

    def _argument(self) -> Node:
        return (
            ("query", self.statements(self.visible))
            if self.kind in ("FOR", "LET")
            else self.expression()
        )

    def _list(self, end: str, read: Any) -> list[Any]:
        found: list[Any] = []
        while self.kind != end and (not found or self.accept(",")):
            found.append(read())
        self.expect(end)
        return found

    def object(self) -> Node:
        self.expect("{")
        return ("object", self._list("}", self._entry))

    def _entry(self) -> tuple[str, Node]:
        name = self.take() if self.kind == "text" else self.expect("name")
        if self.accept(":"):
            return name, self.expression()
        if name not in self.visible:
            self.fail(f"use of unknown variable '{name}' in object literal", 1512)
        return name, ("ref", name)

    def _call(self, name: str, arguments: list[Node]) -> Node:
        if name in FUNCTIONS:
            least, most = FUNCTIONS[name].least, FUNCTIONS[name].most
        elif name in SPECIAL_FUNCTIONS and (
            name != "APPROX_NEAR_COSINE" or self.language.has_vectors
        ):
            least, most = SPECIAL_FUNCTIONS[name]
        else:
            self.fail(f"usage of unknown function '{name}()'", 1540)
        if not least <= len(arguments) <= most:
            self.fail(
                f"invalid number of arguments for function '{name}()', expected {least} to {most}",
                1541,
            )
        return ("call", name, arguments)


def _tokens(text: str) -> Iterator[tuple[str, Any]]:
    place, negated = 0, False
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            aql_error(1501, f"syntax error, unexpected {text[place]!r} at {place}")
        place, kind, lexeme = match.end(), str(match.lastgroup), match.group()
        if kind == "skip":
            continue
        if kind == "name" and not lexeme.startswith("`") and lexeme.upper() in KEYWORDS:
            kind = lexeme.upper()
        elif kind == "mark":
            kind = lexeme
        value: Any = lexeme
        if kind == "text":
            value = re.sub(r"\\(.)", r"\1", lexeme[1:-1])
        elif kind == "number":
            value = int(lexeme) if lexeme.isdigit() else float(lexeme)
        elif kind == "name":
            value = lexeme.strip("`")
        if negated and kind == "IN":
            kind, negated = "NOT IN", False
        elif negated:
            yield "NOT", "NOT"
            negated = False
        if kind == "NOT":
            negated = True
            continue
        yield kind, value
    yield "end", "end of query"
