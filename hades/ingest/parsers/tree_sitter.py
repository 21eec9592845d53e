"""Eight more languages through tree-sitter: symbols, doc comments, imports and the names that are
called.

The tree is walked with a cursor. Queries would be shorter and four times as fast on ordinary code,
but their time grows with the square of a broken file's size (100 kB of brackets: 25 s), and the
parser's progress callback ends the process.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache

from tree_sitter import Language as Grammar
from tree_sitter import Node, Parser

from hades.ingest.parsers import languages
from hades.ingest.parsers.facts import (
    CharOffsets,
    CodeFacts,
    CommentBlocks,
    Lines,
    ModuleImport,
    Span,
    Symbol,
    code_units,
    one_line,
    prose_spans,
    unique_imports,
)
from hades.ingest.parsers.languages import BY_NAME, Language

_MAX_NAME_BYTES = 200
_TYPE_ARGUMENTS = re.compile(r"(?:::)?<[^<>]*>")
_CHAIN = re.compile(r"~?[@$\w]+(?:\.[@$\w]+)*[!?]?")
_RECEIVER = re.compile(r"(\w+)\s*(?:\[[^\]]*\])?\s*\)$")  # the type in Go's `(s *Store[T])`
_BASE_WORDS = re.compile(r"\b(?:extends|implements|public|private|protected|virtual)\b")


def body_of(node: Node) -> Node | None:
    """The body of a definition; that of `typedef struct {...} Name` stands in its type, if that has
    no name.
    """
    if node.type == "type_definition":
        inner = node.child_by_field_name("type")
    else:
        inner = None

    if inner is not None and inner.child_by_field_name("name") is None:
        return inner.child_by_field_name("body")

    return node.child_by_field_name("body")


def dotted(text: str) -> str:
    """`a::b`, `a->b`, `a?.b`, `a.b::<T>` as `a.b`; empty for anything computed or longer than a
    name can be.
    """
    if len(text) > _MAX_NAME_BYTES:
        return ""

    plain = _TYPE_ARGUMENTS.sub("", "".join(text.split()))
    for separator in ("?.", "->", "::"):
        plain = plain.replace(separator, ".")

    plain = plain.strip(".*&")
    return plain if _CHAIN.fullmatch(plain) else ""


_MAX_IMPORT_BYTES = 20_000
_FUNCTION_VALUES = frozenset({"arrow_function", "function_expression", "generator_function"})
# Grammars name what holds statements or members block, body, compound_statement, declaration_list
# and the like.
_BODY = re.compile(
    r"block|body|compound_statement|statement_list|declaration_list|translation_unit|source_file"
    r"|program|then|else|do$"
)
_PACKAGE = re.compile(rb"^\s*package\s+([\w.]+)\s*;", re.MULTILINE)


def parse_code(
    text: str,
    path: str,
    language_name: str,
) -> CodeFacts:
    """The facts of one file. Grammars recover from errors, so broken code still gives what can be
    read.
    """
    language = BY_NAME[language_name]
    encoded = text.encode("utf-8", "surrogatepass")
    reader = _Reader(text, encoded, path, language)
    root = _parser(language_name).parse(encoded).root_node
    reader.read(root)
    return reader.facts(root)


@cache
def _parser(language_name: str) -> Parser:
    language = BY_NAME[language_name]
    module = importlib.import_module(f"tree_sitter_{language.grammar or language.name}")
    return Parser(Grammar(getattr(module, language.loader)()))


@dataclass
class _Scope:
    """A named region; only those with a `kind` are symbols. Offsets are bytes until the facts are
    made.
    """

    names: tuple[str, ...]
    kind: str
    start: int
    end: int
    row: int = 0
    body: int | None = None
    calls: dict[str, Span] = field(default_factory=dict)
    bases: dict[str, None] = field(default_factory=dict)


class _Reader:
    """One walk over the tree; regions close when a node begins beyond their end."""

    def __init__(
        self,
        text: str,
        encoded: bytes,
        path: str,
        language: Language,
    ) -> None:
        self._text, self._data, self._path, self._language = text, encoded, path, language
        self._chars = CharOffsets(encoded)
        self._module = self._prefix = language.module(path)

        if language.name == "java":
            package = _PACKAGE.search(encoded)
        else:
            package = None

        if package:
            self._prefix = package.group(1).decode("ascii", "replace")
            self._module = f"{self._prefix}.{path.rpartition('/')[2].rpartition('.')[0]}"

        self._open: list[_Scope] = []
        self._symbols: list[_Scope] = []
        self._imports: list[ModuleImport] = []
        self._comments = CommentBlocks(text)
        self._traits: dict[str, list[str]] = {}

    def read(self, root: Node) -> None:
        """Visits every node once, in the order of the text."""
        naming = self._language.naming
        noted = self._language.noted

        for node, _ in _walk(root):
            kind = node.type
            if kind in naming:
                self._open_scope(node, kind)
            if kind in noted:
                self._note(node, kind)

    def facts(self, root: Node) -> CodeFacts:
        """Everything found, in the order of the text; a comment right before a symbol is its
        documentation.
        """
        symbols = []
        for scope in self._symbols:
            symbols.append(self._symbol(scope, self._comments.document(scope.row)))

        lines = Lines(self._text)
        units = code_units(
            self._text,
            self._prefix or self._module,
            symbols,
            self._comments.lead_lines(lines),
            lambda: {lines.at(self._chars[byte]) for byte in _statement_starts(root)},
        )
        prose = prose_spans(self._text, self._comments.prose())
        return CodeFacts(
            self._module,
            tuple(symbols),
            unique_imports(self._imports),
            units,
            prose,
        )

    def _open_scope(self, node: Node, kind: str) -> None:
        """Begins a region, unless it stands inside a function: what is defined there belongs to the
        function.
        """
        self._close_before(node.start_byte)
        if self._open and self._open[-1].kind in ("function", "method"):
            return

        language = self._language
        names = self._defined(node)
        body = body_of(node)

        if not names or (kind in language.needs_body and body is None):
            return

        if kind in language.holders:
            value = node.child_by_field_name("value")
            if value is None or value.type not in _FUNCTION_VALUES:
                return

        if self._open:
            outer = self._open[-1]
        else:
            outer = _Scope((), "", 0, 0)

        inside_type = outer.kind in ("class", "implementation")
        if inside_type or len(names) > 1:
            plain = "method"
        else:
            plain = "function"

        kinds = {
            "class": language.classes,
            "implementation": language.implementations,
            "": language.scopes,
        }
        symbol_kind = next(
            (name for name, node_kinds in kinds.items() if kind in node_kinds),
            plain,
        )
        if symbol_kind == "implementation":  # `impl Trait for Type`
            owner, trait = (dotted(self._field(node, name)) for name in ("type", "trait"))
            self._traits.setdefault(owner, []).extend(filter(None, [trait]))

        scope = _Scope(
            names=(*outer.names, *names),
            kind=symbol_kind,
            start=node.start_byte,
            end=node.end_byte,
            row=node.start_point[0],
            body=body.start_byte if body is not None else None,
        )
        self._open.append(scope)
        if symbol_kind in ("class", "function", "method"):
            self._symbols.append(scope)

    def _note(self, node: Node, kind: str) -> None:
        """A call, an import, a comment or the names of base classes."""
        language = self._language
        self._close_before(node.start_byte)

        if kind in language.comments:
            self._comments.add(*self._span(node), node.start_point[0])
            return

        scope = next((outer for outer in reversed(self._open) if outer.kind), None)
        if kind in language.bases and scope is not None:
            scope.bases.update(dict.fromkeys(self._bases(node)))

        needed = language.import_field
        if kind in language.imports and not (needed and node.child_by_field_name(needed) is None):
            text = self._slice(node, _MAX_IMPORT_BYTES)
            self._add_imports(node, language.imported(text, self._path))

        called = self._called(node) if kind in language.calls else ""
        if called == "require" and self._language.import_field:
            arguments = self._field(node, "arguments")
            self._add_imports(node, languages.require(arguments, self._path))
        elif called and scope is not None:
            scope.calls.setdefault(called, self._span(node))

    def _defined(self, node: Node) -> tuple[str, ...]:
        """The name a node gives, in parts where it names its owner: `Store::get`, Go's receiver;
        empty for none.
        """
        if node.type in self._language.implementations:
            return tuple(filter(None, (dotted(self._field(node, "type")),)))

        name = node.child_by_field_name("name") or node.child_by_field_name("property")
        if name is None:
            name = node.child_by_field_name("declarator")
            while name is not None:  # the parts of a C declarator: `*f(int)` -> `f(int)` -> `f`
                inner = name.child_by_field_name("declarator")
                if inner is None and name.type == "reference_declarator":
                    inner = name.named_child(0)
                if inner is None:
                    break

                name = inner

        if name is not None:
            parts = tuple(filter(None, dotted(self._slice(name)).split(".")))
        else:
            parts = ()

        receiver = _RECEIVER.search(self._field(node, "receiver"))
        if receiver and parts:
            return (receiver.group(1), *parts)

        return parts

    def _called(self, node: Node) -> str:
        """What a call calls, with its receiver, as dotted names; empty for anything computed."""
        receiver_field, name_field = self._language.calls[node.type]
        name = dotted(self._field(node, name_field))

        if receiver_field and node.child_by_field_name(receiver_field) is not None:
            receiver = dotted(self._field(node, receiver_field))
            return f"{receiver}.{name}" if receiver and name else ""

        return name

    def _bases(self, node: Node) -> Iterator[str]:
        """Names of a clause such as `extends A<T> implements B, C`."""
        plain = _TYPE_ARGUMENTS.sub("", _BASE_WORDS.sub(",", self._slice(node)))
        yield from filter(None, (dotted(part.strip(" <:\n")) for part in plain.split(",")))

    def _field(self, node: Node, name: str) -> str:
        """The text of a field, if it has one."""
        child = node.child_by_field_name(name)
        return self._slice(child) if child is not None else ""

    def _slice(self, node: Node, limit: int = 2 * _MAX_NAME_BYTES) -> str:
        """The text of a node; empty beyond the limit, where it is no name."""
        if node.end_byte - node.start_byte > limit:
            return ""
        return self._data[node.start_byte : node.end_byte].decode("utf-8", "replace")

    def _add_imports(self, node: Node, facts: Iterable[ModuleImport]) -> None:
        self._imports += [fact._replace(span=self._span(node)) for fact in facts]

    def _span(self, node: Node) -> Span:
        return self._chars[node.start_byte], self._chars[node.end_byte]

    def _close_before(self, byte: int) -> None:
        while self._open and self._open[-1].end <= byte:
            self._open.pop()

    def _symbol(self, scope: _Scope, docstring: str) -> Symbol:
        if self._prefix:
            qualified = ".".join((self._prefix, *scope.names))
        else:
            qualified = ".".join(scope.names)

        start = self._chars[scope.start]
        end = self._chars[scope.end]
        line_end = self._text.find("\n", start, end)
        has_body = scope.body is not None and not self._language.header_is_one_line
        body = self._chars[scope.body or 0] if has_body else line_end
        bases = [
            *scope.bases,
            *(self._traits.get(scope.names[-1], ()) if scope.kind == "class" else ()),
        ]
        return Symbol(
            name=scope.names[-1],
            qualified_name=qualified,
            kind=scope.kind,
            start=start,
            end=end,
            signature=one_line(self._text[start : body if body >= 0 else end]).rstrip("{; "),
            docstring=docstring,
            calls=tuple(scope.calls),
            call_spans=tuple(scope.calls.values()),
            bases=tuple(dict.fromkeys(bases)),
        )


def _walk(root: Node) -> Iterator[tuple[Node, int]]:
    """Every node in the order of the text, and how deep it stands."""
    cursor = root.walk()
    while cursor.node is not None:
        yield cursor.node, cursor.depth
        if not cursor.goto_first_child():
            while not cursor.goto_next_sibling():
                if not cursor.goto_parent():
                    return


def _statement_starts(root: Node) -> Iterator[int]:
    """Bytes at which the members of a body begin; a body is recognised by its node type."""
    in_body = [True]  # by depth
    for node, depth in _walk(root):
        if in_body[depth] and node.is_named:
            yield node.start_byte
        in_body[depth + 1 :] = [_BODY.search(node.type) is not None]
