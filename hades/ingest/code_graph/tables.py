"""All edges of code as tables, and what they say of the entities of symbols."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hades.ingest.code_graph.corpus import ReadDocument, read_documents
from hades.ingest.code_graph.edges import (
    CommitRow,
    code_edge,
    commit_rows,
    contains_edges,
    documentation_edges,
    import_edges,
    symbol_at,
    together_edges,
    touched_edges,
)
from hades.ingest.code_graph.names import CodeNames
from hades.ingest.entities.tables import edge_columns, fill
from hades.ingest.stated_edges import find_symbol
from hades.text.words import Longs
from schemas.catalogue import columns_schema
from schemas.edges import MentionType, Provenance
from schemas.nodes import CodeEdgeType, RelationType
from schemas.record import arrow_schema

# Every edge of code and history as tables.


Row = dict[str, Any]
CODE_COLLECTIONS = ("contains", "imports", "chunk_code_edges")
_COLUMNS = ("_key", "_from", "_to", "type", "count", "weight", "provenance", "valid_from")


@dataclass(frozen=True)
class CodeDerivation:
    """What follows from code: the edge collections, and what relations between symbols are made from."""

    tables: dict[str, pa.Table]
    funcs: pa.Table  # _key, qualified_name, document and span, in order of the keys
    paths: dict[str, str]  # of each document


def derive_code(documents: pa.Table, chunks: pa.Table, funcs: pa.Table, files: pa.Table) -> CodeDerivation:
    """The collections contains, imports and chunk_code_edges as they should be; rows may come in any order.

    `chunks` have _key, document, text, span, symbol and kind; `documents` _key, origin, created, length and facts;
    `funcs` _key, qualified_name, document and span; `files` _key, document and path.
    """
    owned = [(row["document"].partition("/")[2], row["_key"], row["path"]) for row in files.to_pylist()]
    file_of = {document: file for document, file, _ in owned}
    commits = commit_rows(documents, chunks)
    commit_of = {commit.document: commit for commit in commits}
    read = list(read_documents(documents, chunks, funcs, file_of))
    names = CodeNames(one.code for one in read if one.code)
    rows: dict[str, list[Row]] = {name: [] for name in CODE_COLLECTIONS}
    for document in read:
        for name, found in _edges_of(document, commit_of.get(document.key), names).items():
            rows[name] += found
    rows["imports"] += together_edges(commits, file_of)
    tables = {name: _table(name, found) for name, found in rows.items()}
    return CodeDerivation(tables, funcs.sort_by("_key"), {document: path for document, _, path in owned})


def _edges_of(document: ReadDocument, commit: CommitRow | None, names: CodeNames) -> dict[str, list[Row]]:
    """All edges that one document states, by collection."""
    code = document.code
    units = _units(document) if code else []
    documented = documentation_edges(document.key, document.pieces, names)
    touched = touched_edges(commit, names) if commit else []
    return {
        "contains": contains_edges(code) if code else [],
        "imports": import_edges(code, names) if code else [],
        "chunk_code_edges": [*units, *documented, *touched],
    }


def _units(document: ReadDocument) -> list[Row]:
    """A chunk that is a unit of a function or class belongs to it: the innermost one around its last character."""
    assert document.code is not None
    inside = symbol_at(document.code)
    rows = []
    for piece in document.pieces:
        func = inside(piece.span[1] - 1) if piece.symbol else None
        if func:
            place = (document.key, piece.span)
            rows.append(code_edge("doc_chunks", piece.key, "funcs", func, CodeEdgeType.DESCRIBES, place))
    return rows


def _table(collection: str, rows: Sequence[Row]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=columns_schema(collection, _COLUMNS)).sort_by("_key")


# Relations and mentions of the entities of code symbols, made from the edges of code.


_STATED = (
    (CodeEdgeType.CALLS, RelationType.REFERS_TO, "calls"),
    (CodeEdgeType.INHERITS, RelationType.EXTENDS, "extends"),
)


class SymbolEntities:
    """The entity of each symbol; `symbols` are entity ids by the name they are shown with."""

    def __init__(self, code: CodeDerivation, symbols: Mapping[str, str]) -> None:
        self._code = code
        names, documents = (code.funcs.column(name).to_pylist() for name in ("qualified_name", "document"))
        found = [
            find_symbol(symbols, name, code.paths[document.partition("/")[2]])
            for name, document in zip(names, documents, strict=True)
        ]
        encoded = pa.array(found, pa.string()).dictionary_encode()
        self._ids = encoded.dictionary
        self._of_symbol: Longs = pc.fill_null(encoded.indices, -1).to_numpy().astype(np.int64)
        self._symbols = pc.binary_join_element_wise("funcs", code.funcs.column("_key").combine_chunks(), "/")

    def mentions(self) -> pa.Table:
        """Each unit of code mentions the entity of its own symbol."""
        edges = self._of_kind("chunk_code_edges", CodeEdgeType.DESCRIBES)
        entity = self._of_symbol[self._rows(edges.column("_to"))]
        known = np.flatnonzero(entity >= 0)
        chunks, entities = edges.column("_from").take(pa.array(known)), self._ids.take(pa.array(entity[known]))
        return fill("mentions", len(known), edge_columns(MentionType.MENTIONS, chunks, entities))

    def relations(self) -> pa.Table:
        """Code that calls or extends code, each relation once, with the first of the symbols that state it."""
        return pa.concat_tables([self._relations(*kinds) for kinds in _STATED])

    def _relations(self, edge: CodeEdgeType, relation: RelationType, label: str) -> pa.Table:
        edges = self._of_kind("imports", edge)
        tail, head = (self._rows(edges.column(name)) for name in ("_from", "_to"))
        order = np.lexsort((head, tail))  # symbols are in order of their keys
        tail, source, target = tail[order], self._of_symbol[tail[order]], self._of_symbol[head[order]]
        used = np.flatnonzero((source >= 0) & (target >= 0) & (source != target))
        pairs, first, count = np.unique(
            source[used] * max(1, len(self._ids)) + target[used], return_index=True, return_counts=True
        )
        rows = used[first]
        sources, targets = (self._ids.take(pa.array(ends[rows])) for ends in (source, target))
        stating = self._code.funcs.take(pa.array(tail[rows]))
        values = {
            **edge_columns(relation, sources, targets),
            "provenance": _places(stating),
            "label": pa.repeat(label, len(pairs)),
            "evidence_count": pa.array(count),
        }
        return fill("relations", len(pairs), values)

    def _of_kind(self, collection: str, kind: CodeEdgeType) -> pa.Table:
        edges = self._code.tables[collection]
        return edges.filter(pc.equal(edges.column("type"), str(kind))).combine_chunks()

    def _rows(self, ids: pa.ChunkedArray) -> Longs:
        """The rows of symbols by their ids."""
        rows: Longs = pc.index_in(ids, value_set=self._symbols).to_numpy().astype(np.int64)
        return rows


def _places(symbols: pa.Table) -> pa.StructArray:
    """Where symbols stand, as provenance."""
    columns = [symbols.column(name).combine_chunks() for name in ("document", "span")]
    return pa.StructArray.from_arrays(columns, fields=list(arrow_schema(Provenance)))
