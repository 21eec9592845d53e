"""Relations and mentions of the entities of code symbols, made from the edges of code."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hades.ingest.code.tables import CodeDerivation
from hades.ingest.stated_edges import find_symbol, stated_schema
from hades.text.arrays import Longs
from schemas.catalogue import collection_named
from schemas.edges import MentionType
from schemas.graph_types import CodeEdgeType, RelationType
from schemas.ids import edge_key

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
        kind = str(MentionType.MENTIONS)
        ends = zip(chunks.to_pylist(), entities.to_pylist(), strict=True)
        keys = [edge_key(chunk, kind, one) for chunk, one in ends]
        declared = collection_named("mentions")
        assert declared is not None
        names = ("_key", "_from", "_to", "type", "count")
        schema = pa.schema([declared.schema.field(name) for name in names])
        columns = [pa.array(keys, pa.string()), chunks, entities, pa.repeat(kind, len(keys)), pa.repeat(1, len(keys))]
        return pa.table(columns, names=names).cast(schema)

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
        ends = zip(sources.to_pylist(), targets.to_pylist(), strict=True)
        stating = self._code.funcs.take(pa.array(tail[rows]))
        schema = stated_schema()
        values = {
            "_key": pa.array([edge_key(one, str(relation), other) for one, other in ends], pa.string()),
            "_from": sources,
            "_to": targets,
            "type": pa.repeat(str(relation), len(pairs)),
            "created": pa.nulls(len(pairs), schema.field("created").type),
            "provenance": _places(stating, schema.field("provenance").type),
            "label": pa.repeat(label, len(pairs)),
            "evidence_count": pa.array(count),
        }
        return pa.Table.from_arrays([values[one.name].cast(one.type) for one in schema], schema=schema)

    def _of_kind(self, collection: str, kind: CodeEdgeType) -> pa.Table:
        edges = self._code.tables[collection]
        return edges.filter(pc.equal(edges.column("type"), str(kind))).combine_chunks()

    def _rows(self, ids: pa.ChunkedArray) -> Longs:
        """The rows of symbols by their ids."""
        rows: Longs = pc.index_in(ids, value_set=self._symbols).to_numpy().astype(np.int64)
        return rows


def _places(symbols: pa.Table, kind: pa.StructType) -> pa.StructArray:
    """Where symbols stand, as provenance."""
    columns = [symbols.column(name).combine_chunks() for name in ("document", "span")]
    fields = [kind.field("doc"), kind.field("span")]
    return pa.StructArray.from_arrays(
        [column.cast(one.type) for column, one in zip(columns, fields, strict=True)], fields=fields
    )
