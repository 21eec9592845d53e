"""Edges between code: files contain functions, modules import modules, functions import and call functions.

Names are resolved as the language's reader would: the function's own module and class first, then what the module
imported; a name that could be several things, or is none of ours, gives no edge.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from schemas.edges import CodeEdgeType
from schemas.ids import edge_key, node_id

Row = dict[str, Any]


@dataclass(frozen=True)
class CodeDocument:
    """A code file: its document key, file key, what its facts say, and its functions in order of appearance."""

    document: str
    file: str
    code: dict[str, Any]
    funcs: Sequence[tuple[str, str]]  # key, qualified name


@dataclass
class _Index:
    """Where names lead: modules to files, qualified names to functions."""

    modules: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    functions: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))


def contains_edges(documents: Iterable[CodeDocument]) -> list[Row]:
    """File to each of its functions."""
    return [
        _edge(node_id("files", document.file), node_id("funcs", key), CodeEdgeType.CONTAINS)
        for document in documents
        for key, _ in document.funcs
    ]


def import_edges(documents: Sequence[CodeDocument]) -> list[Row]:
    """Module to module, and function to the functions it imports or calls."""
    index = _indexed(documents)
    found: Counter[tuple[str, str, CodeEdgeType]] = Counter()
    for document in documents:
        here = node_id("files", document.file)
        for module, name, *_ in document.code.get("imports", ()):
            for target in _module_files(index, module, name):
                if target != document.file:
                    found[here, node_id("files", target), CodeEdgeType.IMPORTS] += 1
        for source, target, kind in _function_edges(document, index):
            found[source, target, kind] += 1
    return [_edge(source, target, kind, count) for (source, target, kind), count in found.items()]


def resolved_calls(documents: Sequence[CodeDocument]) -> list[tuple[str, str]]:
    """Pairs of function keys, caller and called, each once; for relations between code symbols."""
    index = _indexed(documents)
    pairs = {
        (source.partition("/")[2], target.partition("/")[2])
        for document in documents
        for source, target, kind in _function_edges(document, index)
        if kind is CodeEdgeType.CALLS
    }
    return sorted(pairs)


def resolved_bases(documents: Sequence[CodeDocument]) -> list[tuple[str, str]]:
    """Pairs of function keys, class and the class it extends."""
    index = _indexed(documents)
    pairs = set()
    for document in documents:
        names = _names_in_scope(document)
        for (key, _), symbol in zip(document.funcs, document.code.get("symbols", ()), strict=False):
            for base in symbol.get("bases", ()):
                target = _resolve(base, symbol["qualified_name"], document, names, index)
                if target is not None and target != key:
                    pairs.add((key, target))
    return sorted(pairs)


def symbol_at(funcs: Mapping[str, tuple[str, str, Sequence[int]]]) -> Callable[[str, int], str | None]:
    """The key of the innermost symbol around a character of a document; `funcs`: key -> name, document key, span."""
    spans: dict[str, list[tuple[int, int, str]]] = defaultdict(list)
    for key, (_, document, span) in funcs.items():
        spans[document].append((span[0], -span[1], key))
    for held in spans.values():
        held.sort()

    def find(document: str, position: int) -> str | None:
        held = spans.get(document, [])
        for start, end, key in reversed(held[: bisect_right(held, (position, 1, ""))]):
            if start <= position < -end:
                return key
        return None

    return find


def _function_edges(document: CodeDocument, index: _Index) -> Iterable[tuple[str, str, CodeEdgeType]]:
    names = _names_in_scope(document)
    for (key, _), symbol in zip(document.funcs, document.code.get("symbols", ()), strict=False):
        for call in symbol.get("calls", ()):
            target = _resolve(call, symbol["qualified_name"], document, names, index)
            if target is not None and target != key:
                yield node_id("funcs", key), node_id("funcs", target), CodeEdgeType.CALLS
                if call.partition(".")[0] in names:
                    yield node_id("funcs", key), node_id("funcs", target), CodeEdgeType.IMPORTS


def _indexed(documents: Iterable[CodeDocument]) -> _Index:
    index = _Index()
    for document in documents:
        index.modules[document.code.get("module", "")].append(document.file)
        for key, qualified in document.funcs:
            index.functions[qualified].append(key)
    return index


def _names_in_scope(document: CodeDocument) -> dict[str, str]:
    """What imported names stand for: `from a.b import c as d` makes d mean a.b.c."""
    scope: dict[str, str] = {}
    for module, name, alias, *_ in document.code.get("imports", ()):
        if name is None:
            scope[alias or module.partition(".")[0]] = module if alias else module.partition(".")[0]
        elif name != "*":
            scope[alias or name] = f"{module}.{name}"
    return scope


def _resolve(call: str, caller: str, document: CodeDocument, names: dict[str, str], index: _Index) -> str | None:
    head, _, rest = call.partition(".")
    module = document.code.get("module", "")
    if head in ("self", "cls", "this") and rest:
        candidates = [f"{caller.rpartition('.')[0]}.{rest}"]
    else:
        enclosing = caller.split(".")
        candidates = [".".join([*enclosing[:depth], call]) for depth in range(len(enclosing), 0, -1)]
        candidates.append(f"{module}.{call}" if module else call)
        if head in names:
            candidates.insert(0, f"{names[head]}.{rest}" if rest else names[head])
    for candidate in candidates:
        keys = index.functions.get(candidate)
        if keys:
            return keys[0] if len(keys) == 1 else None
    return None


def _module_files(index: _Index, module: str, name: str | None) -> list[str]:
    """Files an import reaches: the submodule it names, else the module; none when the name is not unique."""
    for candidate in ([f"{module}.{name}"] if name else []) + [module]:
        files = index.modules.get(candidate)
        if files:
            return files if len(files) == 1 else []
    return []


def _edge(source: str, target: str, kind: CodeEdgeType, count: int = 1) -> Row:
    return {
        "_key": edge_key(source, str(kind), target),
        "_from": source,
        "_to": target,
        "type": str(kind),
        "count": count,
    }
