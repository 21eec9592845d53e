"""What the reader of names sees of code: docstrings and comments. The rest is blanked, so that positions stay."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from schemas.ids import node_id

_VISIBLE = re.compile(r"\S")
_BLANKED = bytes(byte if chr(byte).isspace() else 32 for byte in range(128)) + bytes(128)
_PROSE = re.compile(r'"prose":(\[(?:\[[0-9]+,[0-9]+\],?)*\])')
_MARK = '"prose":['  # only facts of code hold it; documents without it are not parsed


def blank_code(chunks: pa.Table, documents: pa.Table) -> pa.Table:
    """The same chunks with code replaced by spaces; chunks of documents that are prose stay as they are."""
    prose = _prose_of(documents)
    if not prose:
        return chunks
    starts = {owner: [start for start, _ in spans] for owner, spans in prose.items()}
    texts = chunks.column("text").to_pylist()
    owners = chunks.column("document").to_pylist()
    begins = pc.list_element(chunks.column("span"), 0).to_pylist()
    for row, (owner, begin) in enumerate(zip(owners, begins, strict=True)):
        spans = prose.get(owner)
        if spans is not None:
            first = max(0, bisect_left(starts[owner], begin) - 1)
            texts[row] = _blank(texts[row], begin, islice(spans, first, None))
    index = chunks.schema.get_field_index("text")
    return chunks.set_column(index, "text", pa.array(texts, chunks.schema.field("text").type))


def _prose_of(documents: pa.Table) -> dict[str, list[list[int]]]:
    """The spans of prose of each document that has code, by its id."""
    found: dict[str, list[list[int]]] = {}
    marked = documents.select(["_key", "facts"]).filter(pc.match_substring(documents.column("facts"), _MARK))
    for key, text in zip(marked.column("_key").to_pylist(), marked.column("facts").to_pylist(), strict=True):
        spans = _read_prose(text)
        if spans is not None:
            found[node_id("documents", key)] = spans
    return found


def _read_prose(facts: str) -> list[list[int]] | None:
    """The spans that facts of code or of a commit state.

    Facts of a large file take long to parse, so only the list itself is, where the mark stands once. Inside a text its
    quotes would be escaped, so it is a name. Facts of another form are parsed whole.
    """
    is_code = facts.startswith('{"code":{') and '"commit":{' not in facts
    if is_code and facts.count(_MARK) == 1 and (listed := _PROSE.search(facts)):
        spans: list[list[int]] = orjson.loads(listed.group(1))
        return spans
    told = orjson.loads(facts)
    code: dict[str, Any] = told.get("code") or told.get("commit") or {}
    return code.get("prose")


def _blank(text: str, begin: int, spans: Iterable[Sequence[int]]) -> str:
    """The text of a chunk that begins at `begin` with all but the spans blanked; they are in order."""
    parts: list[str] = []
    place, end = begin, begin + len(text)
    for start, stop in spans:
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
