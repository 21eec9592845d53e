"""Edges that one code file states: contains, imports, calls, inherits, overrides and tests, each with its place."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from hades.ingest.code.code_document import CodeDocument
from hades.ingest.code.names import CodeNames
from schemas.graph_types import CodeEdgeType
from schemas.ids import edge_key, node_id

Row = dict[str, Any]
_Ends = tuple[str, str, str, str, CodeEdgeType]  # collection and key of both ends, and the kind
_Place = tuple[str, Sequence[int]]  # document key and span
_TEST_NAME = re.compile(r"^test_|_test$|^test(?=[A-Z])|\.(?:test|spec)$|Test$")


def contains_edges(document: CodeDocument) -> list[Row]:
    """File to each of its symbols, class to each of its members."""
    rows = []
    keys = {qualified: key for key, qualified in reversed(document.funcs)}
    for key, qualified in document.funcs:
        place = _place(document, key)
        rows.append(code_edge("files", document.file, "funcs", key, CodeEdgeType.CONTAINS, place))
        owner = keys.get(qualified.rpartition(".")[0])
        if owner and owner != key:
            rows.append(code_edge("funcs", owner, "funcs", key, CodeEdgeType.CONTAINS, place))
    return rows


def import_edges(document: CodeDocument, names: CodeNames) -> list[Row]:
    """Module to module; symbol to what it imports, calls, inherits from or overrides; test to what it tests."""
    count: dict[_Ends, int] = {}
    places: dict[_Ends, _Place] = {}
    for ends, place in _all_edges(document, names):
        if ends in count:
            count[ends] += 1
        else:
            count[ends], places[ends] = 1, place
    return [code_edge(*ends, places[ends], times) for ends, times in count.items()]


def symbol_at(document: CodeDocument) -> Callable[[int], str | None]:
    """The key of the innermost symbol around a character."""
    held = sorted((span[0], -span[1], key) for key, span in document.spans.items())

    def find(position: int) -> str | None:
        for start, end, key in reversed(held[: bisect_right(held, (position, 1, ""))]):
            if start <= position < -end:
                return key
        return None

    return find


def code_edge(
    source: str,
    source_key: str,
    target: str,
    target_key: str,
    kind: CodeEdgeType,
    place: _Place | None,
    count: int = 1,
) -> Row:
    """One row; `place` is the document key and the span it was read in."""
    tail, head = node_id(source, source_key), node_id(target, target_key)
    return {
        "_key": edge_key(tail, str(kind), head),
        "_from": tail,
        "_to": head,
        "type": str(kind),
        "count": count,
        "provenance": {"doc": node_id("documents", place[0]), "span": list(place[1])} if place else None,
    }


def _all_edges(document: CodeDocument, names: CodeNames) -> Iterator[tuple[_Ends, _Place]]:
    yield from _module_imports(document, names)
    for caller, called, call, span in _calls(document, names):
        place = (document.document, span) if span else _place(document, caller)
        yield ("funcs", caller, "funcs", called, CodeEdgeType.CALLS), place
        if call.partition(".")[0] in document.scope:
            yield ("funcs", caller, "funcs", called, CodeEdgeType.IMPORTS), place
        if document.is_test and called not in document.spans and not names.is_in_test(called):
            yield ("funcs", caller, "funcs", called, CodeEdgeType.TESTS), place
    for child, parent in _bases(document, names):
        yield ("funcs", child, "funcs", parent, CodeEdgeType.INHERITS), _place(document, child)
    yield from _overrides(document, names)
    target = _tested_file(document, names) if document.is_test else None
    if target is not None:
        yield ("files", document.file, "files", target, CodeEdgeType.TESTS), (document.document, [0, 0])


def _module_imports(document: CodeDocument, names: CodeNames) -> Iterator[tuple[_Ends, _Place]]:
    for module, name, _, _, *span in document.code.get("imports", ()):
        target = names.file_of(module, name)
        if target is not None and target != document.file:
            place = (document.document, span or [0, 0])
            yield ("files", document.file, "files", target, CodeEdgeType.IMPORTS), place


def _calls(document: CodeDocument, names: CodeNames) -> Iterator[tuple[str, str, str, list[int]]]:
    """Caller, called, the name as written, and where it stands; facts of older stores have no place."""
    for key, symbol in document.symbols():
        for one in symbol.get("calls", ()):
            call, span = (one, []) if isinstance(one, str) else (one[0], one[1:])
            target = names.resolve(call, symbol["qualified_name"], document)
            if target is not None and target != key:
                yield key, target, call, span


def _bases(document: CodeDocument, names: CodeNames) -> Iterator[tuple[str, str]]:
    for key, symbol in document.symbols():
        for base in symbol.get("bases", ()):
            target = names.resolve(base, symbol["qualified_name"], document)
            if target is not None and target != key:
                yield key, target


def _overrides(document: CodeDocument, names: CodeNames) -> Iterator[tuple[_Ends, _Place]]:
    """A method to the nearest method of its name in a base class."""
    for key, symbol in document.symbols():
        if symbol.get("kind") != "method":
            continue
        owner, _, method = symbol["qualified_name"].rpartition(".")
        for base in names.ancestors(owner):
            target = names.find(f"{base}.{method}")
            if target is not None and target != key:
                yield ("funcs", key, "funcs", target, CodeEdgeType.OVERRIDES), _place(document, key)
                break


def _tested_file(document: CodeDocument, names: CodeNames) -> str | None:
    """The one file that a test is named after: `test_reader` is a test of `reader`."""
    name = document.module.rpartition(".")[2]
    return names.tested_file(_TEST_NAME.sub("", name).lower()) if _TEST_NAME.search(name) else None


def _place(document: CodeDocument, key: str) -> _Place:
    return document.document, document.spans[key]
