"""A cursor over the tokens of a query, with the server's way of naming what it did not expect."""

from typing import NoReturn

from tests.arango_double.language import Language
from tests.arango_double.lexer import Token, fail_at, tokenise
from tests.arango_double.scopes import Scopes

_NICE = {
    "name": "identifier", "quoted": "quoted string", "integer": "integer number", "double": "number",
    "bind": "bind parameter", "source_bind": "bind data source parameter", "end": "end of query string",
    "=": "assignment", "NOT": "not operator", "AND": "and operator", "OR": "or operator",
    "NOT IN": "not in operator", "NULL": "null", "TRUE": "true", "FALSE": "false", "ANY": "any modifier",
    "ALL": "all modifier", "NONE": "none modifier", "OUTBOUND": "outbound modifier", "INBOUND": "inbound modifier",
    "DISTINCT": "DISTINCT modifier", "LIKE": "like operator", "AT LEAST": "at least modifier",
}  # fmt: skip
STATEMENTS = {"FOR", "LET", "FILTER", "RETURN", "COLLECT", "SORT", "LIMIT", "REMOVE"}
_OPENING, _CLOSING = ("(", "[", "{"), (")", "]", "}")


class TokenStream:
    """Where the parser stands: tokens, scopes, and the bind parameters seen so far."""

    def __init__(self, text: str, language: Language) -> None:
        self.text = text
        self.language = language
        self.tokens = tokenise(text)
        self.position = 0
        self.depth = 0
        self.target_depth: int | None = None
        self.scopes = Scopes()
        self.binds: dict[str, int] = {}

    @property
    def token(self) -> Token:
        return self.tokens[self.position]

    def peek(self, ahead: int = 1) -> str:
        return self.tokens[min(self.position + ahead, len(self.tokens) - 1)].kind

    def take(self) -> Token:
        token = self.token
        self.position = min(self.position + 1, len(self.tokens) - 1)
        self.depth += (token.kind in _OPENING) - (token.kind in _CLOSING)
        return token

    def accept(self, kind: str) -> bool:
        if self.token.kind != kind:
            return False
        self.take()
        return True

    def expect(self, kind: str) -> Token:
        if self.token.kind != kind:
            self.unexpected(kind)
        return self.take()

    def unexpected(self, expected: str | None = None) -> NoReturn:
        """Syntax error at the current token."""
        message = f"syntax error, unexpected {nice_name(self.token.kind)}"
        if expected is not None:
            message += f", expecting {nice_name(expected)}"
        fail_at(self.text, self.token.offset, message)

    def fail(self, message: str, number: int = 1501, offset: int | None = None) -> NoReturn:
        fail_at(self.text, self.token.offset if offset is None else offset, message, number)

    def name(self) -> str:
        return str(self.expect("name").value)


def nice_name(kind: str) -> str:
    """How the server's parser names a token in its messages."""
    if kind in STATEMENTS:
        return f"{kind} {'command' if kind == 'REMOVE' else 'declaration'}"
    if kind in _NICE:
        return _NICE[kind]
    if kind.isupper():
        return f"{kind} keyword"
    return kind if kind in "?:::..,(){}[]" else f"{kind} operator"
