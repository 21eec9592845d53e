"""Python through `ast`: symbols, signatures, docstrings, comments, imports and the names that are
called.
"""

from __future__ import annotations

import ast
import re
import warnings
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import cast

from hades.ingest.parsers.facts import (
    CharOffsets,
    CodeFacts,
    ModuleImport,
    Span,
    Symbol,
    code_units,
    is_worth_reading,
    one_line,
    plain_facts,
    prose_spans,
    unique_imports,
)

_LINE_END = re.compile(rb"\r\n?|\n")
_COMMENT_LINE = re.compile(r"^[ \t\f]*#.*$", re.MULTILINE)
_QUOTED = re.compile(r"""[rRuU]?(\"\"\"|'''|"|')(.*)\1\Z""", re.DOTALL)
_HEADER_TOKEN = re.compile(
    r"""#[^\n]*|\"\"\".*?\"\"\"|'''.*?'''|"[^"\n]*"|'[^'\n]*'|[()\[\]{}:]""",
    re.DOTALL,
)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_DEFINITIONS = (*_FUNCTIONS, ast.ClassDef)
_STRINGS = (ast.Constant, ast.JoinedStr)
_IMPORTS = (ast.Import, ast.ImportFrom)
_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def parse_python(text: str, path: str, module: str) -> CodeFacts:
    """The facts of one file; code that Python itself cannot parse comes back as plain text with the
    reason.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the code's own invalid escapes are not ours to report
            tree = ast.parse(text)
    # Beside syntax errors, `ast` answers NUL characters with ValueError, and nesting beyond its
    # stacks (a thousand
    # `elif`, six thousand `not`) with RecursionError or a MemoryError that has nothing to do with
    # memory.
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return plain_facts(
            text,
            module,
            f"{type(error).__name__}: {error}"[:200],
        )

    return _Reader(
        text,
        tree,
        module,
        path.endswith(("__init__.py", "__init__.pyi")),
    ).facts()


@dataclass
class _Scope:
    """The symbol whose body is being read; functions inside a function belong to it."""

    local_name: str = ""
    qualified_name: str | None = None
    node: _Definition | None = None
    is_function: bool = False
    start: int = 0
    end: int = 0
    calls: dict[str, Span] = field(default_factory=dict)


class _Reader:
    """One walk over the tree, iterative because trees may be deeper than calls can be."""

    def __init__(
        self,
        text: str,
        tree: ast.Module,
        module: str,
        is_package: bool,
    ) -> None:
        encoded = text.encode("utf-8", "surrogatepass")
        self._text, self._tree, self._module = text, tree, module
        self._package = module if is_package else module.rpartition(".")[0]
        self._chars = CharOffsets(encoded)
        self._lines = [0, *[match.end() for match in _LINE_END.finditer(encoded)]]
        self._scopes: list[_Scope] = []
        self._imports: list[tuple[int, int, tuple[ModuleImport, ...]]] = []
        self._prose: list[Span] = []
        self._inside_strings: set[int] = set()
        self._add_docstring(tree)
        bodies: list[tuple[ast.AST, _Scope]] = [(tree, _Scope())]

        while bodies:
            body, scope = bodies.pop()
            bodies += [(inner, self._open(inner, scope)) for inner in self._read_body(body, scope)]

        self._scopes.sort(key=lambda scope: (scope.start, -scope.end))

    def _read_body(self, body: ast.AST, scope: _Scope) -> list[_Definition]:
        """Calls, imports and strings of one symbol; the definitions inside it that are symbols of
        their own.
        """
        inner: list[_Definition] = []
        pending = list(ast.iter_child_nodes(body))

        while pending:
            node = pending.pop()
            if isinstance(node, ast.Call):
                name = _dotted_name(node.func)
                if name:
                    scope.calls[name] = self._span(node.func)
            elif isinstance(node, _STRINGS):
                if node.end_lineno is not None and node.end_lineno > node.lineno:
                    self._inside_strings.update(range(node.lineno + 1, node.end_lineno + 1))
            elif isinstance(node, _DEFINITIONS):
                if not scope.is_function:
                    inner.append(node)
                    continue

                self._add_docstring(node)
            elif isinstance(node, _IMPORTS):
                span = self._span(node)
                facts = tuple(
                    fact._replace(span=span) for fact in self._resolve(node, scope.qualified_name)
                )
                self._imports.append((node.lineno, node.col_offset, facts))

            pending += ast.iter_child_nodes(node)

        return inner

    def facts(self) -> CodeFacts:
        """Everything found, in the order of the text."""
        symbols = [self._symbol(scope) for scope in self._scopes]
        comments = self._comment_blocks()
        leads = set[int]().union(*(range(first - 1, last) for first, last, _, _ in comments))
        units = code_units(
            self._text,
            self._module,
            symbols,
            leads,
            self._statement_lines,
        )
        facts_in_order = (facts for _, _, facts in sorted(self._imports))
        imports = unique_imports(chain.from_iterable(facts_in_order))
        spans = list(self._prose)

        for first, last, start, end in comments:
            if is_worth_reading(
                self._text[start:end],
                last - first + 1,
                at_top=first <= 3,
            ):
                spans.append((start, end))

        prose = prose_spans(self._text, spans)
        return CodeFacts(
            self._module,
            tuple(symbols),
            imports,
            units,
            prose,
        )

    def _statement_lines(self) -> set[int]:
        """Lines on which a statement begins, with its decorators, counted from 0."""
        lines: set[int] = set()
        for node in ast.walk(self._tree):
            if isinstance(node, ast.stmt):
                lines.add(_first_line(node) - 1)

        return lines

    def _open(self, node: _Definition, scope: _Scope) -> _Scope:
        if scope.local_name:
            local = f"{scope.local_name}.{node.name}"
        else:
            local = node.name

        start = self._offset(_first_line(node), node.col_offset)
        end = self._span(node)[1]
        inner = _Scope(
            local_name=local,
            qualified_name=f"{self._module}.{local}",
            node=node,
            is_function=isinstance(node, _FUNCTIONS),
            start=start,
            end=end,
        )
        self._scopes.append(inner)
        self._add_docstring(node)
        return inner

    def _symbol(self, scope: _Scope) -> Symbol:
        node = scope.node
        assert node is not None
        assert scope.qualified_name is not None
        kind = "method" if "." in scope.local_name else "function"
        return Symbol(
            name=node.name,
            qualified_name=scope.qualified_name,
            kind="class" if isinstance(node, ast.ClassDef) else kind,
            start=scope.start,
            end=scope.end,
            signature=self._signature(node),
            docstring=ast.get_docstring(node) or "",
            calls=tuple(reversed(scope.calls)),
            call_spans=tuple(reversed(scope.calls.values())),
            bases=_bases(node) if isinstance(node, ast.ClassDef) else (),
        )

    def _signature(self, node: _Definition) -> str:
        start = self._offset(node.lineno, node.col_offset)
        header = self._text[start : self._offset(node.body[0].lineno, node.body[0].col_offset)]

        depth = 0
        for token in _HEADER_TOKEN.finditer(header):
            sign = token.group()
            depth += (sign in "([{") - (sign in ")]}") if len(sign) == 1 else 0
            if sign == ":" and depth == 0:
                header = header[: token.start()]
                break

        return one_line(header)

    def _add_docstring(self, node: ast.Module | _Definition) -> None:
        if ast.get_docstring(node, clean=False) is None:
            return

        start, end = self._span(cast(ast.Expr, node.body[0]).value)
        quoted = _QUOTED.match(self._text[start:end])
        if quoted:
            start, end = start + quoted.start(2), start + quoted.end(2)

        self._prose.append((start, end))

    def _comment_blocks(self) -> list[list[int]]:
        """Lines that hold nothing but a comment, by blocks: first line, last line, start, end;
        lines from 1.
        """
        starts = [self._chars[byte] for byte in self._lines]

        blocks: list[list[int]] = []
        for match in _COMMENT_LINE.finditer(self._text):
            line = bisect_right(starts, match.start())
            if line in self._inside_strings:
                continue

            if blocks and blocks[-1][1] == line - 1:
                blocks[-1][1], blocks[-1][3] = line, match.end()
            else:
                blocks.append([line, line, match.start(), match.end()])

        return blocks

    def _resolve(
        self,
        node: ast.Import | ast.ImportFrom,
        symbol: str | None,
    ) -> Iterator[ModuleImport]:
        if isinstance(node, ast.Import):
            yield from (ModuleImport(name.name, None, name.asname, symbol) for name in node.names)
            return

        module = node.module or ""
        if node.level:
            parents = self._package.split(".") if self._package else []
            if node.level - 1 < len(parents):
                packages = parents[: len(parents) - (node.level - 1)]
            else:
                packages = []

            module = ".".join([*packages, *([module] if module else [])])

        yield from (ModuleImport(module, name.name, name.asname, symbol) for name in node.names)

    def _span(self, node: ast.expr | ast.stmt) -> Span:
        return self._offset(node.lineno, node.col_offset), self._offset(
            node.end_lineno, node.end_col_offset
        )

    def _offset(self, line: int | None, byte_column: int | None) -> int:
        assert line is not None
        assert byte_column is not None
        return self._chars[self._lines[line - 1] + byte_column]


def _first_line(node: ast.stmt) -> int:
    """The line on which a statement begins, with its decorators."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def _bases(node: ast.ClassDef) -> tuple[str, ...]:
    """Base classes by name, `Generic[T]` as `Generic`."""
    plain = []
    for base in node.bases:
        plain.append(base.value if isinstance(base, ast.Subscript) else base)

    return tuple(filter(None, map(_dotted_name, plain)))


def _dotted_name(node: ast.expr) -> str:
    """`a.b.c` as written, `super().c` included; empty for anything computed."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value

    if isinstance(node, ast.Name):
        names.append(node.id)
    elif (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "super"
        and names
    ):
        names.append("super()")
    else:
        return ""

    return ".".join(reversed(names))


def parse(
    text: str,
    path: str,
    language: str,
    module: str,
) -> CodeFacts:
    """Facts of one file; `module` is given for Python, whose names depend on the folders around the
    file.
    """
    if language == "python":
        return parse_python(text, path, module)

    # Loads the bindings of eight grammars.
    from hades.ingest.parsers.tree_sitter import parse_code

    return parse_code(text, path, language)
