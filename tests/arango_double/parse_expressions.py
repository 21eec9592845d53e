"""Expression grammar of AQL: precedence climbing over the server's operator table."""

from abc import ABC, abstractmethod

from tests.arango_double import syntax
from tests.arango_double.lexer import Token
from tests.arango_double.syntax import Node
from tests.arango_double.token_stream import COMMANDS, DECLARATIONS, TokenStream

_TERNARY, _OR, _AND, _QUANTIFIER, _AT_LEAST, _EQUAL, _IN, _LESS, _RANGE, _PLUS, _TIMES, _UNARY = range(12)
_BINARY = {
    "OR": _OR, "AND": _AND, "==": _EQUAL, "!=": _EQUAL, "LIKE": _EQUAL, "=~": _EQUAL, "!~": _EQUAL, "IN": _IN,
    "NOT IN": _IN, "<": _LESS, ">": _LESS, "<=": _LESS, ">=": _LESS, "..": _RANGE, "+": _PLUS, "-": _PLUS,
    "*": _TIMES, "/": _TIMES, "%": _TIMES,
}  # fmt: skip
_COMPARISONS = {"==", "!=", "<", ">", "<=", ">=", "IN", "NOT IN"}
_QUANTIFIERS = ("ALL", "ANY", "NONE")
_CONTINUES = {*_BINARY, *_QUANTIFIERS, "AT LEAST", "NOT", ".", "[", "(", "::", "?", "INTO", "WITH"}
_LITERALS = {"NULL": None, "TRUE": True, "FALSE": False}


class ExpressionParser(TokenStream, ABC):
    """Reads expressions from the token stream; the statement parser extends it."""

    # -- operators ------------------------------------------------------------------------------------------------

    def expression(self, minimum: int = _TERNARY) -> Node:
        left = self._unary()
        while True:
            kind = self.token.kind
            if kind in _QUANTIFIERS and minimum <= _QUANTIFIER and self.peek() in _COMPARISONS:
                left = self._quantified(left, kind, None)
            elif kind == "AT LEAST" and minimum <= _AT_LEAST:
                left = self._at_least(left)
            elif kind == "NOT" and minimum <= _IN and self.peek() in ("LIKE", "=~", "!~"):
                self.take()
                left = self._text_match(left, self.take(), negated=True)
            elif kind in ("LIKE", "=~", "!~") and minimum <= _EQUAL:
                left = self._text_match(left, self.take(), negated=False)
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

    def _quantified(self, left: Node, quantifier: str, at_least: Node | None) -> Node:
        if at_least is None:
            self.take()
        operator = self.take().kind
        if operator not in _COMPARISONS:
            self.position -= 1
            self.unexpected()
        return syntax.Quantified(operator, left, quantifier, at_least, self.expression(_BINARY[operator] + 1))

    def _at_least(self, left: Node) -> Node:
        self.take()
        self.expect("(")
        count = self.expression()
        self.expect(")")
        return self._quantified(left, "AT LEAST", count)

    def _text_match(self, left: Node, operator: Token, negated: bool) -> Node:
        right = self.expression(_EQUAL + 1)
        if operator.kind == "!~":
            negated = not negated
        name = "LIKE" if operator.kind == "LIKE" else "REGEX_TEST"
        call = syntax.Call(name, [left, right], operator.offset)
        return syntax.Unary("NOT", call) if negated else call

    def _ternary(self, condition: Node) -> Node:
        self.take()
        if self.accept(":"):
            return syntax.Ternary(condition, None, self.expression())
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
            elif self.peek() in ("*", "?"):
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
        if token.kind == "LIKE" and self.peek() == "(":
            self.take()
            return self.call("LIKE", token.offset)
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
        while self.token.kind == "::":
            self.take()
            name += "::" + self.name()
        if self.token.kind == "(":
            return self.call(name, token.offset)
        if "::" in name:
            self.unexpected("(")
        variable = self.scopes.resolve(name)
        return syntax.Ref(variable) if variable is not None else syntax.CollectionRef(name, token.offset)

    def call(self, name: str, offset: int, checked: bool = True) -> syntax.Call:
        """A function call from its opening parenthesis; unknown names and wrong counts fail here."""
        self.expect("(")
        arguments: list[Node] = []
        if self.token.kind != ")":
            arguments.append(self._argument())
            while self.accept(","):
                arguments.append(self._argument())
        self.expect(")")
        upper = name if "::" in name else name.upper()
        if checked:
            self.language.check_call(upper, len(arguments))
        return syntax.Call(upper, arguments, offset)

    def _argument(self) -> Node:
        if self.token.kind in DECLARATIONS or (self.token.kind in COMMANDS):
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
        if token.kind == "bind":
            key: str | Node = self.value_bind()
        elif token.kind == "[":
            self.take()
            key = self.expression()
            self.expect("]")
        elif token.kind in ("name", "quoted"):
            key = str(self.take().value)
            if token.kind == "name" and self.token.kind in (",", "}"):
                return self._shorthand(key, token.offset)
        else:
            self.unexpected("name")
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
        mark = self.token.kind
        levels = 0
        while self.accept(mark):
            levels += 1
        if levels > 1 and isinstance(base, syntax.Expansion):
            base = syntax.Passthru(base)
        outer = base if isinstance(base, syntax.Expansion) else None
        source = outer.item if outer is not None else base
        iterator = self.scopes.push_current()
        made = self._map(source, levels, iterator) if mark == "*" else self._any(source, levels, iterator)
        self.scopes.pop_current()
        self.expect("]")
        if outer is None:
            return made
        _refuse_after_projection(self, outer)
        outer.item = made
        return outer

    def _map(self, source: Node, levels: int, iterator: str) -> syntax.Expansion:
        node = syntax.Expansion(source, levels, iterator, syntax.Ref(iterator))
        if self.accept("FILTER"):
            node.condition = self.expression()
        elif self.token.kind not in ("LIMIT", "RETURN", "]"):
            self.fail("unexpected quantifier value found for array expansion operation.")
        if self.accept("LIMIT"):
            node.count = self.expression()
            if self.accept(","):
                node.offset, node.count = node.count, self.expression()
        if self.accept("RETURN"):
            node.projection = self.expression()
        return node

    def _any(self, source: Node, levels: int, iterator: str) -> syntax.BooleanExpansion:
        quantifier: object = None
        if self.token.kind in _QUANTIFIERS:
            quantifier = self.take().kind
        elif self.accept("AT LEAST"):
            self.expect("(")
            quantifier = ("AT LEAST", self.expression())
            self.expect(")")
        elif self.token.kind not in ("FILTER", "]"):
            quantifier = ("RANGE", self.expression())
        condition = None
        if self.token.kind == "FILTER" or quantifier is not None:
            self.expect("FILTER")
            condition = self.expression()
        return syntax.BooleanExpansion(source, levels, iterator, quantifier, condition)


def _append(parser: ExpressionParser, node: Node, access: "object") -> Node:
    """Apply an access to a node; after an expansion it belongs to each item, as in the server's grammar."""
    if not isinstance(node, syntax.Expansion):
        return access(node)  # type: ignore[operator, no-any-return]
    bottom = node
    while isinstance(bottom.item, syntax.Expansion):
        bottom = bottom.item
    _refuse_after_projection(parser, bottom)
    bottom.item = access(bottom.item)  # type: ignore[operator]
    return node


def _refuse_after_projection(parser: ExpressionParser, expansion: syntax.Expansion) -> None:
    if expansion.projection is not None:
        parser.fail("access after an inline RETURN is ambiguous in the double; put the expansion in parentheses")


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
