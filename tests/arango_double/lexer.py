"""AQL tokens: keywords in any case, names, numbers, strings, bind parameters and operators."""

import re
from typing import NamedTuple, NoReturn

from tests.arango_double.errors import aql_error

_KEYWORDS_TEXT = """
FOR LET FILTER RETURN COLLECT SORT LIMIT WINDOW DISTINCT AGGREGATE ASC DESC NOT AND OR IN INTO WITH REMOVE
INSERT UPDATE REPLACE UPSERT GRAPH SHORTEST_PATH K_SHORTEST_PATHS K_PATHS ALL_SHORTEST_PATHS OUTBOUND INBOUND
ANY ALL NONE LIKE NULL TRUE FALSE
"""
KEYWORDS = frozenset(_KEYWORDS_TEXT.split())

_TOKEN = re.compile(
    r"""
    (?P<space>[ \t\r\n]+)
  | (?P<comment>//[^\n]*|/\*.*?\*/)
  | (?P<open_comment>/\*)
  | (?P<not_in>[nN][oO][tT][ \t\r\n]+[iI][nN](?![_a-zA-Z0-9]))
  | (?P<name>\$?[a-zA-Z][_a-zA-Z0-9]*|_+[a-zA-Z]+[_a-zA-Z0-9]*)
  | (?P<ticks>`(?:\\.|[^`\\])*`|´(?:\\.|[^´\\])*´)
  | (?P<quoted>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')
  | (?P<double>(?:(?:0|[1-9][0-9]*)(?:\.[0-9]+(?:[eE][-+]?[0-9]+)?|[eE][-+]?[0-9]+)|\.[0-9]+(?:[eE][-+]?[0-9]+)?))
  | (?P<integer>0|[1-9][0-9]*)
  | (?P<source_bind>@@(?:_+[a-zA-Z0-9]+[a-zA-Z0-9_]*|[a-zA-Z0-9][a-zA-Z0-9_]*))
  | (?P<bind>@(?:_+[a-zA-Z0-9]+[a-zA-Z0-9_]*|[a-zA-Z0-9][a-zA-Z0-9_]*))
  | (?P<operator>=~|!~|==|!=|>=|<=|&&|\|\||::|\.\.|[-+*/%<>=!?:,(){}\[\].])
    """,
    re.VERBOSE | re.DOTALL,
)
_SYNONYMS = {"&&": "AND", "||": "OR", "!": "NOT"}
_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_REGION = 32


class Token(NamedTuple):
    """One token; `kind` is a keyword, an operator, or name/quoted/integer/double/bind/source_bind/end."""

    kind: str
    value: object
    offset: int


def tokenise(text: str) -> list[Token]:
    """Split a query into tokens, the last of kind `end`."""
    tokens: list[Token] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None or match.lastgroup is None:
            fail_at(text, position, f"syntax error, unexpected {_describe_character(text[position])}")
        token = _token(text, match.lastgroup, match.group(), position)
        if token is not None:
            tokens.append(token)
        position = match.end()
    tokens.append(Token("end", None, len(text)))
    return tokens


def fail_at(text: str, offset: int, message: str, number: int = 1501) -> NoReturn:
    """Raise a parse error that quotes the query from `offset`, as the server does."""
    line = text.count("\n", 0, offset) + 1
    column = offset - (text.rfind("\n", 0, offset) + 1) + 1
    region = text[offset : offset + _REGION]
    if offset + _REGION < len(text):
        region += "..."
    aql_error(number, f"{message} near '{region}' at position {line}:{column}")


def _token(text: str, group: str, lexeme: str, offset: int) -> Token | None:
    if group in ("space", "comment"):
        return None
    if group == "open_comment":
        fail_at(text, offset, "syntax error, unexpected unterminated multi-line comment")
    if group == "not_in":
        return Token("NOT IN", lexeme, offset)
    if group == "name":
        upper = lexeme.upper()
        return Token(upper if upper in KEYWORDS else "name", lexeme, offset)
    if group == "ticks":
        return Token("name", _unescape(lexeme[1:-1]), offset)
    if group == "quoted":
        return Token("quoted", _unescape(lexeme[1:-1]), offset)
    if group == "integer":
        return Token("integer", int(lexeme), offset)
    if group == "double":
        return Token("double", float(lexeme), offset)
    if group in ("bind", "source_bind"):
        return Token(group, lexeme[1:], offset)
    return Token(_SYNONYMS.get(lexeme, lexeme), lexeme, offset)


def _unescape(raw: str) -> str:
    if "\\" not in raw:
        return raw

    def plain(match: re.Match[str]) -> str:
        code = match.group(1)
        if len(code) == 5:
            return chr(int(code[1:], 16))
        return _ESCAPES.get(code, code)

    return _ESCAPE.sub(plain, raw).encode("utf-16", "surrogatepass").decode("utf-16")


def _describe_character(character: str) -> str:
    if character in "\"'`´":
        return "unterminated string literal"
    return f"'{character}'"
