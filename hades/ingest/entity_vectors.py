"""Vectors of entities: of the document an entity titles, else of its name; what is already there is kept.

From these vectors follow the `similar_to` edges.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hades.ingest.embeddings import as_lists
from hades.ingest.entities.pair_cache import PairCache
from hades.ingest.entities.similar import similar_pairs
from hades.ingest.report import Progress, silent
from hades.ports.store import RowStore, Term
from hades.ports.text import Embedder
from schemas.edges import RelationType
from schemas.ids import edge_key, node_id
from schemas.nodes import EntityType

NAME, DOCUMENT = "name", "document"
WINDOW = 4_096
SIMILAR_THRESHOLD = 0.8
SIMILAR_ENTITIES = 10_000  # the most frequent ones; all pairs of more would cost minutes
SIMILAR_PER_ENTITY = 8


def with_vectors(
    store: RowStore, embedder: Embedder, entities: pa.Table, titles: pa.Table, progress: Progress = silent
) -> pa.Table:
    """The entities with embedding, embedding_model and vector_of filled in."""
    tag = embedder.model.tag
    keys, names = (entities.column(name).combine_chunks() for name in ("_key", "name"))
    vectors = np.zeros((len(keys), embedder.model.dimension), dtype=np.float32)
    has_vector = _keep_names(store, tag, keys, names, vectors)
    of_document = document_vectors(store, titles, tag, embedder.model.dimension)
    rows = pc.index_in(pa.array(list(of_document), pa.string()), value_set=keys)
    is_titled = np.zeros(len(keys), dtype=np.bool_)
    for row, vector in zip(rows.to_pylist(), of_document.values(), strict=True):
        if row is not None:
            vectors[row], is_titled[row] = vector, True
    missing = np.flatnonzero(~(has_vector | is_titled))
    for start in range(0, len(missing), WINDOW):
        part = missing[start : start + WINDOW]
        vectors[part] = embedder.embed(names.take(pa.array(part)).to_pylist())
        progress("names", min(start + WINDOW, len(missing)), len(missing))
    entities = _replace(entities, "embedding", as_lists(vectors))
    entities = _replace(entities, "embedding_model", pa.array([tag] * len(keys), pa.string()))
    return _replace(entities, "vector_of", pc.if_else(pa.array(is_titled), DOCUMENT, NAME))


def document_vectors(store: RowStore, titles: pa.Table, tag: str, dimension: int) -> Mapping[str, NDArray[np.float32]]:
    """Entity key to the mean vector of the chunks of the documents it titles, unit length.

    Sums run in float64 over chunks in key order, so the mean does not depend on how they were read.
    """
    entity_of = dict(
        zip(
            titles.column("document").to_pylist(),
            (identifier.partition("/")[2] for identifier in titles.column("entity").to_pylist()),
            strict=True,
        )
    )
    sums: dict[str, NDArray[np.float64]] = {}
    where = [Term("embedding_model", "==", tag)]
    for batch in store.scan("doc_chunks", where=where, columns=["document", "embedding"]):
        rows = batch.column("embedding").flatten().to_numpy().reshape(-1, dimension)
        for document, vector in zip(batch.column("document").to_pylist(), rows, strict=True):
            entity = entity_of.get(document)
            if entity is not None:
                held = sums.get(entity)
                if held is None:
                    sums[entity] = vector.astype(np.float64)
                else:
                    held += vector
    norms = {key: float(np.sqrt(np.einsum("i,i->", total, total))) for key, total in sums.items()}
    return {key: (total / norms[key]).astype(np.float32) for key, total in sums.items() if norms[key] > 0}


def _keep_names(
    store: RowStore, tag: str, keys: pa.Array, names: pa.Array, vectors: NDArray[np.float32]
) -> NDArray[np.bool_]:
    """Copy vectors of names that were embedded before and are still called so into their rows; which rows have one."""
    where = [Term("embedding_model", "==", tag), Term("vector_of", "==", NAME)]
    has_vector = np.zeros(len(keys), dtype=np.bool_)
    for batch in store.scan("entities", where=where, columns=["name", "embedding"]):
        lists = batch.column("embedding")
        held = lists.flatten().to_numpy().reshape(len(lists), -1)
        place = pc.index_in(batch.column("_key"), value_set=keys)
        is_same = pc.fill_null(pc.equal(names.take(place), batch.column("name")), False).to_numpy(zero_copy_only=False)
        rows = place.filter(pa.array(is_same)).to_numpy()
        vectors[rows], has_vector[rows] = held[is_same], True
    return has_vector


def similar_edges(entities: pa.Table, cache: PairCache | None) -> pa.Table:
    """`similar_to` between names whose vectors nearly agree, among the most frequent entities.

    Code symbols are left out: those of one class share most of their qualified name and would all be similar.
    """
    is_name = pc.and_(
        pc.equal(entities.column("vector_of"), NAME),
        pc.not_equal(entities.column("type"), str(EntityType.CODE_SYMBOL)),
    )
    frequency = np.where(is_name.to_numpy(), entities.column("frequency").to_numpy(), -1)
    order = np.argsort(-frequency, kind="stable")[:SIMILAR_ENTITIES]
    chosen = np.sort(order[frequency[order] >= 0])
    left, right, cosine = similar_pairs(_matrix_of(entities, chosen), SIMILAR_THRESHOLD, SIMILAR_PER_ENTITY, cache)
    keys = entities.column("_key").to_pylist()
    ends = [
        (node_id("entities", keys[chosen[i]]), node_id("entities", keys[chosen[j]]))
        for i, j in zip(left.tolist(), right.tolist(), strict=True)
    ]
    kind = str(RelationType.SIMILAR_TO)
    return pa.table(
        {
            "_key": pa.array([edge_key(tail, kind, head) for tail, head in ends], pa.string()),
            "_from": pa.array([tail for tail, _ in ends], pa.string()),
            "_to": pa.array([head for _, head in ends], pa.string()),
            "type": pa.array([kind] * len(ends), pa.string()),
            "strength": pa.array(np.clip(cosine, 0.0, 1.0)),
        }
    )


def _matrix_of(entities: pa.Table, rows: NDArray[np.int64]) -> NDArray[np.float32]:
    """(n_rows, dim) of the entities' vectors."""
    lists = pc.take(entities.column("embedding"), pa.array(rows)).combine_chunks()
    flat: NDArray[np.float32] = lists.flatten().to_numpy()
    return flat.reshape(len(rows), len(flat) // max(1, len(rows)))


def _replace(table: pa.Table, name: str, values: pa.Array) -> pa.Table:
    index = table.schema.get_field_index(name)
    return table.append_column(name, values) if index < 0 else table.set_column(index, name, values)
