"""What the reader of names sees of code: docstrings and comments. The rest is blanked, so that positions stay."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

_VISIBLE = re.compile(r"\S")
_BLANKED = bytes(byte if chr(byte).isspace() else 32 for byte in range(128)) + bytes(128)
_MARK = '"prose":['  # only facts of code hold it; documents without it are not parsed


def blank_code(chunks: pa.Table, documents: pa.Table) -> pa.Table:
    """The same chunks with code replaced by spaces; chunks of documents that are prose stay as they are."""
    prose = _prose_of(documents)
    if not prose:
        return chunks
    texts = chunks.column("text").to_pylist()
    owners = chunks.column("document").to_pylist()
    begins = pc.list_element(chunks.column("span"), 0).to_pylist()
    for row, (owner, begin) in enumerate(zip(owners, begins, strict=True)):
        spans = prose.get(owner.partition("/")[2])
        if spans is not None:
            texts[row] = _blank(texts[row], begin, spans)
    index = chunks.schema.get_field_index("text")
    return chunks.set_column(index, "text", pa.array(texts, chunks.schema.field("text").type))


def _prose_of(documents: pa.Table) -> dict[str, list[list[int]]]:
    found: dict[str, list[list[int]]] = {}
    marked = documents.select(["_key", "facts"]).filter(pc.match_substring(documents.column("facts"), _MARK))
    for key, text in zip(marked.column("_key").to_pylist(), marked.column("facts").to_pylist(), strict=True):
        facts = orjson.loads(text)
        code: dict[str, Any] = facts.get("code") or facts.get("commit") or {}
        if "prose" in code:
            found[key] = code["prose"]
    return found


def _blank(text: str, begin: int, spans: Sequence[Sequence[int]]) -> str:
    """The text of a chunk that begins at `begin` with all but the spans blanked."""
    parts: list[str] = []
    place, end = begin, begin + len(text)
    first = max(0, bisect_left(spans, begin, key=lambda span: span[0]) - 1)
    for start, stop in spans[first:]:
        if start >= end:
            break
        start, stop = max(start, place), min(stop, end)
        if start < stop:
            parts += [_blanks(text[place - begin : start - begin]), text[start - begin : stop - begin]]
            place = stop
    parts.append(_blanks(text[place - begin :]))
    return "".join(parts)


def _blanks(text: str) -> str:
    """The text with every visible character replaced by a space; ASCII takes a table of bytes, which is faster."""
    return text.encode().translate(_BLANKED).decode() if text.isascii() else _VISIBLE.sub(" ", text)
