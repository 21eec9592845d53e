"""Pages that name code: from a passage of Markdown or reStructuredText to each symbol it names, with the place."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from hades.ingest.code.code_corpus import Piece
from hades.ingest.code.edges import code_edge
from hades.ingest.code.names import CodeNames
from schemas.chunks import ChunkKind
from schemas.graph_types import CodeEdgeType

Row = dict[str, Any]
# `Reader`, :class:`~pkg.Reader`, ``pkg.read()``, and dotted names in plain text.
_QUOTED = re.compile(r"`{1,2}[~!]?([^\W\d][\w.]*)(?:\([^`\n]{0,80}\))?`{1,2}")
_DOTTED = re.compile(r"(?<![\w./-])([^\W\d]\w*(?:\.[^\W\d]\w*)+)(?![\w/-])")
_SHORTEST = 3  # a name of fewer letters names nothing in particular


def documentation_edges(document: str, pieces: Sequence[Piece], names: CodeNames) -> list[Row]:
    """Edges of the passages of prose of a document; a short name counts only where one symbol has it."""
    found: dict[str, Row] = {}
    for piece in pieces:
        if piece.kind != ChunkKind.PROSE:
            continue
        begin = piece.span[0]
        for name, start, end in _find_names(piece.text):
            func = names.find(name) or names.find_short(name)
            if func is None:
                continue
            place = (document, [begin + start, begin + end])
            row = code_edge("doc_chunks", piece.key, "funcs", func, CodeEdgeType.DOCUMENTS, place)
            held = found.setdefault(row["_key"], row)
            held["count"] += held is not row
    return list(found.values())


def _find_names(text: str) -> Iterator[tuple[str, int, int]]:
    for pattern in (_QUOTED, _DOTTED):
        for match in pattern.finditer(text):
            name = match.group(1).rstrip(".")
            if len(name) >= _SHORTEST:
                yield name, match.start(1), match.start(1) + len(name)
