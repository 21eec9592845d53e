"""Expression grammar of AQL: precedence climbing over the server's operator table."""

from abc import ABC, abstractmethod
from collections.abc import Callable

from tests.arango_double import syntax
from tests.arango_double.lexer import Token
from tests.arango_double.syntax import Node
from tests.arango_double.token_stream import STATEMENTS, TokenStream

_TERNARY, _OR, _AND, _QUANTIFIER, _EQUAL, _IN, _LESS, _RANGE, _PLUS, _UNARY = range(10)
_BINARY = {
    "OR": _OR, "AND": _AND, "==": _EQUAL, "!=": _EQUAL, "IN": _IN, "NOT IN": _IN, "<": _LESS, ">": _LESS, "<=": _LESS,
    ">=": _LESS, "..": _RANGE, "+": _PLUS, "-": _PLUS,
}  # fmt: skip
_COMPARISONS = {"==", "!=", "<", ">", "<=", ">=", "IN", "NOT IN"}
_QUANTIFIERS = ("ALL", "ANY")
_CONTINUES = {*_BINARY, *_QUANTIFIERS, "NOT", ".", "[", "(", "?"}
_LITERALS = {"NULL": None, "TRUE": True, "FALSE": False}


class ExpressionParser(TokenStream, ABC):
    """Reads expressions from the token stream; the statement parser extends it."""

    # -- operators ------------------------------------------------------------------------------------------------

    def expression(self, minimum: int = _TERNARY) -> Node:
        left = self._unary()
        while True:
            kind = self.token.kind
            if kind in _QUANTIFIERS and minimum <= _QUANTIFIER and self.peek() in _COMPARISONS:
                left = self._quantified(left, kind)
            elif kind == "IN" and self._at_write_target():
                return left
            elif kind in _BINARY and _BINARY[kind] >= minimum:
                left = self._binary(left, self.take())
            elif kind == "?" and minimum == _TERNARY:
                left = self._ternary(left)
            else:
                return left

    def _at_write_target(self) -> bool:
        """Whether `IN name` ends a write statement here instead of asking for membership."""
        if self.target_depth != self.depth or self.peek() not in ("name", "quoted", "source_bind"):
            return False
        return self.peek(2) not in _CONTINUES

    def _unary(self) -> Node:
        token = self.token
        if token.kind not in ("+", "-", "NOT"):
            return self._postfix()
        self.take()
        operand = self.expression(_UNARY)
        if token.kind == "-" and isinstance(operand, syntax.Literal) and _is_number(operand.value):
            return syntax.Literal(-operand.value)  # type: ignore[operator]
        return syntax.Unary(token.kind, operand)

    def _binary(self, left: Node, operator: Token) -> Node:
        right = self.expression(_BINARY[operator.kind] + 1)
        if operator.kind == "..":
            return syntax.Range(left, right)
        return syntax.Binary(operator.kind, left, right)

    def _quantified(self, left: Node, quantifier: str) -> Node:
        self.take()
        operator = self.take().kind
        return syntax.Quantified(operator, left, quantifier, self.expression(_BINARY[operator] + 1))

    def _ternary(self, condition: Node) -> Node:
        self.take()
        yes = self.expression()
        self.expect(":")
        return syntax.Ternary(condition, yes, self.expression())

    # -- operands -------------------------------------------------------------------------------------------------

    def _postfix(self) -> Node:
        token = self.token
        if token.kind in ("quoted", "integer", "double"):
            return syntax.Literal(self.take().value)
        if token.kind in _LITERALS:
            self.take()
            return syntax.Literal(_LITERALS[token.kind])
        node = self._reference()
        while self.token.kind in (".", "["):
            if self.accept("."):
                node = self._attribute(node)
            elif self.peek() == "*":
                node = self._expansion(node)
            else:
                self.expect("[")
                index = self.expression()
                self.expect("]")
                node = _append(self, node, lambda base, index=index: syntax.Index(base, index))
        return node

    def _reference(self) -> Node:
        token = self.token
        if token.kind == "name":
            return self._name_or_call()
        if token.kind == "[":
            return self._array()
        if token.kind == "{":
            return self.object()
        if token.kind == "bind":
            return self.value_bind()
        if token.kind == "source_bind":
            return self.source_bind()
        if token.kind == "(":
            return self._parenthesis()
        return self.unexpected()

    def _name_or_call(self) -> Node:
        token = self.take()
        name = str(token.value)
        if self.token.kind == "(":
            return self.call(name, token.offset)
        variable = self.scopes.resolve(name)
        return syntax.Ref(variable) if variable is not None else syntax.CollectionRef(name, token.offset)

    def call(self, name: str, offset: int) -> syntax.Call:
        """A function call from its opening parenthesis; unknown names and wrong counts fail here."""
        self.expect("(")
        arguments: list[Node] = []
        if self.token.kind != ")":
            arguments.append(self._argument())
            while self.accept(","):
                arguments.append(self._argument())
        self.expect(")")
        self.language.check_call(name.upper(), len(arguments))
        return syntax.Call(name.upper(), arguments, offset)

    def _argument(self) -> Node:
        if self.token.kind in STATEMENTS:
            return self.subquery()
        return self.expression()

    def _parenthesis(self) -> Node:
        self.expect("(")
        inner = self._argument()
        self.expect(")")
        return syntax.Passthru(inner) if isinstance(inner, syntax.Expansion) else inner

    @abstractmethod
    def subquery(self) -> Node:
        """A nested query; the statement parser knows how."""

    def value_bind(self) -> syntax.Bind:
        token = self.expect("bind")
        self.binds[str(token.value)] = token.offset
        return syntax.Bind(str(token.value), token.offset)

    def source_bind(self) -> syntax.SourceBind:
        token = self.expect("source_bind")
        self.binds[str(token.value)] = token.offset
        return syntax.SourceBind(str(token.value), token.offset)

    def _array(self) -> Node:
        self.expect("[")
        members: list[Node] = []
        while self.token.kind != "]":
            members.append(self.expression())
            if not self.accept(","):
                break
        self.expect("]")
        return syntax.Array(members)

    def object(self) -> syntax.Object:
        self.expect("{")
        entries: list[syntax.ObjectEntry] = []
        while self.token.kind != "}":
            entries.append(self._object_entry())
            if not self.accept(","):
                break
        self.expect("}")
        return syntax.Object(entries)

    def _object_entry(self) -> syntax.ObjectEntry:
        token = self.token
        if token.kind not in ("name", "quoted"):
            self.unexpected("name")
        key = str(self.take().value)
        if token.kind == "name" and self.token.kind in (",", "}"):
            return self._shorthand(key, token.offset)
        self.expect(":")
        return syntax.ObjectEntry(key, self.expression())

    def _shorthand(self, name: str, offset: int) -> syntax.ObjectEntry:
        variable = self.scopes.resolve(name)
        if variable is None or (name == "CURRENT" and variable.startswith("$")):
            self.fail(f"use of unknown variable '{name}' in object literal", 1512, offset)
        return syntax.ObjectEntry(name, syntax.Ref(variable))

    # -- accesses -------------------------------------------------------------------------------------------------

    def _attribute(self, node: Node) -> Node:
        if self.token.kind == "bind":
            bind = self.value_bind()
            return _append(self, node, lambda base: syntax.BoundAttribute(base, bind))
        name = self.name()
        return _append(self, node, lambda base: syntax.Attribute(base, name))

    def _expansion(self, base: Node) -> Node:
        self.expect("[")
        self.expect("*")
        iterator = self.scopes.push_current()
        node = syntax.Expansion(base, iterator, syntax.Ref(iterator))
        if self.accept("FILTER"):
            node.condition = self.expression()
        if self.accept("RETURN"):
            node.projection = self.expression()
        self.scopes.pop_current()
        self.expect("]")
        return node


def _append(parser: ExpressionParser, node: Node, access: Callable[[Node], Node]) -> Node:
    """Apply an access to a node; after an expansion it belongs to each item, as in the server's grammar."""
    if not isinstance(node, syntax.Expansion):
        return access(node)
    if node.projection is not None:
        parser.fail("access after an inline RETURN is ambiguous in the double; put the expansion in parentheses")
    node.item = access(node.item)
    return node


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
