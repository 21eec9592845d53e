"""Pages that name code: from a passage of Markdown or reStructuredText to each symbol it names, with the place."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from hades.ingest.code.edges import FuncSpans, code_edge
from hades.ingest.code.names import CodeNames
from schemas.chunks import ChunkKind
from schemas.graph_types import CodeEdgeType

Row = dict[str, Any]
# `Reader`, :class:`~pkg.Reader`, ``pkg.read()``, and dotted names in plain text.
_QUOTED = re.compile(r"`{1,2}[~!]?([^\W\d][\w.]*)(?:\([^`\n]{0,80}\))?`{1,2}")
_DOTTED = re.compile(r"(?<![\w./-])([^\W\d]\w*(?:\.[^\W\d]\w*)+)(?![\w/-])")
_SHORTEST = 3  # a name of fewer letters names nothing in particular


def documentation_edges(chunks: pa.Table, names: CodeNames, funcs: FuncSpans) -> list[Row]:
    """Edges of all passages of prose; a short name counts only where one symbol has it."""
    short = _short_names(funcs)
    found: dict[str, Row] = {}
    columns = (chunks.column(name).to_pylist() for name in ("_key", "document", "text", "span", "kind"))
    for key, document, text, span, kind in zip(*columns, strict=True):
        if kind != ChunkKind.PROSE or not short:
            continue
        for name, start, end in _find_names(text):
            func = names.find(name) or short.get(name)
            if func is None:
                continue
            place = (document.partition("/")[2], [span[0] + start, span[0] + end])
            row = code_edge("doc_chunks", key, "funcs", func, CodeEdgeType.DOCUMENTS, place)
            held = found.setdefault(row["_key"], row)
            held["count"] += held is not row
    return list(found.values())


def _find_names(text: str) -> Iterator[tuple[str, int, int]]:
    for pattern in (_QUOTED, _DOTTED):
        for match in pattern.finditer(text):
            name = match.group(1).rstrip(".")
            if len(name) >= _SHORTEST:
                yield name, match.start(1), match.start(1) + len(name)


def _short_names(funcs: FuncSpans) -> dict[str, str]:
    """Last one and last two parts of qualified names, where they mean one symbol."""
    meant: dict[str, set[str]] = defaultdict(set)
    first: dict[str, str] = {}
    for key, (qualified, _, _) in sorted(funcs.items()):
        parts: Sequence[str] = qualified.split(".")
        first.setdefault(qualified, key)
        for length in (1, 2):
            if len(parts) > length:
                meant[".".join(parts[-length:])].add(qualified)
    return {name: first[next(iter(which))] for name, which in meant.items() if len(which) == 1}
