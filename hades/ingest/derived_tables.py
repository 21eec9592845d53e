"""Every derived collection as it should be: names, stated relations and code together, in the catalogue's columns."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hades.build_state.entity_edits import Edits, with_edits
from hades.ingest.code.docstrings import with_docstrings
from hades.ingest.code.symbol_relations import SymbolEntities
from hades.ingest.code.tables import CodeDerivation
from hades.ingest.entities.derive import DerivedRows
from hades.ingest.entities.pair_cache import PairCache
from hades.ingest.entity_vectors import EntityVectors, mark_vectors, similar_edges
from hades.ingest.reference_edges import reference_table
from hades.ingest.stated_edges import StatedCorpus, read_facts, read_stated_relations, symbols_of
from schemas.catalogue import collection_named
from schemas.columns import repeated

_LINKS = '"links":[{'  # documents without it state no relation, and their facts are not parsed


@dataclass(frozen=True)
class CorpusRows:
    """Documents, chunks and functions as read from the store."""

    documents: pa.Table
    chunks: pa.Table
    code: Future[CodeDerivation]  # a worker process may still be at it
    references: list[dict[str, Any]]
    funcs: pa.Table


def build_tables(
    corpus: CorpusRows,
    derived: DerivedRows,
    edits: Edits,
    vectors: EntityVectors,
    cache: PairCache | None,
    before: Mapping[str, pa.Table],
) -> tuple[dict[str, pa.Table], dict[str, pa.Table]]:
    """All derived tables, entities without their vectors; and the rows among them that do not follow from names alone.

    `before` are tables of the last derivation, or nothing.
    """
    titles = dict(
        zip(derived.titles.column("document").to_pylist(), derived.titles.column("entity").to_pylist(), strict=True)
    )
    symbols = symbols_of(derived.entities)
    code = corpus.code.result()
    linking = _read_linking(corpus.documents)
    of_code = SymbolEntities(code, symbols)
    stated = read_stated_relations(
        StatedCorpus(
            documents=linking,
            keys=_keys_by_origin(corpus.documents) if linking else {},
            title_entity={document.partition("/")[2]: entity for document, entity in titles.items()},
            symbol_entity=symbols,
        ),
        of_code.relations(),
    )
    units = of_code.mentions()
    mentions = pa.concat_tables([derived.mentions, units], promote_options="default")
    described = with_docstrings(derived.entities, corpus.funcs, symbols, code.paths)
    entities = mark_vectors(vectors, with_edits(described, edits), corpus.chunks, before.get("entities"))
    similar = similar_edges(vectors, entities, cache)
    relations = _one_each(pa.concat_tables([derived.relations, stated, similar], promote_options="default"))
    relations = _defaults("relations", relations)
    tables = {
        "entities": _with_degrees(_defaults("entities", entities), relations),
        "relations": relations,
        "mentions": _defaults("mentions", _one_each(mentions)),
        "references": reference_table(corpus.references),
        **code.tables,
        "merge_log": derived.merge_log,
    }
    beside = {"relations": _join_beside(relations, [stated, similar]), "mentions": _join_beside(mentions, [units])}
    return tables, {name: _defaults(name, rows) for name, rows in beside.items()}


def _join_beside(all_rows: pa.Table, parts: list[pa.Table]) -> pa.Table:
    """These rows, each key once, in the columns of all."""
    return _one_each(pa.concat_tables([all_rows.slice(0, 0), *parts], promote_options="default"))


def _read_linking(documents: pa.Table) -> list[dict[str, Any]]:
    """The documents that state links, with their facts parsed."""
    rows = documents.filter(pc.match_substring(documents.column("facts"), _LINKS)).to_pylist()
    return [{**row, "facts": read_facts(row["facts"])} for row in rows]


def _keys_by_origin(documents: pa.Table) -> dict[tuple[str, str], str]:
    sources, origins, keys = (documents.column(name).to_pylist() for name in ("source", "origin", "_key"))
    return dict(zip(zip(sources, origins, strict=True), keys, strict=True))


def _with_degrees(entities: pa.Table, relations: pa.Table) -> pa.Table:
    """`deg_out`: how many relations leave each entity."""
    counted = pc.value_counts(relations.column("_from").combine_chunks())
    ids = pc.binary_join_element_wise("entities", entities.column("_key"), "/")
    degree = counted.field("counts").take(pc.index_in(ids, value_set=counted.field("values")).combine_chunks())
    index = entities.schema.get_field_index("deg_out")
    return entities.set_column(index, "deg_out", pc.fill_null(degree, 0).cast(pa.int64()))


def _one_each(relations: pa.Table) -> pa.Table:
    """Each key once; of two sources of one relation the first given stays."""
    keys = relations.column("_key").combine_chunks()
    distinct = pc.unique(keys)
    if len(distinct) == len(keys):
        return relations
    of = pc.index_in(keys, value_set=distinct).to_numpy()
    return relations.take(pa.array(np.unique(of, return_index=True)[1]))  # `distinct` is in order of the first ones


def _defaults(collection: str, table: pa.Table) -> pa.Table:
    """Nulls of columns that have a default replaced by it, so that what is compared is what is stored."""
    declared = collection_named(collection)
    assert declared is not None
    for column in declared.columns:
        index = table.schema.get_field_index(column.name)
        if column.default is None or column.nullable or (index >= 0 and not table.column(index).null_count):
            continue
        filled = repeated(column.default, column.type, table.num_rows)
        if index < 0:
            table = table.append_column(column.name, filled)
        else:
            values = table.column(index).combine_chunks()
            table = table.set_column(index, column.name, pc.if_else(pc.is_valid(values), values, filled))
    return table
