"""Every edge of code and history as tables, from documents, chunks, files and symbols together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import orjson
import pyarrow as pa

from hades.ingest.code.documentation_edges import documentation_edges
from hades.ingest.code.edges import FuncSpans, code_edge, contains_edges, find_pairs, import_edges, symbol_at
from hades.ingest.code.history_edges import commit_rows, find_touched_edges, together_edges
from hades.ingest.code.names import CodeDocument, CodeNames
from hades.ingest.nodes import func_keys
from hades.ingest.stated_edges import find_symbol
from hades.ingest.workers.arrow_bytes import from_bytes
from schemas.catalogue import collection_named
from schemas.edges import MentionType
from schemas.graph_types import CodeEdgeType
from schemas.ids import edge_key, node_id

Row = dict[str, Any]
CODE_COLLECTIONS = ("contains", "imports", "chunk_code_edges")
_COLUMNS = ("_key", "_from", "_to", "type", "count", "weight", "provenance", "valid_from")


@dataclass(frozen=True)
class CodeCorpus:
    """What code edges are made from. `files`: document key -> file key."""

    code: Sequence[CodeDocument]
    funcs: FuncSpans
    files: Mapping[str, str]

    @cached_property
    def names(self) -> CodeNames:
        """What names in the code mean."""
        return CodeNames(self.code)

    @cached_property
    def paths(self) -> dict[str, str]:
        """The path of each document."""
        return {one.document: str(one.code.get("path", "")) for one in self.code}

    @cached_property
    def import_edges(self) -> list[Row]:
        """Edges of imports, calls, base classes, overrides and tests; resolving names takes time and is done once."""
        return import_edges(self.code, self.names, self.funcs)

    @cached_property
    def calls(self) -> list[tuple[str, str]]:
        """Pairs of symbols: caller and called."""
        return find_pairs(self.import_edges, CodeEdgeType.CALLS)

    @cached_property
    def bases(self) -> list[tuple[str, str]]:
        """Pairs of symbols: a class and the class it extends."""
        return find_pairs(self.import_edges, CodeEdgeType.INHERITS)


@dataclass(frozen=True)
class CodeDerivation:
    """What follows from code: the edge collections, and what relations between symbols are made from."""

    tables: dict[str, pa.Table]
    funcs: FuncSpans
    paths: dict[str, str]  # of each document
    calls: list[tuple[str, str]]
    bases: list[tuple[str, str]]
    owners: dict[str, str]  # chunk -> the symbol that it is a unit of


def derive_code(documents: pa.Table, chunks: pa.Table, funcs: pa.Table, files: pa.Table) -> CodeDerivation:
    """The collections contains, imports and chunk_code_edges as they should be.

    `chunks` have _key, document, text, span, symbol and kind; `documents` _key, origin, created, length and facts;
    `funcs` _key, qualified_name, document and span; `files` _key and document.
    """
    corpus = _read_corpus(documents, funcs, files)
    commits = commit_rows(documents, chunks, corpus.files)
    of_file = {file: document for document, file in corpus.files.items()}
    units, owners = _units(corpus, chunks)
    tables = {
        "contains": _table("contains", contains_edges(corpus.code, corpus.funcs)),
        "imports": _table("imports", [*corpus.import_edges, *together_edges(commits)]),
        "chunk_code_edges": _table(
            "chunk_code_edges",
            [
                *units,
                *documentation_edges(chunks, corpus.names, corpus.funcs),
                *find_touched_edges(commits, of_file, corpus.funcs),
            ],
        ),
    }
    return CodeDerivation(tables, corpus.funcs, corpus.paths, corpus.calls, corpus.bases, owners)


def derive_code_bytes(documents: bytes, chunks: bytes, funcs: bytes, files: bytes) -> CodeDerivation:
    """`derive_code` as a worker process calls it."""
    return derive_code(from_bytes(documents), from_bytes(chunks), from_bytes(funcs), from_bytes(files))


def symbol_mentions(corpus: CodeDerivation, symbol_entity: Mapping[str, str]) -> pa.Table:
    """Each unit of code mentions the entity of its own symbol."""
    rows = []
    for chunk, func in corpus.owners.items():
        name, document, _ = corpus.funcs[func]
        entity = find_symbol(symbol_entity, name, corpus.paths[document])
        if entity:
            tail, kind = node_id("doc_chunks", chunk), str(MentionType.MENTIONS)
            rows.append({"_key": edge_key(tail, kind, entity), "_from": tail, "_to": entity, "type": kind, "count": 1})
    declared = collection_named("mentions")
    assert declared is not None
    schema = pa.schema([declared.schema.field(name) for name in ("_key", "_from", "_to", "type", "count")])
    return pa.Table.from_pylist(rows, schema=schema)


def _read_corpus(documents: pa.Table, funcs: pa.Table, files: pa.Table) -> CodeCorpus:
    spans = {
        row["_key"]: (row["qualified_name"], row["document"].partition("/")[2], row["span"])
        for row in funcs.to_pylist()
    }
    file_of = {row["document"].partition("/")[2]: row["_key"] for row in files.to_pylist()}
    facts = zip(documents.column("_key").to_pylist(), documents.column("facts").to_pylist(), strict=True)
    code = [_code_document(key, file_of[key], orjson.loads(text)["code"]) for key, text in facts if key in file_of]
    return CodeCorpus(code, spans, file_of)


def _code_document(document: str, file: str, code: dict[str, Any]) -> CodeDocument:
    names = [symbol["qualified_name"] for symbol in code.get("symbols", ())]
    return CodeDocument(document, file, code, list(zip(func_keys(document, names), names, strict=True)))


def _units(corpus: CodeCorpus, chunks: pa.Table) -> tuple[list[Row], dict[str, str]]:
    """A chunk that is a unit of a function or class belongs to it: the innermost one around its last character."""
    inside = symbol_at(corpus.funcs)
    rows = []
    owners: dict[str, str] = {}
    columns = (chunks.column(name).to_pylist() for name in ("_key", "document", "span", "symbol"))
    for key, document, span, symbol in zip(*columns, strict=True):
        owner = document.partition("/")[2]
        func = inside(owner, span[1] - 1) if symbol else None
        if func:
            owners[key] = func
            rows.append(code_edge("doc_chunks", key, "funcs", func, CodeEdgeType.DESCRIBES, (owner, span)))
    return rows, owners


def _table(collection: str, rows: Sequence[Row]) -> pa.Table:
    declared = collection_named(collection)
    assert declared is not None
    schema = pa.schema([pa.field(name, declared.schema.field(name).type) for name in _COLUMNS])
    return pa.Table.from_pylist(list(rows), schema=schema)
