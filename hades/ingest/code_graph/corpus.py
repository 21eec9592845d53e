"""Code files as edges are made from them: what their facts say, their symbols and their chunks."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from operator import itemgetter
from typing import NamedTuple

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from hades.ingest.entities.describe import MAX_CHARS
from hades.ingest.entities.tables import values_of
from hades.ingest.nodes import func_keys
from hades.ingest.stated_edges import find_symbol
from hades.text.sentences import first_sentence
from schemas.ids import key_of, node_id
from schemas.record import JsonObject

_TEST_PATH = re.compile(
    r"(?:^|/)(?:tests?|testing|spec|__tests__)/|(?:^|/)(?:test_[^/]*|[^/]*_test|conftest)\.\w+$"
)


@dataclass(frozen=True)
class CodeDocument:
    """A code file: its document key, file key, what its facts say, and its functions in order of
    appearance.
    """

    document: str
    file: str
    code: JsonObject
    funcs: Sequence[tuple[str, str]]  # key, qualified name
    spans: Mapping[str, Sequence[int]]  # of each function, by key

    @property
    def module(self) -> str:
        """The name it is imported by."""
        return str(self.code.get("module", ""))

    @cached_property
    def is_test(self) -> bool:
        """Whether its path is that of a test."""
        return _TEST_PATH.search(str(self.code.get("path", ""))) is not None

    @cached_property
    def scope(self) -> dict[str, str]:
        """What imported names stand for: `from a.b import c as d` makes d mean a.b.c."""
        scope: dict[str, str] = {}
        for module, name, alias, *_ in self.code.get("imports", ()):
            if name is None:
                package = module if alias else module.partition(".")[0]
                scope[alias or package] = package
            elif name != "*":
                scope[alias or name] = f"{module}.{name}"

        return scope

    def symbols(self) -> Iterable[tuple[str, JsonObject]]:
        """Key and facts of each symbol."""
        for (key, _), symbol in zip(self.funcs, self.code.get("symbols", ()), strict=False):
            yield key, symbol


class Piece(NamedTuple):
    """A chunk of a document."""

    key: str
    text: str
    span: Sequence[int]
    symbol: str | None
    kind: str


class ReadDocument(NamedTuple):
    """A document with its chunks, and what it says where it is a code file."""

    key: str
    code: CodeDocument | None
    pieces: Sequence[Piece]


def read_documents(
    documents: pa.Table,
    chunks: pa.Table,
    funcs: pa.Table,
    file_of: Mapping[str, str],
) -> Iterator[ReadDocument]:
    """All documents in order of their keys; `file_of`: document key -> file key."""
    pieces: dict[str, list[Piece]] = defaultdict(list)
    for owner, *piece in values_of(
        chunks,
        "document",
        "_key",
        "text",
        "span",
        "symbol",
        "kind",
    ):
        pieces[key_of(owner)].append(Piece(*piece))

    spans: dict[str, dict[str, Sequence[int]]] = defaultdict(dict)
    for owner, key, span in values_of(funcs, "document", "_key", "span"):
        spans[key_of(owner)][key] = span

    for row in documents.select(["_key", "facts"]).sort_by("_key").to_pylist():
        key = row["_key"]
        code = None
        if key in file_of:
            stated = orjson.loads(row["facts"])["code"]
            names = []
            for symbol in stated.get("symbols", ()):
                names.append(symbol["qualified_name"])

            keyed = list(zip(func_keys(key, names), names, strict=True))
            code = CodeDocument(
                key,
                file_of[key],
                stated,
                keyed,
                spans[key],
            )

        yield ReadDocument(key, code, sorted(pieces[key]))


_VISIBLE = re.compile(r"\S")
_MARK = '"prose":['  # only facts of code hold it; documents without it are not parsed


def blank_code(chunks: pa.Table, documents: pa.Table) -> pa.Table:
    """The same chunks with spaces for code that is no docstring or comment, so positions stay;
    prose stays as it is.
    """
    prose = _prose_of(documents)
    if not prose:
        return chunks

    texts = chunks["text"].to_pylist()
    owners = chunks["document"].to_pylist()
    begins = pc.list_element(chunks["span"], 0).to_pylist()

    for row, (owner, begin) in enumerate(zip(owners, begins, strict=True)):
        spans = prose.get(owner)
        if spans is not None:
            first = max(0, bisect_left(spans, begin, key=itemgetter(0)) - 1)
            texts[row] = _blank(
                texts[row],
                begin,
                islice(spans, first, None),
            )

    index = chunks.schema.get_field_index("text")
    return chunks.set_column(
        index,
        "text",
        pa.array(texts, chunks.schema.field("text").type),
    )


def _prose_of(documents: pa.Table) -> dict[str, list[list[int]]]:
    """The spans of prose of each document that has code, by its id."""
    prose: dict[str, list[list[int]]] = {}
    marked = documents.filter(pc.match_substring(documents["facts"], _MARK))

    for key, text in values_of(marked, "_key", "facts"):
        facts = orjson.loads(text)
        spans = (facts.get("code") or facts.get("commit") or {}).get("prose")
        if spans is not None:
            prose[node_id("documents", key)] = spans

    return prose


def _blank(
    text: str,
    begin: int,
    spans: Iterable[Sequence[int]],
) -> str:
    """The text of a chunk that begins at `begin` with all but the spans blanked; they are in
    order.
    """
    parts: list[str] = []
    place = begin
    end = begin + len(text)

    for start, stop in spans:
        if start >= end:
            break

        start = max(start, place)
        stop = min(stop, end)
        if start < stop:
            parts.append(_VISIBLE.sub(" ", text[place - begin : start - begin]))
            parts.append(text[start - begin : stop - begin])
            place = stop

    parts.append(_VISIBLE.sub(" ", text[place - begin :]))
    return "".join(parts)


def with_docstrings(
    entities: pa.Table,
    funcs: pa.Table,
    symbols: Mapping[str, str],
    paths: Mapping[str, str],
) -> pa.Table:
    """The entities, those of documented symbols with a summary from their documentation.

    `funcs` have qualified_name, document and docstring; `symbols` are entity ids by name, `paths`
    those of documents.
    """
    summaries: dict[str, str] = {}
    for name, document, docstring in values_of(
        funcs,
        "qualified_name",
        "document",
        "docstring",
    ):
        summary = summarise_docstring(docstring) if docstring else ""
        entity = find_symbol(
            symbols,
            name,
            paths.get(key_of(document), ""),
        )
        if entity and summary:
            summaries.setdefault(key_of(entity), summary)

    if not summaries:
        return entities

    rows = values_of(entities, "_key", "summary")
    texts = pa.array([summaries.get(key, stored) for key, stored in rows], pa.string())
    return entities.set_column(
        entities.schema.get_field_index("summary"),
        "summary",
        texts,
    )


def summarise_docstring(docstring: str) -> str:
    """The first sentence of the first paragraph, on one line; empty when it is longer than a
    summary may be.
    """
    paragraph = " ".join(docstring.strip().partition("\n\n")[0].split())
    if ". " in paragraph:
        sentence = first_sentence(paragraph)
    else:
        sentence = paragraph

    return sentence if len(sentence) <= MAX_CHARS else ""
