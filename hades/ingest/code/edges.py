"""Edges between code: contains, imports, calls, inherits, overrides and tests, each with the place it was read in."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from hades.ingest.code.names import CodeDocument, CodeNames
from schemas.graph_types import CodeEdgeType
from schemas.ids import edge_key, node_id

Row = dict[str, Any]
FuncSpans = Mapping[str, tuple[str, str, Sequence[int]]]  # func key -> qualified name, document key, span
_Ends = tuple[str, str, str, str, CodeEdgeType]  # collection and key of both ends, and the kind
_Place = tuple[str, Sequence[int]]  # document key and span
_TEST_PATH = re.compile(r"(?:^|/)(?:tests?|testing|spec|__tests__)/|(?:^|/)(?:test_[^/]*|[^/]*_test|conftest)\.\w+$")
_TEST_NAME = re.compile(r"^test_|_test$|^test(?=[A-Z])|\.(?:test|spec)$|Test$")


def contains_edges(documents: Iterable[CodeDocument], funcs: FuncSpans) -> list[Row]:
    """File to each of its symbols, class to each of its members."""
    rows = []
    for document in documents:
        keys = {qualified: key for key, qualified in reversed(document.funcs)}
        for key, qualified in document.funcs:
            place = _place(funcs, key)
            rows.append(code_edge("files", document.file, "funcs", key, CodeEdgeType.CONTAINS, place))
            owner = keys.get(qualified.rpartition(".")[0])
            if owner and owner != key:
                rows.append(code_edge("funcs", owner, "funcs", key, CodeEdgeType.CONTAINS, place))
    return rows


def import_edges(documents: Sequence[CodeDocument], names: CodeNames, funcs: FuncSpans) -> list[Row]:
    """Module to module; symbol to what it imports, calls, inherits from or overrides; test to what it tests."""
    count: dict[_Ends, int] = {}
    places: dict[_Ends, _Place] = {}
    for ends, place in _all_edges(documents, names, funcs):
        if ends in count:
            count[ends] += 1
        else:
            count[ends], places[ends] = 1, place
    return [code_edge(*ends, places[ends], times) for ends, times in count.items()]


def find_pairs(edges: Iterable[Row], kind: CodeEdgeType) -> list[tuple[str, str]]:
    """Pairs of function keys that edges of a kind join, sorted; for relations between code symbols."""
    wanted = str(kind)
    ends = ((row["_from"], row["_to"]) for row in edges if row["type"] == wanted)
    return sorted((tail.partition("/")[2], head.partition("/")[2]) for tail, head in ends)


def symbol_at(funcs: FuncSpans) -> Callable[[str, int], str | None]:
    """The key of the innermost symbol around a character of a document."""
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


def is_test(path: str) -> bool:
    """Whether a path is that of a test."""
    return _TEST_PATH.search(path) is not None


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


def _all_edges(documents: Sequence[CodeDocument], names: CodeNames, funcs: FuncSpans) -> Iterator[tuple[_Ends, _Place]]:
    targets = _TestTargets(documents)
    for document in documents:
        yield from _module_imports(document, names)
        in_test = is_test(str(document.code.get("path", "")))
        for caller, called, call, span in _calls(document, names):
            place = (document.document, span) if span else _place(funcs, caller)
            yield ("funcs", caller, "funcs", called, CodeEdgeType.CALLS), place
            if names.is_imported(call, document):
                yield ("funcs", caller, "funcs", called, CodeEdgeType.IMPORTS), place
            if in_test and funcs[called][1] != document.document and called not in targets.test_symbols:
                yield ("funcs", caller, "funcs", called, CodeEdgeType.TESTS), place
        for child, parent in _bases(document, names):
            yield ("funcs", child, "funcs", parent, CodeEdgeType.INHERITS), _place(funcs, child)
        yield from _overrides(document, names, funcs)
        target = targets.tested(document) if in_test else None
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


def _overrides(document: CodeDocument, names: CodeNames, funcs: FuncSpans) -> Iterator[tuple[_Ends, _Place]]:
    """A method to the nearest method of its name in a base class."""
    for key, symbol in document.symbols():
        if symbol.get("kind") != "method":
            continue
        owner, _, method = symbol["qualified_name"].rpartition(".")
        for base in names.ancestors(owner):
            target = names.find(f"{base}.{method}")
            if target is not None and target != key:
                yield ("funcs", key, "funcs", target, CodeEdgeType.OVERRIDES), _place(funcs, key)
                break


class _TestTargets:
    """Files by the last part of their module, to pair `test_reader` with `reader`."""

    def __init__(self, documents: Sequence[CodeDocument]) -> None:
        self._files: dict[str, list[str]] = defaultdict(list)
        self.test_symbols: set[str] = set()
        for document in documents:
            if is_test(str(document.code.get("path", ""))):
                self.test_symbols.update(key for key, _ in document.funcs)
            elif document.module:
                self._files[document.module.rpartition(".")[2].lower()].append(document.file)

    def tested(self, document: CodeDocument) -> str | None:
        """The one file that a test is named after."""
        name = document.module.rpartition(".")[2]
        files = self._files.get(_TEST_NAME.sub("", name).lower(), [])
        return files[0] if _TEST_NAME.search(name) and len(files) == 1 else None


def _place(funcs: FuncSpans, key: str) -> _Place:
    _, document, span = funcs[key]
    return document, span
